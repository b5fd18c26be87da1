//! Names, sizes, times, listings and extended attributes, as programs see them.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirEntryExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::process::Command;
use std::sync::atomic::Ordering;

use tilefs_vfs::fuse::MountOptions;

use super::calls;
use super::harness::{Daemon, Need, Place, Toy, Watchdog, can_mount, eventually, is_root, mount_lines, skipped};
use support::toy::{BIG, MANY, MODIFIED_MS};

#[test]
fn attributes_are_exact_before_anything_is_read() {
    let _watchdog = Watchdog::start("attributes_are_exact_before_anything_is_read");
    if !can_mount() {
        return;
    }
    let toy = Toy::mount();
    let file = fs::metadata(toy.path("big.u64")).unwrap();
    assert_eq!((file.len(), file.blocks()), (BIG, BIG / 512));
    assert_eq!(file.permissions().mode(), 0o100_444);
    assert_eq!((file.mtime(), file.mtime_nsec()), (MODIFIED_MS as i64 / 1000, 500_000_000));
    assert!(file.blksize() >= 128 << 10);
    let me = fs::metadata("/proc/self").unwrap();
    assert_eq!((file.uid(), file.gid()), (me.uid(), me.gid()));
    for folder in [toy.path(""), toy.path("slice/7")] {
        let folder = fs::metadata(folder).unwrap();
        assert_eq!(folder.permissions().mode(), 0o040_555);
        assert_eq!(folder.nlink(), 1);
    }
}

#[test]
fn inode_numbers_are_the_same_in_every_mount() {
    let _watchdog = Watchdog::start("inode_numbers_are_the_same_in_every_mount");
    if !can_mount() {
        return;
    }
    let (one, other) = (Toy::mount(), Toy::mount());
    for name in ["", "hello.txt", "many/file-77", "slice/7/value.txt"] {
        let number = fs::metadata(one.path(name)).unwrap().ino();
        assert_eq!(fs::metadata(other.path(name)).unwrap().ino(), number, "{name}");
    }
}

#[test]
fn a_long_listing_is_complete_and_asks_for_no_sizes() {
    let _watchdog = Watchdog::start("a_long_listing_is_complete_and_asks_for_no_sizes");
    if !can_mount() {
        return;
    }
    let toy = Toy::mount();
    for _ in 0..2 {
        let mut names = HashSet::new();
        let mut numbers = HashSet::new();
        for entry in fs::read_dir(toy.path("many")).unwrap() {
            let entry = entry.unwrap();
            assert!(entry.file_type().unwrap().is_file() && !entry.file_type().unwrap().is_fifo());
            assert!(names.insert(entry.file_name().into_string().unwrap()));
            assert!(numbers.insert(entry.ino()));
        }
        assert_eq!(names, (0..MANY).map(|number| format!("file-{number}")).collect());
        assert_eq!(numbers.len(), names.len());
        let listed = fs::read_dir(toy.path("many")).unwrap().map(Result::unwrap).nth(500).unwrap();
        assert_eq!(toy.counters.lengths.load(Ordering::Relaxed), 0);
        assert_eq!(fs::metadata(listed.path()).unwrap().ino(), listed.ino());
        toy.counters.lengths.store(0, Ordering::Relaxed);
    }
    // One bad name and one bad file do not spoil a listing, and `..` leads out.
    let root: Vec<_> = fs::read_dir(toy.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(root.contains(&"lengthless.bin".into()) && root.len() == 11, "{root:?}");
    let around = fs::metadata(toy.path("slice/7/../..")).unwrap().ino();
    assert_eq!(around, fs::metadata(toy.path("")).unwrap().ino());
}

#[test]
fn what_is_not_there_is_not_found_and_nothing_can_be_written() {
    let _watchdog = Watchdog::start("what_is_not_there_is_not_found_and_nothing_can_be_written");
    if !can_mount() {
        return;
    }
    let toy = Toy::mount();
    for name in ["nothing", "slice/wrong", "slice/-1", "many/file-100000", "slice/7/nothing"] {
        for _ in 0..2 {
            assert_eq!(fs::metadata(toy.path(name)).unwrap_err().kind(), ErrorKind::NotFound, "{name}");
        }
    }
    assert_eq!(fs::metadata(toy.path("hello.txt/below")).unwrap_err().kind(), ErrorKind::NotADirectory);
    assert_eq!(fs::read(toy.path("slice")).unwrap_err().kind(), ErrorKind::IsADirectory);
    let read_only = |result: std::io::Result<()>| {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::ReadOnlyFilesystem);
    };
    let hello = toy.path("hello.txt");
    read_only(fs::write(toy.path("new"), ""));
    read_only(fs::create_dir(toy.path("new")));
    read_only(fs::remove_file(&hello));
    read_only(fs::rename(&hello, toy.path("new")));
    read_only(fs::set_permissions(&hello, fs::Permissions::from_mode(0o644)));
    read_only(fs::File::options().append(true).open(&hello).map(drop));
    assert_eq!(Command::new(&hello).output().unwrap_err().kind(), ErrorKind::PermissionDenied);
}

