//! Mounts whose device another process has opened and mounted: Apptainer's `--fusemount` and CSI drivers pass it on as
//! `/dev/fd/N`, so the program needs no right to mount.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::harness::{
    Need, Place, Server, Watchdog, can_mount, demo, eventually, is_mounted, is_root, skipped, unmount,
};

const NOBODY: u32 = 65534;

/// Returns whether this process may mount; reports it if not.
fn may_mount() -> bool {
    if !can_mount() {
        return false;
    }
    if !is_root() {
        skipped(Need::Root, "only root may mount");
    }
    is_root()
}

/// Opens `/dev/fuse` and mounts it, as the process that passes on the descriptor does.
fn mounted_device(place: &Place) -> File {
    let device = File::options().read(true).write(true).open("/dev/fuse").unwrap();
    let data = format!("fd={},rootmode=40000,user_id=0,group_id=0,allow_other\0", device.as_raw_fd());
    let data = std::ffi::CString::from_vec_with_nul(data.into_bytes()).unwrap();
    rustix::mount::mount("any", place.path(), "fuse", rustix::mount::MountFlags::NODEV, &*data).unwrap();
    device
}

/// Runs `tilefs mount ARRAY /dev/fd/7` with this file as its descriptor 7, as another user if one is given.
fn start(program: &Path, array: &Path, device: File, user: Option<u32>, option: &str) -> Child {
    let mut command = match user {
        Some(user) => {
            let mut command = Command::new("setpriv");
            command.args([&format!("--reuid={user}"), &format!("--regid={user}"), "--clear-groups", "--no-new-privs"]);
            command.arg("sh");
            command
        }
        None => Command::new("sh"),
    };
    command.args(["-c", "exec \"$0\" mount \"$1\" /dev/fd/7 $2 7<&0 </dev/null"]);
    command.arg(program).arg(array).arg(option);
    command.stdin(Stdio::from(device)).stderr(Stdio::piped()).spawn().unwrap()
}

fn error_of(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_tilefs"))
}

#[test]
fn an_inherited_device_is_served_without_any_right_to_mount() {
    let _watchdog = Watchdog::start("an_inherited_device_is_served_without_any_right_to_mount");
    if !may_mount() {
        return;
    }
    let place = Place::new();
    // A place where the user `nobody` can run the program and read the array.
    let beside = place.beside();
    fs::set_permissions(&beside, fs::Permissions::from_mode(0o755)).unwrap();
    let (program, array) = (beside.join("tilefs"), beside.join("array"));
    fs::copy(here(), &program).unwrap();
    assert!(Command::new("cp").arg("-r").args([&demo(), &array]).status().unwrap().success());
    let device = mounted_device(&place);
    let server = Server(start(&program, &array, device, Some(NOBODY), "-f"));
    let path = place.path().join("temp.f32");
    let expected = Command::new(here()).arg("cat").arg(&array).arg("temp.f32").output().unwrap().stdout;
    assert!(fs::read(&path).unwrap() == expected && expected.len() == 80_000);
    let file = File::open(&path).unwrap();
    let mut cell = [0; 4];
    file.read_exact_at(&mut cell, 4000).unwrap();
    assert_eq!(cell, expected[4000..4004]);
    // The mounting process did not mount it read-only.
    assert_eq!(fs::write(&path, "x").unwrap_err().raw_os_error(), Some(libc::EROFS));
    assert!(fs::write(place.path().join("new"), "x").is_err() && fs::remove_file(&path).is_err());
    drop(file);
    unmount(place.path());
    let mut server = server;
    eventually("the server ends with its mount", || server.0.try_wait().unwrap().is_some());
    assert!(server.0.try_wait().unwrap().unwrap().success());
}

/// Runs the steps of Apptainer's `--fusemount` in namespaces of an ordinary user.
#[test]
fn an_ordinary_user_mounts_in_a_container_without_privileges() {
    let _watchdog = Watchdog::start("an_ordinary_user_mounts_in_a_container_without_privileges");
    if !can_mount() {
        return;
    }
    let place = Place::new();
    let expected = place.beside().join("expected");
    let values = Command::new(here()).arg("cat").arg(demo()).arg("temp.f32").output().unwrap().stdout;
    fs::write(&expected, values).unwrap();
    let mut container = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/test_container.sh"));
    let output = container.arg(here()).arg(demo()).arg("temp.f32").arg(&expected).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) {
        return skipped(Need::Mounts, &format!("ordinary users cannot make namespaces here: {}", said.trim()));
    }
    assert!(output.status.success(), "{said}");
}

#[test]
fn a_signal_ends_the_server_of_an_inherited_device_at_once() {
    let _watchdog = Watchdog::start("a_signal_ends_the_server_of_an_inherited_device_at_once");
    if !may_mount() {
        return;
    }
    let place = Place::new();
    let mut server = Server(start(&here(), &demo(), mounted_device(&place), None, "-f"));
    let open = File::open(place.path().join("temp.f32")).unwrap();
    let start = Instant::now();
    super::harness::signal(server.0.id(), "-TERM");
    eventually("it ends", || server.0.try_wait().unwrap().is_some());
    assert!(start.elapsed() < Duration::from_secs(5) && server.0.wait().unwrap().success());
    // The mount belongs to the mounting process, so it still exists, but does not answer.
    assert!(is_mounted(place.path()));
    assert_eq!(fs::metadata(place.path()).unwrap_err().raw_os_error(), Some(libc::ENOTCONN));
    drop(open);
    unmount(place.path());
}

#[test]
fn an_inherited_device_can_be_served_in_the_background() {
    let _watchdog = Watchdog::start("an_inherited_device_can_be_served_in_the_background");
    if !may_mount() {
        return;
    }
    let place = Place::new();
    let (status, said) = error_of(start(&here(), &demo(), mounted_device(&place), None, ""));
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(fs::read(place.path().join("temp.f32")).unwrap().len(), 80_000);
    unmount(place.path());
}

#[test]
fn a_descriptor_that_is_no_mounted_device_is_refused_with_its_reason() {
    let _watchdog = Watchdog::start("a_descriptor_that_is_no_mounted_device_is_refused_with_its_reason");
    if !can_mount() {
        return;
    }
    let device = File::options().read(true).write(true).open("/dev/fuse").unwrap();
    for (file, part) in [(File::open("/dev/null").unwrap(), "is not /dev/fuse"), (device, "is not mounted")] {
        let (status, said) = error_of(start(&here(), &demo(), file, None, "-f"));
        assert!(status == Some(7) && said.contains(part) && said.lines().count() == 1, "{status:?} {said}");
    }
    let closed = Command::new(here()).arg("mount").arg(demo()).args(["/dev/fd/99", "-f"]).output().unwrap();
    let said = String::from_utf8_lossy(&closed.stderr).into_owned();
    assert!(closed.status.code() == Some(7) && said.contains("is not open"), "{said}");
}
