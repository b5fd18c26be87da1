//! The cost and the errors of arrays in a remote, unreliable storage: the number of requests, how many of them wait for
//! others, and the effect of each failure.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use support::paths::{content, files, found, whole};
use tilefs_base::error::{Error, Result};
use tilefs_storage::simulated::{FaultKind, StorageOperation, StorageRequest};
use tilefs_storage::{MemoryStorage, SimulatedStorage, StoreKey};
use tilefs_tree::{self as tree, TreeOptions};
use tilefs_vfs::Folder;

/// An array of the fixtures in an object store.
struct Remote {
    storage: Arc<SimulatedStorage>,
    key: StoreKey,
}

impl Remote {
    fn new(fixture: &str, delay: Duration) -> Self {
        let folder = tilefs_fixtures::fixtures().join(fixture);
        let key = StoreKey::from("s3://bucket/array");
        let objects = MemoryStorage::load(&folder, &key).unwrap();
        assert!(!objects.keys().is_empty());
        Remote { storage: Arc::new(SimulatedStorage::new(Arc::new(objects), delay)), key }
    }

    /// Returns the requests since the last call for objects whose keys end like this.
    fn requests_for(&self, end: &str) -> Vec<StorageRequest> {
        let all = self.storage.take_requests().into_iter();
        all.filter(|request| request.key.as_bytes().ends_with(end.as_bytes())).collect()
    }

    fn open(&self) -> Result<Arc<dyn Folder>> {
        self.open_with(TreeOptions::default())
    }

    fn open_with(&self, options: TreeOptions) -> Result<Arc<dyn Folder>> {
        let options = TreeOptions {
            reading: tilefs_reader::ReaderOptions { at: Some(u64::MAX), threads: 2, ..options.reading },
            ..options
        };
        let stored = tree::open_stored_in(self.storage.clone(), &self.key, &options)?;
        tree::root(stored, &options)
    }
}

fn read(root: &dyn Folder, path: &str) -> Result<Vec<u8>> {
    whole(&*content(root, path)?)
}

fn steps(requests: &[StorageRequest]) -> usize {
    requests.iter().map(|request| request.step).max().unwrap_or(0)
}

#[test]
fn the_first_value_of_an_array_is_few_requests_away() {
    let remote = Remote::new("demo", Duration::from_millis(40));
    let root = remote.open().unwrap();
    let value = read(&*root, "slice/45,120/temp.f32").unwrap();
    assert_eq!(f32::from_le_bytes(value.try_into().unwrap()), 16.7);
    let requests = remote.storage.take_requests();
    println!("{} requests in {} steps: {requests:#?}", requests.len(), steps(&requests));
    assert!(requests.len() <= 6 && steps(&requests) <= 3, "{requests:#?}");
    // Sizes come from the listing or with other answers.
    assert!(requests.iter().all(|request| request.operation != StorageOperation::Length), "{requests:#?}");
    // The second value is in the same tile, and everything else is cached by then.
    read(&*root, "slice/46,121/temp.f32").unwrap();
    assert_eq!(remote.storage.take_requests(), []);
}

#[test]
fn what_is_told_of_an_array_takes_no_further_listing() {
    let remote = Remote::new("demo", Duration::ZERO);
    let root = remote.open().unwrap();
    remote.storage.take_requests();
    for path in ["README.txt", "schema.txt", "schema.json", "temp.vrt"] {
        assert!(!read(&*root, path).unwrap().is_empty());
    }
    let requests = remote.storage.take_requests();
    let is_listing =
        |request: &StorageRequest| matches!(request.operation, StorageOperation::List | StorageOperation::ListBelow);
    assert!(!requests.iter().any(|request| is_listing(request) && request.key == remote.key), "{requests:#?}");
}

