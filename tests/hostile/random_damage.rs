//! Opens, verifies and reads small arrays with random damage by a mutator that knows the format: every file of the tree
//! gives bytes or an error, and every undamaged field gives its values. There must be no panic, no endless loop, and
//! never more than 256 MiB of memory.
//!
//! An ordinary run damages a few hundred arrays. For more: `HOSTILE_COUNT=1000000 cargo test --test hostile random_damage`;
//! `HOSTILE_FIRST` is the number of the first one, which determines its damage.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tilefs_base::content::Content;
use tilefs_base::output::Output;
use tilefs_reader::array::verify::{Finding, Progress, verify};
use tilefs_reader::array::{ArrayFolder, Context, OpenedArray, TimeWindow};
use tilefs_storage::{MemoryStorage, StoreKey};
use tilefs_tree::TreeOptions;
use tilefs_tree::array::array_folder;
use tilefs_vfs::{Folder, Node};

use crate::mutator::{self, Random};
use crate::untouched;

/// The arrays to damage, each of about ten KiB.
const ARRAYS: [&str; 22] = [
    "demo",
    "arrays/dense/dims_2",
    "arrays/dense/overlap",
    "arrays/dense/nullable",
    "arrays/dense/var",
    "arrays/dense/var_filters",
    "arrays/dense/filters_chunks",
    "arrays/dense/filters_float32",
    "arrays/dense/metadata",
    "arrays/dense/metadata_consolidated",
    "arrays/dense/enumerations",
    "arrays/dense/labels",
    "arrays/dense/consolidated_vacuumed",
    "arrays/dense/evolution",
    "arrays/dense/current_domain",
    "arrays/sparse/overlap",
    "arrays/sparse/dups",
    "arrays/sparse/dim_text",
    "arrays/sparse/dim_mixed",
    "arrays/sparse/hilbert_text",
    "arrays/sparse/deletes",
    "arrays/sparse/consolidated",
];

/// Unlisted folders, read in rotation, because each costs as much as all listed files. Their number and that of the
/// arrays have no common divisor.
const HIDDEN: [&str; 7] = ["arrow", "parquet", "zarr", "tiff", "F", "nonempty", "by-row"];

const DEFAULT_COUNT: u64 = 440;

/// Work on an array of about ten KiB that takes this long counts as an endless loop.
const HANGS: Duration = Duration::from_secs(240);

/// The number of the current array, for the message about an endless loop.
static CURRENT: AtomicU64 = AtomicU64::new(0);

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn damaged_arrays_give_bytes_or_errors() {
    let fixtures = tilefs_fixtures::fixtures();
    let root = StoreKey::from("/array");
    let whole: Vec<MemoryStorage> =
        ARRAYS.iter().map(|name| MemoryStorage::load(&fixtures.join(name), &root).unwrap()).collect();
    assert!(whole.iter().all(|storage| !storage.keys().is_empty()));
    let (first, count) = (number("HOSTILE_FIRST").unwrap_or(0), number("HOSTILE_COUNT").unwrap_or(DEFAULT_COUNT));
    let end_early = Arc::new(std::sync::Mutex::new(()));
    let working = end_early.lock().unwrap();
    watch(end_early.clone());
    let values: Vec<untouched::Values> = whole.iter().map(|storage| untouched::Values::of(storage, &root)).collect();
    let (mut opened, mut read, mut compared) = (0, Read::default(), 0);
    for seed in first..first + count {
        CURRENT.store(seed, Ordering::Relaxed);
        if std::env::var_os("HOSTILE_NAMES").is_some() {
            eprintln!("{seed}");
        }
        let storage = whole[seed as usize % whole.len()].clone();
        mutator::damage(&storage, &mut Random(seed));
        let number = seed as usize % whole.len();
        let done = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let compared = values[number].compare(&whole[number], &storage, &root);
            (compared, read_all(storage, &root, seed))
        }));
        let Ok((same, found)) = done else { panic!("PANIC with HOSTILE_FIRST={seed} HOSTILE_COUNT=1") };
        compared += same;
        opened += u64::from(found.files > 0);
        read.files += found.files;
        read.errors += found.errors;
        if seed % 10_000 == 9_999 {
            eprintln!("{} done, {opened} opened, {} files, {} errors", seed + 1 - first, read.files, read.errors);
        }
    }
    drop(working);
    println!("{count} arrays, {opened} opened, {} files, {} errors", read.files, read.errors);
    println!("{compared} files of fields that nothing was done to");
    if count >= DEFAULT_COUNT {
        assert!(opened > count / 3, "most cannot even be opened: the damage is not where it hurts");
        assert!(compared > count / 2, "values are compared {compared} times only");
        assert!(read.errors > opened && read.files > 20 * opened, "what was damaged is not read");
    }
}

