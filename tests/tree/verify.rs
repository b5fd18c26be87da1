//! `tilefs verify`: its output for arrays and groups, intact and damaged, and its exit status.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::stored::{Copy, alter, make_filter_unknown};
use tilefs_format::fragment::parse_consolidated_footers;
use tilefs_reader::array::verify::Progress;
use tilefs_tree::{self as tree, TreeOptions};

/// Runs the command; returns its exit status and the lines of its output.
fn verify(array: &Path, options: &[&str]) -> (Option<i32>, Vec<String>) {
    let output = Command::new(env!("CARGO_BIN_EXE_tilefs")).arg("verify").arg(array).args(options).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), text.lines().map(str::to_owned).collect())
}

trait Verify {
    fn verify(&self) -> (Option<i32>, Vec<String>);

    /// Truncates the first file below a folder that ends like this to half its length.
    fn halve(&self, folder: &str, end: &str);
}

impl Verify for Copy {
    fn verify(&self) -> (Option<i32>, Vec<String>) {
        verify(&self.path(), &[])
    }

    fn halve(&self, folder: &str, end: &str) {
        let file = self.file(folder, end);
        let bytes = fs::read(&file).unwrap();
        fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    }
}

/// Returns the line that begins like this.
fn line<'a>(lines: &'a [String], start: &str) -> &'a str {
    lines.iter().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("no {start:?} in {lines:#?}"))
}

const MEMBERS: [&str; 3] = ["raw: ", "results/first run: ", "results/second%2Frun: "];

#[test]
fn an_array() {
    let copy = Copy::of("dense/dims_2");
    let (status, lines) = copy.verify();
    assert_eq!((status, lines.len()), (Some(0), 1), "{lines:?}");
    assert!(lines[0].starts_with("1 fragment, ") && lines[0].ends_with("; 0 damaged places"), "{lines:?}");
    copy.halve("__fragments", "a0.tdb");
    let (status, lines) = copy.verify();
    assert_eq!(status, Some(1));
    assert!(lines.len() > 1 && lines[0].contains("a0.tdb"), "{lines:?}");
}

/// Verification reads these files with the array, although no fragment refers to them.
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
    assert!(total.ends_with("; 0 damaged places; 0 members are missing"), "{total}");
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
    assert!(line(&lines, "in all 2 arrays: ").ends_with("; 0 damaged places; 1 member is missing"));
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
        assert!(line(&lines, "results: ").ends_with("; 1 damaged place"));
        assert!(line(&lines, "raw: ").ends_with("; 0 damaged places"));
        assert_eq!(lines.iter().any(|line| line.starts_with(MEMBERS[1])), !lost);
    }
}

