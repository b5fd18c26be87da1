//! One suite of tests that every storage backend passes: listings, ranges, missing keys, errors, cancellation.
//!
//! A test of a backend stores [`objects`] below a folder of its own, and calls [`check`]. Nothing else may be in that
//! folder.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a check that fails ends the test")]

use std::collections::BTreeMap;

use tilefs_base::error::{Error, Result};
use tilefs_threads::cancellation::Token;
use tilefs_threads::map_waiting;

use super::{KnownFolder, Listed, ListedKind, ReadRange, Storage, StoreKey};

/// The length of the largest object: more than one request of any backend asks for.
const LARGE: usize = 3_000_000;

/// The object that most checks read.
const LARGE_OBJECT: &str = "large";

/// The folders that the objects form, by their paths.
const FOLDERS: [&str; 3] = ["", "a", "a/b"];

/// Paths at which there is nothing.
const MISSING: [&str; 3] = ["none", "a/none", "none/deeper"];

/// Returns the paths and the bytes of the objects that the storage must hold.
pub fn objects() -> Vec<(&'static str, Vec<u8>)> {
    let numbered = |length: usize| (0..length).map(|at| (at % 251) as u8).collect::<Vec<u8>>();
    vec![
        // In byte order, the name is after "a", and the path before all paths in "a".
        ("a!", numbered(1)),
        ("a/b/deep", numbered(300)),
        ("a/part", b"0123456789".to_vec()),
        ("empty", Vec::new()),
        ("größe 100%41+b", numbered(17)),
        (LARGE_OBJECT, numbered(LARGE)),
    ]
}

/// Checks that a storage reads [`objects`] below `root` as [`Storage`] says.
///
/// # Panics
/// If it does not; the message says where.
pub fn check(storage: &dyn Storage, root: &StoreKey) {
    check_answers(storage, root, storage.is_remote(root));
}

/// Like [`check`], for a storage that keeps remote bytes on this machine: a cancelled request may be answered from them.
///
/// # Panics
/// As [`check`].
pub fn check_cached(storage: &dyn Storage, root: &StoreKey) {
    check_answers(storage, root, false);
}

/// Checks a storage. `ends_at_once` tells whether a cancelled request cannot be answered.
fn check_answers(storage: &dyn Storage, root: &StoreKey, ends_at_once: bool) {
    storage.allow(root);
    check_listings(storage, root);
    check_objects(storage, root);
    check_ranges(storage, &root.join(LARGE_OBJECT));
    check_ends(storage, &root.join(LARGE_OBJECT));
    check_missing(storage, root);
    check_cancellation(storage, root, ends_at_once);
    check_threads(storage, root);
    check_keys(storage, root);
}

/// Returns the names in a folder, each with its length if it is an object.
fn names_in(folder: &str) -> BTreeMap<String, Option<u64>> {
    let mut names = BTreeMap::new();
    for (path, bytes) in objects() {
        let inner = if folder.is_empty() { Some(path) } else { path.strip_prefix(&format!("{folder}/")) };
        match inner.map(|inner| inner.split_once('/').ok_or(inner)) {
            Some(Ok((name, _))) => drop(names.insert(name.to_owned(), None)),
            Some(Err(name)) => drop(names.insert(name.to_owned(), Some(bytes.len() as u64))),
            None => {}
        }
    }
    names
}

fn check_listings(storage: &dyn Storage, root: &StoreKey) {
    let known = storage.know(root).expect("the root is a folder");
    for folder in FOLDERS {
        let due = names_in(folder);
        let listed = storage.list(&root.join(folder)).unwrap();
        assert!(listed.iter().map(|one| &one.name).eq(due.keys()), "the names in {folder:?}: {listed:?}");
        for (Listed { name, kind }, due) in listed.iter().zip(due.values()) {
            match (kind, due) {
                (ListedKind::Folder, None) | (ListedKind::Object { length: None }, Some(_)) => {}
                (ListedKind::Object { length: Some(length) }, Some(due)) if length == due => {}
                _ => panic!("{name} in {folder:?} is {kind:?}"),
            }
        }
        assert_eq!(storage.list_in(&known, folder).unwrap(), Some(listed), "{folder:?} in the known folder");
    }
    if let Some(below) = storage.list_below(root).unwrap() {
        let below: Vec<(String, u64)> = below.into_iter().map(|one| (one.path, one.length)).collect();
        let due: BTreeMap<_, _> =
            objects().into_iter().map(|(path, bytes)| (path.to_owned(), bytes.len() as u64)).collect();
        assert!(below.iter().map(|(path, length)| (path, length)).eq(&due), "all objects: {below:?}");
    }
    assert_eq!(storage.list(&root.join("a!")).unwrap(), [], "an object is no folder");
    let outcome = storage.list_in(&known, "a!");
    assert!(matches!(outcome, Err(Error::Damaged { .. })), "an object where a folder is expected: {outcome:?}");
}