#[test]
fn extended_attributes_can_be_listed_measured_and_read() {
    let _watchdog = Watchdog::start("extended_attributes_can_be_listed_measured_and_read");
    if !can_mount() {
        return;
    }
    let toy = Toy::mount();
    let (root, hello) = (toy.path(""), toy.path("hello.txt"));
    let errno = |result: std::io::Result<(usize, Vec<u8>)>| result.unwrap_err().raw_os_error().unwrap();
    assert_eq!(calls::getxattr(&root, "user.tiledb.kind", 100).unwrap(), (3, b"toy".to_vec()));
    assert_eq!(calls::getxattr(&root, "user.tiledb.kind", 3).unwrap().1, b"toy");
    assert_eq!(calls::getxattr(&root, "user.tiledb.kind", 0).unwrap().0, 3);
    assert_eq!(errno(calls::getxattr(&root, "user.tiledb.kind", 2)), libc::ERANGE);
    assert_eq!(calls::getxattr(&root, "user.tiledb.long", 5000).unwrap().1, vec![b'x'; 5000]);
    assert_eq!(errno(calls::getxattr(&root, "user.tiledb.nothing", 100)), libc::ENODATA);
    assert_eq!(errno(calls::getxattr(&hello, "user.tiledb.kind", 0)), libc::ENODATA);
    assert_eq!(errno(calls::getxattr(&hello, "security.capability", 100)), libc::ENODATA);
    let names = b"user.tiledb.kind\0user.tiledb.long\0".to_vec();
    assert_eq!(calls::listxattr(&root, 0).unwrap().0, names.len());
    assert_eq!(errno(calls::listxattr(&root, names.len() - 1)), libc::ERANGE);
    assert_eq!(calls::listxattr(&root, 100).unwrap(), (names.len(), names));
    assert_eq!(calls::listxattr(&hello, 100).unwrap().0, 0);
}

#[test]
fn the_file_system_says_what_it_is() {
    let _watchdog = Watchdog::start("the_file_system_says_what_it_is");
    if !can_mount() {
        return;
    }
    let toy = Toy::mount_with(&MountOptions::new(r"/data/a, allow_other,b\c"));
    let answer = calls::statvfs(toy.place.path());
    assert_eq!((answer.f_blocks, answer.f_bavail), (1, 0), "df omits file systems without blocks");
    assert_eq!(answer.f_bfree, answer.f_blocks, "df shows no full disk");
    assert!(answer.f_namemax >= 255);
    assert_ne!(answer.f_flag & libc::ST_RDONLY, 0);
    let lines = mount_lines(toy.place.path());
    assert_eq!(lines.len(), 1);
    let has = |part: &str| assert!(lines[0].contains(part), "{part}: {lines:?}");
    has(r" - fuse.tilefs /data/a,\040allow_other,b\134c ");
    for option in ["ro", "nosuid", "nodev", "noatime", "default_permissions"] {
        has(option);
    }
    assert!(!lines[0].rsplit(' ').next().unwrap().contains("allow_other"));
}

