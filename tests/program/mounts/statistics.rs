//! The counters of a mount, and where it reports them.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;

use super::harness::{Daemon, Place, Toy, Watchdog, can_mount, demo, eventually, processes_with_argument, signal};

fn json(daemon: &Daemon) -> serde_json::Value {
    serde_json::from_slice(&fs::read(daemon.path(".tilefs/stats.json")).unwrap()).unwrap()
}

#[test]
fn what_was_read_is_counted() {
    let _watchdog = Watchdog::start("what_was_read_is_counted");
    if !can_mount() {
        return;
    }
    let daemon = Daemon::start(Place::new(), &demo(), &["--cache-size", "64M"]);
    let listed = fs::read_dir(daemon.place()).unwrap();
    assert!(listed.map(|entry| entry.unwrap().file_name()).all(|name| name != ".tilefs"));
    let before = json(&daemon);
    let length = fs::read(daemon.path("temp.f32")).unwrap().len() as u64;
    // This read comes from the page cache, without a request.
    fs::read(daemon.path("temp.f32")).unwrap();
    fs::read(daemon.path("slice/0..9,0..9/temp.f32")).unwrap();
    assert!(fs::read(daemon.path("nothing")).is_err());
    let open = fs::File::open(daemon.path("schema.json")).unwrap();
    let after = json(&daemon);
    let grown =
        |path: &str| after.pointer(path).unwrap().as_f64().unwrap() - before.pointer(path).unwrap().as_f64().unwrap();
    // The statistics themselves are read through the mount as well.
    let own = fs::metadata(daemon.path(".tilefs/stats.json")).unwrap().size();
    assert_eq!(grown("/read_bytes"), (length + 400 + own) as f64, "{before} {after}");
    for (what, least) in [("lookup", 3.0), ("read", 2.0), ("getattr", 0.0), ("open", 3.0), ("opendir", 0.0)] {
        assert!(grown(&format!("/requests/{what}")) >= least, "{what}: {before} {after}");
    }
    assert!(grown("/cache_misses/decoded") >= 1.0 && grown("/cache_hits/decoded") >= 1.0, "{before} {after}");
    assert!(grown("/decoded_bytes") >= length as f64, "{before} {after}");
    assert!(grown("/stored_bytes") > 0.0 && grown("/decode_seconds") > 0.0, "{before} {after}");
    assert!(grown("/cache_bytes/decoded") >= length as f64 && grown("/names") >= 3.0, "{before} {after}");
    assert_eq!(after["cache_budget_bytes"], 64 << 20);
    assert_eq!(after["open_files"], 1);
    assert!(after["errors"].as_object().unwrap().values().all(|count| count == 0), "{after}");
    drop(open);

    // The other file has the same numbers, and its size is right before it is read.
    let path = daemon.path(".tilefs/stats.prom");
    let size = fs::metadata(&path).unwrap().size();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.len() as u64, size);
    let line = text.lines().find_map(|line| line.strip_prefix("tilefs_read_bytes_total ")).unwrap();
    assert!(line.trim().parse::<u64>().unwrap() >= length);

    let process = processes_with_argument(daemon.place())[0];
    signal(process, "-USR1");
    eventually("the line is in the log", || daemon.log().contains("statistics: requests.lookup="));
    assert!(daemon.log().contains(" decoded_bytes=") && daemon.is_alive());
    assert!(!daemon.log().contains("warning: statistics"), "it is no warning: {}", daemon.log());
    daemon.ends_by_signal("-TERM");
}

#[test]
fn an_open_file_of_statistics_stays_what_it_was() {
    let _watchdog = Watchdog::start("an_open_file_of_statistics_stays_what_it_was");
    if !can_mount() {
        return;
    }
    let toy = Toy::mount();
    let path = toy.path(".tilefs/stats.json");
    let mut file = fs::File::open(&path).unwrap();
    let mut first = String::new();
    file.read_to_string(&mut first).unwrap();
    assert!(fs::read(toy.path("damaged.bin")).is_err());
    let mut again = String::new();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_string(&mut again).unwrap();
    assert_eq!(first, again);
    let errors = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap()["errors"]["damaged"].as_u64();
    assert_eq!(errors(&first), Some(0));
    assert!(errors(&fs::read_to_string(&path).unwrap()) >= Some(1));
}