fn check_objects(storage: &dyn Storage, root: &StoreKey) {
    let known = storage.know(root).unwrap();
    for (path, bytes) in objects() {
        let (key, length) = (root.join(path), bytes.len() as u64);
        assert_eq!(storage.length(&key).unwrap(), length, "the length of {path}");
        for most in [length, length + 1, u64::MAX] {
            assert!(storage.read(&key, most).unwrap() == bytes, "{path}, at most {most} bytes");
            assert!(storage.read_in(&known, path, most).unwrap() == bytes, "{path} in the known folder");
        }
        let Some(too_few) = length.checked_sub(1) else { continue };
        for outcome in [storage.read(&key, too_few), storage.read_in(&known, path, too_few)] {
            assert_placed(outcome.map(|read| read.len()), &key, "an object larger than allowed", |error| {
                matches!(error, Error::Damaged { .. })
            });
        }
        storage.forget(&key);
        assert!(storage.read(&key, length).unwrap() == bytes, "{path}, once forgotten");
    }
}

/// Checks ranges without an order, with overlaps, with small and with large gaps; and ranges past the end.
fn check_ranges(storage: &dyn Storage, key: &StoreKey) {
    let mut places: Vec<(usize, usize)> = (0..1500).map(|at| (at * 1999, 1 + at % 7)).collect();
    places.extend([(5, 100_000), (LARGE - 1, 1), (1_000_000, 0), (2_000_000, 999_999), (7, 3), (7, 3)]);
    places.reverse();
    let mut room: Vec<Vec<u8>> = places.iter().map(|&(_, length)| vec![0xff; length]).collect();
    let ranges = places.iter().zip(&mut room).map(|(&(offset, _), into)| ReadRange { offset: offset as u64, into });
    storage.read_ranges(key, &mut ranges.collect::<Vec<_>>()).unwrap();
    for (&(offset, length), read) in places.iter().zip(&room) {
        let due = (offset..offset + length).map(|at| (at % 251) as u8);
        assert!(read.iter().copied().eq(due), "{length} bytes at {offset}");
    }
    storage.read_ranges(key, &mut []).unwrap();
    for offset in [LARGE as u64 - 2, LARGE as u64, u64::MAX - 2, u64::MAX] {
        let outcome = storage.read_at(key, offset, &mut [0; 4]);
        assert_placed(
            outcome,
            key,
            "a range past the end",
            |error| matches!(error, Error::Damaged { place, .. } if place.offset == Some(offset)),
        );
    }
}

fn check_ends(storage: &dyn Storage, key: &StoreKey) {
    let due = |start: usize, end: usize| (start..end).map(|at| (at % 251) as u8).collect::<Vec<u8>>();
    for most in [1, 9, 100_000, LARGE, LARGE + 1] {
        let (read, length) = storage.read_end(key, most).unwrap();
        assert!(read == due(LARGE.saturating_sub(most), LARGE) && length == LARGE as u64, "the last {most} bytes");
        for offset in [0, 1, 999_999, LARGE - 1] {
            let (read, length) = storage.read_from(key, offset as u64, most).unwrap();
            let is_right = read == due(offset, LARGE.min(offset + most)) && length == LARGE as u64;
            assert!(is_right, "at most {most} bytes from {offset} on");
        }
    }
    let outcome = storage.read_from(key, LARGE as u64 + 1, 1).map(|(read, _)| read.len());
    assert_placed(outcome, key, "a start past the end", |error| matches!(error, Error::Damaged { .. }));
}

fn check_missing(storage: &dyn Storage, root: &StoreKey) {
    let known = storage.know(root).unwrap();
    for path in MISSING {
        let key = root.join(path);
        assert_eq!(storage.list(&key).unwrap(), [], "{path} lists as empty");
        assert_eq!(storage.list_in(&known, path).unwrap(), None, "{path} in the known folder");
        match storage.know(&key) {
            Ok(KnownFolder { identity: None, .. }) | Err(Error::Missing { .. }) => {}
            other => panic!("{path} is known: {other:?}"),
        }
        for outcome in reads(storage, &key) {
            assert_placed(outcome, &key, "a missing object", |error| matches!(error, Error::Missing { .. }));
        }
    }
    let folder = root.join("a");
    for outcome in reads(storage, &folder) {
        assert_placed(outcome, &folder, "a folder where an object is expected", |error| {
            matches!(error, Error::Missing { .. } | Error::Damaged { .. })
        });
    }
}

