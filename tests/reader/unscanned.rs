//! Operations on a table of a thousand million rows that must not read a cell: texts, listings, sizes, attributes.
//!
//! The storage computes the arrays on request, and counts the reads of files with cells.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use support::generated::array::{Array, Object};
use support::paths::{node, text};
use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::statistics::Value;
use tilefs_storage::{Listed, ListedKind, ReadRange, Storage, StoreKey};
use tilefs_tree::{self as tree, TreeOptions};
use tilefs_vfs::{EntryKind, File, Folder, Node, ServedTree};

/// A generated array, the number of reads of its cells, and the number of bytes read from the files of each field.
struct Generated {
    array: Array,
    is_remote: bool,
    reads_of_cells: AtomicUsize,
    bytes: Mutex<BTreeMap<String, u64>>,
}

impl Generated {
    fn object(&self, key: &StoreKey) -> Result<Object> {
        let path = key.below(&ROOT.into()).and_then(|path| str::from_utf8(path).ok()).unwrap_or_default();
        let object = self.array.find(path).ok_or_else(|| Error::missing("there is no such object").in_file(key))?;
        if matches!(object, Object::Tiles(..)) {
            self.reads_of_cells.fetch_add(1, Ordering::Relaxed);
        }
        Ok(object)
    }
}

const ROOT: &str = "s3://bucket/array";

impl Storage for Generated {
    fn list(&self, folder: &StoreKey) -> Result<Vec<Listed>> {
        let below = folder.below(&ROOT.into()).and_then(|path| str::from_utf8(path).ok()).unwrap_or_default();
        let prefix = if below.is_empty() { String::new() } else { format!("{below}/") };
        let mut names = BTreeMap::new();
        let mut number = self.array.first_from(&prefix);
        while number < self.array.objects() {
            let object = self.array.object(number);
            let key = self.array.key(object);
            let Some(rest) = key.strip_prefix(&prefix) else { break };
            match rest.split_once('/') {
                Some((name, _)) => {
                    names.insert(name.to_owned(), ListedKind::Folder);
                    // Skip everything in this folder.
                    number = self.array.first_from(&format!("{prefix}{name}0"));
                }
                None => {
                    let length = Some(self.array.len(object));
                    names.insert(rest.to_owned(), ListedKind::Object { length });
                    number += 1;
                }
            }
        }
        Ok(names.into_iter().map(|(name, kind)| Listed { name, kind }).collect())
    }

    fn length(&self, key: &StoreKey) -> Result<u64> {
        Ok(self.array.len(self.object(key)?))
    }

    fn read_ranges(&self, key: &StoreKey, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        let object = self.object(key)?;
        for range in ranges {
            if range.end() > self.array.len(object) {
                return Err(Error::damaged("past the end").in_file(key));
            }
            range.into.copy_from_slice(&self.array.read(object, range.offset..range.end()));
            let name = String::from_utf8_lossy(key.name().unwrap_or_default()).into_owned();
            *self.bytes.lock().unwrap().entry(name).or_default() += range.into.len() as u64;
        }
        Ok(())
    }

    fn read_from(&self, key: &StoreKey, offset: u64, most: usize) -> Result<(Vec<u8>, u64)> {
        let object = self.object(key)?;
        let length = self.array.len(object);
        let end = length.min(offset.saturating_add(most as u64));
        Ok((self.array.read(object, offset.min(end)..end), length))
    }

    fn is_remote(&self, _: &StoreKey) -> bool {
        self.is_remote
    }

    fn requests_at_once(&self, _: &StoreKey) -> usize {
        16
    }

    fn read_end(&self, key: &StoreKey, most: usize) -> Result<(Vec<u8>, u64)> {
        let length = self.length(key)?;
        self.read_from(key, length.saturating_sub(most as u64), most)
    }
}

fn open(name: &str) -> (Arc<Generated>, Arc<dyn Folder>) {
    open_as(name, false)
}

/// Opens an array in a storage that prefers this many concurrent requests. With more than a few, tiles are prefetched.
fn open_as(name: &str, is_remote: bool) -> (Arc<Generated>, Arc<dyn Folder>) {
    let array = Array::named(name).unwrap();
    let storage =
        Arc::new(Generated { array, is_remote, reads_of_cells: AtomicUsize::new(0), bytes: Mutex::default() });
    let options = TreeOptions {
        reading: tilefs_reader::ReaderOptions { at: Some(u64::MAX), ..Default::default() },
        ..TreeOptions::default()
    };
    let stored = tree::open_stored_in(storage.clone(), &ROOT.into(), &options).unwrap();
    (storage, tree::root(stored, &options).unwrap())
}

