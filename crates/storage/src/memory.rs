//! Objects in memory, for tests and for callers that hold an array's bytes.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::{fs, io};

use tilefs_base::error::{Error, Locate, Result};

use super::local::entries::for_each_entry;
use super::ranges::ReadRange;
use super::{Listed, ListedKind, ListedObject, Storage, StoreKey, past_end};

/// With more objects than this, a listing takes several requests, as in an object store.
const MOST_LISTED_AT_ONCE: usize = 1000;

/// Objects by key, with the semantics of an object store: a folder is a prefix of keys, so none is empty. Clones share
/// the objects until one is changed.
#[derive(Debug, Default)]
pub struct MemoryStorage {
    objects: RwLock<BTreeMap<StoreKey, StoredObject>>,
}

/// Bytes followed by zeros up to a length, like a file with a hole.
#[derive(Debug, Clone)]
struct StoredObject {
    bytes: Arc<[u8]>,
    length: u64,
}

impl MemoryStorage {
    /// Creates an empty storage.
    pub fn new() -> Self {
        Self::default()
    }

    /// Loads the files below a local folder, under the key `root`.
    ///
    /// # Errors
    /// The errors of the file system.
    pub fn load(folder: &Path, root: &StoreKey) -> io::Result<Self> {
        let storage = MemoryStorage::new();
        storage.load_folder(folder, root)?;
        Ok(storage)
    }

    fn load_folder(&self, folder: &Path, root: &StoreKey) -> io::Result<()> {
        let mut names = Vec::new();
        for_each_entry(fs::File::open(folder)?, |name, _| {
            names.push(name.to_owned());
            Ok(())
        })?;
        for name in names {
            let (path, key) = (folder.join(OsStr::from_bytes(name.to_bytes())), root.join(name.to_bytes()));
            match fs::metadata(&path)?.is_dir() {
                true => self.load_folder(&path, &key)?,
                false => self.put(key, fs::read(path)?),
            }
        }
        Ok(())
    }

    /// Stores an object, replacing any previous one.
    pub fn put(&self, key: StoreKey, bytes: impl Into<Arc<[u8]>>) {
        let bytes = bytes.into();
        let length = bytes.len() as u64;
        self.put_with_hole(key, bytes, length);
    }

    /// Stores an object of `length` bytes; the zeros after the given bytes take no memory.
    pub fn put_with_hole(&self, key: StoreKey, bytes: impl Into<Arc<[u8]>>, length: u64) {
        self.write().insert(key, StoredObject { bytes: bytes.into(), length });
    }

    /// Removes an object; returns whether it existed.
    pub fn remove(&self, key: &StoreKey) -> bool {
        self.write().remove(key).is_some()
    }

    /// Returns the bytes of an object, without the hole at its end.
    pub fn bytes(&self, key: &StoreKey) -> Option<Arc<[u8]>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner).get(key).map(|object| object.bytes.clone())
    }

    /// Returns all keys in order.
    pub fn keys(&self) -> Vec<StoreKey> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<StoreKey, StoredObject>> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn object(&self, key: &StoreKey) -> Result<StoredObject> {
        let object = self.objects.read().unwrap_or_else(PoisonError::into_inner).get(&self.canonical(key)).cloned();
        object.ok_or_else(|| Error::missing("there is no such object").in_file(key))
    }

    /// Lists the path and length of each object below a folder.
    fn below(&self, folder: &StoreKey) -> Vec<ListedObject> {
        let folder = self.canonical(folder);
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        let from = objects.range(folder.clone()..);
        // Everything that sorts between a folder and its contents starts with its name.
        let near = from.take_while(|(key, _)| key.as_bytes().starts_with(folder.as_bytes()));
        let below = near.filter_map(|(key, object)| {
            let path = str::from_utf8(key.below(&folder)?).ok()?.to_owned();
            Some(ListedObject { path, length: object.length })
        });
        below.collect()
    }
}

impl Clone for MemoryStorage {
    fn clone(&self) -> Self {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner).clone();
        MemoryStorage { objects: RwLock::new(objects) }
    }
}

impl StoredObject {
    fn read(&self, range: &mut ReadRange<'_>) -> Result<()> {
        if range.end() > self.length {
            return Err(past_end(self.length, range));
        }
        let start = usize::try_from(range.offset).unwrap_or(usize::MAX).min(self.bytes.len());
        let there = &self.bytes[start..self.bytes.len().min(start.saturating_add(range.into.len()))];
        let (front, hole) = range.into.split_at_mut(there.len());
        front.copy_from_slice(there);
        hole.fill(0);
        Ok(())
    }
}

impl Storage for MemoryStorage {
    fn list(&self, folder: &StoreKey) -> Result<Vec<Listed>> {
        let mut names: BTreeMap<String, ListedKind> = BTreeMap::new();
        for object in self.below(folder) {
            match object.path.split_once('/') {
                Some((name, _)) => names.insert(name.to_owned(), ListedKind::Folder),
                None => names.insert(object.path, ListedKind::Object { length: Some(object.length) }),
            };
        }
        Ok(names.into_iter().map(|(name, kind)| Listed { name, kind }).collect())
    }

    fn list_below(&self, folder: &StoreKey) -> Result<Option<Vec<ListedObject>>> {
        let below = self.below(folder);
        Ok((below.len() <= MOST_LISTED_AT_ONCE).then_some(below))
    }

    fn length(&self, key: &StoreKey) -> Result<u64> {
        Ok(self.object(key)?.length)
    }

    fn read_ranges(&self, key: &StoreKey, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        let object = self.object(key)?;
        ranges.iter_mut().try_for_each(|range| object.read(range)).in_file(key)
    }

    fn read_from(&self, key: &StoreKey, offset: u64, most: usize) -> Result<(Vec<u8>, u64)> {
        let object = self.object(key)?;
        let available = object.length.checked_sub(offset);
        let available =
            available.ok_or_else(|| past_end(object.length, &ReadRange { offset, into: &mut [] }).in_file(key))?;
        let mut bytes = vec![0; usize::try_from(available).map_or(most, |available| available.min(most))];
        object.read(&mut ReadRange { offset, into: &mut bytes }).in_file(key)?;
        Ok((bytes, object.length))
    }

    fn read_end(&self, key: &StoreKey, most: usize) -> Result<(Vec<u8>, u64)> {
        let length = self.length(key)?;
        self.read_from(key, length.saturating_sub(most as u64), most)
    }

    /// Resolves `..`, which no object store knows.
    fn canonical(&self, key: &StoreKey) -> StoreKey {
        if !key.as_bytes().split(|&byte| byte == b'/').any(|name| name == b"..") {
            return key.clone();
        }
        let mut plain: Vec<&[u8]> = Vec::new();
        for name in key.as_bytes().split(|&byte| byte == b'/') {
            match name {
                b".." => drop(plain.pop()),
                name => plain.push(name),
            }
        }
        String::from_utf8_lossy(&plain.join(&b'/')).as_ref().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_end_with_holes_and_can_be_removed() {
        let storage = MemoryStorage::new();
        let key = StoreKey::from("s3://bucket/array/a");
        storage.put_with_hole(key.clone(), *b"12", 4);
        assert_eq!(storage.read(&key.join("../a"), 9).unwrap(), b"12\0\0");
        assert!(storage.remove(&key) && !storage.remove(&key));
        assert!(storage.list(&"s3://bucket/array".into()).unwrap().is_empty());
    }
}