#[test]
fn a_claimed_number_of_tiles_is_compared_with_their_offsets() {
    let folder = tilefs_fixtures::fixtures().join("arrays/sparse/overlap");
    let root = StoreKey::from("/array");
    let whole = MemoryStorage::load(&folder, &root).unwrap();
    let metadata = whole.keys().into_iter().filter(|key| key.name() == Some(b"__fragment_metadata.tdb"));
    let open = |storage: MemoryStorage| {
        let context = Context::new(Arc::new(storage), 1 << 20, 1, None);
        OpenedArray::open(Arc::new(ArrayFolder::open(Arc::new(context), &root).unwrap()), TimeWindow::ALL).unwrap()
    };
    let array = open(whole.clone());
    assert!(verify(&array, &Progress::default()).places.is_empty());
    let domain: usize = array.schema().dimensions.iter().map(|one| 2 * one.datatype.size()).sum();
    for key in metadata {
        let storage = whole.clone();
        let mut bytes = storage.bytes(&key).unwrap().to_vec();
        let length = |end: &[u8]| u64::from_le_bytes(end.try_into().unwrap()) as usize;
        let footer = bytes.len() - 8 - length(&bytes[bytes.len() - 8..]);
        let name = length(&bytes[footer + 4..footer + 12]);
        // The number of tiles comes after the version, the name of the schema, two flags and the domain.
        let tiles = footer + 12 + name + 2 + domain;
        assert!((1..100).contains(&length(&bytes[tiles..tiles + 8])));
        bytes[tiles + 6] ^= 0x80;
        storage.put(key, bytes);
        let array = open(storage);
        let damage = verify(&array, &Progress::default()).places;
        assert!(!damage.is_empty() && damage.len() < 20, "{damage:?}");
        assert!(damage.iter().all(|found| found.error.place().is_some_and(|place| place.fragment.is_some())));
    }
}

/// Ends the process if one array takes forever.
fn watch(until: Arc<std::sync::Mutex<()>>) {
    std::thread::spawn(move || {
        let mut since = (u64::MAX, Instant::now());
        while until.try_lock().is_err() {
            std::thread::sleep(Duration::from_millis(500));
            let current = CURRENT.load(Ordering::Relaxed);
            if current != since.0 {
                since = (current, Instant::now());
            } else if since.1.elapsed() > HANGS {
                eprintln!("HANG with HOSTILE_FIRST={current} HOSTILE_COUNT=1");
                std::process::abort();
            }
        }
    });
}

#[derive(Default)]
struct Read {
    files: u64,
    errors: u64,
}

/// Opens, verifies, and reads all files of the tree that are listed, and those of one of the hidden folders.
fn read_all(storage: MemoryStorage, root: &StoreKey, seed: u64) -> Read {
    let mut read = Read::default();
    let context = Arc::new(Context::new(Arc::new(storage), 1 << 20, 1, None));
    let Ok(folder) = ArrayFolder::open(context, root) else { return read };
    let Ok(array) = OpenedArray::open(Arc::new(folder), TimeWindow::ALL) else { return read };
    let array = Arc::new(array);
    let findings = verify(&array, &Progress::default());
    for line in findings.places.iter().map(Finding::to_string).chain(findings.warnings) {
        // Each is one line, whatever it contains.
        assert!(!line.contains(char::is_control));
        read.errors += 1;
    }
    let options = TreeOptions {
        reading: tilefs_reader::ReaderOptions { at: Some(u64::MAX), threads: 1, ..Default::default() },
        ..TreeOptions::default()
    };
    match array_folder(array, Arc::new(options)) {
        Ok(folder) => {
            read.folder(&folder, 0);
            if let Ok(Some(Node::Folder(hidden))) = folder.lookup(HIDDEN[seed as usize % HIDDEN.len()]) {
                read.folder(&*hidden, 0);
            }
            for slice in ["0..1,0..1", "0..1", "1"] {
                if let Ok(Some(Node::Folder(slices))) = folder.lookup("slice")
                    && let Ok(Some(Node::Folder(slice))) = slices.lookup(slice)
                {
                    read.folder(&*slice, 0);
                    break;
                }
            }
        }
        Err(_) => read.errors += 1,
    }
    read
}

impl Read {
    fn folder(&mut self, folder: &dyn Folder, depth: usize) {
        let Ok(entries) = folder.list() else {
            self.errors += 1;
            return;
        };
        folder.extended_attributes();
        for entry in entries.iter().take(200) {
            match folder.lookup(&entry.name) {
                Ok(Some(Node::Folder(inner))) if depth < 3 => self.folder(&*inner, depth + 1),
                Ok(Some(Node::File(file))) => {
                    self.files += 1;
                    file.extended_attributes();
                    match file.len().and_then(|length| Ok((length, file.open()?))) {
                        Ok((length, content)) => self.content(length, &*content),
                        Err(_) => self.errors += 1,
                    }
                }
                Ok(_) => {}
                Err(_) => self.errors += 1,
            }
        }
    }

    /// Reads the start of a file, its middle and its end.
    fn content(&mut self, length: u64, content: &dyn Content) {
        assert_eq!(length, content.len());
        let mut part = vec![0; length.min(16 << 10) as usize];
        for start in [0, length / 2, length] {
            let start = start.min(length - part.len() as u64);
            self.errors += u64::from(content.read_at(start, &mut part).is_err());
        }
        let _ = content.read(0, Output::Ahead(length.min(16 << 10)));
    }
}
