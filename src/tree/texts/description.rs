//! What is known of an array, or a slice of one, when its explaining files are written.

use std::collections::HashMap;
use std::sync::Arc;

use tilefs_export::{Labels, Metadatum};
use tilefs_format::datatype::Kind;
use tilefs_format::scalar::{Range, Scalar};
use tilefs_format::schema::{ArraySchema, Dimension};
use tilefs_reader::array::TimeWindow;
use tilefs_reader::array::dense::AxisSelection;
use tilefs_reader::array::sparse::RowCount;

use crate::tree::listing::Listing;
use crate::tree::soma::Element;

/// An array, or a slice of one, as its folder shows it.
pub struct Description<'a> {
    /// The array's folder on disk.
    pub path: String,
    pub schema: &'a ArraySchema,
    pub cells: CellsSummary,
    /// What `nonempty/` shows, where that is very much less than what is shown here.
    pub written: Option<Box<Description<'a>>>,
    /// The part that is a raster, where the array's metadata says that the rest is padding.
    pub image: Option<ImagePart>,
    /// The slice's folder, as in `slice/0..9`; `None` for the whole array.
    pub selection: Option<String>,
    pub window: TimeWindow,
    /// The newest commit that is shown, in milliseconds since 1970.
    pub last_commit: Option<u64>,
    /// How many fragments are visible.
    pub fragments: usize,
    /// In the order in which they should be named.
    pub files: Arc<Files>,
    /// Files that one may look for in vain, and why they are not there.
    pub not_listed: Arc<Vec<(String, String)>>,
    /// In the order of the schema; those that could not be read are left out and in `warnings`.
    pub enumerations: Vec<Arc<Labels>>,
    pub metadata: Vec<Metadatum>,
    /// Things that people should know, as sentences: what is not supported, what is damaged.
    pub warnings: Vec<String>,
    /// Whether there are `slice/` and `islice/`.
    pub has_slices: bool,
    /// Whether there is `.history/`.
    pub has_history: bool,
    /// Whether the table is so long that its `parts/` serve readers better.
    pub is_long_table: bool,
}

/// The rows and columns of an array's raster, without the padding of its last tiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImagePart {
    pub lines: u64,
    pub samples: u64,
    /// The name of the folder in `islice/` that shows this part alone.
    pub selection: String,
}

/// The cells that the files hold.
#[derive(Debug, Clone, PartialEq)]
pub enum CellsSummary {
    Dense {
        /// One per dimension.
        axes: Vec<AxisSummary>,
        covers: CoveredBox,
    },
    Sparse {
        /// `None` where they could not be counted.
        rows: Option<RowCount>,
        /// The smallest box that holds all cells, where that is known.
        non_empty: Option<Vec<Range>>,
        /// Rows and columns, where the cells are those of a matrix.
        matrix: Option<[u64; 2]>,
    },
}

/// Which box of a dense array its files cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoveredBox {
    Domain,
    CurrentDomain,
    NonEmpty,
    Selection,
}

/// The coordinates along one axis of the files.
#[derive(Debug, Clone, PartialEq)]
pub struct AxisSummary {
    pub length: u64,
    /// `None` where there is nothing along the axis.
    pub first: Option<Scalar>,
    pub last: Option<Scalar>,
    /// From one coordinate to the next; `None` where that varies.
    pub step: Option<i64>,
}

/// One file, or several of one name in as many slices.
#[derive(Debug, Clone)]
pub struct FileFacts {
    /// From the folder of the description.
    pub path: String,
    pub format: Format,
    /// The attribute or dimension it is of, as the user named it; `None` for several or none.
    pub field: Option<String>,
    /// `None` where that would have to be counted.
    pub bytes: Option<u64>,
    /// Whether `ls` shows it in its folder.
    pub listing: Listing,
    /// Whether `ls` shows its folder.
    pub is_folder_listed: bool,
}

impl FileFacts {
    /// Whether `ls` shows it.
    pub fn is_listed(&self) -> bool {
        self.is_folder_listed && self.listing.is_listed()
    }

    /// Whether opening it may take a pass over very many cells.
    pub fn is_slow(&self) -> bool {
        matches!(self.listing, Listing::If(_)) && !self.listing.is_listed()
    }
}

/// The files of a folder, which are found by their field at once: there may be many of many.
#[derive(Debug, Clone, Default)]
pub struct Files {
    all: Vec<FileFacts>,
    by_field: HashMap<String, Vec<usize>>,
}

impl Files {
    pub fn new(all: Vec<FileFacts>) -> Self {
        let mut by_field: HashMap<String, Vec<usize>> = HashMap::new();
        for (number, file) in all.iter().enumerate() {
            if let Some(field) = &file.field {
                match by_field.get_mut(field) {
                    Some(numbers) => numbers.push(number),
                    None => drop(by_field.insert(field.clone(), vec![number])),
                }
            }
        }
        Files { all, by_field }
    }

    /// All files, in the order in which they should be named.
    pub fn iter(&self) -> impl Iterator<Item = &FileFacts> {
        self.all.iter()
    }

