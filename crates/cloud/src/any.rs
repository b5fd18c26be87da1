//! The local file system and object stores behind one interface; the key selects one. A group on a local disk may have
//! members in buckets.

use std::sync::{Arc, OnceLock};

use tilefs_base::error::{Locate, Result};
use tilefs_storage::{
    KnownFolder, Listed, ListedObject, LocalStorage, ObjectStores, ReadRange, Storage, StoreKey, is_object_uri,
};

use crate::object_storage::ObjectStorage;
use crate::settings::CloudOptions;
use crate::uri;

/// The local file system, and object stores, which are initialized on first use.
pub struct AnyStorage {
    local: LocalStorage,
    options: CloudOptions,
    stores: OnceLock<ObjectStorage>,
}

impl AnyStorage {
    /// Creates a storage that reaches object stores with `options`.
    pub fn new(local: LocalStorage, options: CloudOptions) -> Self {
        AnyStorage { local, options, stores: OnceLock::new() }
    }

    /// Returns the storage of a key.
    ///
    /// # Errors
    /// As [`ObjectStorage::new`].
    fn of(&self, key: &StoreKey) -> Result<&dyn Storage> {
        if !is_remote(key) {
            return Ok(&self.local);
        }
        if let Some(stores) = self.stores.get() {
            return Ok(stores);
        }
        let made = ObjectStorage::new(self.options.clone()).in_file(key)?;
        // If another thread was faster, drop this one.
        Ok(self.stores.get_or_init(|| made))
    }
}

impl ObjectStores for CloudOptions {
    fn alone(&self) -> Result<Arc<dyn Storage>> {
        Ok(Arc::new(ObjectStorage::new(self.clone())?))
    }

    fn beside(&self, local: LocalStorage) -> Arc<dyn Storage> {
        Arc::new(AnyStorage::new(local, self.clone()))
    }
}

fn is_remote(key: &StoreKey) -> bool {
    // Local paths are absolute.
    !key.as_bytes().starts_with(b"/") && str::from_utf8(key.as_bytes()).is_ok_and(is_object_uri)
}

impl Storage for AnyStorage {
    fn allow(&self, folder: &StoreKey) {
        self.local.allow(folder);
    }

    fn list(&self, folder: &StoreKey) -> Result<Vec<Listed>> {
        self.of(folder)?.list(folder)
    }

    fn list_below(&self, folder: &StoreKey) -> Result<Option<Vec<ListedObject>>> {
        self.of(folder)?.list_below(folder)
    }

    fn know(&self, folder: &StoreKey) -> Result<KnownFolder> {
        self.of(folder)?.know(folder)
    }

    fn list_in(&self, root: &KnownFolder, path: &str) -> Result<Option<Vec<Listed>>> {
        self.of(&root.key)?.list_in(root, path)
    }

    fn read_in(&self, root: &KnownFolder, path: &str, most: u64) -> Result<Vec<u8>> {
        self.of(&root.key)?.read_in(root, path, most)
    }

    fn forget(&self, key: &StoreKey) {
        if let Ok(storage) = self.of(key) {
            storage.forget(key);
        }
    }

    fn read(&self, key: &StoreKey, most: u64) -> Result<Vec<u8>> {
        self.of(key)?.read(key, most)
    }

    fn absence(&self, folder: &StoreKey) -> Option<String> {
        if is_remote(folder) { None } else { self.local.absence(folder) }
    }

    fn length(&self, key: &StoreKey) -> Result<u64> {
        self.of(key)?.length(key)
    }

    fn read_ranges(&self, key: &StoreKey, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        self.of(key)?.read_ranges(key, ranges)
    }

    fn read_from(&self, key: &StoreKey, offset: u64, most: usize) -> Result<(Vec<u8>, u64)> {
        self.of(key)?.read_from(key, offset, most)
    }

    fn read_end(&self, key: &StoreKey, most: usize) -> Result<(Vec<u8>, u64)> {
        self.of(key)?.read_end(key, most)
    }

    fn is_remote(&self, key: &StoreKey) -> bool {
        is_remote(key)
    }

    fn requests_at_once(&self, key: &StoreKey) -> usize {
        // An initialization error is reported by the read itself.
        self.of(key).map_or(1, |storage| storage.requests_at_once(key))
    }

    fn key_of_uri(&self, uri: &str) -> Option<StoreKey> {
        if is_object_uri(uri) { Some(uri.into()) } else { self.local.key_of_uri(uri) }
    }

    fn identity(&self, key: &StoreKey) -> Result<String> {
        self.of(key)?.identity(key)
    }

    fn canonical(&self, key: &StoreKey) -> StoreKey {
        if is_remote(key) { uri::canonical(key) } else { self.local.canonical(key) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Settings;

    #[test]
    fn buckets_are_far_however_many_requests_are_allowed() {
        for most in ["1", "1024"] {
            let mut settings = Settings::default();
            settings.set_typed("vfs.s3.max_parallel_ops", most).unwrap();
            let options =
                CloudOptions { settings, anonymous: true, io_timeout: Duration::from_secs(1), disk_cache: None };
            let storage = AnyStorage::new(LocalStorage::new(), options);
            let bucket = "s3://bucket/array".into();
            assert!(storage.is_remote(&bucket) && !storage.is_remote(&"/array".into()));
            assert_eq!(storage.requests_at_once(&bucket).to_string(), most);
        }
    }
}
