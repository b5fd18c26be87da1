//! What tests cannot do here, said aloud.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Says that this test is skipped, or a part of it, and why. The test harness hides what passing tests print; this it
/// does not hide, and `scripts/test.sh` counts it in its closing table.
pub fn skipped(why_not: &str) {
    let thread = std::thread::current();
    // The harness runs each test in a thread of its name.
    let test = thread.name().filter(|name| *name != "main").map_or_else(String::new, |name| format!("{name}: "));
    let _ = writeln!(std::io::stderr(), "SKIPPED: {test}{why_not}");
}

/// Whether this user can mount; says aloud why not.
pub fn can_mount() -> bool {
    let why_not = if fs::File::options().read(true).write(true).open("/dev/fuse").is_err() {
        "/dev/fuse cannot be opened"
    } else if !is_root() && !Path::new("/usr/bin/fusermount3").exists() {
        "this is not root, and fusermount3 is missing (package fuse3)"
    } else {
        return true;
    };
    skipped(why_not);
    false
}

pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// The interpreter, if it has these packages: `$TILEFS_PYTHON`, else that of `.venv` in the repository, else `python3`.
/// Skips aloud where it has not.
pub fn python_with(needs: &str) -> Option<String> {
    let interpreter = std::env::var("TILEFS_PYTHON").unwrap_or_else(|_| {
        let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv/bin/python");
        if ours.exists() { ours.display().to_string() } else { "python3".to_owned() }
    });
    let import = Command::new(&interpreter).arg("-c").arg(format!("import {needs}")).output();
    if import.is_ok_and(|output| output.status.success()) {
        return Some(interpreter);
    }
    skipped(&format!("{interpreter} cannot import {needs}"));
    None
}
