//! What mount(8), fstab and systemd expect from a file system: options, owners, and a notification when it is ready.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use super::harness::{Place, Server, Watchdog, can_mount, demo, errors, is_mounted, mount_lines, unmount};
use support::skip::{Need, is_root, skipped};

/// Options that a line of fstab may have.
const OPTIONS: &str = "ro,nosymfollow,nofail,_netdev,noauto,user,x-systemd.automount,x-systemd.idle-timeout=60,\
                       uid=1234,gid=4321,umask=027,cache_size=64M";

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_tilefs"))
}

fn mount(arguments: &[&str]) -> Output {
    Command::new("mount").args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// The link through which mount(8) finds the program of a file system type, as packages install it; removed at the end.
struct Helper(PathBuf);

impl Helper {
    /// Installs the link. If that is impossible here, returns `None` and reports that.
    fn install() -> Option<Helper> {
        if !can_mount() {
            return None;
        }
        let link = PathBuf::from("/sbin/mount.fuse.tilefs");
        if !is_root() {
            skipped(Need::Root, "mount(8) needs root");
        } else if link.symlink_metadata().is_ok() {
            skipped(Need::BareSystem, "a tilefs is installed for mount(8)");
        } else {
            symlink(program(), &link).unwrap();
            return Some(Helper(link));
        }
        None
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn is_as_the_options_say(mountpoint: &Path) {
    let value = mountpoint.join("temp.f32");
    let (file, folder) = (fs::metadata(&value).unwrap(), fs::metadata(mountpoint.join("dims")).unwrap());
    assert_eq!((file.uid(), file.gid(), file.permissions().mode() & 0o777), (1234, 4321, 0o440));
    assert_eq!((folder.uid(), folder.gid(), folder.permissions().mode() & 0o777), (1234, 4321, 0o550));
    let expected = Command::new(program()).arg("cat").arg(demo()).arg("temp.f32").output().unwrap().stdout;
    assert!(fs::read(value).unwrap() == expected);
    assert!(mount_lines(mountpoint)[0].contains(" - fuse.tilefs "));
}

#[test]
fn mount_8_mounts_by_type_and_by_fstab() {
    let _watchdog = Watchdog::start("mount_8_mounts_by_type_and_by_fstab");
    let Some(_helper) = Helper::install() else { return };
    let place = Place::new();
    let (array, mountpoint) = (demo().display().to_string(), place.path().display().to_string());
    let output = mount(&["-t", "fuse.tilefs", &array, &mountpoint, "-o", OPTIONS]);
    assert!(output.status.success(), "{}", errors(&output));
    is_as_the_options_say(place.path());
    unmount(place.path());
    assert!(!is_mounted(place.path()));

    let fstab = place.beside().join("fstab");
    fs::write(&fstab, format!("{array} {mountpoint} fuse.tilefs {OPTIONS} 0 0\n")).unwrap();
    let output = mount(&["-T", fstab.to_str().unwrap(), &mountpoint]);
    assert!(output.status.success(), "{}", errors(&output));
    is_as_the_options_say(place.path());
    unmount(place.path());

    let output = mount(&["-t", "fuse.tilefs", &array, &mountpoint, "-o", "ro,umask=9"]);
    assert!(!output.status.success() && errors(&output).contains("not three octal digits"), "{}", errors(&output));
    assert!(!is_mounted(place.path()));
}

#[test]
fn labels_for_selinux_are_for_kernels_that_have_it() {
    let _watchdog = Watchdog::start("labels_for_selinux_are_for_kernels_that_have_it");
    if !can_mount() {
        return;
    }
    if Path::new("/sys/fs/selinux").exists() {
        return skipped(Need::BareSystem, "this kernel has SELinux, and judges labels itself");
    }
    let place = Place::new();
    let label = "context=\"system_u:object_r:tmp_t:s0:c127,c456\",ro";
    let output = Command::new(program()).arg(demo()).arg(place.path()).args(["-o", label]).output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    assert!(is_mounted(place.path()));
}

#[test]
fn a_service_is_ready_when_the_mount_answers() {
    let _watchdog = Watchdog::start("a_service_is_ready_when_the_mount_answers");
    if !can_mount() {
        return;
    }
    let place = Place::new();
    let path = place.beside().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let server = Command::new(program())
        .args(["mount", "--foreground"])
        .arg(demo())
        .arg(place.path())
        .env("NOTIFY_SOCKET", &path)
        .spawn()
        .unwrap();
    let server = Server(server);
    let mut message = [0; 64];
    let length = socket.recv(&mut message).unwrap();
    assert_eq!(&message[..length], b"READY=1\n");
    assert!(place.path().join("README.txt").exists());
    drop(server);
}

#[test]
fn the_unit_is_one_that_systemd_takes() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return skipped(Need::Programs, "systemd-analyze is missing (package systemd)");
    }
    let unit = support::repository::root().join("packaging/tilefs@.service");
    let text = fs::read_to_string(unit).unwrap();
    // An array in an object store is not available before the network is.
    for line in ["Wants=network-online.target", "After=network-online.target "] {
        assert!(text.lines().any(|found| found.starts_with(line)), "{line}");
    }
    let folder = tempfile::tempdir().unwrap();
    // The unit names the path of the installed program, not of the built one.
    let unit: PathBuf = folder.path().join("tilefs@demo.service");
    fs::write(&unit, text.replace("/usr/bin/tilefs", &program().display().to_string())).unwrap();
    let output = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&unit).output().unwrap();
    let about_us: Vec<String> =
        errors(&output).lines().filter(|line| line.contains("tilefs@")).map(str::to_owned).collect();
    assert!(output.status.success() && about_us.is_empty(), "{}", errors(&output));
}
