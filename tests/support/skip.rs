//! What tests cannot do here, said aloud.

use std::fs;
use std::io::Write;
use std::path::Path;

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
