//! The public reads of `tilefs_reader` return the bytes of the files of the tree.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use support::paths::{node, whole};
use tilefs_reader::array::sparse::CoordinateRange;
use tilefs_reader::{Error, OpenedArray, OpenedObject, Values};
use tilefs_tree::{self as tree, TreeOptions};
use tilefs_vfs::{Folder, Node};

fn fixture(name: &str) -> PathBuf {
    tilefs_fixtures::fixtures().join(name)
}

/// Finds all arrays below a folder, except those that need a key.
fn arrays_below(folder: &Path, found: &mut Vec<PathBuf>) {
    if folder.join("__schema").is_dir() {
        if !folder.ends_with("encrypted") {
            found.push(folder.to_owned());
        }
        return;
    }
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).for_each(|path| arrays_below(&path, found));
}

fn latest() -> tilefs_reader::ReaderOptions {
    tilefs_reader::ReaderOptions { at: Some(u64::MAX), ..tilefs_reader::ReaderOptions::default() }
}

/// Returns the bytes of a file of a tree; `None` if there is no such file.
fn file(root: &Arc<dyn Folder>, path: &str) -> Option<Vec<u8>> {
    let Some(Node::File(file)) = node(root, path) else { return None };
    Some(whole(&*file.open().unwrap()).unwrap())
}

/// Compares values with the files of a field, if the tree has them under its plain name; returns whether it has.
fn compare(root: &Arc<dyn Folder>, stem: &str, values: &Values, place: &str) -> bool {
    let mut seen = false;
    let endings = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64", "bool", "bytes"];
    for ending in endings {
        if let Some(bytes) = file(root, &format!("{stem}.{ending}")) {
            assert!(values.bytes() == bytes, "{place}: {stem}.{ending}");
            seen = true;
        }
    }
    if let Some(bytes) = file(root, &format!("{stem}.offsets.u64")) {
        let offsets: Vec<u8> = values.offsets().unwrap().iter().flat_map(|offset| offset.to_le_bytes()).collect();
        assert!(offsets == bytes, "{place}: offsets of {stem}");
    }
    if let Some(bytes) = file(root, &format!("{stem}.valid.u8")) {
        assert!(values.validity().unwrap() == bytes, "{place}: validity of {stem}");
    }
    seen
}

/// A column of all rows.
#[derive(Debug, Default, PartialEq)]
struct AllRows {
    name: String,
    bytes: Vec<u8>,
    ends: Vec<u64>,
    validity: Vec<u8>,
}

/// Returns all batches of an array, one after the other, column by column.
fn all_rows(array: &Arc<OpenedArray>, rows_of_batch: u64) -> Vec<AllRows> {
    let mut columns: Vec<AllRows> = Vec::new();
    for batch in array.rows().unwrap().rows_of_batch(rows_of_batch).batches().unwrap() {
        let batch = batch.unwrap();
        columns.resize_with(batch.all_columns().len(), Default::default);
        for (all, values) in columns.iter_mut().zip(batch.all_columns()) {
            assert_eq!(values.len(), batch.len());
            all.name = values.field().to_owned();
            let before = all.bytes.len() as u64;
            all.bytes.extend(values.bytes());
            all.ends.extend(values.offsets().unwrap_or_default().iter().skip(1).map(|end| before + end));
            all.validity.extend(values.validity().unwrap_or_default());
        }
    }
    columns
}

#[test]
fn boxes_and_batches_are_what_the_files_hold() {
    let mut paths = Vec::new();
    arrays_below(&fixture("arrays"), &mut paths);
    let (mut dense, mut sparse) = (0, 0);
    for path in paths {
        let place = path.display().to_string();
        let array = latest().open(&path).unwrap().into_array().unwrap();
        let root = tree::open(
            &path,
            &TreeOptions {
                reading: tilefs_reader::ReaderOptions { at: Some(u64::MAX), ..Default::default() },
                ..TreeOptions::default()
            },
        )
        .unwrap();
        if array.schema().is_sparse() {
            let (whole, small) = (all_rows(&array, u64::MAX), all_rows(&array, 7));
            assert!(whole == small, "{place}: batches of 7 rows are those of all");
            for AllRows { name, bytes, .. } in &whole {
                let files = [format!("dims/{name}"), name.clone()];
                let of_tree = files.iter().find_map(|stem| {
                    ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64", "bool", "bytes"]
                        .iter()
                        .find_map(|ending| file(&root, &format!("{stem}.{ending}")))
                });
                if let Some(of_tree) = of_tree {
                    assert!(*bytes == of_tree, "{place}: {name}");
                    sparse += 1;
                }
            }
            continue;
        }
        let reader = array.dense().unwrap();
        let domain = reader.domain().unwrap();
        let cells: i128 = domain.iter().map(|range| range.end() - range.start() + 1).product();
        if cells > 1 << 20 {
            continue;
        }
        for attribute in &array.schema().attributes {
            let values = reader.read_values(&attribute.name, &domain).unwrap();
            assert_eq!(values.len() as i128, cells, "{place}");
            dense += usize::from(compare(&root, &attribute.name, &values, &place));
        }
    }
    assert!(dense > 20 && sparse > 20, "{dense} dense and {sparse} sparse columns");
}

