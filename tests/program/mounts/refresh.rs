//! Mounts of arrays that change meanwhile: files opened after a refresh show the new state, and nothing else changes.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::harness::{Daemon, Place, Watchdog, can_mount, errors, eventually, processes_with_argument, signal};
use support::skip::python_with;

const BESIDE: &str = "
import sys, numpy, tiledb
path = sys.argv[1]
def create(path):
    dimension = tiledb.Dim('x', domain=(0, 65535), tile=4096, dtype='int32')
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(dimension), [tiledb.Attr('v', dtype='int32')]))
def write(path, value):
    with tiledb.open(path, 'w') as array:
        names = [array.attr(number).name for number in range(array.nattr)]
        array[:] = {name: numpy.full(65536, value, 'int32') for name in names}
";

/// Runs lines of Python after those above.
pub fn run(python: &str, path: &Path, script: &str) {
    let output = Command::new(python).args(["-c", &format!("{BESIDE}{script}")]).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
}

/// Returns the value that all cells of a file have.
fn value(path: &Path) -> i32 {
    value_of(&fs::read(path).unwrap())
}

fn value_of(bytes: &[u8]) -> i32 {
    assert_eq!(bytes.len(), 4 * 65_536);
    assert!(bytes.chunks_exact(4).all(|cell| cell == &bytes[..4]));
    i32::from_le_bytes(bytes[..4].try_into().unwrap())
}

fn names(folder: &Path) -> HashSet<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn reads(daemon: &Daemon) -> u64 {
    let text = fs::read(daemon.path(".tilefs/stats.json")).unwrap();
    serde_json::from_slice::<serde_json::Value>(&text).unwrap()["requests"]["read"].as_u64().unwrap()
}

#[test]
fn what_is_opened_after_a_refresh_is_new_and_what_is_open_stays() {
    let _watchdog = Watchdog::start("what_is_opened_after_a_refresh_is_new_and_what_is_open_stays");
    let Some(python) = python_with("tiledb, numpy").filter(|_| can_mount()) else { return };
    let place = Place::new();
    let array = place.beside().join("array");
    run(&python, &array, "create(path)\nwrite(path, 1)");
    let daemon = Daemon::start(place, &array, &["--refresh", "1", "--cache-size", "4M", "--log-level", "info"]);
    let path = daemon.path("v.i32");
    let (unread, half, before) = (File::open(&path).unwrap(), File::open(&path).unwrap(), fs::metadata(&path).unwrap());
    half.read_exact_at(&mut [0; 100_000], 0).unwrap();
    let slice = daemon.path("slice/0..9");
    fs::metadata(slice.join("v.i32")).unwrap();
    let folder = fs::metadata(&slice).unwrap().ino();

    run(&python, &array, "write(path, 5)\nwith tiledb.open(path, 'w') as a: a.meta['k'] = 'new'");
    eventually("the commit shows", || value(&path) == 5);
    let after = fs::metadata(&path).unwrap();
    assert!(before.modified().unwrap() < after.modified().unwrap());
    assert_ne!(before.ino(), after.ino(), "as if another file were in its place");
    assert_eq!(fs::metadata(&slice).unwrap().ino(), folder);
    assert_eq!(fs::read(slice.join("v.i32")).unwrap(), [5_i32.to_le_bytes(); 10].concat());
    eventually("the metadata show", || fs::read_to_string(daemon.path("meta.json")).unwrap().contains("new"));

    // Listings show a new attribute, and a consolidation changes nothing for readers.
    run(
        &python,
        &array,
        "
evolution = tiledb.ArraySchemaEvolution(tiledb.Ctx())
evolution.add_attribute(tiledb.Attr('w', dtype='int32'))
evolution.array_evolve(path)
write(path, 8)
tiledb.consolidate(path)
",
    );
    eventually("the attribute shows", || names(daemon.place()).contains("w.i32"));
    eventually("the commit shows", || value(&daemon.path("w.i32")) == 8);
    let read_all = |mut file: &File| {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        value_of(&bytes)
    };
    assert_eq!((read_all(&unread), read_all(&half)), (1, 1));
    assert_eq!(unread.metadata().unwrap().modified().unwrap(), before.modified().unwrap());
    assert!(!daemon.log().contains("ERROR") && daemon.log().contains("refreshed: "), "{}", daemon.log());

    // Reads of removed data fail, and do not return its replacement.
    run(&python, &array, "write(path, 9)");
    eventually("the commit shows", || value(&path) == 9);
    let old = File::open(daemon.path("w.i32")).unwrap();
    run(&python, &array, "tiledb.consolidate(path)\ntiledb.vacuum(path)\nwrite(path, 10)");
    eventually("the commit shows", || value(&path) == 10);
    assert!(old.read_exact_at(&mut [0; 10], 0).is_err());
    eventually("the log says so", || daemon.log().contains("vacuumed since the array was opened"));
    drop((unread, half, old));
    daemon.ends_by_signal("-TERM");
}