/// Looks up everything as `ls -lR` and a listing of extended attributes do, including the size of every file. Returns
/// the paths.
fn look_at_all(folder: &Arc<dyn Folder>, path: &str, seen: &mut Vec<String>) {
    folder.extended_attributes();
    for entry in folder.list().unwrap() {
        let path = format!("{path}{}", entry.name);
        match folder.lookup(&entry.name).unwrap().unwrap() {
            Node::Folder(inner) => {
                assert_eq!(entry.kind, EntryKind::Folder, "{path}");
                look_at_all(&inner, &format!("{path}/"), seen);
            }
            Node::File(file) => {
                file.len().unwrap_or_else(|error| panic!("{path}: {error}"));
                file.extended_attributes();
                seen.push(path);
            }
        }
    }
}

/// Footers suffice to count appended rows, but not the rows of fragments that overlap. Tables have text columns.
const ARRAYS: [&str; 3] = ["appended-1e9", "overlapping-1e9", "table-1e9"];

#[test]
fn texts_and_listings_of_long_tables_read_no_cell() {
    for name in ARRAYS {
        let (storage, root) = open(name);
        let readme = text(&root, "README.txt");
        let is_counted = name != "overlapping-1e9";
        assert_eq!(readme.contains("at most"), !is_counted, "{readme}");
        for path in ["schema.txt", "schema.json", "fragments.tsv"] {
            text(&root, path);
        }
        let mut seen = Vec::new();
        look_at_all(&root, "", &mut seen);
        assert!(seen.len() >= 5, "{seen:?}");
        assert!(!seen.iter().any(|path| path.starts_with("text/parts")), "{name}");
        assert_eq!(storage.reads_of_cells.load(Ordering::Relaxed), 0, "{name}");
    }
}

/// The sizes of parts with fixed-size columns follow from the number of rows.
#[test]
fn parts_are_listed_whose_sizes_are_told_by_the_number_of_rows() {
    for (name, is_listed) in
        [("appended-100000000", true), ("overlapping-100000000", false), ("table-100000000", false)]
    {
        let (storage, root) = open(name);
        for (folder, file) in [("arrow", "cells.arrow"), ("parquet", "cells.parquet")] {
            let Some(Node::Folder(folder)) = node(&root, folder) else { panic!("{name}") };
            let mut seen = Vec::new();
            look_at_all(&folder, "", &mut seen);
            assert_eq!(seen.iter().any(|path| path == file), is_listed, "{name}: {seen:?}");
            let parts = seen.iter().filter(|path| path.starts_with("parts/")).count();
            assert!(if is_listed { (96..200).contains(&parts) } else { parts == 0 }, "{name}: {seen:?}");
        }
        assert_eq!(storage.reads_of_cells.load(Ordering::Relaxed), 0, "{name}");
    }
}

#[test]
fn names_of_parts_are_listed_without_reading_a_cell() {
    for name in ARRAYS {
        let (storage, root) = open(name);
        for folder in ["text/parts", "text/parts-without-header", "arrow/parts", "parquet/parts"] {
            let Some(Node::Folder(parts)) = node(&root, folder) else { panic!("{folder}") };
            let listed = parts.list().unwrap();
            assert!((900..5000).contains(&listed.len()), "{name} {folder}: {}", listed.len());
            assert!(listed.is_sorted_by(|one, next| one.name < next.name), "{name} {folder}");
            assert!(listed.iter().all(|entry| entry.kind == EntryKind::File));
        }
        assert_eq!(storage.reads_of_cells.load(Ordering::Relaxed), 0, "{name}");
    }
}

/// A row lies in 64 tiles of 65,536 cells each, of which it has 2,000 cells.
#[test]
fn a_row_of_a_matrix_costs_no_more_than_the_tiles_it_lies_in() {
    // In every tenth row, every second fragment repeats the cells of the previous one.
    for (row, cells) in [(1234, 2000), (1230, 1000)] {
        let (storage, root) = open("overlapping-8000000-f4-o4");
        let Some(Node::File(file)) = node(&root, &format!("slice/{row}/data.f32")) else { panic!() };
        storage.bytes.lock().unwrap().clear();
        let content = file.open().unwrap();
        assert_eq!(content.len(), 4 * cells, "{row}");
        content.read_at(0, &mut vec![0; 4 * cells as usize]).unwrap();
        let bytes = storage.bytes.lock().unwrap().clone();
        // The row coordinates of all touched tiles are read once, but of the column coordinates and values little more
        // than the chunks of the selected cells.
        let tiles = 8 * 64 * 65536;
        assert!(bytes["d0.tdb"] <= tiles + tiles / 50, "{row}: {bytes:?}");
        assert!(bytes["d1.tdb"] <= tiles / 4, "{row}: {bytes:?}");
        assert!(bytes["a0.tdb"] <= tiles / 4, "{row}: {bytes:?}");
    }
}

