//! `tilefs verify`: what it says of arrays and groups, whole and damaged, and its exit status.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A copy of an array or group of the fixtures.
struct Copy(tempfile::TempDir);

impl Copy {
    fn of(fixture: &str) -> Self {
        let copy = Copy(tempfile::tempdir().unwrap());
        let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/arrays").join(fixture);
        copy_folder(&stored, &copy.path());
        copy
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("stored")
    }

    /// The exit status and the lines of the output.
    fn verify(&self) -> (Option<i32>, Vec<String>) {
        let tilefs = env!("CARGO_BIN_EXE_tilefs");
        let output = Command::new(tilefs).arg("verify").arg(self.path()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), text.lines().map(str::to_owned).collect())
    }

    /// Cuts a file to half its length: the first one below a folder that ends like this.
    fn halve(&self, folder: &str, end: &str) {
        let file = file_below(&self.path().join(folder), end).unwrap();
        let bytes = fs::read(&file).unwrap();
        fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &to.join(entry.file_name())),
            false => drop(fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

fn file_below(folder: &Path, end: &str) -> Option<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries.iter().find_map(|path| match path.is_dir() {
        true => file_below(path, end),
        false => path.to_str().filter(|path| path.ends_with(end)).map(|_| path.clone()),
    })
}

/// The line that begins like this.
fn line<'a>(lines: &'a [String], start: &str) -> &'a str {
    lines.iter().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("no {start:?} in {lines:#?}"))
}

const MEMBERS: [&str; 3] = ["raw: ", "results/first run: ", "results/second%2Frun: "];

#[test]
fn an_array() {
    let copy = Copy::of("dense/dims_2");
    let (status, lines) = copy.verify();
    assert_eq!((status, lines.len()), (Some(0), 1), "{lines:?}");
    assert!(lines[0].starts_with("1 fragments, ") && lines[0].ends_with("; 0 damaged places"), "{lines:?}");
    copy.halve("__fragments", "a0.tdb");
    let (status, lines) = copy.verify();
    assert_eq!(status, Some(1));
    assert!(lines.len() > 1 && lines[0].contains("a0.tdb"), "{lines:?}");
}

/// Each is read with the array, though no fragment has it.
#[test]
fn enumerations_delete_conditions_and_labels() {
    for (fixture, folder, end) in [
        ("sparse/enumerations", "__schema/__enumerations", ""),
        ("sparse/deletes", "__commits", ".del"),
        ("dense/labels", "__labels", ""),
    ] {
        let copy = Copy::of(fixture);
        let (status, lines) = copy.verify();
        assert_eq!((status, lines.len()), (Some(0), 1), "{fixture}: {lines:#?}");
        copy.halve(folder, end);
        let (status, lines) = copy.verify();
        assert_eq!(status, Some(1), "{fixture}: {lines:#?}");
        assert!(lines[0].contains(folder) && !lines[1].ends_with(" 0 damaged places"), "{fixture}: {lines:#?}");
    }
}

#[test]
fn a_group_whose_arrays_are_all_sound() {
    let (status, lines) = Copy::of("groups/experiment").verify();
    assert_eq!((status, lines.len()), (Some(0), 4), "{lines:#?}");
    let tiles = |line: &str| -> u64 {
        let words: Vec<&str> = line.split(' ').collect();
        words[words.iter().position(|word| *word == "tiles,").unwrap() - 1].parse().unwrap()
    };
    let of_members: u64 = MEMBERS.iter().map(|member| tiles(line(&lines, member))).sum();
    assert!(of_members >= 3);
    let total = line(&lines, "in all 3 arrays: ");
    assert_eq!(tiles(total), of_members);
    assert!(total.ends_with("; 0 damaged places; 0 members are not there"), "{total}");
}

#[test]
fn damage_in_one_array_of_a_group() {
    for (file, folder) in [("a0.tdb", "raw/__fragments"), ("", "raw/__schema")] {
        let copy = Copy::of("groups/experiment");
        copy.halve(folder, file);
        let (status, lines) = copy.verify();
        assert_eq!(status, Some(1), "{lines:#?}");
        assert!(!line(&lines, "raw: ").ends_with("; 0 damaged places"));
        for sound in &MEMBERS[1..] {
            assert!(line(&lines, sound).ends_with("; 0 damaged places"));
        }
        assert!(lines.iter().any(|line| line.contains(&format!("array {}/raw", copy.path().display()))));
        assert!(!line(&lines, "in all 3 arrays: ").contains("; 0 damaged places"));
    }
}

#[test]
fn members_that_are_gone_are_named() {
    let copy = Copy::of("groups/experiment");
    fs::remove_dir_all(copy.path().join("raw")).unwrap();
    let (status, lines) = copy.verify();
    assert_eq!(status, Some(0), "{lines:#?}");
    assert_eq!(line(&lines, "raw: "), "raw: missing: there is no such folder in the group");
    assert!(line(&lines, "in all 2 arrays: ").ends_with("; 0 damaged places; 1 members are not there"));
    fs::create_dir(copy.path().join("raw")).unwrap();
    let (status, lines) = copy.verify();
    assert_eq!((status, line(&lines, "raw: ")), (Some(0), "raw: neither an array nor a group"));
}

#[test]
fn damage_of_groups_themselves() {
    for (folder, lost) in [("results/__group", true), ("results/__meta", false)] {
        let copy = Copy::of("groups/experiment");
        copy.halve(folder, "");
        let (status, lines) = copy.verify();
        assert_eq!(status, Some(1), "{lines:#?}");
        assert!(line(&lines, "results: ").ends_with("; 1 damaged places"));
        assert!(line(&lines, "raw: ").ends_with("; 0 damaged places"));
        assert_eq!(lines.iter().any(|line| line.starts_with(MEMBERS[1])), !lost);
    }
}

#[test]
fn what_can_be_reached_twice_is_checked_once() {
    let copy = Copy::of("groups/experiment");
    // A group of old releases: its members are what is in its folder.
    let root = copy.0.path();
    fs::write(root.join("__tiledb_group.tdb"), b"").unwrap();
    std::os::unix::fs::symlink(copy.path(), root.join("again")).unwrap();
    std::os::unix::fs::symlink(copy.path().join("raw"), root.join("raw")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_tilefs")).arg("verify").arg(root).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(text.contains("in all 3 arrays: ") && text.contains("again/raw: "), "{text}");
}

#[test]
fn labels_that_lead_back_to_the_array_are_visited_once() {
    let copy = Copy::of("dense/labels");
    let labels = copy.path().join("__labels");
    let names: Vec<PathBuf> = fs::read_dir(&labels).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(names.len() >= 2, "two ways at each step");
    for label in names {
        fs::remove_dir_all(&label).unwrap();
        std::os::unix::fs::symlink(copy.path(), &label).unwrap();
    }
    let (status, lines) = copy.verify();
    assert_eq!(status, Some(1));
    assert!(lines[0].contains("a label within itself"), "{lines:?}");
    assert!(lines.len() < 10, "{lines:?}");
}
