//! The same programs read the files of mounted arrays: the values are those that libtiledb reads from the arrays.
//!
//! Each program reads a whole array and parts of it: by coordinates, by positions, and in column-major order. Python
//! runs the scripts in `mounted/`; other programs find the values that libtiledb read in a folder beside the mount.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use tilefs_fixtures::fixtures;

use crate::tools::{has, imagemagick, python_file, r_has, run};
use support::manifest::{Expected, Object, load};
use support::skip::{Need, can_mount, python_with, skipped};

/// An array of the fixtures, mounted; unmounted when dropped.
pub struct Mounted {
    folder: TempDir,
    object: Object,
}

fn tilefs(arguments: &[&Path]) -> bool {
    Command::new(env!("CARGO_BIN_EXE_tilefs")).args(arguments).status().is_ok_and(|status| status.success())
}

impl Mounted {
    /// Mounts an array; if mounting is impossible, returns `None` and reports that.
    pub fn new(array: &str) -> Option<Mounted> {
        if !can_mount() {
            return None;
        }
        let object = load(&fixtures().join("manifest.json"), "").into_iter().find(|object| object.name == array);
        let object = object.unwrap_or_else(|| panic!("there is no array {array}"));
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("mnt")).unwrap();
        let mounted = Mounted { folder, object };
        assert!(tilefs(&["mount".as_ref(), &mounted.object.place, &mounted.path("mnt")]), "{array} cannot be mounted");
        Some(mounted)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the values that libtiledb read from an attribute.
    fn expected(&self, attribute: &str) -> Vec<u8> {
        let full = self.object.reads.iter().find(|read| read.name == "full").unwrap();
        let field = full.fields.iter().flatten().find(|field| field.name == attribute).unwrap();
        match &field.values {
            Expected::File(file) => fs::read(file).unwrap(),
            Expected::Sha256(_) => panic!("of {attribute} only the digest is known"),
        }
    }

    /// Runs a program in the folder in which `mnt` is.
    fn run(&self, program: &str, arguments: &[&str]) -> String {
        run(self.folder.path(), program, arguments)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let path = self.path("mnt");
        if !tilefs(&["umount".as_ref(), &path]) {
            let _ = Command::new("umount").arg("-l").arg(&path).status();
        }
    }
}

/// Runs a script of `mounted/` on each of these arrays; the script prints the number of files that it compared. One
/// process runs it for all arrays, because importing `needs` takes longer than checking one of them.
fn python_on(needs: &str, script: &str, arrays: &[&str]) {
    let mounted: Option<Vec<Mounted>> = arrays.iter().map(|array| Mounted::new(array)).collect();
    let Some(mounted) = mounted else { return };
    let folder = tempfile::tempdir().unwrap();
    let places: Vec<String> = mounted.iter().map(|one| one.path("mnt").display().to_string()).collect();
    let pairs = places.iter().zip(arrays).flat_map(|(mnt, array)| [mnt.as_str(), *array]);
    let arguments: Vec<&str> = [script].into_iter().chain(pairs).collect();
    let Some(output) = python_file(folder.path(), needs, "each.py", &arguments) else { return };
    let counts: Vec<(&str, &str)> = output.lines().filter_map(|line| line.split_once(' ')).collect();
    assert!(counts.iter().map(|(array, _)| array).eq(arrays), "{output}");
    for (array, count) in counts {
        assert!(count.parse::<usize>().is_ok_and(|count| count > 0), "{array}: {output}");
    }
}

/// Runs a script of `mounted/` that makes arrays in a folder, mounts each array NAME as `mnt_NAME`, and runs the script
/// again to check them.
fn made_and_checked(needs: &str, script: &str) {
    made_and_looked_at(script, needs, &[(needs, "check")]);
}