#[test]
fn other_arrays_cost_little_more() {
    // Opening takes one listing, the schema, the end of each fragment's metadata (two and four), and the names of
    // vacuumed and of consolidated fragments.
    let (opening_consolidated, opening_overlap) = (1 + 1 + 2 + 2, 1 + 1 + 4);
    // Reading takes one file of each of the two fragments.
    let reading_consolidated = 2;
    // Merging the rows takes each of the 4 + 3 + 2 + 4 tiles of coordinates of both dimensions, when the merge reaches
    // it.
    // Printing them takes the values, and the offsets and values of the text, of each of the four fragments.
    let reading_overlap = (4 + 3 + 2 + 4) * 2 + 4 * (1 + 2);
    for (fixture, path, opening_steps, opening, reading) in [
        ("arrays/dense/consolidated", "a.i32", 3, opening_consolidated, reading_consolidated),
        ("arrays/sparse/overlap", "text/cells.tsv", 2, opening_overlap, reading_overlap),
    ] {
        let remote = Remote::new(fixture, Duration::from_millis(20));
        let Ok(root) = remote.open() else { panic!("{fixture} does not open") };
        let opened = remote.storage.take_requests();
        let bytes = read(&*root, path).unwrap();
        let requests = remote.storage.take_requests();
        println!(
            "{fixture}: opened by {} requests in {} steps, {path} of {} bytes by {} in {}",
            opened.len(),
            steps(&opened),
            bytes.len(),
            requests.len(),
            steps(&requests)
        );
        assert!(opened.len() <= opening && steps(&opened) <= opening_steps, "{opened:#?}");
        assert!(requests.len() <= reading, "{requests:#?}");
    }
}

fn bytes_asked(requests: &[StorageRequest]) -> u64 {
    requests
        .iter()
        .map(|request| if let StorageOperation::From { most, .. } = request.operation { most } else { 0 })
        .sum()
}

/// Reads alternate between eight tiles of 256 KiB. A cache that is too small for all of them caches their chunks, four
/// of each: then the headers of the chunks are read, and with each row of chunks the gaps between these, of a few KiB
/// each.
#[test]
fn rows_are_got_a_few_times_however_small_the_cache_is() {
    let remote = Remote::new("arrays/dense/wide_rows", Duration::ZERO);
    let mut once = 0;
    for (cache_size, most) in [(64 << 20, 1), (4 << 20, 1), (2 << 20, 5), (1 << 20, 5)] {
        let root = remote
            .open_with(TreeOptions {
                reading: tilefs_reader::ReaderOptions { cache_size, ..Default::default() },
                ..TreeOptions::default()
            })
            .unwrap();
        let content = found(&*root, "v.u32").unwrap().open().unwrap();
        let mut bytes = vec![0; 128 << 10];
        for offset in (0..content.len()).step_by(bytes.len()) {
            content.read_at(offset, &mut bytes).unwrap();
        }
        let asked = bytes_asked(&remote.requests_for("a0.tdb"));
        println!("{asked} bytes with {cache_size} for the cache");
        once = if once == 0 { asked } else { once };
        assert!(asked <= most * once, "{asked} bytes with {cache_size} for the cache, {once} at best");
    }
}

/// Checks that an error is a transient one that names the unreadable object, whatever was read and whichever request
/// failed.
fn assert_transient(error: &Error, doing: &str) {
    assert!(matches!(error, Error::Io { .. }) && error.is_transient(), "{doing}: {error}");
    assert!(error.to_string().contains("s3://bucket/array"), "{doing}: {error}");
    assert!(std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>()), "{doing}: {error}");
}

/// Returns the first lines that only one of the texts has.
fn differing_lines(found: &[u8], due: &[u8]) -> String {
    let (found, due) = (String::from_utf8_lossy(found), String::from_utf8_lossy(due));
    let only = |these: &str, those: &str| -> Vec<String> {
        let those: HashSet<&str> = those.lines().collect();
        these.lines().filter(|line| !those.contains(line)).take(20).map(str::to_owned).collect()
    };
    format!("found {:#?}, due {:#?}", only(&found, &due), only(&due, &found))
}

/// Returns whether a value equals another one, except that members of objects and arrays may be missing or null.
fn is_part_of(found: &Value, due: &Value) -> bool {
    match (found, due) {
        (Value::Null, _) => true,
        (Value::Object(found), Value::Object(due)) => {
            found.iter().all(|(key, value)| due.get(key).is_some_and(|due| is_part_of(value, due)))
        }
        (Value::Array(found), Value::Array(due)) => {
            let mut due = due.iter();
            found.iter().all(|found| due.any(|due| is_part_of(found, due)))
        }
        _ => found == due,
    }
}

