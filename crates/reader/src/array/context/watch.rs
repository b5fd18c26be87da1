//! Fingerprints of the folders of opened arrays and groups, to find out later whether something in them has changed.
//!
//! [`group::changes`](crate::group::changes) takes the fingerprints and compares them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tilefs_format::folder::ObjectKind;
use tilefs_storage::StoreKey;

/// Fingerprints by folder, from [`FolderWatch::begin`] on. Memory: about 100 bytes and the path for each opened folder.
#[derive(Default)]
pub struct FolderWatch {
    /// `None` until [`FolderWatch::begin`].
    seen: Mutex<Option<HashMap<StoreKey, Fingerprint>>>,
}

/// The content of a folder: the kind of object, and a hash of the names in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    /// The kind of object, if the folder holds an array or a group.
    pub kind: Option<ObjectKind>,
    /// A hash of the names in the folder.
    pub names: u64,
}

impl FolderWatch {
    /// Starts recording the folders that are opened.
    pub fn begin(&self) {
        self.lock().get_or_insert_default();
    }

    /// Returns whether recording has begun and there is no fingerprint of a folder yet.
    pub fn wants(&self, folder: &StoreKey) -> bool {
        self.lock().as_ref().is_some_and(|seen| !seen.contains_key(folder))
    }

    /// Records a fingerprint, unless there is one of the folder already.
    pub fn add(&self, folder: &StoreKey, fingerprint: Fingerprint) {
        if let Some(seen) = self.lock().as_mut() {
            seen.entry(folder.clone()).or_insert(fingerprint);
        }
    }

    /// Returns all fingerprints; `None` before [`FolderWatch::begin`].
    pub fn seen(&self) -> Option<HashMap<StoreKey, Fingerprint>> {
        self.lock().clone()
    }

    /// Forgets folders that will be opened again, or all folders.
    pub fn forget(&self, folders: Option<&[StoreKey]>) {
        if let Some(seen) = self.lock().as_mut() {
            match folders {
                Some(folders) => seen.retain(|folder, _| !folders.contains(folder)),
                None => seen.clear(),
            }
        }
    }

    /// Returns the groups that were opened.
    pub fn groups(&self) -> Vec<StoreKey> {
        let seen = self.lock();
        let groups = seen.iter().flatten().filter(|(_, seen)| seen.kind == Some(ObjectKind::Group));
        groups.map(|(folder, _)| folder.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Option<HashMap<StoreKey, Fingerprint>>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
