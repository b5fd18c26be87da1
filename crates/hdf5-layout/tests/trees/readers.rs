//! The readers of the files: h5py, and the programs of HDF5 (package hdf5-tools).

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use tempfile::TempDir;

use super::expected::expected;
use super::model::{Model, Stored};
use support::skip::{Need, python_with, skipped};

/// h5py in a process of its own, which reads file after file.
pub struct H5py {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    folder: TempDir,
}

impl H5py {
    /// Starts h5py; skips the test with a message if it is missing.
    pub fn start() -> Option<Self> {
        let python = python_with("h5py, numpy")?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trees/read_back.py");
        let mut process =
            Command::new(python).arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        Some(H5py { process, to, from, folder: TempDir::new().unwrap() })
    }

    /// Reads a file; returns the differences from its model.
    pub fn read(&mut self, model: &Model, bytes: &[u8]) -> Result<(), String> {
        let (file, json) = (self.folder.path().join("file.h5"), self.folder.path().join("expected.json"));
        fs::write(&file, bytes).unwrap();
        fs::write(&json, expected(model).to_string()).unwrap();
        writeln!(self.to, "{} {}", file.display(), json.display()).unwrap();
        let mut answer = String::new();
        self.from.read_line(&mut answer).unwrap();
        if answer == "same\n" { Ok(()) } else { Err(serde_json::from_str(&answer).unwrap_or(answer)) }
    }
}

impl Drop for H5py {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns whether the programs of HDF5 are installed; skips the test with a message if not.
pub fn has_programs() -> bool {
    let is_there = |name| Command::new(name).arg("--help").output().is_ok_and(|output| output.status.success());
    let are_there = ["h5dump", "h5ls", "h5stat"].into_iter().all(is_there)
        && Command::new("h5debug").arg("/dev/null").output().is_ok();
    if !are_there {
        skipped(Need::Programs, "h5dump, h5ls, h5stat or h5debug is missing (package hdf5-tools)");
    }
    are_there
}

/// Runs a program on a file; returns its output.
///
/// # Panics
/// If the program fails, or reports an error.
pub fn run(program: &str, arguments: &[&str], file: &Path, behind: &[u64]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .arg(file)
        .args(behind.iter().map(u64::to_string))
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{program} {behind:?} of {}: {said}", file.display());
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    for complaint in ["BAD", "not found", "unable to", "overlaps", "sorted out of order"] {
        assert!(!printed.contains(complaint), "{program} {behind:?} of {}: {printed}", file.display());
    }
    printed
}

/// Reads a file with all programs, and each of its structures with `h5debug`; returns the output of `h5dump`.
///
/// # Panics
/// If one of them fails.
pub fn run_all(model: &Model, stored: &Stored, bytes: &[u8], folder: &Path) -> String {
    let file: PathBuf = folder.join("file.h5");
    fs::write(&file, bytes).unwrap();
    run("h5ls", &["-rv"], &file, &[]);
    run("h5stat", &[], &file, &[]);
    run("h5dump", &["-BHp"], &file, &[]);
    run("h5debug", &[], &file, &[]);
    for (object, id) in model.0.iter().zip(&stored.ids) {
        run("h5debug", &[], &file, &[stored.layout.address(*id).unwrap()]);
        let Some((chunk, dataset)) =
            object.dataset.as_ref().and_then(|dataset| Some((dataset.chunk_shape.as_ref()?, dataset)))
        else {
            continue;
        };
        // `h5debug` supports nine axes, including that of the bytes of an element.
        if let Some(root) = stored.layout.chunk_index_address(*id).filter(|_| chunk.len() < 9) {
            let mut arguments = vec![root, chunk.len() as u64 + 1];
            arguments.extend(chunk);
            arguments.push(u64::from(dataset.datatype.size().unwrap()));
            run("h5debug", &[], &file, &arguments);
        }
    }
    let metadata = &bytes[..stored.layout.metadata_bytes() as usize];
    for (number, start) in metadata.chunks(8).enumerate() {
        if [&b"GCOL"[..], b"FRHP", b"BTHD"].iter().any(|signature| start.starts_with(signature)) {
            run("h5debug", &[], &file, &[number as u64 * 8]);
        }
    }
    run("h5dump", &[], &file, &[])
}