#[test]
fn a_hang_up_refreshes_at_once_and_a_mount_without_stays_as_it_is() {
    let _watchdog = Watchdog::start("a_hang_up_refreshes_at_once_and_a_mount_without_stays_as_it_is");
    let Some(python) = python_with("tiledb, numpy").filter(|_| can_mount()) else { return };
    let place = Place::new();
    let array = place.beside().join("array");
    run(&python, &array, "create(path)\nwrite(path, 1)");
    for options in [&[] as &[&str], &["-o", "refresh=86400"]] {
        let daemon = Daemon::start(Place::new(), &array, options);
        let path = daemon.path("v.i32");
        let before = value(&path);
        run(&python, &array, &format!("write(path, {})", before + 1));
        thread::sleep(Duration::from_millis(300));
        assert_eq!(value(&path), before);
        let process = processes_with_argument(daemon.place())[0];
        signal(process, "-HUP");
        eventually("the commit shows", || value(&path) == before + 1);
        // A second refresh without a new commit. With the option, the mount compares commits and keeps the inode number.
        let number = fs::metadata(&path).unwrap().ino();
        signal(process, "-HUP");
        thread::sleep(Duration::from_millis(500));
        assert!(options.is_empty() || fs::metadata(&path).unwrap().ino() == number);
        assert!(daemon.is_alive() && value(&path) == before + 1);
        daemon.ends_by_signal("-TERM");
    }
}

