//! What is in an array's folder and in the folders below, asked for with as few requests as the storage allows.

use std::collections::BTreeMap;

use super::timed_files::names_in;
use crate::error::Result;
use crate::storage::{Listed, ListedKind, ListedObject, Storage, StoreKey};

/// The names below a folder. Memory: where the storage lists all objects at once those, a thousand or so; else the names
/// in the folder itself.
#[derive(Debug)]
pub struct FolderListing {
    root: StoreKey,
    top: Vec<Listed>,
    /// By path in byte order; `None` where each folder is listed by itself.
    below: Option<Vec<ListedObject>>,
}

impl FolderListing {
    /// Lists a folder, and what is below where that is one request.
    ///
    /// # Errors
    /// As [`Storage::list`].
    pub fn read(storage: &dyn Storage, root: &StoreKey) -> Result<Self> {
        let below = storage.list_below(root)?;
        let top = match &below {
            Some(objects) => names_below(objects, ""),
            None => storage.list(root)?,
        };
        Ok(FolderListing { root: root.clone(), top, below })
    }

    /// The folder.
    pub fn root(&self) -> &StoreKey {
        &self.root
    }

    /// The names in the folder itself, in byte order.
    pub fn top(&self) -> &[Listed] {
        &self.top
    }

    /// The names in a folder below, in byte order; none where there is no such folder. Where its own name is known to be
    /// missing nothing is asked.
    ///
    /// # Errors
    /// As [`names_in`].
    pub fn names(&self, storage: &dyn Storage, path: &str) -> Result<Vec<Listed>> {
        let first = path.split('/').next().unwrap_or(path);
        if !self.top.iter().any(|one| one.name == first) {
            return Ok(Vec::new());
        }
        match &self.below {
            Some(objects) => Ok(names_below(objects, path)),
            None => names_in(storage, &self.root.join(path)),
        }
    }
}

/// The names in a folder, of objects by path in byte order.
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

    use super::*;
    use crate::storage::{MemoryStorage, SimulatedStorage};

    #[test]
    fn one_request_tells_what_a_listing_of_each_folder_tells() {
        let (memory, root) = (MemoryStorage::new(), StoreKey::from("s3://bucket/array"));
        for path in ["a", "a/b/c", "a!", "d/e", "d/f/g", "d-/h"] {
            memory.put(root.join(path), [0; 3]);
        }
        let storage = SimulatedStorage::new(Arc::new(memory.clone()), Duration::ZERO);
        let listing = FolderListing::read(&storage, &root).unwrap();
        assert_eq!(listing.top(), memory.list(&root).unwrap());
        for folder in ["a", "a/b", "d", "d/f", "d-", "none", "d/none"] {
            assert_eq!(listing.names(&storage, folder).unwrap(), memory.list(&root.join(folder)).unwrap(), "{folder}");
        }
        assert_eq!(storage.take_requests().len(), 1);
        // More objects than one answer has.
        (0..1000).for_each(|number| memory.put(root.join(format!("many/{number}")), []));
        let storage = SimulatedStorage::new(Arc::new(memory), Duration::ZERO);
        let listing = FolderListing::read(&storage, &root).unwrap();
        assert_eq!((listing.top().len(), listing.names(&storage, "many").unwrap().len()), (5, 1000));
        assert!(listing.names(&storage, "none").unwrap().is_empty());
        assert_eq!(storage.take_requests().len(), 3);
    }
}