#[test]
fn what_can_be_reached_twice_is_checked_once() {
    let copy = Copy::of("groups/experiment");
    // A group of old releases: its members are the arrays and groups in its folder.
    let root = copy.path();
    let root = root.parent().unwrap();
    fs::write(root.join("__tiledb_group.tdb"), b"").unwrap();
    std::os::unix::fs::symlink(copy.path(), root.join("again")).unwrap();
    std::os::unix::fs::symlink(copy.path().join("raw"), root.join("raw")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_tilefs")).arg("verify").arg(root).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(text.contains("in all 3 arrays: ") && text.contains("again/raw: "), "{text}");
}

#[test]
fn what_is_the_same_is_one_place() {
    let copy = Copy::of("dense/dims_2");
    fs::remove_file(copy.file("__fragments", "a0.tdb")).unwrap();
    let (status, lines) = copy.verify();
    assert_eq!((status, lines.len()), (Some(1), 2), "{lines:#?}");
    assert!(lines[0].contains("a0.tdb") && lines[0].ends_with(" tiles"), "{lines:#?}");
    let tiles: u64 = lines[0].split(' ').rev().nth(1).unwrap().parse().unwrap();
    assert!(tiles > 1 && lines[1].ends_with("; 1 damaged place"), "{lines:#?}");

    let copy = Copy::of("dense/dims_2");
    copy.halve("__fragments", "a0.tdb");
    let (status, lines) = copy.verify();
    assert_eq!((status, lines.len()), (Some(1), 2), "{lines:#?}");
    assert!(lines[0].contains("the file ends at"), "{lines:#?}");
}

#[test]
fn statuses_tell_damage_from_what_could_not_be_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(verify(folder.path(), &[]).0, Some(2));
    assert_eq!(verify(&folder.path().join("none"), &[]).0, Some(2));
    let encrypted = Copy::of("sparse/encrypted");
    assert_eq!(encrypted.verify().0, Some(2));
    let key = encrypted.beside("key", b"abcdefghijklmnopqrstuvwxyz012345");
    let options = ["--key-file", key.to_str().unwrap()];
    let (status, lines) = verify(&encrypted.path(), &options);
    assert_eq!(status, Some(0), "{lines:#?}");

    // A file that is damaged under the right key is named with its array and fragment.
    let file = encrypted.file("__fragments", "a0.tdb");
    let mut bytes = fs::read(&file).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&file, bytes).unwrap();
    let (status, lines) = verify(&encrypted.path(), &options);
    assert_eq!(status, Some(1), "{lines:#?}");
    assert!(["array ", "fragment __", "a0.tdb"].iter().all(|part| lines[0].contains(part)), "{lines:#?}");

    let unknown = Copy::of("dense/filters_float32");
    alter(&unknown.file("__schema", ""), |schema| _ = make_filter_unknown(schema, "lz4"));
    let (status, lines) = unknown.verify();
    assert_eq!(status, Some(2), "{lines:#?}");
    assert!(lines[0].contains("filter type 99") && lines[0].contains("field lz4"), "{lines:#?}");
    assert!(lines[lines.len() - 1].ends_with("; 0 damaged places; 2 places could not be checked"), "{lines:#?}");
    fs::remove_file(unknown.file("__fragments", "a0.tdb")).unwrap();
    assert_eq!(unknown.verify().0, Some(1));
}

#[test]
fn replaced_fragments_are_checked_for_the_history_that_shows_them() {
    let copy = Copy::of("sparse/consolidated");
    let (status, lines) = copy.verify();
    assert_eq!((status, lines.len()), (Some(0), 1), "{lines:#?}");
    assert!(lines[0].starts_with("5 fragments, "), "{lines:#?}");
    let replaced = copy.file("__commits", ".wrt");
    let replaced = replaced.file_stem().unwrap().to_str().unwrap();
    assert!(replaced.starts_with("__1600000001000_1600000001000_"), "{replaced}");
    copy.halve(&format!("__fragments/{replaced}"), "a0.tdb");
    let (status, lines) = copy.verify();
    assert_eq!(status, Some(1), "{lines:#?}");
    assert!(lines[0].contains(replaced), "{lines:#?}");
}

#[test]
fn a_fragment_that_lost_its_commit_is_a_warning() {
    let copy = Copy::of("sparse/overlap");
    let mark = copy.file("__commits", ".wrt");
    fs::remove_file(&mark).unwrap();
    let (status, lines) = copy.verify();
    assert_eq!((status, lines.len()), (Some(0), 2), "{lines:#?}");
    let name = mark.file_stem().unwrap().to_str().unwrap();
    assert!(lines[0].starts_with("warning: ") && lines[0].contains(name), "{lines:#?}");
    assert!(lines[1].ends_with("; 0 damaged places; 1 warning"), "{lines:#?}");
    // An unfinished fragment is ignored.
    fs::remove_file(copy.path().join("__fragments").join(name).join("__fragment_metadata.tdb")).unwrap();
    assert_eq!(copy.verify().1.len(), 1);
}

