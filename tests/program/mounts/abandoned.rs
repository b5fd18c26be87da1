//! Readers that give up: they are released, and the work for them ends.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use support::handmade::{Attribute, Stored, attribute, schema};

use super::harness::{Daemon, Need, Place, Watchdog, can_mount, eventually, is_root, signal, skipped};

/// A file of 2^40 cells, whose length takes hours to determine.
const ENDLESS: &str = "text/cells.csv";

/// The number of attributes of an array whose texts take seconds.
const ATTRIBUTES: usize = 60_000;

/// Time within which a reader is released and its work ends: a second, but more on a loaded machine.
const SOON: Duration = Duration::from_secs(10);

fn daemon(options: &[&str]) -> Daemon {
    let long = tilefs_fixtures::fixtures().join("long");
    Daemon::start(Place::new(), &long, options)
}

fn stat(daemon: &Daemon, name: &str) -> Child {
    let mut stat = Command::new("stat");
    stat.arg(daemon.path(name)).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Returns the processor time of a daemon so far, in hundredths of seconds.
fn work(daemon: &Daemon) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", daemon.process())).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

fn is_at_work(daemon: &Daemon) -> bool {
    let before = work(daemon);
    thread::sleep(Duration::from_millis(300));
    work(daemon) > before + 5
}

fn ends(mut reader: Child, name: &str) {
    let start = Instant::now();
    while reader.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < SOON, "{name}: the reader is let go");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn killed_readers_are_let_go_and_their_work_ends() {
    let _watchdog = Watchdog::start("killed_readers_are_let_go_and_their_work_ends");
    if !can_mount() {
        return;
    }
    let daemon = daemon(&["--threads", "2"]);
    for name in ["-TERM", "-KILL", "-ABRT"] {
        let reader = stat(&daemon, ENDLESS);
        eventually("the daemon is at work", || is_at_work(&daemon));
        signal(reader.id(), name);
        ends(reader, name);
        eventually("the daemon has nothing to do", || !is_at_work(&daemon));
    }
    // The abandoned work starts again for the next reader, and everything else still works.
    let reader = stat(&daemon, ENDLESS);
    eventually("the daemon is at work", || is_at_work(&daemon));
    assert!(fs::metadata(daemon.path("v.i32")).unwrap().len() == 1 << 42);
    signal(reader.id(), "-KILL");
    ends(reader, "the last");
    assert!(!daemon.log().contains("ERROR"), "{}", daemon.log());
    daemon.ends_by_signal("-TERM");
}

/// Waits until a daemon has nothing to do. Returns its processor time since `start`.
fn work_since(daemon: &Daemon, start: u64) -> u64 {
    eventually("the daemon has nothing to do", || !is_at_work(daemon));
    work(daemon) - start
}

/// Texts that are made of the metadata of very many attributes take seconds. A reader that is gone ends that.
#[test]
fn texts_end_with_their_reader() {
    let _watchdog = Watchdog::start("texts_end_with_their_reader");
    if !can_mount() {
        return;
    }
    let attributes: Vec<Attribute> = (0..ATTRIBUTES).map(|number| attribute(&format!("a{number}"), 6, None)).collect();
    let array = Stored::new(&schema(100, 100, attributes.into_iter()));
    for name in ["schema.json", "schema.txt", "README.txt"] {
        let daemon = Daemon::start(Place::new(), &array.path(), &["--threads", "2", "--cache-size", "1G"]);
        // What is made once.
        fs::metadata(daemon.path("a0.u8")).unwrap();
        let start = work_since(&daemon, 0);
        let reader = stat(&daemon, name);
        eventually("the daemon has worked for a while", || work(&daemon) > start + 20);
        signal(reader.id(), "-KILL");
        ends(reader, name);
        let abandoned = work_since(&daemon, start);
        let start = work(&daemon);
        fs::metadata(daemon.path(name)).unwrap();
        let whole = work_since(&daemon, start);
        assert!(2 * abandoned < whole, "{name}: {abandoned} of {whole} hundredths of a second");
        daemon.ends_by_signal("-TERM");
    }
}

#[test]
fn a_killed_reader_whose_request_has_not_begun_is_let_go() {
    let _watchdog = Watchdog::start("a_killed_reader_whose_request_has_not_begun_is_let_go");
    if !can_mount() {
        return;
    }
    let daemon = daemon(&["--threads", "1"]);
    fs::metadata(daemon.path("text")).unwrap();
    let first = stat(&daemon, ENDLESS);
    eventually("the daemon is at work", || is_at_work(&daemon));
    let second = stat(&daemon, "text/cells.tsv");
    thread::sleep(Duration::from_millis(300));
    signal(second.id(), "-KILL");
    ends(second, "the one that waits");
    assert!(is_at_work(&daemon), "the other goes on");
    signal(first.id(), "-KILL");
    ends(first, "the one at work");
    eventually("the daemon has nothing to do", || !is_at_work(&daemon));
    daemon.ends_by_signal("-TERM");
}

#[test]
fn a_forced_unmount_ends_the_work() {
    let _watchdog = Watchdog::start("a_forced_unmount_ends_the_work");
    if !can_mount() {
        return;
    }
    if !is_root() {
        return skipped(Need::Root, "only root can unmount with force");
    }
    for option in ["--force", "--lazy"] {
        let daemon = daemon(&[]);
        let reader = stat(&daemon, ENDLESS);
        eventually("the daemon is at work", || is_at_work(&daemon));
        // With `--force`, umount breaks the connection, and may report that the name is in use.
        let _ = Command::new("umount").arg(option).arg(daemon.place()).stderr(Stdio::null()).status().unwrap();
        if option == "--lazy" {
            assert!(is_at_work(&daemon), "somebody still uses it");
            signal(reader.id(), "-KILL");
        }
        ends(reader, option);
        eventually("the daemon has ended", || !daemon.is_alive());
    }
}
