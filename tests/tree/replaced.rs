//! Arrays and groups that are replaced by two renames while they are opened and read: a read returns the old state, the
//! new state, or an error, but never a mixture, and never an empty state.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use support::shown::{Files, files_of};
use support::stored::{copy_folder, stored};
use tilefs_base::error::{Error, Result};
use tilefs_storage::{KnownFolder, Listed, LocalStorage, ReadRange, Storage, StoreKey};
use tilefs_tree::{self as tree, TreeOptions};

fn shown_by(storage: Arc<dyn Storage>, path: &Path) -> Result<Files> {
    let options = TreeOptions {
        reading: tilefs_reader::ReaderOptions { threads: 1, cache_size: 1 << 20, ..Default::default() },
        ..TreeOptions::default()
    };
    let root = tree::root(tree::open_stored_in(storage, &path.into(), &options)?, &options)?;
    files_of(&*root)
}

/// Two states, one of which can be in the place of the other.
struct Pair {
    folder: tempfile::TempDir,
    before: Files,
    after: Files,
}

impl Pair {
    fn of(before: &Path, after: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut pair = Pair { folder, before: Files::new(), after: Files::new() };
        copy_folder(after, &pair.place());
        pair.after = shown_by(Arc::new(LocalStorage::new()), &pair.place()).unwrap();
        fs::rename(pair.place(), pair.path("new")).unwrap();
        copy_folder(before, &pair.place());
        pair.before = shown_by(Arc::new(LocalStorage::new()), &pair.place()).unwrap();
        assert!(pair.before != pair.after && !pair.before.is_empty(), "{} {}", before.display(), after.display());
        pair
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn place(&self) -> PathBuf {
        self.path("stored")
    }

    fn move_away(&self) {
        fs::rename(self.place(), self.path("old")).unwrap();
    }

    fn move_in(&self) {
        fs::rename(self.path("new"), self.place()).unwrap();
    }

    /// Restores the initial places, whatever has been moved.
    fn restore(&self) {
        if !self.path("new").exists() && self.path("old").exists() {
            fs::rename(self.place(), self.path("new")).unwrap();
        }
        if self.path("old").exists() {
            fs::rename(self.path("old"), self.place()).unwrap();
        }
    }

    fn assert_right(&self, read: &Result<Files>, when: &str) {
        let Ok(read) = read else { return };
        if *read != self.before && *read != self.after {
            let names = |shown: &Files| shown.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
            panic!("{when}: neither the old nor the new: {:?}, old {:?}", names(read), names(&self.before));
        }
    }
}

/// The local file system, with an action at a certain number of requests.
struct Eventful {
    inner: LocalStorage,
    requests: AtomicUsize,
    happens: Box<dyn Fn(usize) + Send + Sync>,
}

impl Eventful {
    fn new(happens: impl Fn(usize) + Send + Sync + 'static) -> Arc<Self> {
        let (inner, requests) = (LocalStorage::new(), AtomicUsize::new(0));
        Arc::new(Eventful { inner, requests, happens: Box::new(happens) })
    }

    fn request(&self) -> &LocalStorage {
        (self.happens)(self.requests.fetch_add(1, Ordering::SeqCst));
        &self.inner
    }
}

impl Storage for Eventful {
    fn list(&self, folder: &StoreKey) -> Result<Vec<Listed>> {
        self.request().list(folder)
    }

    fn know(&self, folder: &StoreKey) -> Result<KnownFolder> {
        self.request().know(folder)
    }

    fn list_in(&self, root: &KnownFolder, path: &str) -> Result<Option<Vec<Listed>>> {
        self.request().list_in(root, path)
    }

    fn read_in(&self, root: &KnownFolder, path: &str, most: u64) -> Result<Vec<u8>> {
        self.request().read_in(root, path, most)
    }

    fn absence(&self, folder: &StoreKey) -> Option<String> {
        self.request().absence(folder)
    }

    fn length(&self, key: &StoreKey) -> Result<u64> {
        self.request().length(key)
    }

    fn read_ranges(&self, key: &StoreKey, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        self.request().read_ranges(key, ranges)
    }

    fn read_from(&self, key: &StoreKey, offset: u64, most: usize) -> Result<(Vec<u8>, u64)> {
        self.request().read_from(key, offset, most)
    }

    fn read_end(&self, key: &StoreKey, most: usize) -> Result<(Vec<u8>, u64)> {
        self.request().read_end(key, most)
    }

