//! A few stored bytes that claim or decode to a thousand times as many: with a budget of 16 MiB, every command of the
//! program stays below 80 MiB of memory. It shows the data, or gives the reason for refusing it.

mod peak;

use std::fs;
use std::path::Path;

use peak::Ran;
use support::handmade::{
    Attribute, CHAR, INT8, NAME, RLE, Stored, UINT8, attribute, compressed_chunk, lengthen, schema, str32, tile_head,
    write_tile,
};

/// The budget and 64 MiB.
const MOST: u64 = 80 << 20;

/// Runs one command on an array.
fn tilefs(array: &Path, arguments: &[&str]) -> Ran {
    let array = array.to_str().unwrap();
    let arguments = [&[arguments[0], "--cache-size", "16M", array], &arguments[1..]].concat();
    let ran = peak::run(env!("CARGO_BIN_EXE_tilefs"), &arguments);
    println!("{} MiB: {arguments:?}, {:?}, {}", ran.peak >> 20, ran.status, ran.stderr.lines().next().unwrap_or(""));
    assert!(ran.status.is_some(), "{arguments:?} ended by a signal: {}", ran.stderr);
    assert!(ran.peak < MOST, "{arguments:?}: {} MiB", ran.peak >> 20);
    ran
}

/// The commands to run on every array.
fn look_at_all(array: &Path) {
    for arguments in [&["ls", "-l", "-R"][..], &["info"], &["info", "--json"], &["verify"], &["cat", "README.txt"]] {
        tilefs(array, arguments);
    }
}

/// Returns the payload of a metadata file with one value, up to the bytes of the value.
fn metadata_head(key: &str, datatype: u8, count: u32) -> Vec<u8> {
    [str32(key), vec![0, datatype], count.to_le_bytes().to_vec()].concat()
}

#[test]
fn a_metadata_value_of_a_gib_in_two_mib() {
    let stored = Stored::of_bytes();
    let file = stored.path().join("__meta").join(NAME);
    let head = metadata_head("long", CHAR, 1 << 30);
    write_tile(&file, &head, head.len() as u64 + (1 << 30));
    assert!(fs::metadata(&file).unwrap().len() < 2 << 20);
    look_at_all(&stored.path());
    assert!(tilefs(&stored.path(), &["cat", "meta.json"]).stdout.contains("\"left_out\": \"1073741824 bytes\""));
    assert!(tilefs(&stored.path(), &["ls", "-l", "meta"]).stdout.contains(" 1073741824 "));
    assert!(tilefs(&stored.path(), &["cat", "README.txt"]).stdout.contains("metadata key long is only in meta/"));
    // As text, these numbers take twice as many bytes.
    let head = metadata_head("long", INT8, 1 << 22);
    write_tile(&file, &head, head.len() as u64 + (1 << 22));
    look_at_all(&stored.path());
    assert!(tilefs(&stored.path(), &["ls", "-l", "meta"]).stdout.contains(" 8388608 "));
    assert!(tilefs(&stored.path(), &["cat", "meta/long"]).stdout.starts_with("0\n0\n0\n"));
}

#[test]
fn metadata_in_a_hole() {
    let stored = Stored::of_bytes();
    let file = stored.path().join("__meta").join(NAME);
    for (persisted, size) in [(1 << 29, 1 << 29), (1 << 30, 10), (1 << 62, 1 << 30)] {
        fs::write(&file, tile_head(persisted, size)).unwrap();
        lengthen(&file, 1 << 31);
        look_at_all(&stored.path());
        assert!(tilefs(&stored.path(), &["cat", "meta.json"]).status != Some(0));
    }
}

#[test]
fn commit_files_of_holes_and_of_a_million_marks() {
    for name in ["__commits/NAME.vac", "__meta/NAME.vac", "__commits/NAME_22.ign", "__commits/NAME_22.con"] {
        let stored = Stored::of_bytes();
        let file = stored.path().join(name.replace("NAME", NAME));
        fs::write(&file, []).unwrap();
        lengthen(&file, 1 << 30);
        look_at_all(&stored.path());
    }
    let stored = Stored::of_bytes();
    let marks: String =
        (0..1_000_000).map(|number| format!("__commits/__{number}_{number}_{number:032x}_22.wrt\n")).collect();
    fs::write(stored.path().join(format!("__commits/{NAME}_22.con")), &marks).unwrap();
    drop(marks);
    look_at_all(&stored.path());
}

/// Returns the payload of an enumeration `e` of one-byte values, up to the values.
fn enumeration_head(values: u64) -> Vec<u8> {
    let mut head = 0u32.to_le_bytes().to_vec();
    head.extend(str32("e"));
    head.extend(str32(NAME));
    head.push(UINT8);
    head.extend(1u32.to_le_bytes());
    head.push(0);
    head.extend(values.to_le_bytes());
    head
}

#[test]
fn an_enumeration_of_many_values_in_a_few_kib() {
    let of_codes = Attribute { enumeration: "e", ..attribute("a", UINT8, None) };
    let stored = Stored::new(&schema(100, 100, [of_codes].into_iter()));
    let file = stored.path().join("__schema/__enumerations").join(NAME);
    for (values, is_shown) in [(1000u64, true), (4 << 20, true), (90 << 20, false)] {
        let head = enumeration_head(values);
        write_tile(&file, &head, head.len() as u64 + values);
        look_at_all(&stored.path());
        let run = tilefs(&stored.path(), &["cat", "enums/e.txt"]);
        assert_eq!(run.status == Some(0), is_shown, "{values}: {}", run.stderr);
        assert!(is_shown == run.stdout.starts_with("0\n0\n"), "{values}");
        assert!(is_shown || run.stderr.contains(NAME), "{}", run.stderr);
    }
}

#[test]
fn a_tile_of_two_gib_in_a_hundred_kib() {
    let cells = 32769 * 65535;
    let stored = Stored::new(&schema(cells, cells, [attribute("a", UINT8, Some(RLE))].into_iter()));
    stored.add_fragment(cells, &[compressed_chunk(cells as u32, &[7, 0xff, 0xff].repeat(32769))]);
    look_at_all(&stored.path());
    let run = tilefs(&stored.path(), &["cat", "a.u8"]);
    assert!(run.status != Some(0) && run.stderr.contains("more than --cache-size"), "{}", run.stderr);
    // Data that fits into the budget is shown.
    let cells = 64 * 65535;
    let stored = Stored::new(&schema(cells, cells, [attribute("a", UINT8, Some(RLE))].into_iter()));
    stored.add_fragment(cells, &[compressed_chunk(cells as u32, &[7, 0xff, 0xff].repeat(64))]);
    let run = tilefs(&stored.path(), &["cat", "a.u8"]);
    assert!(run.status == Some(0) && run.stdout.bytes().all(|byte| byte == 7), "{}", run.stderr);
}

#[test]
fn a_schema_of_a_million_attributes() {
    let many = (0..1_000_000).map(|number| attribute(&format!("{number:x}"), UINT8, None));
    let stored = Stored::new(&schema(100, 100, many));
    look_at_all(&stored.path());
    assert!(tilefs(&stored.path(), &["info"]).stderr.contains("--cache-size"));
    let some = (0..60_000).map(|number| attribute(&format!("{number:x}"), UINT8, None));
    let stored = Stored::new(&schema(100, 100, some));
    look_at_all(&stored.path());
    let few = (0..2000).map(|number| attribute(&format!("{number:x}"), UINT8, None));
    let stored = Stored::new(&schema(100, 100, few));
    look_at_all(&stored.path());
    assert_eq!(tilefs(&stored.path(), &["info", "--json"]).status, Some(0));
}