/// Most appended rows lie between no others, so finding their order reads no coordinates.
#[test]
fn rows_of_one_fragment_are_not_merged() {
    let (storage, root) = open_as("appended-100000000000-consolidated", true);
    let Some(Node::File(file)) = node(&root, "dims/obs.i64") else { panic!() };
    let content = file.open().unwrap();
    let length = 40 << 20;
    // Find rows before the rows that precede them, as concurrent readers may.
    (1..5).rev().for_each(|part| content.read_at(part * length as u64 / 5, &mut [0; 8]).unwrap());
    content.read_at(0, &mut vec![0; length]).unwrap();
    let bytes = storage.bytes.lock().unwrap().clone();
    assert!(bytes["d0.tdb"] <= length as u64 / 10 * 11, "{bytes:?}");
    assert!(bytes.get("d1.tdb").is_none_or(|bytes| *bytes <= length as u64 / 10), "{bytes:?}");
}

#[test]
fn a_group_of_zarr_arrays_is_told_without_counting_rows() {
    for name in ARRAYS {
        let (storage, root) = open(name);
        let group: serde_json::Value = serde_json::from_str(&text(&root, "zarr/zarr.json")).unwrap();
        assert_eq!(group["node_type"], "group", "{name}");
        let is_counted = name != "overlapping-1e9";
        assert_eq!(group["consolidated_metadata"].is_object(), is_counted, "{name}");
        let Some(Node::Folder(zarr)) = node(&root, "zarr") else { panic!("{name}") };
        let mut seen = Vec::new();
        let members = zarr.list().unwrap().into_iter().filter(|entry| entry.kind == EntryKind::Folder);
        for member in members {
            let Node::Folder(member) = zarr.lookup(&member.name).unwrap().unwrap() else { panic!("{name}") };
            look_at_all_files(&member, &mut seen);
        }
        assert_eq!(seen.is_empty(), !is_counted, "{name}: {seen:?}");
        assert_eq!(storage.reads_of_cells.load(Ordering::Relaxed), 0, "{name}");
    }
}

/// Looks up the sizes of the files in a folder, but not in its subfolders.
fn look_at_all_files(folder: &Arc<dyn Folder>, seen: &mut Vec<String>) {
    for entry in folder.list().unwrap().into_iter().filter(|entry| entry.kind == EntryKind::File) {
        if let Some(Node::File(file)) = folder.lookup(&entry.name).unwrap() {
            size(&*file);
            seen.push(entry.name);
        }
    }
}

fn size(file: &dyn File) -> u64 {
    file.len().unwrap()
}

/// This array is small enough to be read completely: texts are the same before and after its rows are counted.
#[test]
fn zarr_arrays_that_are_not_listed_are_found_and_counted() {
    let (storage, root) = open("overlapping-17000000-f4-o2");
    let before: serde_json::Value = serde_json::from_str(&text(&root, "zarr/zarr.json")).unwrap();
    assert_eq!(storage.reads_of_cells.load(Ordering::Relaxed), 0);
    let Some(Node::Folder(zarr)) = node(&root, "zarr") else { panic!() };
    let names = |folder: &Arc<dyn Folder>| folder.list().unwrap().into_iter().map(|one| one.name).collect::<Vec<_>>();
    let listed = names(&zarr);
    let member = listed.iter().find(|name| *name != "zarr.json").unwrap();
    let array: serde_json::Value = serde_json::from_str(&text(&root, &format!("zarr/{member}/zarr.json"))).unwrap();
    let rows = array["shape"][0].as_u64().unwrap();
    assert!(rows > 0 && rows <= 17_000_000, "{rows}");
    assert!(storage.reads_of_cells.load(Ordering::Relaxed) > 0);
    assert_eq!(names(&zarr), listed);
    let after: serde_json::Value = serde_json::from_str(&text(&root, "zarr/zarr.json")).unwrap();
    assert_eq!(after["attributes"], before["attributes"]);
    assert_eq!(after["consolidated_metadata"]["metadata"][member]["shape"][0].as_u64(), Some(rows));
}

/// A matrix of TileDB-SOMA opens all columns of its sorted rows, but reads its cells in bands.
#[test]
fn a_column_of_sorted_rows_is_opened_without_sorting() {
    let path = tilefs_fixtures::fixtures().join("arrays/sparse/dims_3");
    let options = TreeOptions::default();
    let tree = tree::MountedTree::new(tree::open_stored(&path, &options).unwrap(), &options).unwrap();
    let sorted_cells = || {
        let counters = tree.statistics();
        let counter = counters.iter().find(|counter| counter.name == "merged_cells").unwrap();
        let Value::Total(count) = counter.value else { panic!() };
        count
    };
    let Some(Node::Folder(dims)) = node(&tree.root(), "by-row/dims") else { panic!() };
    let columns = dims.list().unwrap().into_iter().map(|entry| dims.lookup(&entry.name).unwrap().unwrap());
    let columns: Vec<_> =
        columns.filter_map(|node| if let Node::File(file) = node { Some(file) } else { None }).collect();
    assert_eq!(columns.len(), 3);
    let contents: Vec<_> = columns.iter().map(|file| file.open().unwrap()).collect();
    assert_eq!(sorted_cells(), 0);
    contents[0].read_at(0, &mut vec![0; contents[0].len() as usize]).unwrap();
    assert!(sorted_cells() > 0);
}