#[test]
fn numbers_are_read_into_memory_of_the_caller() {
    let array = latest().open(fixture("demo")).unwrap().into_array().unwrap();
    let reader = array.dense().unwrap();
    let block: Vec<f32> = reader.read("temp", &[10..=14, 0..=199]).unwrap();
    let mut same = vec![0f32; block.len()];
    reader.read_into("temp", &[10..=14, 0..=199], &mut same).unwrap();
    assert!(block.len() == 1000 && block == same);
    let [cell] = reader.read::<f32>("temp", &[12..=12, 17..=17]).unwrap()[..] else { panic!("one cell") };
    assert_eq!(cell, block[2 * 200 + 17]);
    for wrong in [
        reader.read::<f64>("temp", &[0..=0, 0..=0]).err(),
        reader.read::<f32>("none", &[0..=0, 0..=0]).err(),
        reader.read::<f32>("temp", &[0..=0]).err(),
        reader.read::<f32>("temp", &[-1..=0, 0..=0]).err(),
        reader.read_into("temp", &[0..=0, 0..=0], &mut [0f32; 2]).err(),
        array.rows().err(),
    ] {
        assert!(matches!(wrong, Some(Error::Usage { .. })), "{wrong:?}");
    }
}

/// Threads read the parts of a large read independently. Their values are those of small reads, line by line.
#[test]
fn large_reads_are_the_same_as_many_small_ones() {
    tilefs_threads::start_team(3);
    let cases: [(&str, &str, [RangeInclusive<i64>; 2]); 5] = [
        ("huge", "v", [523_288..=526_287, 524_200..=525_199]),
        ("huge", "v", [524_000..=525_047, 522_300..=525_295]),
        ("arrays/dense/big_tile", "row", [0..=1023, 0..=4095]),
        ("arrays/dense/big_tile", "row", [7..=3000, 100..=1099]),
        ("arrays/dense/current_domain", "w", [1..=5000, -10..=999]),
    ];
    for (name, attribute, [rows, columns]) in cases {
        let array = latest().open(fixture(name)).unwrap().into_array().unwrap();
        let reader = array.dense().unwrap();
        let read = |rows| reader.read_values(attribute, &[rows, columns.clone()]).unwrap().bytes().to_vec();
        let all = read(rows.clone());
        assert!(all.len() > 8 << 20, "{name}: {} bytes", all.len());
        let lines: Vec<u8> = rows.flat_map(|row| read(row..=row)).collect();
        assert!(all == lines, "{name}, {columns:?}");
        assert!(all.windows(4).any(|value| value != &all[..4]), "{name}: all values are the same");
    }
}

#[test]
fn groups_lead_to_their_members() {
    let mut groups = Vec::new();
    for entry in std::fs::read_dir(fixture("arrays/groups")).unwrap() {
        if let Ok(OpenedObject::Group(group)) = latest().open(entry.unwrap().path()) {
            groups.push(group);
        }
    }
    let mut arrays = 0;
    while let Some(group) = groups.pop() {
        group.metadata().unwrap();
        for member in group.members().unwrap().iter() {
            match group.open_object(member) {
                Ok(OpenedObject::Array(array)) => arrays += usize::from(!array.schema().attributes.is_empty()),
                Ok(OpenedObject::Group(inner)) => groups.push(inner),
                Err(error) => panic!("{}: {error}", member.name),
            }
        }
    }
    let mut stored = Vec::new();
    arrays_below(&fixture("arrays/groups"), &mut stored);
    assert!(arrays > 0 && arrays == stored.len(), "{arrays} of {}", stored.len());
}

#[test]
fn a_selection_of_rows_reads_what_lies_in_it() {
    let array = latest().open(fixture("arrays/sparse/overlap")).unwrap().into_array().unwrap();
    let dimension = array.schema().dimensions[0].clone();
    let all = all_rows(&array, u64::MAX);
    let domain = dimension.domain.unwrap();
    let range = CoordinateRange { low: Some(domain.low.clone()), high: Some(domain.low.clone()), step: 1 };
    let mut wanted = vec![None; array.schema().dimensions.len()];
    wanted[0] = Some(vec![range]);
    let count = array.rows().unwrap().select(&wanted).unwrap().count().unwrap();
    let size = dimension.datatype.size();
    let low = domain.low.to_bytes(dimension.datatype).unwrap();
    assert_eq!(count, all[0].bytes.chunks_exact(size).filter(|cell| *cell == low).count() as u64);
}
