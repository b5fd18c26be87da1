//! The program on a disk that fails for a while: a mount, and what a server (`served`) needs too.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{PATIENCE, open};
use support::faulty::{Fault, Faulty, How, Operation};
use support::shown::{Files, files_of};
use support::skip::can_mount;
use support::stored::stored;

/// A process that shows the files of a stored object.
pub trait Shows {
    /// Shows what is stored in a folder.
    fn start(stored: &Path) -> Self;

    /// Returns the bytes of a file.
    fn read(&self, path: &str) -> Result<Vec<u8>, String>;
}

/// A process that is ended with its test.
pub struct Program(pub Child);

impl Program {
    pub fn start(arguments: &[&str], stored: &Path, more: &[&Path]) -> Program {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilefs"));
        command.args(arguments).arg(stored).args(more).args(["--index-dir", "none"]).env_remove("TILEFS_TOKEN");
        Program(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the program starts"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Mounted {
    _program: Program,
    mountpoint: TempDir,
}

impl Shows for Mounted {
    fn start(stored: &Path) -> Self {
        let mountpoint = tempfile::tempdir().unwrap();
        let program = Program::start(&["mount", "--foreground"], stored, &[mountpoint.path()]);
        let begin = Instant::now();
        while !mountpoint.path().join("README.txt").exists() {
            assert!(begin.elapsed() < PATIENCE, "nothing is mounted");
            thread::sleep(Duration::from_millis(2));
        }
        Mounted { _program: program, mountpoint }
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let path = self.mountpoint.path().join(path.trim_start_matches('/'));
        // The listing of its folder must have the name, too.
        let folder = path.parent().ok_or("no folder")?;
        let names = fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect());
        let names: Vec<_> = names.map_err(|error| error.to_string())?;
        assert!(names.iter().any(|name| Some(name.as_os_str()) == path.file_name()), "{path:?} is not in {names:?}");
        fs::read(&path).map_err(|error| {
            assert_ne!(error.raw_os_error(), Some(libc::ENOENT), "{path:?} is hidden");
            error.to_string()
        })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Before the process ends, so that no dead mount is left.
        let _ = Command::new("umount").arg("-l").arg(self.mountpoint.path()).stderr(Stdio::null()).status();
        let _ = Command::new("fusermount3").arg("-uz").arg(self.mountpoint.path()).stderr(Stdio::null()).status();
    }
}

/// Reads all files while a fault lasts, and afterwards by the same process.
fn survives<S: Shows>(faulty: &Faulty, right: &Files, fault: &Fault) {
    let shows = S::start(faulty.path());
    faulty.fail(fault.clone());
    // The table of members tells their errors meanwhile.
    for (path, bytes) in right.iter().filter(|(path, _)| !path.ends_with("members.tsv")) {
        if let Ok(read) = shows.read(path) {
            assert!(read == *bytes, "{fault:?}: other bytes in {path}");
        }
    }
    faulty.recover();
    for (path, bytes) in right {
        let begin = Instant::now();
        let read = loop {
            match shows.read(path) {
                Ok(read) => break read,
                Err(error) => assert!(begin.elapsed() < PATIENCE, "{fault:?} is over, but {path}: {error}"),
            }
            thread::sleep(Duration::from_millis(50));
        };
        assert!(read == *bytes, "{fault:?} is over, but there are other bytes in {path}");
    }
}

/// Lets a disk fail in every way while a process reads it.
pub fn survives_all<S: Shows>() {
    if !can_mount() {
        return;
    }
    for name in ["groups/experiment", "dense/labels"] {
        let faulty = Faulty::mount(&stored(name));
        let right = files_of(&*open(faulty.path()).unwrap()).unwrap();
        for operation in Operation::ALL {
            for errno in [libc::ENOENT, libc::EIO, libc::ESTALE, libc::EINTR] {
                for (spared, count) in [(0, usize::MAX), (3, 1), (7, usize::MAX)] {
                    survives::<S>(&faulty, &right, &Fault { operation, how: How::With(errno), spared, count });
                }
            }
        }
        for how in [How::HalfThere, How::HalfTheSize, How::HalfRead] {
            survives::<S>(&faulty, &right, &Fault { operation: Operation::Read, how, spared: 0, count: usize::MAX });
        }
    }
}

#[test]
fn a_mount_reads_a_disk_that_comes_back() {
    survives_all::<Mounted>();
}
