//! File handles, which an NFS server gives to its clients: they outlive what the kernel remembers.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::calls::{FileHandle, drop_names};
use super::harness::{Daemon, Place, Watchdog, can_mount, demo, eventually};
use super::refresh::run;
use support::skip::{is_root, python_with};

fn statistic(daemon: &Daemon, name: &str) -> u64 {
    let text = fs::read(daemon.path(".tilefs/stats.json")).unwrap();
    serde_json::from_slice::<serde_json::Value>(&text).unwrap()[name].as_u64().unwrap()
}

/// Makes the kernel forget all names that are not in use.
fn forget_names(daemon: &Daemon) {
    drop_names(daemon.place());
    // Only those of the statistics are remembered then.
    eventually("the kernel has forgotten the names", || statistic(daemon, "names") <= 2);
}

fn bytes(mut file: File) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn file_handles_outlive_what_the_kernel_remembers() {
    let _watchdog = Watchdog::start("file_handles_outlive_what_the_kernel_remembers");
    if !can_mount() || !is_root() {
        return;
    }
    let daemon = Daemon::start(Place::new(), &demo(), &[]);
    let files =
        ["temp.f32", "dims/y.i64", "npy/temp.npy", "slice/0..9,0..4/temp.f32", "slice/3,5/npy/temp.npy", "README.txt"];
    let before = files.map(|name| {
        let path = daemon.path(name);
        (FileHandle::of(&path), fs::read(&path).unwrap(), fs::metadata(&path).unwrap().ino())
    });
    let folders = ["dims", "npy", "slice"].map(|name| (FileHandle::of(&daemon.path(name)), daemon.path(name)));
    let mount = File::open(daemon.place()).unwrap();
    // Twice, so that names are forgotten that were found by their handles.
    for _ in 0..2 {
        forget_names(&daemon);
        assert!(statistic(&daemon, "forgotten_names") >= files.len() as u64);
        for (handle, expected, number) in &before {
            let file = handle.open(&mount).unwrap();
            assert_eq!(file.metadata().unwrap().ino(), *number);
            assert_eq!(&bytes(file), expected);
        }
    }
    forget_names(&daemon);
    for (handle, path) in &folders {
        let folder = handle.open(&mount).unwrap();
        let by_handle = std::os::fd::AsRawFd::as_raw_fd(&folder);
        let names = |folder: &Path| -> Vec<_> {
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
        };
        assert_eq!(names(Path::new(&format!("/proc/self/fd/{by_handle}"))), names(path));
        // The folder is at its place, not only open.
        assert_eq!(fs::read_link(format!("/proc/self/fd/{by_handle}")).unwrap(), *path);
    }
    // Threads that come with the same handle at once.
    forget_names(&daemon);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                before
                    .iter()
                    .for_each(|(handle, expected, _)| assert_eq!(&bytes(handle.open(&mount).unwrap()), expected))
            });
        }
    });
    drop(mount);
    daemon.ends_by_signal("-TERM");
}

#[test]
fn a_file_handle_means_no_other_file_after_a_refresh() {
    let _watchdog = Watchdog::start("a_file_handle_means_no_other_file_after_a_refresh");
    let Some(python) = python_with("tiledb, numpy").filter(|_| can_mount() && is_root()) else { return };
    let place = Place::new();
    let array = place.beside().join("array");
    run(&python, &array, "create(path)\nwrite(path, 1)");
    let daemon = Daemon::start(place, &array, &["--refresh", "1"]);
    let read = |name: &str| fs::read(daemon.path(name)).unwrap();
    let (old, was_read) = (read("v.i32"), FileHandle::of(&daemon.path("v.i32")));
    let in_slice = FileHandle::of(&daemon.path("slice/0..9/v.i32"));
    let folder = FileHandle::of(&daemon.path("dims"));
    let mount = File::open(daemon.place()).unwrap();
    // One of the names is forgotten before the commit, and the other one after it.
    forget_names(&daemon);
    assert_eq!(bytes(was_read.open(&mount).unwrap()), old);
    run(&python, &array, "write(path, 5)");
    eventually("the commit shows", || read("v.i32") != old);
    forget_names(&daemon);
    for handle in [&was_read, &in_slice] {
        assert_eq!(handle.open(&mount).unwrap_err().raw_os_error(), Some(libc::ESTALE));
    }
    assert!(folder.open(&mount).unwrap().metadata().unwrap().is_dir());
    let (new, handle) = (read("v.i32"), FileHandle::of(&daemon.path("v.i32")));
    forget_names(&daemon);
    assert_eq!(bytes(handle.open(&mount).unwrap()), new);
    drop(mount);
    daemon.ends_by_signal("-TERM");
}
