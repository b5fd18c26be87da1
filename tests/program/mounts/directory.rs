//! A plain folder of arrays and groups, mounted as a tree of folders.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::harness::{Daemon, Place, Watchdog, can_mount, demo, errors, eventually, signal};

/// Creates a folder with arrays, a group, a damaged array and other things below it.
fn shelf(place: &Place) -> std::path::PathBuf {
    let shelf = place.beside().join("shelf");
    fs::create_dir_all(shelf.join("deep/er")).unwrap();
    fs::write(shelf.join("notes.md"), "of no interest").unwrap();
    let copy = |from: &Path, to: &str| {
        assert!(Command::new("cp").arg("-r").arg(from).arg(shelf.join(to)).status().unwrap().success());
    };
    copy(&demo(), "deep/er/demo");
    copy(&demo(), "bad");
    copy(&demo().with_file_name("arrays").join("groups/experiment"), "group");
    for entry in fs::read_dir(shelf.join("bad/__schema")).unwrap().map(|entry| entry.unwrap()) {
        if entry.file_type().unwrap().is_file() {
            fs::write(entry.path(), "no schema").unwrap();
        }
    }
    shelf
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_folder_of_arrays_is_a_tree_of_folders() {
    let _watchdog = Watchdog::start("a_folder_of_arrays_is_a_tree_of_folders");
    if !can_mount() {
        return;
    }
    let place = Place::new();
    let shelf = shelf(&place);
    let tilefs = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_tilefs")).args(arguments).arg(&shelf).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned(), errors(&output))
    };
    assert_eq!(tilefs(&["ls"]), (true, "README.txt\nbad\ndeep\ngroup\n".to_owned(), String::new()));
    let (is_done, outline, _) = tilefs(&["info"]);
    let line = |name: &str| outline.lines().find(|line| line.trim().starts_with(name)).unwrap_or_default().to_owned();
    assert!(
        is_done && line("shelf").ends_with("folder of 3") && line("demo").ends_with("dense 100 x 200"),
        "{outline}"
    );
    assert!(line("bad").contains("array: ") && line("group").contains("group of "), "{outline}");
    let (_, shallow, _) = tilefs(&["info", "--depth", "1"]);
    assert_eq!(shallow.lines().count(), 4, "{shallow}");

    let (_, members, _) = tilefs(&["info", "--json"]);
    let members: serde_json::Value = serde_json::from_str(&members).unwrap();
    let kinds: Vec<(&str, &str)> = members["members"]
        .as_array()
        .unwrap()
        .iter()
        .map(|member| (member["name"].as_str().unwrap(), member["type"].as_str().unwrap()))
        .collect();
    assert_eq!(kinds, [("bad", "array"), ("deep", "folder"), ("group", "group")]);
    let (is_sound, found, _) = tilefs(&["verify"]);
    let line = |name: &str| found.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(!is_sound && line("bad: ").ends_with("; 1 damaged place"), "{found}");
    assert!(line("deep/er/demo: ").ends_with("; 0 damaged places"), "{found}");
    assert!(line("group/raw: ").ends_with("; 0 damaged places"), "{found}");
    assert!(line("in all 5 arrays: ").contains("; 1 damaged place;"), "{found}");

    let daemon = Daemon::start(place, &shelf, &[]);
    assert_eq!(names(daemon.place()), ["README.txt", "bad", "deep", "group"]);
    assert_eq!(names(&daemon.path("deep")), ["README.txt", "er"]);
    let expected = Command::new(env!("CARGO_BIN_EXE_tilefs")).arg("cat").arg(demo()).arg("temp.f32").output().unwrap();
    assert!(fs::read(daemon.path("deep/er/demo/temp.f32")).unwrap() == expected.stdout);
    assert!(daemon.path("group/.group/members.tsv").exists() && !daemon.path("notes.md").exists());
    assert!(fs::read_dir(daemon.path("bad")).is_err(), "it is damaged");
    let told = fs::read_to_string(daemon.path(".tilefs/errors.txt")).unwrap();
    assert!(told.contains("shelf/bad"), "{told}");
    // Later additions are not shown, as for an array.
    fs::rename(shelf.join("deep/er/demo"), shelf.join("later")).unwrap();
    assert!(!daemon.path("later").exists());
    daemon.ends_by_signal("-TERM");
}

#[test]
fn a_refresh_shows_arrays_that_were_added_to_a_folder() {
    let _watchdog = Watchdog::start("a_refresh_shows_arrays_that_were_added_to_a_folder");
    if !can_mount() {
        return;
    }
    let place = Place::new();
    let shelf = shelf(&place);
    let daemon = Daemon::start(place, &shelf, &["--refresh", "86400"]);
    assert_eq!(names(&daemon.path("deep/er")), ["README.txt", "demo"]);
    let copy = shelf.join("deep/er/second");
    assert!(Command::new("cp").arg("-r").arg(demo()).arg(&copy).status().unwrap().success());
    thread::sleep(Duration::from_millis(200));
    assert_eq!(names(&daemon.path("deep/er")), ["README.txt", "demo"]);
    signal(daemon.process(), "-HUP");
    eventually("the new array shows", || daemon.path("deep/er/second/temp.f32").exists());
    assert_eq!(names(&daemon.path("deep/er")), ["README.txt", "demo", "second"]);
    daemon.ends_by_signal("-TERM");
}
