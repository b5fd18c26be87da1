//! Columns to export, files to write, programs to run.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use support::skip::{Need, python_with, skipped};
use tilefs_base::content::Content;
use tilefs_export::{Column, Columns, Field};
use tilefs_format::datatype::Datatype;

/// Returns values as the content of a column, little-endian.
pub fn bytes<const N: usize>(values: impl IntoIterator<Item = [u8; N]>) -> Arc<dyn Content> {
    Arc::new(values.into_iter().flatten().collect::<Vec<u8>>())
}

/// Returns the coordinates of an axis of 64-bit integers.
pub fn axis(name: &str, first: i64, length: u64) -> Column {
    let values = bytes((0..length as i64).map(|i| (first + i).to_le_bytes()));
    let last = first + length as i64 - 1;
    Column::fixed(Field::new(name, Datatype::Int64), vec![length], values).with_bounds(first.into(), last.into())
}

/// Returns a dense array with the axes `y` (from -1) and `x` (from 10).
pub fn dense(shape: [u64; 2], attributes: Vec<Column>) -> Columns {
    let dimensions = vec![axis("y", -1, shape[0]), axis("x", 10, shape[1])];
    Columns { sparse: false, dimensions, attributes, metadata: Vec::new(), auxiliary: Vec::new(), georeference: None }
}

/// Returns a column of floats in a known pattern, with a few special values.
pub fn floats(name: &str, shape: &[u64]) -> Column {
    let count = shape.iter().product::<u64>();
    let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, f32::MIN_POSITIVE, f32::MAX, 1e-45, 0.1];
    let value = |i: u64| special.get(i as usize).copied().unwrap_or((i as f32 * 0.7).sin() * 10f32.powi(i as i32 % 30));
    let values = bytes((0..count).map(|i| value(i).to_le_bytes()));
    Column::fixed(Field::new(name, Datatype::Float32), shape.to_vec(), values)
}

/// Writes a content into a file, in reads of an odd size.
pub fn write(directory: &Path, name: &str, content: &dyn Content) {
    let mut all = vec![0; content.len() as usize];
    for (number, part) in all.chunks_mut(4093).enumerate() {
        content.read_at(number as u64 * 4093, part).expect("a content can be read");
    }
    fs::write(directory.join(name), all).expect("a temporary folder can be written");
}

/// Runs a Python script in a folder; the test fails if the script fails. If a package in `needs` is missing, reports
/// that and returns false.
pub fn python(directory: &Path, needs: &str, script: &str) -> bool {
    let Some(interpreter) = python_with(needs) else { return false };
    let script = format!("import {needs}\n{script}");
    run(directory, &interpreter, &["-W", "error::RuntimeWarning", "-c", &script]);
    true
}

/// Runs a script of `mounted/` in a folder and returns its output. If a package is missing, reports that and returns
/// `None`.
pub fn python_file(directory: &Path, needs: &str, script: &str, arguments: &[&str]) -> Option<String> {
    let interpreter = python_with(needs)?;
    let here = support::repository::root().join("tests");
    let script = here.join("exports/mounted").join(script).display().to_string();
    let fixtures = format!("TILEFS_FIXTURES={}", tilefs_fixtures::fixtures().display());
    let program = concat!("TILEFS_PROGRAM=", env!("CARGO_BIN_EXE_tilefs"));
    let command = [fixtures.as_str(), program, &interpreter, "-B", "-W", "ignore", &script];
    Some(run(directory, "env", &[&command[..], arguments].concat()))
}

/// Returns whether a program is installed; reports it if not.
pub fn has(program: &str) -> bool {
    let there = Command::new("sh").arg("-c").arg(format!("command -v {program}")).output();
    let there = there.is_ok_and(|output| output.status.success());
    if !there {
        skipped(Need::Programs, &format!("{program} is not installed"));
    }
    there
}

/// Returns whether R has a package; reports it if not.
pub fn r_has(package: &str) -> bool {
    let script = format!("quit(status = !requireNamespace('{package}', quietly = TRUE))");
    let is_there = Command::new("Rscript").args(["-e", &script]).output().is_ok_and(|output| output.status.success());
    if !is_there {
        skipped(Need::Programs, &format!("R has no package {package}"));
    }
    is_there
}

/// Returns the name of ImageMagick's `convert` on this machine. If it is not installed, reports that and returns
/// `None`.
pub fn imagemagick() -> Option<&'static str> {
    let is_it = |program: &&str| {
        let version = Command::new(program).arg("-version").output();
        version.is_ok_and(|version| String::from_utf8_lossy(&version.stdout).contains("ImageMagick"))
    };
    let found = ["convert", "/usr/bin/convert", "magick"].into_iter().find(is_it);
    if found.is_none() {
        skipped(Need::Programs, "ImageMagick is not installed");
    }
    found
}

/// Runs a program in a folder and returns its output; the test fails if the program fails.
pub fn run(directory: &Path, program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(directory).output().expect("the program starts");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program} failed\n{stdout}\n{stderr}");
    stdout.into_owned()
}