#[test]
fn slices_that_the_kernel_forgets_are_forgotten() {
    let _watchdog = Watchdog::start("slices_that_the_kernel_forgets_are_forgotten");
    if !can_mount() || !is_root() {
        skipped(Need::Root, "only root can have the kernel forget");
        return;
    }
    let toy = Toy::mount();
    let live = || toy.counters.live_slices.load(Ordering::Relaxed);
    for number in 0..20_000 {
        fs::metadata(toy.path(&format!("slice/{number}"))).unwrap();
    }
    // The kernel remembers their names; the slices themselves are made again when they are needed.
    assert!(live() <= 256, "{}", live());
    calls::drop_names(toy.place.path());
    eventually("all slices are gone", || live() == 0);
    assert_eq!(fs::read(toy.path("slice/5/value.txt")).unwrap(), b"hello\n");
}

#[test]
fn slices_whose_names_are_remembered_take_no_memory_and_stay_what_they_are() {
    let _watchdog = Watchdog::start("slices_whose_names_are_remembered_take_no_memory_and_stay_what_they_are");
    if !can_mount() {
        return;
    }
    let toy = Toy::mount();
    let look = |number: u64| {
        let path = toy.path(&format!("slice/{number}/value.txt"));
        let told = fs::metadata(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap().len() as u64, told.len());
        (told.ino(), told.len(), told.modified().unwrap())
    };
    let open = fs::File::open(toy.path("slice/0/value.txt")).unwrap();
    let first: Vec<_> = (0..10_000).map(look).collect();
    let live = toy.counters.live_slices.load(Ordering::Relaxed);
    assert!(live <= 256, "{live}");
    assert_eq!((0..10_000).map(look).collect::<Vec<_>>(), first);
    assert_eq!(std::io::read_to_string(open).unwrap(), "hello\n");
}

#[test]
fn a_selection_of_variants_without_records_is_explained() {
    let _watchdog = Watchdog::start("a_selection_of_variants_without_records_is_explained");
    if !can_mount() {
        return;
    }
    let dataset = tilefs_fixtures::fixtures().join("variants/v4");
    let daemon = Daemon::start(Place::new(), &dataset, &[]);
    let path = "vcf/slice/10:5-9/B 2.vcf";
    let reason = "no header names the contig 10, and no record is on it; the nearest name is chr10";
    let errors = || fs::read_to_string(daemon.path(".tilefs/errors.txt")).unwrap();
    assert!(fs::read_to_string(daemon.path("vcf/slice/chr10:5-9/B 2.vcf")).unwrap().contains("\nchr10\t"));
    assert_eq!(errors(), "no errors so far\n");
    assert!(fs::read_to_string(daemon.path(path)).unwrap().lines().all(|line| line.starts_with('#')));
    assert!(errors().contains(&format!("vcf/slice/10:5-9: {reason}\n")), "{}", errors());
    assert!(fs::metadata(daemon.path("vcf/merged/chr10:1-4.bcf.csi")).is_ok());
    assert!(errors().contains("vcf/merged: no record overlaps chr10:1-4\n"), "{}", errors());
    let cat = Command::new(env!("CARGO_BIN_EXE_tilefs")).arg("cat").arg(&dataset).arg(path).output().unwrap();
    assert!(cat.status.success() && cat.stdout.starts_with(b"##fileformat"));
    assert_eq!(String::from_utf8_lossy(&cat.stderr), format!("tilefs: {path}: {reason}\n"));
    daemon.ends_by_signal("-TERM");
}