/// Altered coordinates that still decode. Verification cannot detect those that stay in order and in the box of their
/// tile.
#[test]
fn no_coordinate_is_shown_outside_the_domain_and_what_reading_finds_is_found() {
    let (mut refused, mut other, mut found) = (0, 0, 0);
    let copy = Copy::of("sparse/dim_integers");
    let options = TreeOptions {
        reading: tilefs_reader::ReaderOptions { threads: 1, ..Default::default() },
        ..TreeOptions::default()
    };
    for (number, dimension, size, most) in [("d1.tdb", "uint8.u8", 1, 200), ("d3.tdb", "uint16.u16", 2, 60000)] {
        let file = copy.file("__fragments", number);
        let whole = fs::read(&file).unwrap();
        let coordinates = || -> tilefs_base::error::Result<Vec<u8>> {
            let root = tree::open(&copy.path(), &options)?;
            support::shown::file(&*support::shown::subfolder(&*root, "dims")?, dimension, "")
        };
        let damage = || {
            let array = tree::open_array(&copy.path(), &options).unwrap();
            tilefs_reader::array::verify::verify(&array, &Progress::default()).places
        };
        let before = coordinates().unwrap();
        assert!(damage().is_empty());
        for (place, bits) in (0..whole.len()).flat_map(|place| [(place, 1), (place, 0x10), (place, 0xc0)]) {
            let mut altered = whole.clone();
            altered[place] ^= bits;
            fs::write(&file, &altered).unwrap();
            match coordinates() {
                Err(error) => {
                    refused += 1;
                    assert!(!damage().is_empty(), "{number}, byte {place}: {error}");
                }
                Ok(after) => {
                    for bytes in after.chunks_exact(size) {
                        let value = bytes.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
                        assert!(value <= most, "{number}, byte {place}: {value}");
                    }
                    if after != before {
                        other += 1;
                        found += usize::from(!damage().is_empty());
                    }
                }
            }
        }
        fs::write(&file, &whole).unwrap();
    }
    println!("{refused} alterations refused, {other} show others, of which verification finds {found}");
    assert!(refused > 0 && other > 0 && found > 0, "{refused} {other} {found}");
}

#[test]
fn a_copy_of_a_footer_that_hides_cells_is_found() {
    let copy = Copy::of("dense/consolidated");
    let file = copy.file("__fragment_meta", ".meta");
    alter(&file, |bytes| {
        let copies = parse_consolidated_footers(bytes).unwrap();
        let first = copies[0].footer.as_ptr() as usize - bytes.as_ptr() as usize;
        // The non-empty domain comes after the version, the name of the schema and two flags: for example, rows 0 to 9.
        let name = u64::from_le_bytes(bytes[first + 4..first + 12].try_into().unwrap()) as usize;
        let domain = first + 12 + name + 2;
        let low = i32::from_le_bytes(bytes[domain..domain + 4].try_into().unwrap());
        let high = i32::from_le_bytes(bytes[domain + 4..domain + 8].try_into().unwrap());
        assert!(low < high, "{low} to {high}");
        bytes[domain + 4..domain + 8].copy_from_slice(&low.to_le_bytes());
    });
    let (status, lines) = copy.verify();
    assert_eq!((status, lines.len()), (Some(1), 2), "{lines:#?}");
    let parts = ["the copy of a footer", ".meta", "fragment __", "array "];
    assert!(parts.iter().all(|part| lines[0].contains(part)), "{lines:#?}");
    // Rewritten without a change, the file is sound.
    let copy = Copy::of("dense/consolidated");
    alter(&copy.file("__fragment_meta", ".meta"), |_| {});
    assert_eq!(copy.verify().0, Some(0));
}

#[test]
fn metadata_and_schemas_of_any_time_are_checked() {
    for (fixture, folder) in [("dense/metadata_consolidated", "__meta"), ("dense/evolution", "__schema")] {
        let copy = Copy::of(fixture);
        assert_eq!(copy.verify().0, Some(0), "{fixture}");
        // The oldest file.
        copy.halve(folder, "");
        let (status, lines) = copy.verify();
        assert_eq!(status, Some(1), "{fixture}: {lines:#?}");
        assert!(lines[0].contains(folder), "{fixture}: {lines:#?}");
    }
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