/// Returns whether a text that describes the array names what could not be read, and otherwise only contains parts of
/// the complete text: lines with words left out, or in JSON the same values with some left out.
fn says_what_it_lacks(path: &str, found: &[u8], due: &[u8]) -> bool {
    let (Ok(found), Ok(due)) = (std::str::from_utf8(found), std::str::from_utf8(due)) else { return false };
    let is_warning = |line: &&str| line.contains("cannot read: ") && line.contains("s3://bucket/array");
    let (warnings, mut others): (Vec<&str>, Vec<&str>) = found.lines().partition(is_warning);
    // README.txt says after its warnings what tells more.
    if path == "README.txt" {
        others.retain(|line| !line.starts_with("tilefs explain ARRAY FILE --row N says "));
    }
    let is_part = |line: &str| {
        due.lines().any(|due| {
            let mut words = due.split_whitespace();
            line.split_whitespace().all(|word| words.any(|due| due == word))
        })
    };
    let is_right = match path {
        "README.txt" | "schema.txt" => others.into_iter().all(is_part),
        "schema.json" => {
            let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            let mut found = parse(found);
            found["warnings"] = Value::Null;
            is_part_of(&found, &parse(due))
        }
        _ => false,
    };
    !warnings.is_empty() && is_right
}

#[test]
fn what_fails_once_is_tried_again_by_the_next_read() {
    for fixture in [
        "demo",
        "arrays/dense/var",
        "arrays/dense/labels",
        "arrays/dense/enumerations",
        "arrays/dense/metadata",
        "arrays/sparse/overlap",
        "arrays/sparse/deletes",
        "arrays/filestore",
    ] {
        let remote = Remote::new(fixture, Duration::ZERO);
        let root = remote.open().unwrap();
        let paths = files(&*root);
        let mut failed = 0;
        for path in &paths {
            let due = read(&*root, path).unwrap();
            // Each of the first requests fails once, then fewer and fewer of them.
            let mut next = 0;
            loop {
                let spared = next;
                next += 1 + spared / 2;
                let root = remote.open().unwrap();
                remote.storage.fail_some(FaultKind::Transient, spared, 1, |_| true);
                let before = remote.storage.take_requests().len();
                assert!(before > 0);
                let first = read(&*root, path);
                let was_reached = remote.storage.take_requests().len() > spared;
                match first {
                    Ok(bytes) if !was_reached => {
                        remote.storage.recover();
                        assert!(bytes == due, "{fixture} {path}");
                        break;
                    }
                    // The failed request was only an optimization, or the text names what it lacks.
                    Ok(bytes) => assert!(
                        bytes == due || says_what_it_lacks(path, &bytes, &due),
                        "{fixture} {path}, request {spared}: {}",
                        differing_lines(&bytes, &due)
                    ),
                    Err(error) => assert_transient(&error, &format!("{fixture} {path}, request {spared}")),
                }
                failed += 1;
                remote.storage.recover();
                let again = read(&*root, path);
                assert!(
                    again.as_ref().is_ok_and(|bytes| *bytes == due),
                    "{fixture} {path}, request {spared}: {again:?}"
                );
            }
        }
        println!("{fixture}: {failed} reads of {} files met a fault", paths.len());
        assert!(failed >= 5, "{fixture}");
    }
}

/// Returns the contents of all files of an array, or the error of each that cannot be read.
fn contents(root: &dyn Folder) -> Vec<(String, std::result::Result<Vec<u8>, String>)> {
    let paths = files(root);
    paths.into_iter().map(|path| (path.clone(), read(root, &path).map_err(|error| error.to_string()))).collect()
}

#[test]
fn an_array_opened_while_requests_fail_is_the_same_afterwards() {
    for fixture in
        ["demo", "arrays/dense/labels", "arrays/sparse/deletes", "arrays/filestore", "arrays/dense/evolution"]
    {
        let remote = Remote::new(fixture, Duration::ZERO);
        let due = contents(&*remote.open().unwrap());
        let (mut refused, mut opened) = (0, 0);
        for spared in 0.. {
            remote.storage.recover();
            remote.storage.take_requests();
            remote.storage.fail_some(FaultKind::CutShort, spared, 1, |_| true);
            let root = remote.open();
            let was_reached = remote.storage.take_requests().len() > spared;
            remote.storage.recover();
            match root {
                Err(error) => {
                    assert_transient(&error, &format!("{fixture}, request {spared}"));
                    refused += 1;
                }
                Ok(root) => {
                    opened += 1;
                    let found = contents(&*root);
                    let other = found.iter().zip(&due).find(|(found, due)| found != due);
                    assert!(found.len() == due.len() && other.is_none(), "{fixture}, request {spared}: {other:?}");
                }
            }
            if !was_reached {
                break;
            }
        }
        println!("{fixture}: opening was refused {refused} times and went well {opened} times");
        assert!(refused > 0 && opened > 0);
    }
}

