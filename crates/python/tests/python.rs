//! Runs the tests of the Python package with the module that was built along with this program.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::faulty::Faulty;
use support::skip::{can_mount, python_with};

/// The Python packages that the tests import.
const NEEDS: &str = "pytest, numpy, tiledb, fsspec, pyarrow, pandas, polars, duckdb, xarray, zarr, dask, distributed, \
                     anndata, moto, boto3, s3fs";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The folder in which cargo puts the program and, below it, what tests are linked with.
fn built() -> PathBuf {
    let this = env::current_exe().unwrap();
    this.ancestors().nth(2).unwrap().to_owned()
}

/// Makes a package of the sources and the module; returns the folder to import it from.
fn package(folder: &Path) -> PathBuf {
    let sources = root().join("python/src/tilefs");
    let package = folder.join("import/tilefs");
    fs::create_dir_all(&package).unwrap();
    for entry in fs::read_dir(&sources).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            symlink(&path, package.join(path.file_name().unwrap())).unwrap();
        }
    }
    symlink(built().join("deps/lib_tilefs.so"), package.join("_tilefs.abi3.so")).unwrap();
    package.parent().unwrap().to_owned()
}

fn run_pytest(arguments: &[&str]) {
    run_pytest_with(arguments, &[]);
}

fn run_pytest_with(arguments: &[&str], environment: &[(&str, &Path)]) {
    run_pytest_needing(NEEDS, arguments, environment);
}

fn run_pytest_needing(needs: &str, arguments: &[&str], environment: &[(&str, &Path)]) {
    let Some(python) = python_with(needs) else { return };
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(python)
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", "--basetemp"])
        .arg(folder.path().join("tests"))
        .args(arguments)
        .current_dir(root().join("python"))
        .env("PYTHONPATH", package(folder.path()))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("TILEFS_COMMAND", built().join("tilefs"))
        .envs(environment.iter().copied())
        .env("TILEFS_TEST_EXPERIMENT", tilefs_fixtures::corpus().join("real/pbmc_soma"))
        .output()
        .unwrap();
    let (printed, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{printed}\n{errors}");
    assert!(printed.contains(" passed"), "{printed}");
    // xarray's own tests know what does not apply to an engine.
    let is_skipped = |line: &str| line.starts_with("SKIPPED") && !line.contains("/xarray/tests/");
    assert!(!printed.lines().any(is_skipped), "a test skipped itself:\n{printed}");
}

#[test]
fn arrays_are_read_in_python() {
    run_pytest(&["tests/test_indices.py", "tests/test_dense.py", "tests/test_rows.py", "tests/test_help.py"]);
}

#[test]
fn every_exit_gives_the_cells() {
    run_pytest(&["tests/test_exits.py"]);
}

#[test]
fn metadata_and_settings_are_those_of_tiledb_py() {
    run_pytest(&["tests/test_metadata.py", "tests/test_settings.py"]);
}

#[test]
fn a_checkout_is_installed_by_pip() {
    run_pytest(&["tests/test_checkout.py"]);
}

#[test]
fn mistakes_are_explained() {
    run_pytest(&["tests/test_mistakes.py"]);
}

#[test]
fn notebooks_show_what_is_opened() {
    run_pytest(&["tests/test_notebooks.py"]);
}

#[test]
fn subscripts_and_queries_are_those_of_tiledb_py() {
    run_pytest(&["tests/test_subscripts.py", "tests/test_queries.py", "tests/test_movers.py"]);
}

#[test]
fn frames_and_filters_read_what_they_need() {
    run_pytest(&["tests/test_frames.py"]);
}

#[test]
fn the_tests_of_tiledb_py_read_the_same() {
    run_pytest(&["tests/test_tiledb_py.py"]);
}

#[test]
fn exits_agree() {
    let needs =
        "pytest, numpy, tiledb, pyarrow, pandas, polars, duckdb, netCDF4, h5py, zarr, astropy, anndata, xarray, dask";
    run_pytest_needing(needs, &["../tests/exports/exits"], &[]);
}

#[test]
fn experiments_are_read_as_anndata() {
    run_pytest(&["tests/test_anndata.py"]);
}

#[test]
fn xarray_opens_arrays_and_groups() {
    run_pytest(&["tests/test_xarray.py", "tests/test_xarray_backend.py"]);
}

#[test]
fn workers_of_dask_read() {
    run_pytest(&["tests/test_dask.py"]);
}

#[test]
fn type_checkers_find_no_mistakes() {
    run_pytest_needing("pytest, numpy, tiledb, mypy, pyright", &["tests/test_types.py"], &[]);
}

#[test]
fn forked_processes_read() {
    run_pytest(&["tests/test_fork.py"]);
}

#[test]
fn signals_end_calls_that_take_long() {
    run_pytest(&["tests/test_interrupt.py"]);
}

#[test]
fn fsspec_reads_the_tree() {
    run_pytest(&["tests/test_fs.py", "tests/test_buckets.py"]);
}

#[test]
fn python_reads_a_disk_that_comes_back() {
    if can_mount() {
        let faulty = Faulty::mount(&tilefs_fixtures::fixtures().join("demo"));
        run_pytest_with(&["tests/test_faults.py"], &[("TILEFS_TEST_FAULTY", faulty.path())]);
    }
}

#[test]
fn python_mounts_and_unmounts() {
    if can_mount() {
        run_pytest(&["tests/test_mount.py", "tests/test_readme.py"]);
    }
}
