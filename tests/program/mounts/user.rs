//! Mounts by an ordinary user, through fusermount3. These tests need root, which switches to that user; if an ordinary
//! user runs the tests, the other tests already cover this.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::harness::{
    Need, Place, Watchdog, can_mount, eventually, is_mounted, is_root, mount_lines, one_line, processes_with_argument,
    skipped,
};

const NOBODY: u32 = 65534;

/// A place that belongs to the user `nobody`, with a program beside it that this user can run.
struct Nobody {
    place: Place,
    program: PathBuf,
}

impl Nobody {
    /// Creates the place. If the test cannot run here, returns `None` and reports that.
    fn new() -> Option<Nobody> {
        let device = fs::metadata("/dev/fuse").map_or(0, |device| device.permissions().mode());
        let (need, why_not) = if !can_mount() || !is_root() {
            (Need::Root, "only root can become another user")
        } else if device & 0o006 != 0o006 {
            (Need::FuseForAll, "/dev/fuse is not open to every user")
        } else if !Path::new("/usr/bin/fusermount3").exists() || !Path::new("/usr/bin/setpriv").exists() {
            (Need::Programs, "fusermount3 or setpriv is missing")
        } else {
            let place = Place::new();
            let beside = place.beside();
            fs::set_permissions(&beside, fs::Permissions::from_mode(0o755)).unwrap();
            chown(place.path(), Some(NOBODY), Some(NOBODY)).unwrap();
            let program = beside.join("tilefs");
            fs::copy(env!("CARGO_BIN_EXE_tilefs"), &program).unwrap();
            let array = beside.join("a,b.tdb");
            let demo = tilefs_fixtures::fixtures().join("demo");
            assert!(Command::new("cp").arg("-r").args([&demo, &array]).status().unwrap().success());
            return Some(Nobody { place, program });
        };
        skipped(need, why_not);
        None
    }

    fn run(&self, program: &Path, arguments: &[&str]) -> Output {
        Command::new("setpriv")
            .args([&format!("--reuid={NOBODY}"), &format!("--regid={NOBODY}"), "--clear-groups"])
            .arg(program)
            .args(arguments)
            .current_dir(self.place.beside())
            .output()
            .unwrap()
    }

    fn tilefs(&self, arguments: &[&str]) -> Output {
        self.run(&self.program, arguments)
    }
}

#[test]
fn an_ordinary_user_mounts_reads_and_unmounts() {
    let _watchdog = Watchdog::start("an_ordinary_user_mounts_reads_and_unmounts");
    let Some(nobody) = Nobody::new() else { return };
    let mountpoint = nobody.place.path();
    let output = nobody.tilefs(&["a,b.tdb", "mnt"]);
    assert!(output.status.success(), "{output:?}");
    let lines = mount_lines(mountpoint);
    assert!(lines.len() == 1 && lines[0].contains("a,b.tdb ro,user_id=65534,group_id=65534"), "{lines:?}");
    let read = nobody.run(Path::new("cat"), &["mnt/temp.f32"]);
    assert_eq!(read.stdout, nobody.tilefs(&["cat", "a,b.tdb", "temp.f32"]).stdout);
    assert!(read.status.success() && !read.stdout.is_empty());
    // Not even root, unless allowed.
    assert!(fs::metadata(mountpoint.join("temp.f32")).is_err());

    let output = nobody.tilefs(&["umount", "mnt"]);
    assert!(output.status.success(), "{output:?}");
    assert!(!is_mounted(mountpoint));
    eventually("the server exits", || processes_with_argument(Path::new("a,b.tdb")).is_empty());
}

#[test]
fn an_ordinary_user_is_told_what_is_missing() {
    let _watchdog = Watchdog::start("an_ordinary_user_is_told_what_is_missing");
    let Some(nobody) = Nobody::new() else { return };
    let configuration = fs::read_to_string("/etc/fuse.conf").unwrap_or_default();
    if !configuration.lines().any(|line| line.trim() == "user_allow_other") {
        let output = nobody.tilefs(&["a,b.tdb", "mnt", "--allow-other"]);
        assert_eq!(output.status.code(), Some(7));
        assert!(one_line(&output).contains("user_allow_other"), "{output:?}");
    }
    fs::create_dir(nobody.place.beside().join("roots")).unwrap();
    let output = nobody.tilefs(&["a,b.tdb", "roots"]);
    assert_eq!(output.status.code(), Some(7));
    assert!(one_line(&output).contains("no write access"), "{output:?}");
    assert!(!is_mounted(nobody.place.path()));
}
