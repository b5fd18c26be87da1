//! Measures the peak memory of a program.
//!
//! The kernel's figure for a child includes the memory of its parent at the time of the fork. So the parent is a small
//! process of its own: this test program again, which then runs only [`one_program`].
#![allow(unsafe_code)]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

/// The environment variable with the folder that has the command line, and receives the results.
const FOLDER: &str = "BOMBS_FOLDER";

/// The results of running a program.
pub struct Ran {
    /// `None` if a signal ended it.
    pub status: Option<i32>,
    /// The first 64 KiB of each output.
    pub stdout: String,
    pub stderr: String,
    /// The peak of its resident memory in bytes.
    pub peak: u64,
}

/// Runs a program until it ends.
pub fn run(program: &str, arguments: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("command"), [&[program], arguments].concat().join("\n")).unwrap();
    let mut measuring = Command::new(std::env::current_exe().unwrap());
    let measuring = measuring.args(["--exact", "bombs::peak::one_program", "--ignored"]).env(FOLDER, folder.path());
    assert!(measuring.stdout(Stdio::null()).status().unwrap().success());
    let read = |name: &str| {
        let file = fs::File::open(folder.path().join(name)).unwrap();
        let mut start = vec![0; 1 << 16];
        let length = std::os::unix::fs::FileExt::read_at(&file, &mut start, 0).unwrap();
        String::from_utf8_lossy(&start[..length]).into_owned()
    };
    let peak = read("peak").parse().unwrap();
    Ran { status: read("status").parse().ok(), stdout: read("stdout"), stderr: read("stderr"), peak }
}

#[test]
#[ignore = "a part of the other tests"]
fn one_program() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let command = fs::read_to_string(folder.join("command")).unwrap();
    let mut words = command.split('\n');
    let output = |name: &str| Stdio::from(fs::File::create(folder.join(name)).unwrap());
    let mut program = Command::new(words.next().unwrap());
    let program = program.args(words).stdin(Stdio::null()).stdout(output("stdout")).stderr(output("stderr"));
    let (status, peak) = wait(&program.spawn().unwrap());
    fs::write(folder.join("status"), status.code().map_or("signal".to_owned(), |code| code.to_string())).unwrap();
    fs::write(folder.join("peak"), peak.to_string()).unwrap();
}

fn wait(child: &Child) -> (ExitStatus, u64) {
    let mut status = 0;
    // SAFETY: an all-zero rusage is valid, because it has only numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both places are ours during the call, and nobody has waited for the child: `Child` waits only on request.
    let waited = unsafe { libc::wait4(child.id() as libc::pid_t, &mut status, 0, &mut usage) };
    assert_eq!(waited, child.id() as libc::pid_t, "{}", std::io::Error::last_os_error());
    // In KiB.
    (std::os::unix::process::ExitStatusExt::from_raw(status), usage.ru_maxrss as u64 * 1024)
}

#[test]
fn the_peak_is_that_of_the_program_alone() {
    let held = vec![1u8; 64 << 20];
    let peak = run("/bin/true", &[]).peak;
    assert!((64 << 10..32 << 20).contains(&peak), "{peak}");
    let large = run("/bin/sh", &["-c", "head -c 50000000 /dev/zero | tail -n 1 | wc -c"]);
    assert_eq!((large.status, large.stdout.trim()), (Some(0), "50000000"));
    assert!(large.peak > 40 << 20, "{}", large.peak);
    assert!(held.iter().all(|byte| *byte == 1));
}
