//! The names in an array's folder and in the folders below it, requested with as few requests as the storage allows.

use std::collections::BTreeMap;

use tilefs_base::error::Result;
use tilefs_storage::{KnownFolder, Listed, ListedKind, ListedObject, Storage, StoreKey, no_folder, together};

/// The names below a folder. Memory: all objects if the storage lists them at once (a thousand or so), else the names
/// in the folder itself.
#[derive(Debug)]
pub struct FolderListing {
    folder: KnownFolder,
    top: Vec<Listed>,
    /// Sorted by path in byte order; `None` if each folder has to be listed separately.
    below: Option<Vec<ListedObject>>,
}

impl FolderListing {
    /// Lists a folder, and everything below it if that takes only one request.
    ///
    /// # Errors
    /// As [`Storage::list`]; [`Error::Missing`](tilefs_base::error::Error::Missing) if a local storage has no such
    /// folder.
    pub fn read(storage: &dyn Storage, root: &StoreKey) -> Result<Self> {
        let below = storage.list_below(root)?;
        let folder = storage.know(root)?;
        let top = match &below {
            Some(objects) => names_below(objects, ""),
            None => storage.list_in(&folder, "")?.unwrap_or_default(),
        };
        Ok(FolderListing { folder, top, below })
    }

    /// Returns the folder.
    pub fn root(&self) -> &StoreKey {
        &self.folder.key
    }

    /// Returns the folder with its identity at the time of the listing.
    pub fn folder(&self) -> &KnownFolder {
        &self.folder
    }

    /// Returns the names in the folder itself, in byte order.
    pub fn top(&self) -> &[Listed] {
        &self.top
    }

    /// Returns the names in a folder below, in byte order. If the listing lacks the first name of its path, returns
    /// none, in an object store without a request; a local folder is looked up, because the listing of a stale folder
    /// may lack it. A folder that was listed and has disappeared is never taken for an empty one.
    ///
    /// # Errors
    /// As [`Storage::list_in`]; [`Error::Missing`](tilefs_base::error::Error::Missing) if there is no such folder
    /// although the listing has its name, or that of a folder around it.
    pub fn names(&self, storage: &dyn Storage, path: &str) -> Result<Vec<Listed>> {
        let (first, is_deeper) = path.split_once('/').map_or((path, false), |(first, _)| (first, true));
        let listed = self.top.iter().find(|one| one.name == first);
        let Some(objects) = &self.below else {
            return match listed.is_some() || self.folder.identity.is_some() {
                true => match storage.list_in(&self.folder, path)? {
                    None if listed.is_some() => Err(self.folder.vanished(path)),
                    names => Ok(names.unwrap_or_default()),
                },
                false => Ok(Vec::new()),
            };
        };
        let Some(listed) = listed else { return Ok(Vec::new()) };
        if !listed.is_folder() {
            return Err(no_folder(&self.folder.key.join(first)));
        }
        match names_below(objects, path) {
            names if names.is_empty() && is_deeper => Err(self.folder.vanished(path)),
            names => Ok(names),
        }
    }

    /// Returns the names in several folders below, like [`FolderListing::names`]. If requests have latency, the folders
    /// are listed concurrently.
    pub(crate) fn names_of(&self, storage: &dyn Storage, paths: &[&str]) -> Vec<Result<Vec<Listed>>> {
        match self.below.is_none() && storage.is_remote(self.root()) {
            true => together(storage, self.root(), paths.to_vec(), |path| self.names(storage, path)),
            false => paths.iter().map(|path| self.names(storage, path)).collect(),
        }
    }

    /// Fails if another folder has replaced the listed one.
    ///
    /// # Errors
    /// [`Error::Missing`](tilefs_base::error::Error::Missing) if it was replaced, and as [`Storage::know`].
    pub fn check_in_place(&self, storage: &dyn Storage) -> Result<()> {
        if storage.know(&self.folder.key)? == self.folder { Ok(()) } else { Err(self.folder.replaced()) }
    }
}

/// Returns the names in a folder from objects sorted by path in byte order.
fn names_below(objects: &[ListedObject], folder: &str) -> Vec<Listed> {
    let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    let from = objects.partition_point(|object| object.path < prefix);
    let inside = objects[from..].iter().map_while(|object| Some((object.path.strip_prefix(&prefix)?, object.length)));
    let mut names: BTreeMap<&str, ListedKind> = BTreeMap::new();
    for (path, length) in inside {
        match path.split_once('/') {
            Some((name, _)) => names.insert(name, ListedKind::Folder),
            None => names.insert(path, ListedKind::Object { length: Some(length) }),
        };
    }
    names.into_iter().map(|(name, kind)| Listed { name: name.to_owned(), kind }).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tilefs_base::error::Error;
    use tilefs_storage::{MemoryStorage, SimulatedStorage};

    use super::*;

    #[test]
    fn one_request_equals_a_listing_of_each_folder() {
        let (memory, root) = (MemoryStorage::new(), StoreKey::from("s3://bucket/array"));
        for path in ["a", "a/b/c", "a!", "d/e", "d/f/g", "d-/h"] {
            memory.put(root.join(path), [0; 3]);
        }
        let storage = SimulatedStorage::new(Arc::new(memory.clone()), Duration::ZERO);
        let listing = FolderListing::read(&storage, &root).unwrap();
        assert_eq!(listing.top(), memory.list(&root).unwrap());
        for folder in ["a", "a/b", "d", "d/f", "d-", "none"] {
            assert_eq!(listing.names(&storage, folder).unwrap(), memory.list(&root.join(folder)).unwrap(), "{folder}");
        }
        assert!(matches!(listing.names(&storage, "d/none"), Err(Error::Missing { .. })));
        assert!(matches!(listing.names(&storage, "a!"), Err(Error::Damaged { .. })));
        assert_eq!(storage.take_requests().len(), 1);
        // More objects than one response contains.
        (0..1000).for_each(|number| memory.put(root.join(format!("many/{number}")), []));
        let storage = SimulatedStorage::new(Arc::new(memory), Duration::ZERO);
        let listing = FolderListing::read(&storage, &root).unwrap();
        assert_eq!((listing.top().len(), listing.names(&storage, "many").unwrap().len()), (5, 1000));
        assert!(listing.names(&storage, "none").unwrap().is_empty());
        assert_eq!(storage.take_requests().len(), 3);
    }
}