/// Reads an object by each method; returns how many bytes each one found.
fn reads(storage: &dyn Storage, key: &StoreKey) -> [Result<u64>; 6] {
    let (mut one, mut two) = ([0], [0]);
    let mut ranges = [ReadRange { offset: 9, into: &mut one }, ReadRange { offset: 0, into: &mut two }];
    [
        storage.length(key),
        storage.read(key, 1 << 20).map(|read| read.len() as u64),
        storage.read_at(key, 0, &mut [0; 4]).map(|()| 4),
        storage.read_ranges(key, &mut ranges).map(|()| 2),
        storage.read_from(key, 0, 4).map(|(read, _)| read.len() as u64),
        storage.read_end(key, 4).map(|(read, _)| read.len() as u64),
    ]
}

/// Checks that a cancelled request ends with that error, or with an answer if it does not have to end at once, and that
/// the storage then serves others.
fn check_cancellation(storage: &dyn Storage, root: &StoreKey, ends_at_once: bool) {
    let key = root.join("a/part");
    let token = Token::new();
    token.cancel();
    let outcomes = token.cover(|| {
        let listed = storage.list(&root.join("a")).map(|listed| listed.len() as u64);
        reads(storage, &key).into_iter().chain([listed]).collect::<Vec<_>>()
    });
    for (number, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Err(Error::Cancelled) => {}
            // A length may be known from an earlier request.
            Ok(_) if !ends_at_once || number == 0 => {}
            other => panic!("operation {number} of a cancelled request: {other:?}"),
        }
    }
    assert!(reads(storage, &key).iter().all(Result::is_ok), "the next request is not cancelled");
}

/// Checks that many threads may read at once.
fn check_threads(storage: &dyn Storage, root: &StoreKey) {
    let key = root.join(LARGE_OBJECT);
    let outcomes = map_waiting("conformance", 8, 0..64, |number: u64| {
        let (mut bytes, offset) = ([0; 100], number * 40_000);
        storage.read_at(&key, offset, &mut bytes).map(|()| (offset, bytes))
    });
    for outcome in outcomes {
        let (offset, bytes) = outcome.unwrap();
        assert!((offset..).map(|at| (at % 251) as u8).zip(bytes).all(|(due, read)| due == read), "from {offset} on");
    }
    assert!(storage.requests_at_once(&key) > 0);
}

/// Checks that a key has one canonical form and one identity, and that other keys have others.
fn check_keys(storage: &dyn Storage, root: &StoreKey) {
    let (key, other) = (root.join("a/part"), root.join("a/b/deep"));
    let around = root.join("a/b/../part");
    assert_eq!(storage.canonical(&around), storage.canonical(&key), "`..` leads to the folder around");
    assert_eq!(storage.canonical(&storage.canonical(&key)), storage.canonical(&key));
    assert_ne!(storage.canonical(&other), storage.canonical(&key));
    assert_eq!(storage.identity(&around).unwrap(), storage.identity(&key).unwrap());
    assert_ne!(storage.identity(&other).unwrap(), storage.identity(&key).unwrap());
    if let Some(same) = storage.key_of_uri(&root.to_string()) {
        assert_eq!(storage.canonical(&same), storage.canonical(root));
    }
    assert_eq!(storage.key_of_uri("http://host/array"), None, "a URI of no storage");
}

