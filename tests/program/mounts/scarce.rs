//! Machines that lack something a program may count on: folders for temporary files and shared memory, space for a log.
//! Each is a separate mount namespace, in which a shell script does what a user would do.

use std::fs;
use std::process::{Command, Output};

use super::harness::{Need, Place, Watchdog, can_mount, copy_of_demo, demo, errors, is_root, skipped, tilefs};
use super::recorded::object;

/// The end of every script: compares the values with those that were read elsewhere.
const MOUNT_AND_COMPARE: &str = r#"
"$TILEFS" mount "$ARRAY" "$PLACE/mnt" --cache-size 1M
cmp "$PLACE/values" "$PLACE/mnt/temp.f32"
cmp "$PLACE/table" "$PLACE/mnt/text/temp.txt"
"$TILEFS" umount "$PLACE/mnt"
"#;

/// Returns whether this process can create mount namespaces; reports it if not.
fn can_take_things_away() -> bool {
    if !can_mount() {
        return false;
    }
    let unshared = is_root() && Command::new("unshare").args(["--mount", "true"]).status().is_ok_and(|s| s.success());
    if !unshared {
        skipped(Need::Mounts, "only root can make a mount namespace, with unshare");
    }
    unshared
}

/// Runs a script in a separate mount namespace: `$TILEFS` is the program, `$ARRAY` the sample array, `$PLACE` a folder
/// with `mnt` and two of its files.
fn run(place: &Place, script: &str) -> Output {
    let beside = place.beside();
    let array = demo();
    for (name, file) in [("values", "temp.f32"), ("table", "text/temp.txt")] {
        fs::write(beside.join(name), tilefs(&["cat".as_ref(), array.as_ref(), file.as_ref()]).stdout).unwrap();
    }
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--propagation", "private", "sh", "-ec", script]).current_dir("/");
    unshare.env("TILEFS", env!("CARGO_BIN_EXE_tilefs")).env("ARRAY", array).env("PLACE", beside).env_remove("TMPDIR");
    unshare.output().unwrap()
}

#[test]
fn nothing_needs_shared_memory() {
    let _watchdog = Watchdog::start("nothing_needs_shared_memory");
    if !can_take_things_away() {
        return;
    }
    // A /dev with only these devices.
    let without = r#"
        mkdir "$PLACE/dev"
        mount -t tmpfs none "$PLACE/dev"
        for device in null zero urandom fuse; do
            touch "$PLACE/dev/$device"
            mount --bind "/dev/$device" "$PLACE/dev/$device"
        done
        mount --move "$PLACE/dev" /dev
        test ! -e /dev/shm
    "#;
    let place = Place::new();
    let output = run(&place, &[without, MOUNT_AND_COMPARE].concat());
    assert!(output.status.success(), "{}", errors(&output));
}

#[test]
fn dense_arrays_need_no_folder_for_temporary_files() {
    let _watchdog = Watchdog::start("dense_arrays_need_no_folder_for_temporary_files");
    if !can_take_things_away() {
        return;
    }
    // The mount point may be in such a folder: existing files stay, but cannot be written.
    let read_only = r#"
        for folder in /tmp /var/tmp; do
            mount --bind $folder $folder
            mount -o remount,bind,ro $folder
            ! touch $folder/x 2>/dev/null
        done
    "#;
    let place = Place::new();
    let output = run(&place, &[read_only, MOUNT_AND_COMPARE].concat());
    assert!(output.status.success(), "{}", errors(&output));
}

#[test]
fn a_mount_in_the_background_needs_no_proc() {
    let _watchdog = Watchdog::start("a_mount_in_the_background_needs_no_proc");
    if !can_take_things_away() {
        return;
    }
    let script = r#"
        umount -l /proc
        test ! -e /proc/self
        "$TILEFS" mount "$ARRAY" "$PLACE/mnt"
        cmp "$PLACE/values" "$PLACE/mnt/temp.f32"
        umount "$PLACE/mnt"
    "#;
    let place = Place::new();
    let output = run(&place, script);
    assert!(output.status.success(), "{}", errors(&output));
}