#[test]
fn each_failure_is_of_its_kind() {
    let data = |request: &StorageRequest| request.key.name().is_some_and(|name| name.ends_with(b"a0.tdb"));
    for failing in [FaultKind::Transient, FaultKind::Permanent, FaultKind::Missing, FaultKind::CutShort] {
        let remote = Remote::new("demo", Duration::ZERO);
        let root = remote.open().unwrap();
        remote.storage.fail(failing, data);
        let error = read(&*root, "slice/45,120/temp.f32").unwrap_err();
        let is_right = match failing {
            FaultKind::Missing => matches!(error, Error::Missing { .. }),
            _ => matches!(error, Error::Io { transient, .. } if transient == (failing != FaultKind::Permanent)),
        };
        assert!(is_right, "{failing:?}: {error}");
        assert!(
            tilefs_vfs::fuse::errno(&error) == libc::EIO || failing == FaultKind::Permanent,
            "{failing:?}: {error}"
        );
        let text = error.to_string();
        assert!(text.contains("s3://bucket/array") && text.contains("a0.tdb"), "{text}");
        // Reads of other files succeed.
        assert!(read(&*root, "slice/45,120/cell.i32").is_ok());
        remote.storage.recover();
        assert!(read(&*root, "slice/45,120/temp.f32").is_ok(), "{failing:?}");
    }
}

#[test]
fn what_a_listing_names_and_is_not_there_is_missing() {
    let folder = tilefs_fixtures::fixtures().join("demo");
    let key = StoreKey::from("s3://bucket/array");
    let objects = Arc::new(MemoryStorage::load(&folder, &key).unwrap());
    let data = objects.keys().into_iter().find(|key| key.name() == Some(b"a0.tdb")).unwrap();
    let bytes = objects.bytes(&data).unwrap();
    let options = TreeOptions {
        reading: tilefs_reader::ReaderOptions { at: Some(u64::MAX), threads: 1, ..Default::default() },
        ..TreeOptions::default()
    };
    let root = tree::root(tree::open_stored_in(objects.clone(), &key, &options).unwrap(), &options).unwrap();
    objects.remove(&data);
    let error = read(&*root, "temp.f32").unwrap_err();
    assert!(matches!(error, Error::Missing { .. }), "{error}");
    // A file that stays truncated is damaged, because the metadata record its length.
    objects.put(data.clone(), &bytes[..bytes.len() / 2]);
    let error = read(&*root, "temp.f32").unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    objects.put(data, bytes);
    assert!(read(&*root, "temp.f32").is_ok());
}

/// All bytes of a band have the same band, also in selections that begin within a tile.
#[test]
fn bands_follow_each_other() {
    let files = [
        ("arrays/dense/wide_rows", "v.u32"),
        ("arrays/dense/wide_rows", "slice/5..120,7..8100/v.u32"),
        ("arrays/dense/dims_3", "v.f32"),
        ("arrays/dense/big_tile", "row.f32"),
        ("huge", "v.i32"),
        ("enormous", "v.i32"),
    ];
    for (fixture, path) in files {
        let root = Remote::new(fixture, Duration::ZERO).open().unwrap();
        let content = found(&*root, path).unwrap().open().unwrap();
        // Offsets spread over the file, and some adjacent ones.
        let offsets = (0..64).map(|part| content.len() / 64 * part).chain((0..content.len()).take(64));
        for offset in offsets.filter(|offset| *offset < content.len()) {
            let band = content.band(offset);
            assert!(band.contains(&offset) && band.end <= content.len(), "{path} {offset} {band:?}");
            assert_eq!(content.band(band.start), band, "{path} {offset}");
            assert_eq!(content.band(band.end - 1), band, "{path} {offset}");
            if band.end < content.len() {
                assert_eq!(content.band(band.end).start, band.end, "{path} {offset}");
            }
        }
    }
}
