//! What verification says about cells that a consolidation lost, and about bytes that no checksum covers.

use std::fs;
use std::path::Path;

use support::stored::Copy;
use tilefs_format::pipeline::Filter;
use tilefs_reader::array::verify::{Findings, Progress, verify};
use tilefs_reader::{ReaderOptions, array::OpenedArray};
use tilefs_tree::{self as tree, TreeOptions};

/// Three fragments were consolidated to one of 7 rows of 8 cells.
const CONSOLIDATED: &str = "dense/consolidated";
const NAME: &str = "__1600000001000_1600000003000_5e7747bd74fc83f5202ca285bd518b4e_22";

fn options(originals: bool) -> TreeOptions {
    let reading = ReaderOptions { originals, threads: 2, cache_size: 4 << 20, ..ReaderOptions::default() };
    TreeOptions { reading, ..TreeOptions::default() }
}

fn verified(array: &Path) -> Findings {
    verify(&tree::open_array(array, &options(false)).unwrap(), &Progress::default())
}

/// Returns the raw values of the attributes.
fn values(array: &Path, originals: bool) -> [Vec<u8>; 3] {
    let root = tree::open(array, &options(originals)).unwrap();
    ["a.i32", "s.bytes", "n.valid.u8"].map(|name| support::shown::file(&*root, name, "").unwrap())
}

#[test]
fn cells_that_a_consolidation_lost_are_counted_and_can_be_read() {
    let copy = Copy::of(CONSOLIDATED);
    let path = copy.path();
    let whole = values(&path, false);
    assert!(verified(&path).places.is_empty());
    assert_eq!(values(&path, true), whole);
    let alter = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let file = copy.file(&format!("__fragments/{NAME}"), name);
        let mut bytes = fs::read(&file).unwrap();
        change(&mut bytes);
        fs::write(file, bytes).unwrap();
    };
    // The first tile of the values begins with the number of its chunks and three lengths of the only one.
    alter("a0.tdb", &|bytes| {
        bytes[20..32].copy_from_slice(&[i32::MIN; 3].map(i32::to_le_bytes).concat());
    });
    let findings = verified(&path);
    let [place] = &findings.places[..] else { panic!("{:?}", findings.places) };
    let text = place.error.to_string();
    for part in
        ["3 of 56 cells (of a) differ from the 3 fragments", "from 2020-09-13T12:26:41.000Z to", "--originals", NAME]
    {
        assert!(text.contains(part) && place.is_damage(), "{part}: {text}");
    }
    assert_ne!(values(&path, false), whole);
    assert_eq!(values(&path, true), whole);
    // A text of another attribute, in the same cell or another one.
    alter("a1_var.tdb", &|bytes| bytes[20] ^= 1);
    let text = verified(&path).places[0].error.to_string();
    assert!(text.contains("of 56 cells (of a, s) differ"), "{text}");
    assert_eq!(values(&path, true), whole);
}

#[test]
fn what_was_vacuumed_is_not_compared() {
    let copy = Copy::of(CONSOLIDATED);
    let path = copy.path();
    let whole = values(&path, false);
    for entry in fs::read_dir(path.join("__fragments")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.contains("_1600000002000_") {
            fs::remove_dir_all(path.join("__fragments").join(&name)).unwrap();
            fs::remove_file(path.join("__commits").join(format!("{name}.wrt"))).unwrap();
        }
    }
    // The commits that were consolidated name it, too.
    fs::remove_file(copy.file("__commits", ".con")).unwrap();
    assert_eq!((values(&path, false), values(&path, true)), (whole.clone(), whole));
    let findings = verified(&path);
    assert!(!findings.places.iter().any(|place| place.error.to_string().contains("cells")), "{:?}", findings.places);
}

fn has_checksum(filter: &Filter) -> bool {
    matches!(filter, Filter::ChecksumMd5 | Filter::ChecksumSha256 | Filter::Gzip { .. } | Filter::Bzip2 { .. })
}

#[test]
fn bytes_without_a_checksum_are_counted() {
    let mut both = [0, 0];
    for fixture in ["dense/dims_2", "dense/filters_uint8", "dense/filters_float", "dense/filters_int64"] {
        let copy = Copy::of(fixture);
        let array: std::sync::Arc<OpenedArray> = tree::open_array(&copy.path(), &options(false)).unwrap();
        let progress = Progress::default();
        assert!(verify(&array, &progress).places.is_empty());
        let attributes = &array.schema().attributes;
        assert!(attributes.iter().all(|attribute| !attribute.is_variable() && !attribute.nullable), "{fixture}");
        let size = |is_wanted: &dyn Fn(bool) -> bool| -> u64 {
            let wanted = attributes.iter().filter(|one| is_wanted(one.filters.filters.iter().any(has_checksum)));
            wanted.map(|attribute| attribute.fill.len() as u64).sum()
        };
        let [bytes, without] = [&progress.bytes, &progress.bytes_without_checksum]
            .map(|count| count.load(std::sync::atomic::Ordering::Relaxed));
        assert_eq!(without * size(&|_| true), bytes * size(&|has_checksum| !has_checksum), "{fixture}");
        both = [both[0] + without, both[1] + bytes - without];
    }
    assert!(both.iter().all(|bytes| *bytes > 0), "{both:?}");
}