/// An array is moved away, and another one takes its place later. A refresh in between keeps the previous state, and is
/// soon repeated.
#[test]
fn a_refresh_while_an_array_is_replaced_shows_the_new_one_soon_and_nothing_else() {
    let _watchdog = Watchdog::start("a_refresh_while_an_array_is_replaced_shows_the_new_one_soon_and_nothing_else");
    let Some(python) = python_with("tiledb, numpy").filter(|_| can_mount()) else { return };
    let place = Place::new();
    let [array, new, old] = ["array", "new", "old"].map(|name| place.beside().join(name));
    run(&python, &array, "create(path)\nwrite(path, 1)");
    run(&python, &new, "create(path)\nwrite(path, 2)");
    let daemon = Daemon::start(place, &array, &["--refresh", "86400"]);
    let path = daemon.path("v.i32");
    assert_eq!(value(&path), 1);
    fs::rename(&array, &old).unwrap();
    signal(daemon.process(), "-HUP");
    eventually("the refresh fails", || daemon.log().contains("refreshing: "));
    assert_eq!(value(&path), 1, "what was read before");
    fs::rename(&new, &array).unwrap();
    let begin = Instant::now();
    while fs::read(&path).map_or(1, |bytes| value_of(&bytes)) == 1 {
        assert!(begin.elapsed() < Duration::from_secs(5), "{}", daemon.log());
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(value(&path), 2);
    daemon.ends_by_signal("-TERM");
}

#[test]
fn of_a_group_only_the_array_that_changed_is_asked_for_again() {
    let _watchdog = Watchdog::start("of_a_group_only_the_array_that_changed_is_asked_for_again");
    let Some(python) = python_with("tiledb, numpy").filter(|_| can_mount()) else { return };
    let place = Place::new();
    let group = place.beside().join("group");
    let make = "
tiledb.group_create(path)
tiledb.group_create(path + '/inner')
for name in ['a', 'b', 'inner/c']:
    create(path + '/' + name)
    write(path + '/' + name, 1)
with tiledb.Group(path + '/inner', 'w') as group: group.add('c', relative=True)
with tiledb.Group(path, 'w') as group:
    for name in ['a', 'b', 'inner']: group.add(name, relative=True)
";
    run(&python, &group, make);
    let daemon = Daemon::start(place, &group, &["--refresh=1"]);
    let [a, b, c] = ["a/v.i32", "b/v.i32", "inner/c/v.i32"].map(|name| daemon.path(name));
    let numbers = || [&a, &b, &c].map(|path| fs::metadata(path).unwrap().ino());
    // The inode number of a file is not reused while the old file is open.
    let old = File::open(&a).unwrap();
    let before = numbers();
    assert_eq!([&a, &b, &c].map(|path| value(path)), [1; 3]);
    run(&python, &group, "write(path + '/a', 2)");
    eventually("the commit shows", || value(&a) == 2);
    let asked = reads(&daemon);
    assert_eq!([&b, &c].map(|path| value(path)), [1; 2]);
    // These values came from the kernel's cache: the only reads are those of the statistics, and of their end.
    assert_eq!(reads(&daemon), asked + 2);
    let after = numbers();
    assert_eq!((after[1..] == before[1..], after[0] == before[0]), (true, false));
    run(&python, &group, "write(path + '/inner/c', 3)");
    eventually("the commit shows", || value(&c) == 3);
    assert_eq!((value(&a), numbers()[..2] == after[..2]), (2, true));

    // Members are added and removed.
    run(
        &python,
        &group,
        "create(path + '/d')\nwrite(path + '/d', 4)\nwith tiledb.Group(path, 'w') as group: group.add('d', relative=True)",
    );
    eventually("the member shows", || names(daemon.place()).contains("d"));
    assert_eq!(value(&daemon.path("d/v.i32")), 4);
    let held = File::open(&b).unwrap();
    run(&python, &group, "with tiledb.Group(path, 'w') as group: group.remove('b')");
    eventually("the member is gone", || !names(daemon.place()).contains("b") && fs::metadata(&b).is_err());
    assert!(fs::metadata(daemon.path("b")).is_err());
    let mut bytes = vec![0; 4 * 65_536];
    held.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!((value_of(&bytes), value(&a)), (1, 2));
    drop((held, old));
    daemon.ends_by_signal("-TERM");
}

/// A name, the time of the last commit according to the file's own time, and the digest of its bytes.
type Seen = (String, u64, String);

/// Reads all files of values; with `linger`, only a while after they were opened.
fn read_once(daemon: &Daemon, linger: bool, seen: &Mutex<HashSet<Seen>>) -> std::io::Result<()> {
    for entry in fs::read_dir(daemon.place())? {
        let name = entry?.file_name().into_string().unwrap();
        let Some(attribute) = name.strip_suffix(".i32") else { continue };
        let mut file = File::open(daemon.path(&name))?;
        if linger {
            thread::sleep(Duration::from_millis(700));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let metadata = file.metadata()?;
        let time = metadata.mtime() as u64 * 1000 + metadata.mtime_nsec() as u64 / 1_000_000;
        let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        seen.lock().unwrap().insert((attribute.to_owned(), time, digest));
    }
    Ok(())
}

/// `TILEFS_LIVE_SECONDS` and `TILEFS_LIVE_READERS` set the duration and the number of readers.
#[test]
fn readers_beside_a_writer_see_what_libtiledb_read_at_the_same_time() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let seconds = number("TILEFS_LIVE_SECONDS").unwrap_or(15);
    let _watchdog =
        (seconds < 60).then(|| Watchdog::start("readers_beside_a_writer_see_what_libtiledb_read_at_the_same_time"));
    let Some(python) = python_with("tiledb, numpy").filter(|_| can_mount()) else { return };
    let place = Place::new();
    let array = place.beside().join("array");
    let write = |seconds: u64| -> String {
        let script = support::repository::root().join("tests/program/mounts/live_writer.py");
        let output = Command::new(&python).arg(script).arg(&array).arg(seconds.to_string()).output().unwrap();
        assert!(output.status.success(), "{}", errors(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let mut told = write(0);
    let daemon = Daemon::start(place, &array, &["--refresh=1"]);
    let (is_over, refused, seen) = (AtomicBool::new(false), AtomicU64::new(0), Mutex::default());
    thread::scope(|scope| {
        for reader in 0..number("TILEFS_LIVE_READERS").unwrap_or(4) {
            let (daemon, is_over, refused, seen) = (&daemon, &is_over, &refused, &seen);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    if let Err(error) = read_once(daemon, reader % 4 == 0, seen) {
                        // The error of a fragment that was vacuumed.
                        assert_eq!(error.raw_os_error(), Some(5), "{error}");
                        refused.fetch_add(1, Ordering::Relaxed);
                    }
                    thread::sleep(Duration::from_millis(20));
                }
            });
        }
        told += &write(seconds);
        is_over.store(true, Ordering::Relaxed);
    });
    let told: HashMap<(u64, &str), &str> = told
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>())
        .map(|words| ((words[0].parse().unwrap(), words[1]), words[2]))
        .collect();
    let seen = seen.into_inner().unwrap();
    for (attribute, time, digest) in &seen {
        assert_eq!(told.get(&(*time, attribute.as_str())), Some(&digest.as_str()), "{attribute} at {time}");
    }
    let times: HashSet<u64> = seen.iter().map(|(_, time, _)| *time).collect();
    let refused = refused.into_inner();
    println!("{} files of {} times of {}, {refused} refused", seen.len(), times.len(), told.len());
    // On a busy machine, the writer makes only a few commits.
    assert!(times.len() > 1, "{times:?}, {refused} refused");
    assert!(refused == 0 || daemon.log().contains("vacuumed since"), "{}", daemon.log());
    // In the end, all commits are visible.
    let last = told.keys().map(|(time, _)| *time).max().unwrap();
    let start = Instant::now();
    eventually("the last commit shows", || {
        let now = Mutex::default();
        assert!(start.elapsed() < Duration::from_secs(20), "{}", daemon.log());
        read_once(&daemon, false, &now).is_ok() && now.into_inner().unwrap().iter().all(|(_, time, _)| *time == last)
    });
    daemon.ends_by_signal("-TERM");
}