/// Rows of a sparse array that do not fit in memory go to a temporary file, for which there may be no space.
#[test]
fn rows_that_find_no_folder_for_temporary_files_are_an_error_that_names_it() {
    let _watchdog = Watchdog::start("rows_that_find_no_folder_for_temporary_files_are_an_error_that_names_it");
    if !can_take_things_away() {
        return;
    }
    let place = Place::new();
    let sparse = object("sparse/overlap").place;
    let whole = tilefs(&["cat".as_ref(), sparse.as_os_str(), "by-row/text/cells.tsv".as_ref()]).stdout;
    fs::write(place.beside().join("rows"), &whole).unwrap();
    for disk in ["mount -t tmpfs -o ro none /var/tmp", FULL_DISK] {
        let script = format!(
            r#"
        {disk}
        export TMPDIR=/var/tmp
        "$TILEFS" cat '{}' by-row/text/cells.tsv --cache-size 4K > "$PLACE/read" 2> "$PLACE/said" || test -s "$PLACE/said"
        test -s "$PLACE/said" || cmp "$PLACE/rows" "$PLACE/read"
        cat "$PLACE/said"
        "#,
            sparse.display()
        );
        let output = run(&place, &script);
        assert!(output.status.success(), "{}", errors(&output));
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.is_empty() || (said.lines().count() == 1 && said.contains("/var/tmp")), "{said}");
    }
}

/// A disk on which files can be created, but not written.
const FULL_DISK: &str = "
    mount -t tmpfs -o size=4k none /var/tmp
    ! head -c 8192 /dev/zero > /var/tmp/full 2>/dev/null
";

#[test]
fn a_full_disk_for_the_log_costs_no_reader_anything() {
    let _watchdog = Watchdog::start("a_full_disk_for_the_log_costs_no_reader_anything");
    if !can_take_things_away() {
        return;
    }
    let place = Place::new();
    let damaged = copy_of_demo(&place);
    let fragment = fs::read_dir(damaged.join("__fragments")).unwrap().map(|entry| entry.unwrap().path()).max().unwrap();
    let data = fragment.join("a0.tdb");
    let length = fs::metadata(&data).unwrap().len();
    fs::write(&data, vec![0xff; length as usize]).unwrap();
    let script = r#"
        mkdir "$PLACE/disk"
        mount -t tmpfs -o size=4k none "$PLACE/disk"
        touch "$PLACE/disk/log"
        ! head -c 8192 /dev/zero > "$PLACE/disk/full" 2>/dev/null
        "$TILEFS" mount "$PLACE/demo" "$PLACE/mnt" --log-file "$PLACE/disk/log"
        for round in 1 2 3; do
            ! cat "$PLACE/mnt/temp.f32" > /dev/null 2>&1
            cat "$PLACE/mnt/cell.i32" > "$PLACE/cells"
            cmp "$PLACE/cells" "$PLACE/expected"
        done
        test ! -s "$PLACE/disk/log"
        "$TILEFS" umount "$PLACE/mnt"
        # The daemon holds its log until it has ended, which is a little after its mount is gone.
        until umount "$PLACE/disk"; do sleep 0.05; done
        mount -t tmpfs -o nr_inodes=1 none "$PLACE/disk"
        ! "$TILEFS" mount "$PLACE/demo" "$PLACE/mnt" --log-file "$PLACE/disk/log"
    "#;
    let expected = tilefs(&["cat".as_ref(), demo().as_ref(), "cell.i32".as_ref()]).stdout;
    fs::write(place.beside().join("expected"), expected).unwrap();
    let output = run(&place, script);
    assert!(output.status.success(), "{}", errors(&output));
    let said = errors(&output);
    let line = said.lines().last().unwrap();
    assert!(line.starts_with("tilefs: ") && line.contains("disk/log") && line.contains("No space left"), "{said}");
}
