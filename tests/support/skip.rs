//! Skips tests that cannot run here, with a message.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// The environment variable with the requirements that must be met: a test that misses one of them fails instead of
/// being skipped.
pub const REQUIRE: &str = "TILEFS_REQUIRE";

/// The requirements of tests besides the build. Each has a name in [`REQUIRE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// `/dev/fuse`, and for ordinary users `fusermount3`.
    Fuse,
    /// `/dev/fuse` is accessible to every user.
    FuseForAll,
    /// `/sys/fs/fuse/connections`, through which a connection can be aborted.
    FuseControl,
    Root,
    /// Private mount namespaces and small disks.
    Mounts,
    /// Programs that `scripts/install_test_tools.sh` installs.
    Programs,
    /// Packages of `scripts/requirements.txt`.
    Python,
    /// Spark, with Java: some 500 MB, which no script installs.
    Spark,
    /// Chromium, and the packages of `web/`.
    Browser,
    /// Servers of object stores.
    Servers,
    /// A system without SELinux, without a system log, and without an installed tilefs.
    BareSystem,
    /// Arrays committed in other projects, which are not part of this one.
    Peers,
    /// The packages that `scripts/package.sh` builds.
    Packages,
    /// valgrind, and the compiler whose instructions were counted.
    Counter,
}

impl Need {
    pub const ALL: [(Need, &str); 14] = [
        (Need::Fuse, "fuse"),
        (Need::FuseForAll, "fuse-for-all"),
        (Need::FuseControl, "fuse-control"),
        (Need::Root, "root"),
        (Need::Mounts, "mounts"),
        (Need::Programs, "programs"),
        (Need::Python, "python"),
        (Need::Spark, "spark"),
        (Need::Browser, "browser"),
        (Need::Servers, "servers"),
        (Need::BareSystem, "bare-system"),
        (Need::Peers, "peers"),
        (Need::Packages, "packages"),
        (Need::Counter, "counter"),
    ];

    /// Returns whether a value of [`REQUIRE`] contains this requirement: the value is `all` or names separated by
    /// commas. `-` before a name excludes it, as in `all,-peers`.
    ///
    /// # Panics
    /// If the list contains an unknown name.
    pub fn is_required(self, list: &str) -> bool {
        let mut is_required = false;
        for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let (name, requires) = word.strip_prefix('-').map_or((word, true), |name| (name, false));
            match Need::ALL.into_iter().find(|(_, known)| *known == name) {
                Some((need, _)) if need == self => is_required = requires,
                Some(_) => {}
                None if word == "all" => is_required = true,
                None => panic!("{REQUIRE}: nothing is called {name}"),
            }
        }
        is_required
    }
}

/// Reports that this test, or a part of it, is skipped, and why. This is the only way to skip: the harness hides the
/// output of passing tests, but not this, and `scripts/test.sh` counts it in its final table.
///
/// # Panics
/// If [`REQUIRE`] contains the missing requirement.
pub fn skipped(need: Need, why_not: &str) {
    let list = std::env::var(REQUIRE).unwrap_or_default();
    assert!(!need.is_required(&list), "{REQUIRE}={list} requires {need:?}: {why_not}");
    let thread = std::thread::current();
    // The harness runs each test in a thread with its name.
    let test = thread.name().filter(|name| *name != "main").map_or_else(String::new, |name| format!("{name}: "));
    let _ = writeln!(std::io::stderr(), "SKIPPED: {test}{why_not}");
}

/// Returns whether this user can mount; if not, reports why.
pub fn can_mount() -> bool {
    let why_not = if fs::File::options().read(true).write(true).open("/dev/fuse").is_err() {
        "/dev/fuse cannot be opened"
    } else if !is_root() && !Path::new("/usr/bin/fusermount3").exists() {
        "this is not root, and fusermount3 is missing (package fuse3)"
    } else {
        return true;
    };
    skipped(Need::Fuse, why_not);
    false
}

pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// Returns the interpreter for tests: `$TILEFS_PYTHON`, otherwise that of `.venv` in the repository, otherwise
/// `python3`.
fn interpreter() -> String {
    std::env::var("TILEFS_PYTHON").unwrap_or_else(|_| {
        // The package of a test may be in the repository's root or below it.
        let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
        let ours = folders.map(|folder| folder.join(".venv/bin/python")).find(|python| python.exists());
        ours.map_or_else(|| "python3".to_owned(), |python| python.display().to_string())
    })
}

/// Finds packages without importing them, which takes seconds for some.
const FIND: &str = "import sys, importlib.util\nsys.exit(not all(map(importlib.util.find_spec, sys.argv[1:])))";

/// Returns whether an interpreter has packages, whose names are separated by commas.
fn has_packages(interpreter: &str, packages: &str) -> bool {
    let names = packages.split(',').map(str::trim);
    let found = Command::new(interpreter).args(["-c", FIND]).args(names).output();
    found.is_ok_and(|output| output.status.success())
}

/// Returns the interpreter for tests if it has these packages; otherwise reports that the test is skipped.
pub fn python_with(needs: &str) -> Option<String> {
    let interpreter = interpreter();
    let has_them = has_packages(&interpreter, needs);
    if !has_them {
        skipped(Need::Python, &format!("{interpreter} lacks one of {needs}"));
    }
    has_them.then_some(interpreter)
}

/// Returns whether Spark can run; if not, reports that the test is skipped.
pub fn has_spark() -> bool {
    let has_java = Command::new("java").arg("-version").output().is_ok_and(|output| output.status.success());
    let has_spark = has_java && has_packages(&interpreter(), "pyspark");
    if !has_spark {
        skipped(Need::Spark, "java or the Python package pyspark is missing");
    }
    has_spark
}
