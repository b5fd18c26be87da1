//! The formats of files, and what the texts say about each.

use crate::texts::shown::View;

/// The kind of a file, in the order in which README.txt names those that are the best for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// The values, end to end, little-endian.
    Raw,
    /// The values, first axis fastest.
    RawColumnMajor,
    /// Coordinates along an axis, or of each cell, end to end.
    Coordinates,
    Offsets,
    Validity,
    /// One value per line.
    Lines,
    EnviHeader,
    /// Another file that points to a raw one: `.nhdr`, `.mhd`.
    Sidecar,
    /// Numbers in columns of fixed width, one row of the array per line.
    Grid,
    /// The file that was stored in the array.
    Original,
    Arrow,
    Parquet,
    /// The same table, with microseconds instead of nanoseconds.
    ParquetMicroseconds,
    Tsv,
    Csv,
    MatrixMarket,
    Npy,
    NetCdf,
    NetCdf4,
    Hdf5,
    /// The file that describes a Zarr group.
    Zarr,
    /// The same in version 2.
    ZarrSecond,
    /// GDAL's virtual raster over a raw file.
    VirtualRaster,
    Tiff,
    /// GDAL's file of metadata beside a raster.
    RasterMetadata,
    /// The labels of an enumeration.
    Labels,
    Metadata,
    /// README.txt and similar files.
    Explanation,
}

/// The names of a format, and what the texts say about it.
#[derive(Debug, Clone, Copy)]
pub struct FormatFacts {
    /// Its name in schema.json.
    pub name: &'static str,
    /// The content of its files, and the programs that read them.
    pub reader: &'static str,
    /// The task that README.txt recommends the format for, if any.
    pub job: Option<&'static str>,
    /// Whether a file holds the values of all cells, so that copying two such files copies the values twice.
    pub holds_values: bool,
    /// The view with which its files are listed; `None` if they always are, or never.
    pub view: Option<View>,
}

impl FormatFacts {
    fn best_for(self, job: &'static str) -> Self {
        FormatFacts { job: Some(job), ..self }
    }

    fn shown_as(self, view: View) -> Self {
        FormatFacts { view: Some(view), ..self }
    }
}

impl Format {
    /// Returns the facts of this format.
    pub fn facts(self) -> FormatFacts {
        use Format::*;
        let about = |name, reader| FormatFacts { name, reader, job: None, holds_values: false, view: None };
        let values = |name, reader| FormatFacts { holds_values: true, ..about(name, reader) };
        match self {
            Raw => {
                values("raw", "values, little-endian, row-major: NumPy (fromfile, memmap), R (readBin), Fortran, C, od")
            }
            RawColumnMajor => {
                values("raw, column-major", "values, the first dimension fastest: Fortran, R, MATLAB, Julia")
                    .shown_as(View::Other)
            }
            Coordinates => about("coordinates", "coordinates, little-endian: as for values"),
            Offsets => about("offsets", "where each value begins in the file of values; 8 bytes each"),
            Validity => about("validity", "1 for valid and 0 for null, a byte each"),
            Lines => values("lines of text", "one value per line: cat, grep, awk, R (readLines)"),
            EnviHeader => about("ENVI header", "ENVI header: ENVI, GDAL, R (terra), SPy"),
            Sidecar => about("sidecar", "header of an image: ITK, 3D Slicer, ParaView, ImageJ").shown_as(View::Other),
            Grid => values("text", "numbers in columns: awk, gnuplot, R (read.table), NumPy (loadtxt)"),
            Original => values("original file", "the file that was stored")
                .best_for("The file that is stored here, under its own name"),
            Arrow => values("Arrow IPC", "the table: pyarrow, Polars, R (arrow)")
                .best_for("Data frames: pandas, Polars, DuckDB, R")
                .shown_as(View::Arrow),
            Parquet => values("Parquet", "the table: DuckDB, Polars, pandas, pyarrow, Spark")
                .best_for("Tables and queries: DuckDB, Spark, pandas")
                .shown_as(View::Parquet),
            ParquetMicroseconds => values("Parquet, microseconds", "the table with times in microseconds: Spark")
                .best_for("Tables in Spark, which has no nanoseconds"),
            Tsv => values("tsv", "the table with tabs: cut, awk, R (read.delim), pandas, DuckDB, spreadsheets")
                .best_for("Tables: cut, sort, awk, sqlite3"),
            Csv => values("csv", "the table with commas: R (read.csv), pandas, DuckDB, spreadsheets")
                .best_for("Tables: spreadsheets")
                .shown_as(View::Csv),
            MatrixMarket => values("Matrix Market", "a sparse matrix: SciPy (mmread), R (Matrix), Julia")
                .best_for("Sparse matrices: SciPy, scanpy, R, Julia")
                .shown_as(View::Other),
            Npy => {
                values("npy", "NumPy (load, memory-mapped), Julia, R (RcppCNPy)").best_for("Arrays in memory: NumPy")
            }
            NetCdf => values("netCDF", "all of it as netCDF: ncdump, xarray, NCO, CDO, Panoply, R (ncdf4)")
                .best_for("Everything in one file: xarray, NCO, ncview"),
            NetCdf4 => values(
                "netCDF-4",
                "the same as netCDF-4, with text and 64-bit integers: ncdump, xarray, R (ncdf4), Panoply",
            )
            .best_for("The same with text: xarray, Panoply, R, Julia")
            .shown_as(View::Other),
            Hdf5 => values("HDF5", "the same as HDF5: MATLAB, IDL, R (rhdf5, hdf5r), Julia, h5py")
                .best_for("The same for HDF5: MATLAB, IDL, R, Julia, h5py")
                .shown_as(View::Other),
            Zarr => values("Zarr", "a Zarr group (open the folder): xarray, zarr, dask, anndata, napari")
                .best_for("Chunks on many cores: dask, xarray, Zarr")
                .shown_as(View::Zarr),
            ZarrSecond => values(
                "Zarr, version 2",
                "the same in version 2 of Zarr: zarr-python before 3, anndata before 0.11, GDAL",
            )
            .best_for("The same for Zarr 2: older anndata, xarray, GDAL")
            .shown_as(View::Other),
            VirtualRaster => about("GDAL virtual raster", "GDAL's virtual raster: QGIS, GDAL, rasterio, R (terra)")
                .best_for("Rasters: GDAL, QGIS")
                .shown_as(View::Vrt),
            Tiff => values("BigTIFF", "BigTIFF: QGIS, GDAL, rasterio, ImageJ, tifffile")
                .best_for("Pictures, maps: rasterio, ImageMagick, tifffile")
                .shown_as(View::Tiff),
            RasterMetadata => {
                about("GDAL metadata", "what the TIFF beside it cannot hold: GDAL, QGIS, rasterio").shown_as(View::Tiff)
            }
            Labels => {
                about("labels", "labels of codes: line k + 1 is code k").best_for("The labels that codes stand for")
            }
            Metadata => about("metadata", "metadata: cat, jq"),
            Explanation => about("explanation", "a description of the array: any pager, jq"),
        }
    }
}