/// Checks that an operation fails with the expected kind of error, which names the key.
fn assert_placed<T: std::fmt::Debug>(
    outcome: Result<T>,
    key: &StoreKey,
    what: &str,
    is_expected: impl FnOnce(&Error) -> bool,
) {
    let Err(error) = outcome else { panic!("{what} is no error: {key} gives {outcome:?}") };
    let file = error.place().and_then(|place| place.file.clone()).unwrap_or_default();
    assert!(is_expected(&error) && file.contains(&key.shown_name()), "{what}, {key}: {error:?}");
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::{ListedObject, LocalStorage, MemoryStorage, SimulatedStorage};

    fn in_memory() -> (MemoryStorage, StoreKey) {
        let (storage, root) = (MemoryStorage::new(), StoreKey::from("/bucket/conformance"));
        objects().into_iter().for_each(|(path, bytes)| storage.put(root.join(path), bytes));
        (storage, root)
    }

    #[test]
    fn objects_in_memory_conform() {
        let (storage, root) = in_memory();
        storage.put("/bucket/conformance2/a/other".into(), *b"no part of the folder");
        check(&storage, &root);
    }

    #[test]
    fn local_folders_conform() {
        let folder = tempfile::tempdir().unwrap();
        for (path, bytes) in objects() {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        check(&LocalStorage::new(), &folder.path().into());
    }

    #[test]
    fn a_simulated_remote_storage_conforms() {
        let (storage, root) = in_memory();
        check(&SimulatedStorage::new(Arc::new(storage), Duration::from_millis(1)), &root);
    }

    /// A way in which a storage is wrong.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Flaw {
        Nothing,
        NamesInReverse,
        FoldersAreObjects,
        ObjectsAreFolders,
        WrongListedLength,
        LessBelow,
        MissingIsEmpty,
        NoPlace,
        WrongLength,
        WrongByte,
        ZerosPastTheEnd,
        EndAtTheFront,
        NeverCancelled,
    }

    /// Objects in memory, with a flaw.
    struct Flawed(MemoryStorage, Flaw);

    impl Storage for Flawed {
        fn list(&self, folder: &StoreKey) -> Result<Vec<Listed>> {
            let mut listed = self.0.list(folder)?;
            match self.1 {
                Flaw::NamesInReverse => listed.reverse(),
                Flaw::FoldersAreObjects => {
                    listed.iter_mut().for_each(|one| one.kind = ListedKind::Object { length: None });
                }
                Flaw::ObjectsAreFolders => listed.iter_mut().for_each(|one| one.kind = ListedKind::Folder),
                Flaw::WrongListedLength => listed
                    .iter_mut()
                    .filter(|one| !one.is_folder())
                    .for_each(|one| one.kind = ListedKind::Object { length: Some(12345) }),
                _ => {}
            }
            Ok(listed)
        }

        fn list_below(&self, folder: &StoreKey) -> Result<Option<Vec<ListedObject>>> {
            let mut below = self.0.list_below(folder)?;
            if let (Flaw::LessBelow, Some(below)) = (self.1, &mut below) {
                below.pop();
            }
            Ok(below)
        }

        fn length(&self, key: &StoreKey) -> Result<u64> {
            match (self.0.length(key), self.1) {
                (Ok(length), Flaw::WrongLength) => Ok(length + 1),
                (Err(_), Flaw::MissingIsEmpty) => Ok(0),
                (Err(_), Flaw::NoPlace) => Err(Error::missing("gone")),
                (outcome, _) => outcome,
            }
        }

        fn read_ranges(&self, key: &StoreKey, ranges: &mut [ReadRange<'_>]) -> Result<()> {
            match (self.0.read_ranges(key, ranges), self.1) {
                (Ok(()), Flaw::WrongByte) => {
                    ranges.iter_mut().filter_map(|range| range.into.last_mut()).take(1).for_each(|byte| *byte ^= 1);
                    Ok(())
                }
                (Err(Error::Damaged { .. }), Flaw::ZerosPastTheEnd) => Ok(()),
                (outcome, _) => outcome,
            }
        }

        fn read_from(&self, key: &StoreKey, offset: u64, most: usize) -> Result<(Vec<u8>, u64)> {
            self.0.read_from(key, offset, most)
        }

        fn read_end(&self, key: &StoreKey, most: usize) -> Result<(Vec<u8>, u64)> {
            match self.1 {
                Flaw::EndAtTheFront => self.0.read_from(key, 0, most),
                _ => self.0.read_end(key, most),
            }
        }

        fn is_remote(&self, _: &StoreKey) -> bool {
            self.1 == Flaw::NeverCancelled
        }

        fn canonical(&self, key: &StoreKey) -> StoreKey {
            self.0.canonical(key)
        }
    }

    #[test]
    fn each_flaw_is_found() {
        let outcome = |flaw: Flaw| {
            let (storage, root) = in_memory();
            catch_unwind(AssertUnwindSafe(|| check(&Flawed(storage, flaw), &root)))
        };
        assert!(outcome(Flaw::Nothing).is_ok());
        for flaw in [
            Flaw::NamesInReverse,
            Flaw::FoldersAreObjects,
            Flaw::ObjectsAreFolders,
            Flaw::WrongListedLength,
            Flaw::LessBelow,
            Flaw::MissingIsEmpty,
            Flaw::NoPlace,
            Flaw::WrongLength,
            Flaw::WrongByte,
            Flaw::ZerosPastTheEnd,
            Flaw::EndAtTheFront,
            Flaw::NeverCancelled,
        ] {
            assert!(outcome(flaw).is_err(), "{flaw:?} passes");
        }
    }
}
