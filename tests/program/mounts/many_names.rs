//! More names than fit in memory.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::thread;

use super::harness::{
    Daemon, Place, Server, Watchdog, can_mount, demo, eventually, memory_of, processes_with_argument,
};

/// The names of these slices would take about 17 MB.
#[test]
fn ten_thousand_slices_take_bounded_memory_and_old_ones_still_work() {
    let _watchdog = Watchdog::start("ten_thousand_slices_take_bounded_memory_and_old_ones_still_work");
    if !can_mount() {
        return;
    }
    let daemon = Daemon::start(Place::new(), &demo(), &["--cache-size", "16M"]);
    let slice = |from: usize, to: usize, column: usize| daemon.path(&format!("slice/{from}..{to},{column}"));
    let long = |from: usize, to: usize, column: usize| daemon.path(&format!("slice/{from:0400}..{to:0400},{column}"));
    let expected = fs::read(slice(0, 99, 0).join("temp.f32")).unwrap();
    // In the oldest slices: an open file, and a shell whose working folder is one of them. Nobody has looked up a name
    // in that folder.
    let open = fs::File::open(slice(0, 9, 0).join("temp.f32")).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "read go; pwd -P && cat temp.f32 && ls .. > /dev/null"]).current_dir(slice(10, 19, 0));
    let mut shell = Server(shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    let process = processes_with_argument(daemon.place())[0];
    let start = memory_of(process);
    thread::scope(|scope| {
        for column in 1..3 {
            let long = &long;
            scope.spawn(move || {
                for (from, to) in (0..100).flat_map(|from| (from..100).map(move |to| (from, to))) {
                    let file = fs::File::open(long(from, to, column).join("temp.f32")).unwrap();
                    assert_eq!(file.metadata().unwrap().len(), 4 * (to - from + 1) as u64);
                }
            });
        }
    });
    let statistics = || -> serde_json::Value {
        serde_json::from_slice(&fs::read(daemon.path(".tilefs/stats.json")).unwrap()).unwrap()
    };
    assert!(statistics()["requests"]["open"].as_u64() > Some(10_100));
    eventually("the kernel has forgotten enough", || statistics()["names_bytes"].as_u64() < Some(13 << 20));
    let now = memory_of(process);
    assert!(now < start + (32 << 20), "{start} {now}");
    let mut bytes = vec![0; 40];
    open.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(bytes, expected[..40]);
    shell.0.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let mut said = Vec::new();
    shell.0.stdout.take().unwrap().read_to_end(&mut said).unwrap();
    let folder = format!("{}\n", slice(10, 19, 0).display());
    assert_eq!(said, [folder.as_bytes(), &expected[40..80]].concat(), "{}", String::from_utf8_lossy(&said));
    assert!(shell.0.wait().unwrap().success());
    // Forgotten names are found again.
    assert_eq!(fs::read(slice(0, 99, 0).join("temp.f32")).unwrap(), expected);
    drop(open);
    daemon.ends_by_signal("-TERM");
}