/// Like [`made_and_checked`], with several checks, each of which needs other packages.
fn made_and_looked_at(script: &str, needs: &str, ways: &[(&str, &str)]) {
    if !can_mount() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(made) = python_file(folder.path(), needs, script, &["make"]) else { return };
    let mounts: Vec<Mount> = made.split_whitespace().map(|name| Mount::new(folder.path(), name)).collect();
    assert!(!mounts.is_empty(), "{script} makes no arrays");
    for (needs, way) in ways {
        python_file(folder.path(), needs, script, &[way]);
    }
}

/// A mounted array that is not a fixture.
struct Mount(PathBuf);

impl Mount {
    fn new(folder: &Path, name: &str) -> Self {
        let mount = Mount(folder.join(format!("mnt_{name}")));
        fs::create_dir(&mount.0).unwrap();
        assert!(tilefs(&["mount".as_ref(), &folder.join(name), &mount.0]), "{name} cannot be mounted");
        mount
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if !tilefs(&["umount".as_ref(), &self.0]) {
            let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        }
    }
}

#[test]
fn gdal_rasterio_and_xarray_see_the_raster_that_gdal_sees_in_a_geotiff() {
    if has("gdalinfo") {
        made_and_checked("numpy, rasterio, tiledb, xarray, netCDF4", "raster_files.py");
    }
}

#[test]
fn gdal_sees_in_tiffs_and_virtual_rasters_what_its_own_driver_sees_in_the_array() {
    if has("gdalinfo") {
        made_and_checked("pyproj", "driver_files.py");
    }
}

#[test]
fn xarray_gdal_and_rasterio_see_what_gdal_s_multidimensional_driver_says() {
    if has("gdalinfo") {
        made_and_checked("numpy, netCDF4, rasterio, tiledb, xarray", "multidim_files.py");
    }
}

#[test]
fn missing_values_pictures_texts_and_units_mean_what_they_mean_in_the_array() {
    if has("gdalinfo") {
        made_and_checked("numpy, netCDF4, rasterio, SimpleITK, tiledb, xarray", "meaning_files.py");
    }
}

#[test]
fn every_view_shows_all_names_to_its_readers() {
    if has("ncdump") && has("Rscript") {
        made_and_checked(
            "numpy, duckdb, netCDF4, pandas, polars, pyarrow, rasterio, SimpleITK, tiledb, xarray, zarr",
            "odd_name_files.py",
        );
    }
}

#[test]
fn bytes_that_are_not_utf_8_are_themselves_or_an_error_in_every_view() {
    let needs = "numpy, duckdb, netCDF4, pandas, polars, pyarrow, tiledb, xarray, zarr";
    made_and_checked(needs, "not_utf8_files.py");
}