    /// The files of a field, in the same order.
    pub fn of_field(&self, field: &str) -> impl Iterator<Item = &FileFacts> {
        self.by_field.get(field).into_iter().flatten().filter_map(|&number| self.all.get(number))
    }
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// The values, end to end, little-endian.
    Raw,
    /// The values, the first axis fastest.
    RawColumnMajor,
    /// Coordinates along an axis, or of each cell, end to end.
    Coordinates,
    Offsets,
    Validity,
    /// One value a line.
    Lines,
    EnviHeader,
    Npy,
    /// Numbers in columns of fixed width, one row of the array a line.
    Grid,
    Tsv,
    Csv,
    NetCdf,
    NetCdf4,
    Hdf5,
    MatrixMarket,
    Arrow,
    Parquet,
    /// The same table, with microseconds for nanoseconds.
    ParquetMicroseconds,
    /// The file that says what is in a Zarr group.
    Zarr,
    /// The same of version 2.
    ZarrSecond,
    Tiff,
    /// GDAL's virtual raster over a raw file.
    VirtualRaster,
    /// Another file that points to a raw one: `.nhdr`, `.mhd`.
    Sidecar,
    /// The labels of an enumeration.
    Labels,
    Metadata,
    /// The file that was stored in the array.
    Original,
    /// README.txt and its like.
    Explanation,
}

impl Format {
    /// Its name in schema.json.
    pub fn name(self) -> &'static str {
        match self {
            Format::Raw => "raw",
            Format::RawColumnMajor => "raw, column-major",
            Format::Coordinates => "coordinates",
            Format::Offsets => "offsets",
            Format::Validity => "validity",
            Format::Lines => "lines of text",
            Format::EnviHeader => "ENVI header",
            Format::Npy => "npy",
            Format::Grid => "text",
            Format::Tsv => "tsv",
            Format::Csv => "csv",
            Format::NetCdf => "netCDF",
            Format::NetCdf4 => "netCDF-4",
            Format::Hdf5 => "HDF5",
            Format::MatrixMarket => "Matrix Market",
            Format::Arrow => "Arrow IPC",
            Format::Parquet => "Parquet",
            Format::ParquetMicroseconds => "Parquet, microseconds",
            Format::Zarr => "Zarr",
            Format::ZarrSecond => "Zarr, version 2",
            Format::Tiff => "BigTIFF",
            Format::VirtualRaster => "GDAL virtual raster",
            Format::Sidecar => "sidecar",
            Format::Labels => "labels",
            Format::Metadata => "metadata",
            Format::Original => "original file",
            Format::Explanation => "explanation",
        }
    }

    /// Whether it holds values of cells, all of them, so that copying two such files copies the values twice.
    pub fn holds_values(self) -> bool {
        use Format::*;
        match self {
            Raw | RawColumnMajor | Lines | Npy | Grid | Tsv | Csv | NetCdf | NetCdf4 | Hdf5 | MatrixMarket | Arrow
            | Parquet | ParquetMicroseconds | Zarr | ZarrSecond | Tiff | Original => true,
            Coordinates | Offsets | Validity | EnviHeader | VirtualRaster | Sidecar | Labels | Metadata
            | Explanation => false,
        }
    }
}

impl Description<'_> {
    /// The last component of the array's path, which is what people call it.
    pub fn name(&self) -> &str {
        self.path.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("array")
    }

    /// Whether all files are a row of cells: those of a sparse array, and of a dense one with one dimension.
    pub fn has_one_axis(&self) -> bool {
        self.schema.is_sparse() || self.schema.dimensions.len() == 1
    }

    /// What its Zarr group is to anndata, if it is a whole array of SOMA.
    pub fn annotated(&self) -> Option<&'static str> {
        match Element::of(self.schema).filter(|_| self.selection.is_none())? {
            Element::DataFrame => Some("a data frame"),
            Element::SparseMatrix => Some("a sparse matrix"),
            Element::DenseMatrix => None,
        }
    }

    /// Cells along each axis, or the number of rows; `None` where it is not known.
    pub fn shape(&self) -> Option<Vec<u64>> {
        match &self.cells {
            CellsSummary::Dense { axes, .. } => Some(axes.iter().map(|axis| axis.length).collect()),
            CellsSummary::Sparse { rows, .. } => rows.and_then(RowCount::exact).map(|rows| vec![rows]),
        }
    }

    /// The files of a field.
    pub fn files_of<'d>(&'d self, field: &str) -> impl Iterator<Item = &'d FileFacts> {
        self.files.of_field(field)
    }
}

impl AxisSummary {
    /// The coordinates of an axis of a dense array.
    pub fn of(selection: &AxisSelection, dimension: &Dimension) -> Self {
        let coordinate = |index: u64| {
            let position = selection.position(index)?;
            let value = match dimension.domain.as_ref()?.low {
                Scalar::Signed(low) => Scalar::Signed(low.wrapping_add(position as i64)),
                Scalar::Unsigned(low) => Scalar::Unsigned(low.wrapping_add(position)),
                _ => return None,
            };
            Some(value)
        };
        let step = match selection.ranges() {
            [] => None,
            [one] => Some(one.step),
            _ => None,
        };
        let length = selection.len();
        let last = length.checked_sub(1).and_then(coordinate);
        debug_assert!(dimension.datatype.kind() != Kind::Bytes);
        AxisSummary { length, first: coordinate(0), last, step }
    }
}

#[cfg(test)]
mod tests {
    use tilefs_reader::array::dense::AxisRange;

    use super::*;
    use crate::tree::texts::testing;

    #[test]
    fn an_axis_tells_its_ends() {
        let schema = testing::dense_schema();
        let of = |ranges: &[AxisRange]| {
            let axis = AxisSelection::new(ranges.iter().copied(), 100).unwrap();
            let axis = AxisSummary::of(&axis, &schema.dimensions[0]);
            (axis.length, axis.first, axis.last, axis.step)
        };
        let range = |first, step, count| AxisRange { first, step, count };
        let signed = |value| Some(Scalar::Signed(value));
        assert_eq!(of(&[range(3, -2, 2)]), (2, signed(-2), signed(-4), Some(-2)));
        assert_eq!(of(&[range(3, 1, 2), range(9, 1, 1)]), (3, signed(-2), signed(4), None));
        assert_eq!(of(&[]), (0, None, None, None));
    }
}
