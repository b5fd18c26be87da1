//! Unknown filters make only those files unreadable that went through them.

use std::fs;

use support::shown::{file, subfolder};
use support::stored::{Copy, alter, make_filter_unknown};
use tilefs_base::error::Result;
use tilefs_tree::{self as tree, TreeOptions};
use tilefs_vfs::{EntryKind, Folder};

/// Returns the raw files of an array and of its dimensions, by name.
fn files(copy: &Copy) -> Vec<(String, Result<Vec<u8>>)> {
    let root = tree::open(
        &copy.path(),
        &TreeOptions {
            reading: tilefs_reader::ReaderOptions { threads: 1, ..Default::default() },
            ..TreeOptions::default()
        },
    )
    .expect("it opens");
    let raw = |folder: &dyn Folder, prefix: &str| -> Vec<(String, Result<Vec<u8>>)> {
        let entries = folder.list().expect("it lists");
        let entries = entries.into_iter().filter(|entry| entry.kind == EntryKind::File);
        let explains = [".txt", ".json", ".tsv", ".hdr"];
        let raw = entries.filter(|entry| !explains.iter().any(|ending| entry.name.ends_with(ending)));
        raw.map(|entry| (format!("{prefix}{}", entry.name), file(folder, &entry.name, ""))).collect()
    };
    let mut found = raw(&*root, "");
    found.extend(raw(&*subfolder(&*root, "dims").expect("coordinates"), "dims/"));
    found
}

/// Returns schema.txt, which `tilefs info` prints.
fn info(copy: &Copy) -> String {
    let root = tree::open(&copy.path(), &TreeOptions::default()).expect("it opens");
    String::from_utf8(file(&*root, "schema", ".txt").expect("the schema as text")).expect("text")
}

/// Checks that exactly these files are refused, by the filter's name.
fn check(fixture: &str, change: impl FnOnce(&mut Vec<u8>), refused: impl Fn(&str) -> bool) {
    let copy = Copy::of(fixture);
    let before = files(&copy);
    alter(&copy.file("__schema", ""), change);
    let after = files(&copy);
    assert_eq!(before.len(), after.len(), "{fixture}");
    let mut count = 0;
    for ((name, before), (same, after)) in before.iter().zip(&after) {
        assert_eq!(name, same);
        if refused(name) {
            count += 1;
            let error = after.as_ref().expect_err(name).to_string();
            assert!(error.contains("filter type 99") && error.contains("fragment __"), "{fixture} {name}: {error}");
        } else {
            assert_eq!(before.as_ref().ok(), after.as_ref().ok(), "{fixture} {name}");
        }
    }
    assert!(count > 0 && count < after.len(), "{fixture}: {count}");
    assert!(info(&copy).contains("warning: not supported: filter type 99"), "{}", info(&copy));
}

#[test]
fn an_unknown_filter_of_an_attribute_hides_that_attribute_only() {
    check("dense/filters_float32", |schema| _ = make_filter_unknown(schema, "lz4"), |name| name.starts_with("lz4."));
    check("sparse/dims_1", |schema| _ = make_filter_unknown(schema, "v"), |name| name.starts_with("v."));
}

#[test]
fn an_unknown_filter_of_coordinates_hides_these_only_if_no_row_depends_on_them() {
    check("sparse/dim_filters", |schema| _ = make_filter_unknown(schema, "y"), |name| name.starts_with("dims/y."));
    check("sparse/dims_3", |schema| of_coordinates(schema), |name| name.starts_with("dims/"));
}

/// Replaces the first of the filters for dimensions without their own filters by an unknown one.
fn of_coordinates(schema: &mut [u8]) {
    // Version, duplicates, array type, two orders, capacity and chunk size come before the number of filters.
    assert_ne!(schema[20..24], [0; 4]);
    schema[24] = 99;
}

#[test]
fn an_unknown_filter_of_offsets_hides_values_of_variable_size() {
    let of_offsets = |schema: &mut Vec<u8>| {
        // Version, duplicates, array type, two orders and capacity; then the filters of coordinates.
        let number = |schema: &[u8], at: usize| u32::from_le_bytes(schema[at..at + 4].try_into().unwrap()) as usize;
        let mut at = 16 + 4;
        let count = number(schema, at);
        at += 4;
        for _ in 0..count {
            at += 5 + number(schema, at + 1);
        }
        assert_ne!(number(schema, at + 4), 0);
        schema[at + 8] = 99;
    };
    check("sparse/dims_1", of_offsets, |name| name.starts_with("s."));
}

/// A known filter on a type that it does not support.
#[test]
fn a_filter_on_a_type_that_it_does_not_support_hides_that_attribute_only() {
    let copy = Copy::of("dense/filters_float32");
    let before = files(&copy);
    alter(&copy.file("__schema", ""), |schema| {
        let place = make_filter_unknown(schema, "lz4");
        // DELTA, as its number and as that of the compressor.
        schema[place] = 19;
        schema[place + 5] = 8;
    });
    for ((name, before), (_, after)) in before.iter().zip(&files(&copy)) {
        match name.starts_with("lz4.") {
            true => assert!(after.as_ref().is_err_and(|error| error.to_string().contains("DELTA")), "{name}"),
            false => assert_eq!(before.as_ref().ok(), after.as_ref().ok(), "{name}"),
        }
    }
    assert!(info(&copy).contains("warning: not supported: filter DELTA"), "{}", info(&copy));
}

/// The schema of an older fragment only.
#[test]
fn an_unknown_filter_of_one_fragment_shows_nothing_wrong() {
    let copy = Copy::of("sparse/evolution");
    let schemas = copy.path().join("__schema");
    let mut names: Vec<_> = fs::read_dir(&schemas).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let oldest = names.remove(0);
    let before = files(&copy);
    alter(&oldest, |schema| of_coordinates(schema));
    // Rows are found without the unreadable files, or not at all: everything that is shown is right.
    for ((name, before), (_, after)) in before.iter().zip(&files(&copy)) {
        match after {
            Ok(after) => assert_eq!(before.as_ref().ok(), Some(after), "{name}"),
            Err(error) => assert!(error.to_string().contains("filter type 99"), "{name}: {error}"),
        }
    }
}