#[test]
fn numpy_maps_raw_and_npy_files() {
    let dense = ["types_numbers", "types_times", "types_text", "multi_value", "nullable", "var", "odd_names"];
    let shapes = ["dims_1", "dims_3", "dims_4", "order_tile_col_cell_col_3d", "dim_uint64", "dim_datetime_day"];
    let sparse = ["types", "nullable", "order_tile_row_cell_col", "hilbert", "dim_times", "dups", "deletes", "empty"];
    let dense = dense.iter().chain(&shapes).map(|name| format!("arrays/dense/{name}"));
    let sparse = sparse.iter().map(|name| format!("arrays/sparse/{name}"));
    let arrays: Vec<String> = dense.chain(sparse).chain(["demo".to_owned()]).collect();
    python_on("numpy", "numpy_files.py", &arrays.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn scipy_netcdf4_and_xarray_open_the_netcdf_file() {
    let arrays = [
        "demo",
        "arrays/dense/dims_3",
        "arrays/dense/types_numbers",
        "arrays/dense/dim_datetime_day",
        "arrays/dense/nullable",
        "arrays/dense/fill",
        "arrays/sparse/order_tile_row_cell_row",
        "arrays/sparse/consolidated",
        "arrays/sparse/dim_times",
        "arrays/sparse/dim_text",
    ];
    python_on("numpy, scipy.io, netCDF4, xarray", "netcdf_files.py", &arrays);
}

#[test]
fn h5py_and_netcdf4_open_the_hdf5_files() {
    let arrays = [
        "demo",
        "arrays/dense/dims_3",
        "arrays/dense/types_numbers",
        "arrays/dense/types_text",
        "arrays/dense/multi_value",
        "arrays/dense/dim_datetime_day",
        "arrays/dense/nullable",
        "arrays/dense/fill",
        "arrays/dense/var",
        "arrays/sparse/order_tile_row_cell_row",
        "arrays/sparse/consolidated",
        "arrays/sparse/dim_times",
        "arrays/sparse/dim_text",
        "arrays/sparse/empty",
    ];
    python_on("numpy, netCDF4, h5py", "hdf5_files.py", &arrays);
}

#[test]
fn zarr_xarray_and_dask_open_the_zarr_group() {
    let numbers = ["types_numbers", "types_times", "types_text", "multi_value", "fill", "dims_1", "dims_3", "dims_4"];
    let others = ["nullable", "var", "enumerations", "odd_names", "anonymous_dimension", "partial", "no_fragment"];
    let shapes = ["order_tile_col_cell_col_3d", "dim_uint64", "dim_datetime_day", "current_domain", "labels", "table"];
    let dense = numbers.iter().chain(&others).chain(&shapes).map(|name| format!("arrays/dense/{name}"));
    let sparse = ["types", "nullable", "enumerations", "dim_text", "dim_times", "hilbert", "deletes", "empty"];
    let sparse = sparse.iter().map(|name| format!("arrays/sparse/{name}"));
    let arrays: Vec<String> = ["demo".to_owned()].into_iter().chain(dense).chain(sparse).collect();
    python_on(
        "numpy, zarr, xarray, dask.array",
        "zarr_files.py",
        &arrays.iter().map(String::as_str).collect::<Vec<_>>(),
    );
}

#[test]
fn xarray_looks_cells_up_by_labels_and_slices_are_taken_by_them() {
    made_and_looked_at(
        "label_files.py",
        "numpy, tiledb",
        &[("numpy, xarray, zarr, netCDF4, pyarrow, tiledb", "check")],
    );
}

#[test]
fn xarray_selects_by_the_only_dimension_of_a_sparse_array() {
    made_and_looked_at("series_files.py", "numpy, tiledb", &[("numpy, xarray, zarr, netCDF4, tiledb", "check")]);
}

#[test]
fn xarray_sees_one_dataset_in_a_group_of_tiledb_cf() {
    let readers = "numpy, xarray, zarr, netCDF4, h5py, tiledb";
    let joining = ["ncrcat", "cdo"].into_iter().filter(|program| has(program)).map(|program| (readers, program));
    let ways: Vec<(&str, &str)> = [(readers, "check")].into_iter().chain(joining).collect();
    made_and_looked_at("dataset_files.py", "numpy, tiledb", &ways);
}

#[test]
fn zarr_opens_the_parts_of_an_array() {
    made_and_checked("numpy, tiledb, zarr", "zarr_part_files.py");
}

#[test]
fn zarr_and_anndata_open_an_experiment_of_soma() {
    let ways = [
        ("numpy, tiledb, zarr", "check"),
        ("tiledb, zarr, anndata, pandas, scipy.sparse", "annotated"),
        ("tiledb, zarr, anndata, pandas, scipy.sparse, h5py", "h5ad"),
    ];
    made_and_looked_at("soma_files.py", "numpy, tiledb", &ways);
}

#[test]
fn scipy_and_r_read_the_folders_of_cell_ranger() {
    if has("Rscript") && r_has("Matrix") {
        let ways = [("tiledb, zarr, anndata, scipy.io", "cell_ranger")];
        made_and_looked_at("soma_files.py", "numpy, tiledb", &ways);
    }
}

/// Runs the example of docs/clusters.md: a cluster of processes, which starts slowly.
#[test]
fn the_workers_of_a_dask_cluster_each_mount_the_array() {
    let needs = "numpy, dask, distributed";
    let Some(python) = python_with(needs).filter(|_| can_mount()) else { return };
    let example = support::repository::root().join("examples/dask_cluster.py");
    let program = format!("TILEFS={}", env!("CARGO_BIN_EXE_tilefs"));
    let folder = tempfile::tempdir().unwrap();
    let temporary = format!("TMPDIR={}", folder.path().display());
    for (array, attribute) in [("demo", "cell"), ("arrays/dense/dims_3", "v")] {
        let array = fixtures().join(array).display().to_string();
        let arguments = [program.as_str(), &temporary, &python, &example.display().to_string(), &array, attribute];
        let printed = run(folder.path(), "env", &arguments);
        assert!(
            printed.contains(" of 2 workers that had it mounted\n") && printed.ends_with("NumPy says the same\n"),
            "{printed}"
        );
    }
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!table.contains(&temporary["TMPDIR=".len()..]), "each worker unmounts");
}

#[test]
fn tifffile_and_rasterio_open_the_pictures() {
    let shapes = ["dims_2", "dims_3", "types_numbers", "multi_value", "order_tile_col_cell_col_3d", "dim_extent_1"];
    let arrays = shapes.iter().map(|name| format!("arrays/dense/{name}"));
    let arrays: Vec<String> = ["demo".to_owned()].into_iter().chain(arrays).collect();
    python_on("numpy, tifffile, rasterio", "tiff_files.py", &arrays.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn astropy_opens_the_fits_images() {
    let names = ["types_numbers", "types_times", "multi_value", "nullable", "fill", "odd_names", "no_fragment"];
    let shapes = ["dims_1", "dims_4", "order_tile_col_cell_col_3d", "dim_uint64", "dim_datetime_day"];
    let arrays = names.iter().chain(&shapes).map(|name| format!("arrays/dense/{name}"));
    let arrays: Vec<String> = ["demo".to_owned()].into_iter().chain(arrays).collect();
    python_on("numpy, astropy.io.fits", "fits_files.py", &arrays.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn idl_opens_the_fits_images() {
    let library = "/usr/share/gnudatalanguage/astrolib/readfits.pro";
    if !Path::new(library).exists() {
        skipped(Need::Programs, &format!("{library} is missing (package gdl-astrolib)"));
    } else if has("gdl") {
        made_and_checked("numpy, tiledb, astropy.wcs", "idl_files.py");
    }
}

#[test]
fn nibabel_opens_the_volumes() {
    let names = ["types_numbers", "multi_value", "fill", "odd_names", "partial", "dims_2", "dims_3", "dims_4"];
    let arrays = names.iter().map(|name| format!("arrays/dense/{name}"));
    let arrays: Vec<String> = ["demo".to_owned()].into_iter().chain(arrays).collect();
    python_on("numpy, nibabel", "nifti_files.py", &arrays.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn images_of_the_sky_and_volumes_of_the_brain_have_their_coordinates() {
    if has("gdalinfo") {
        made_and_checked("numpy, tiledb, nibabel, astropy.wcs", "sky_files.py");
    }
}

#[test]
fn overviews_are_those_that_gdal_makes() {
    if has("gdalinfo") && has("gdaladdo") {
        made_and_checked("numpy, rasterio, tifffile, tiledb", "overview_files.py");
    }
}

#[test]
fn images_with_tiles_are_cloud_optimized() {
    made_and_checked("numpy, rasterio, rio_cogeo, tiledb", "cog_files.py");
}

#[test]
fn ome_zarr_opens_pyramids_of_pictures() {
    made_and_checked("numpy, rasterio, tiledb, zarr, dask.array, ome_zarr.reader", "ngff_files.py");
}

#[test]
fn tifffile_and_gdal_open_pyramids_of_pictures() {
    // Without gdalinfo, only tifffile opens them.
    has("gdalinfo");
    made_and_checked("numpy, tifffile, tiledb", "pyramid_files.py");
}

#[test]
fn geopandas_duckdb_and_gdal_read_geometries_and_skip_those_elsewhere() {
    let ways = [
        ("numpy, tiledb, geopandas, pyogrio, pyarrow.dataset", "check"),
        ("tiledb, pyogrio, shapely", "streams"),
        ("numpy, tiledb, geopandas, pyogrio, pyarrow.parquet, shapely", "own_names"),
        ("tiledb, duckdb, shapely", "query"),
    ];
    made_and_looked_at("geo_files.py", "numpy, tiledb, shapely, pyproj", &ways);
}

#[test]
fn the_parts_of_spatialdata_open_with_the_libraries_that_it_uses() {
    let ways = [("numpy, tiledb, zarr, geopandas, dask.dataframe, anndata", "check")];
    made_and_looked_at("spatial_files.py", "numpy, tiledb, shapely", &ways);
}

#[test]
fn pyarrow_pandas_and_scipy_read_the_tables() {
    let arrays = ["order_tile_row_cell_row", "consolidated", "dim_times", "nullable", "dim_text", "dim_integers"];
    let more = ["dups", "enumerations", "empty", "hilbert", "deletes_many", "soma_matrix"];
    let sparse = arrays.iter().chain(&more).map(|name| format!("arrays/sparse/{name}"));
    let dense =
        ["table", "dims_1", "dim_datetime_ms", "dim_int8", "dim_uint64"].map(|name| format!("arrays/dense/{name}"));
    let arrays: Vec<String> = sparse.chain(dense).collect();
    let arrays: Vec<&str> = arrays.iter().map(String::as_str).collect();
    python_on("numpy, pyarrow, pandas, scipy.io", "table_files.py", &arrays);
}

#[test]
fn pyarrow_duckdb_and_polars_read_the_parquet_file() {
    let arrays = ["order_tile_row_cell_row", "consolidated", "dim_times", "nullable", "dim_text", "dim_integers"];
    let more = ["dups", "enumerations", "empty", "hilbert", "deletes_many", "soma_matrix", "dim_floats"];
    let sparse = arrays.iter().chain(&more).map(|name| format!("arrays/sparse/{name}"));
    let dense =
        ["table", "dims_1", "dim_datetime_ms", "dim_int8", "dim_uint64"].map(|name| format!("arrays/dense/{name}"));
    let arrays: Vec<String> = sparse.chain(dense).collect();
    let arrays: Vec<&str> = arrays.iter().map(String::as_str).collect();
    python_on("numpy, pyarrow.parquet, duckdb, polars", "parquet_files.py", &arrays);
}

#[test]
fn pandas_reads_the_frames_that_were_stored() {
    made_and_checked("numpy, pandas, pyarrow, tiledb", "frame_files.py");
}

#[test]
fn queries_find_the_rows_of_a_full_scan() {
    made_and_checked("numpy, tiledb, duckdb, polars, pyarrow.parquet", "parquet_predicates.py");
}

#[test]
fn parts_are_the_rows_of_the_table() {
    made_and_checked("numpy, tiledb, duckdb, polars, pyarrow.dataset, dask.dataframe", "parts_files.py");
}

#[test]
fn queries_read_the_row_groups_that_they_need() {
    made_and_checked("numpy, tiledb, duckdb, polars, pyarrow.parquet", "parquet_bytes.py");
}

/// A part of the sample array, and the values that libtiledb read from it.
struct Part {
    /// Its folder in the mount, with a slash at the end.
    prefix: &'static str,
    /// Rows and columns of its files.
    shape: [usize; 2],
    /// The bytes of `temp` and `cell`, 4 per cell.
    temp: Vec<u8>,
    cell: Vec<u8>,
}

impl Part {
    fn floats(&self) -> Vec<f32> {
        self.temp.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect()
    }

    fn integers(&self) -> Vec<i32> {
        self.cell.chunks_exact(4).map(|four| i32::from_le_bytes(four.try_into().unwrap())).collect()
    }
}

/// Returns all of the sample array (100 rows, 200 columns), some of it by coordinates, and some by positions. When a
/// part is checked, the values that libtiledb read from it are written beside the mount, as `temp` and `cell`.
fn parts(demo: &Mounted) -> Vec<Part> {
    let (temp, cell) = (demo.expected("temp"), demo.expected("cell"));
    let part = |prefix, rows: Vec<usize>, columns: Vec<usize>| {
        let cut = |bytes: &[u8]| -> Vec<u8> {
            let cells = rows.iter().flat_map(|row| columns.iter().map(move |column| 4 * (row * 200 + column)));
            cells.flat_map(|at| bytes[at..at + 4].to_vec()).collect()
        };
        Part { prefix, shape: [rows.len(), columns.len()], temp: cut(&temp), cell: cut(&cell) }
    };
    vec![
        part("", (0..100).collect(), (0..200).collect()),
        part("slice/10..19,x=5..104..3/", (10..20).collect(), (5..105).step_by(3).collect()),
        part("islice/::-7,-50:/", (0..100).rev().step_by(7).collect(), (150..200).collect()),
    ]
}

fn demo() -> Option<Mounted> {
    Mounted::new("demo")
}

#[test]
fn gdal_reads_the_raster_by_its_header_and_by_its_vrt() {
    if !has("gdalinfo") {
        return;
    }
    let Some(demo) = demo() else { return };
    for part in parts(&demo) {
        for (name, expected) in [("temp.f32", &part.temp), ("temp.vrt", &part.temp), ("cell.i32", &part.cell)] {
            let file = format!("mnt/{}{name}", part.prefix);
            let info = demo.run("gdalinfo", &[&file]);
            assert!(info.contains(&format!("Size is {}, {}\n", part.shape[1], part.shape[0])), "{file}: {info}");
            demo.run("gdal_translate", &["-q", "-of", "ENVI", &file, "out.raw"]);
            assert!(fs::read(demo.path("out.raw")).unwrap() == *expected, "{file}");
        }
        let info = demo.run("gdalinfo", &[&format!("NETCDF:\"mnt/{}netcdf/array.nc\":cell", part.prefix)]);
        assert!(info.contains(&format!("Size is {}, {}\n", part.shape[1], part.shape[0])), "{info}");
    }
}

#[test]
fn ncdump_prints_the_values() {
    if !has("ncdump") {
        return;
    }
    let Some(demo) = demo() else { return };
    for part in parts(&demo) {
        let file = format!("mnt/{}netcdf/array.nc", part.prefix);
        let header = demo.run("ncdump", &["-h", &file]);
        assert!(
            header.contains(&format!("x = {} ;", part.shape[1])) && header.contains("float temp(y, x) ;"),
            "{header}"
        );
        let printed = |name: &str| {
            let text = demo.run("ncdump", &["-p", "9,17", "-v", name, &file]);
            let values = text.rsplit_once(&format!("\n {name} =")).unwrap().1.trim_end_matches(['}', '\n', ' ', ';']);
            values.split(',').map(|value| value.trim().to_owned()).collect::<Vec<_>>()
        };
        let cells: Vec<i32> = printed("cell").iter().map(|value| value.parse().unwrap()).collect();
        assert_eq!(cells, part.integers(), "{file}");
        let temps: Vec<f32> = printed("temp").iter().map(|value| value.parse().unwrap()).collect();
        assert_eq!(temps, part.floats(), "{file}");
    }
}

#[test]
fn each_awk_prints_the_mean_that_numpy_computes() {
    let found = ["mawk", "gawk", "original-awk", "busybox"].map(has);
    if found.contains(&true) {
        let folder = tempfile::tempdir().unwrap();
        python_file(folder.path(), "numpy, tiledb", "mean_files.py", &["check"]);
    }
}

#[test]
fn awk_reads_the_texts() {
    if !has("awk") {
        return;
    }
    let one_a_line = "{ for (i = 1; i <= NF; i++) print $i } END { print NR }";
    let Some(demo) = demo() else { return };
    for part in parts(&demo) {
        let text = demo.run("awk", &[one_a_line, &format!("mnt/{}text/temp.txt", part.prefix)]);
        let mut values: Vec<f32> = text.lines().map(|value| value.parse().unwrap()).collect();
        assert_eq!(values.pop(), Some(part.shape[0] as f32), "{}", part.prefix);
        assert_eq!(values, part.floats(), "{}", part.prefix);
    }
    drop(demo);

    // For a sparse array, the columns of the table; libtiledb's rows are sorted.
    let Some(sparse) = Mounted::new("arrays/sparse/consolidated") else { return };
    let columns = "BEGIN { FS = \"\\t\" } NR > 1 { print $1 \" \" $2 \" \" $3 }";
    let text = sparse.run("awk", &[columns, "mnt/text/cells.tsv"]);
    let row = |line: &str| line.split(' ').map(|number| number.parse::<i32>().unwrap()).collect::<Vec<_>>();
    let mut rows: Vec<Vec<i32>> = text.lines().map(row).collect();
    rows.sort();
    let integers = |name: &str| -> Vec<i32> {
        sparse.expected(name).chunks_exact(4).map(|four| i32::from_le_bytes(four.try_into().unwrap())).collect()
    };
    let (y, x, v) = (integers("y"), integers("x"), integers("v"));
    let expected: Vec<Vec<i32>> = (0..y.len()).map(|row| vec![y[row], x[row], v[row]]).collect();
    assert_eq!(rows, expected);
}

#[test]
fn r_reads_binary_and_text() {
    if !has("Rscript") {
        return;
    }
    let script = r#"
given <- commandArgs(TRUE)
part <- given[1]; rows <- as.integer(given[2]); columns <- as.integer(given[3]); n <- rows * columns
floats <- function(file) readBin(file, "numeric", n + 1, size = 4, endian = "little")
integers <- function(file) readBin(file, "integer", n + 1, size = 4, endian = "little")
at <- function(name) paste0("mnt/", part, name)
temp <- floats("temp")
stopifnot(length(temp) == n, identical(floats(at("temp.f32")), temp))
stopifnot(identical(integers(at("cell.i32")), integers("cell")))
# The columns of R are the rows of a file in column-major order.
stopifnot(identical(matrix(floats(at("F/temp.f32")), rows), matrix(temp, rows, byrow = TRUE)))
table <- unname(as.matrix(read.table(at("text/cell.txt"))))
stopifnot(identical(table, matrix(integers("cell"), rows, byrow = TRUE)))
table <- unname(as.matrix(read.table(at("text/temp.txt"))))
again <- readBin(writeBin(as.vector(t(table)), raw(), size = 4), "numeric", n, size = 4)
stopifnot(identical(again, temp))
"#;
    let Some(demo) = demo() else { return };
    for part in parts(&demo) {
        fs::write(demo.path("temp"), &part.temp).unwrap();
        fs::write(demo.path("cell"), &part.cell).unwrap();
        let [rows, columns] = part.shape.map(|length| length.to_string());
        demo.run("Rscript", &["-e", script, part.prefix, &rows, &columns]);
    }
    drop(demo);

    let Some(sparse) = Mounted::new("arrays/sparse/consolidated") else { return };
    for name in ["y", "x", "v"] {
        fs::write(sparse.path(name), sparse.expected(name)).unwrap();
    }
    let script = r#"
table <- read.delim("mnt/text/cells.tsv")
table <- table[order(table$y, table$x), ]
for (name in c("y", "x", "v")) {
  expected <- readBin(name, "integer", 1000, size = 4, endian = "little")
  found <- as.numeric(table[[name]])
  # The least integer is R's NA.
  stopifnot(length(found) == length(expected), all(found == expected | (is.na(expected) & found == -2^31)))
}
"#;
    sparse.run("Rscript", &["-e", script]);
}

#[test]
fn fortran_streams_read_the_raw_files() {
    if !has("gfortran") {
        return;
    }
    let program = r#"
program same
  use, intrinsic :: iso_fortran_env
  character(200) :: part, number
  integer :: rows, columns, bytes
  real(real32), allocatable :: expected(:, :), row_major(:, :), column_major(:, :), text(:, :)
  integer(int32), allocatable :: cells(:, :), mounted(:, :)
  call get_command_argument(1, part)
  call get_command_argument(2, number); read(number, *) rows
  call get_command_argument(3, number); read(number, *) columns
  allocate(expected(columns, rows), row_major(columns, rows), column_major(rows, columns), text(columns, rows))
  allocate(cells(columns, rows), mounted(columns, rows))
  open(10, file='temp', access='stream', form='unformatted'); read(10) expected
  open(11, file='cell', access='stream', form='unformatted'); read(11) cells
  open(12, file='mnt/' // trim(part) // 'temp.f32', access='stream', form='unformatted', action='read')
  inquire(12, size=bytes)
  if (bytes /= 4 * rows * columns) stop 1
  read(12) row_major
  if (any(row_major /= expected)) stop 2
  open(13, file='mnt/' // trim(part) // 'cell.i32', access='stream', form='unformatted', action='read'); read(13) mounted
  if (any(mounted /= cells)) stop 3
  open(14, file='mnt/' // trim(part) // 'F/temp.f32', access='stream', form='unformatted', action='read'); read(14) column_major
  if (any(transpose(column_major) /= expected)) stop 4
  open(15, file='mnt/' // trim(part) // 'text/temp.txt', action='read'); read(15, *) text
  if (any(text /= expected)) stop 5
end program
"#;
    let Some(demo) = demo() else { return };
    fs::write(demo.path("same.f90"), program).unwrap();
    demo.run("gfortran", &["-o", "same", "same.f90"]);
    for part in parts(&demo) {
        fs::write(demo.path("temp"), &part.temp).unwrap();
        fs::write(demo.path("cell"), &part.cell).unwrap();
        let [rows, columns] = part.shape.map(|length| length.to_string());
        demo.run("./same", &[part.prefix, &rows, &columns]);
    }
}

#[test]
fn imagemagick_reads_raw_pixels_and_pictures() {
    let Some(convert) = imagemagick() else { return };
    // Size and depth are arguments; both arrays have 30 columns.
    for (array, attribute, file, depth) in [
        ("arrays/dense/filters_uint8", "zstd", "zstd.u8", 8),
        ("arrays/dense/filters_packed_uint16", "delta", "delta.u16", 16),
    ] {
        let Some(mounted) = Mounted::new(array) else { return };
        let expected = mounted.expected(attribute);
        let row = 30 * depth / 8;
        let rows = expected.len() / row;
        for (prefix, first, count) in [("", 0, rows), ("slice/10..20/", 10, 11), ("islice/-5:/", rows - 5, 5)] {
            let (size, depth) = (format!("30x{count}"), depth.to_string());
            let input = format!("gray:mnt/{prefix}{file}");
            let reading = ["-size", &size, "-depth", &depth, "-endian", "LSB", &input];
            let writing = ["-depth", &depth, "-endian", "LSB", "gray:out"];
            mounted.run(convert, &[&reading[..], &writing].concat());
            let expected = &expected[first * row..(first + count) * row];
            assert!(fs::read(mounted.path("out")).unwrap() == expected, "{array} {prefix}{file}");
            // A TIFF states its own size and depth.
            let picture = format!("mnt/{prefix}tiff/{attribute}.tif");
            mounted.run(convert, &[&[picture.as_str()][..], &writing].concat());
            assert!(fs::read(mounted.path("out")).unwrap() == expected, "{array} {picture}");
        }
    }
}
