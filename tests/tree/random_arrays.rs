//! Random arrays with random histories show what libtiledb reads from them: every file, slice and time.
//!
//! `make_random_arrays.py` makes them. `TILEFS_RANDOM_SEED` is another seed, and `TILEFS_RANDOM_MINUTES` the time
//! for which more of them are made. A failure names the seed and the array.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use support::check::check;
use support::manifest::load;
use support::parallel;
use support::promise;
use support::report::Report;
use support::repository::root;
use support::skip::{can_mount, python_with};

/// The number of arrays of one seed.
const ARRAYS: &str = "48";

/// The Python packages that the script that compares views imports.
const READERS: &str = "numpy, tiledb, h5py, netCDF4, pyarrow.parquet, scipy.io, zarr";

#[test]
fn random_arrays_show_what_libtiledb_reads_from_them() {
    let Some(python) = python_with("numpy, tiledb") else { return };
    let seed = env::var("TILEFS_RANDOM_SEED").unwrap_or_else(|_| "1".to_owned());
    let minutes = env::var("TILEFS_RANDOM_MINUTES").map_or(0, |minutes| minutes.parse().expect("a number of minutes"));
    let (start, mut round) = (Instant::now(), 0);
    while round == 0 || start.elapsed() < Duration::from_secs(60 * minutes) {
        let seed = if round == 0 { seed.clone() } else { format!("{seed}-{round}") };
        println!("TILEFS_RANDOM_SEED={seed}");
        let folder = tempfile::tempdir().expect("a temporary folder");
        make(&python, folder.path(), &seed);
        compare_values(folder.path(), &seed);
        compare_views(folder.path(), &seed);
        round += 1;
    }
}

fn make(python: &str, folder: &Path, seed: &str) {
    let script = root().join("tests/fixtures/generators/make_random_arrays.py");
    let status = Command::new(python).arg("-B").arg(script).arg(folder).args([seed, ARRAYS]).status();
    assert!(status.expect("Python runs").success(), "seed {seed}: the arrays cannot be made");
}

/// Compares raw files, slices, times, metadata, labels of codes, and the order of rows.
fn compare_values(folder: &Path, seed: &str) {
    let objects = load(&folder.join("manifest.json"), "");
    let mut report = parallel::map(&objects, check).into_iter().fold(Report::default(), Report::joined_with);
    report.print(&format!("seed {seed}: {} arrays", objects.len()), true);
    assert!(report.failures() == 0, "seed {seed}: {} failures", report.failures());
    let missing = promise::missing(&objects, &report);
    assert!(missing.is_empty(), "seed {seed}: {}", missing.join("; "));
    assert!(objects.len() > 8, "seed {seed}: only {} arrays were made", objects.len());
}

/// Compares the views of a mount, which programs open.
fn compare_views(folder: &Path, seed: &str) {
    if !can_mount() {
        return;
    }
    let Some(python) = python_with(READERS) else { return };
    let mount = Mounted::new(&folder.join("arrays"), folder.join("mnt"));
    let script = root().join("tests/exports/mounted/random_files.py");
    let mut command = Command::new(python);
    command.env("TILEFS_FIXTURES", folder).args(["-B", "-W", "ignore"]).arg(script).arg(&mount.0);
    let output = command.output().expect("Python runs");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "seed {seed}:\n{stdout}\n{stderr}");
    print!("{stdout}");
}

/// A mounted folder of arrays; unmounted when dropped.
struct Mounted(PathBuf);

impl Mounted {
    fn new(folder: &Path, place: PathBuf) -> Self {
        fs::create_dir(&place).expect("a folder");
        let mounted = Mounted(place);
        assert!(tilefs(&["mount".as_ref(), "--show=all".as_ref(), folder, &mounted.0]), "the arrays cannot be mounted");
        mounted
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if !tilefs(&["umount".as_ref(), &self.0]) {
            let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        }
    }
}

fn tilefs(arguments: &[&Path]) -> bool {
    Command::new(env!("CARGO_BIN_EXE_tilefs")).args(arguments).status().is_ok_and(|status| status.success())
}