    fn canonical(&self, key: &StoreKey) -> StoreKey {
        self.inner.canonical(key)
    }
}

/// Old and new states in every layout: fragments in the array's folder, with and without commit markers, and in a
/// folder of their own; a single schema of a fixed name, and several; metadata, labels, deletes; groups.
fn pairs() -> Vec<(String, Pair)> {
    let writers = tilefs_fixtures::fixtures().join("writers/arrays");
    let of = |name: &str| match name.starts_with(|first: char| first.is_ascii_digit()) {
        true => writers.join(name),
        false => stored(name),
    };
    [
        ("dense/overlap", "dense/overlap_col"),
        ("dense/overlap", "dense/no_fragment"),
        ("dense/consolidated", "dense/overlap"),
        ("dense/evolution", "dense/partial"),
        ("dense/metadata", "dense/metadata_consolidated"),
        ("dense/labels", "dense/dims_1"),
        ("sparse/overlap", "sparse/deletes"),
        ("sparse/deletes_consolidated", "sparse/empty"),
        ("1.7/times_0", "1.7/times_1"),
        ("1.7/floats_0", "dense/overlap"),
        ("1.6/twice_0", "1.6/twice_1"),
        ("groups/experiment", "groups/empty"),
        ("groups/empty", "groups/experiment"),
        ("groups/experiment", "dense/overlap"),
    ]
    .map(|(before, after)| (format!("{before} by {after}"), Pair::of(&of(before), &of(after))))
    .into()
}

/// The actions at a certain request, and before the next one.
type Events = [(&'static str, fn(&Pair), fn(&Pair)); 3];

const EVENTS: Events = [
    (
        "replaced at once",
        |pair| {
            pair.move_away();
            pair.move_in();
        },
        |_| {},
    ),
    ("replaced after a moment", Pair::move_away, Pair::move_in),
    ("away for a moment", Pair::move_away, |pair| fs::rename(pair.path("old"), pair.place()).unwrap()),
];

#[test]
fn whatever_is_replaced_between_two_requests_is_old_or_new_or_an_error() {
    let mut right_at_replacement = 0;
    for (name, pair) in pairs() {
        let pair = Arc::new(pair);
        for (what, first, then) in EVENTS {
            let (mut errors, mut right) = (0, 0);
            for number in 0.. {
                let in_storage = pair.clone();
                let storage = Eventful::new(move |request| {
                    if request == number {
                        first(&in_storage);
                    } else if request == number + 1 {
                        then(&in_storage);
                    }
                });
                let read = shown_by(storage.clone(), &pair.place());
                pair.assert_right(&read, &format!("{name}, {what} at request {number}"));
                match &read {
                    Ok(_) => right += 1,
                    Err(error) => {
                        assert!(!matches!(error, Error::Internal { .. }), "{error}");
                        errors += 1;
                    }
                }
                pair.restore();
                if storage.requests.load(Ordering::SeqCst) <= number {
                    break;
                }
            }
            println!("{name}, {what}: {right} right, {errors} refused");
            // In the last round, no action takes place.
            assert!(right > 0, "{name}, {what}");
            right_at_replacement += right - 1;
        }
    }
    assert!(right_at_replacement > 100, "{right_at_replacement} reads are compared");
}

#[test]
fn whatever_is_replaced_all_the_time_is_old_or_new_or_an_error() {
    for (before, after) in [("dense/overlap", "dense/overlap_col"), ("groups/experiment", "groups/empty")] {
        let pair = Pair::of(&stored(before), &stored(after));
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    pair.move_away();
                    pair.move_in();
                    fs::rename(pair.place(), pair.path("new")).unwrap();
                    fs::rename(pair.path("old"), pair.place()).unwrap();
                    thread::yield_now();
                }
            });
            let (mut errors, mut right) = (0, 0);
            let end = std::time::Instant::now() + std::time::Duration::from_secs(2);
            while std::time::Instant::now() < end {
                let read = shown_by(Arc::new(LocalStorage::new()), &pair.place());
                if read.as_ref().is_ok_and(|read| *read != pair.before && *read != pair.after) {
                    is_over.store(true, Ordering::Relaxed);
                }
                pair.assert_right(&read, before);
                *if read.is_ok() { &mut right } else { &mut errors } += 1;
            }
            is_over.store(true, Ordering::Relaxed);
            println!("{before} by {after}: {right} right, {errors} refused");
            assert!(right > 0, "{before} by {after}: nothing is compared");
        });
    }
}
