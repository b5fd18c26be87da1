//! The files of a column that reads have opened.

use std::sync::{Mutex, PoisonError};

use foldhash::HashMap;
use tilefs_base::error::Result;
use tilefs_storage::{Storage, StoreKey, together};

/// Files of at most this number of fragments are kept.
const MAX_FILES: usize = 64;

/// The files of a column by fragment, each resolved once. Memory: the files of at most [`MAX_FILES`] fragments.
pub struct OpenFiles<T> {
    files: Mutex<HashMap<usize, T>>,
}

impl<T: Clone> OpenFiles<T> {
    pub fn new() -> Self {
        OpenFiles { files: Mutex::default() }
    }

    /// Opens the files of several fragments concurrently, unless they are already open or requests for the array's
    /// `path` have no latency. Later, [`OpenFiles::get_or_open`] returns the error of a file that could not be opened.
    pub fn open_ahead(
        &self,
        storage: &dyn Storage,
        path: &StoreKey,
        fragments: impl Iterator<Item = usize>,
        open: impl Fn(usize) -> Result<T> + Send + Sync,
    ) where
        T: Send,
    {
        if !storage.is_remote(path) {
            return;
        }
        let missing: Vec<usize> = {
            let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
            fragments.filter(|fragment| !files.contains_key(fragment)).take(MAX_FILES).collect()
        };
        if missing.len() > 1 {
            together(storage, path, missing, |fragment| drop(self.get_or_open(fragment, || open(fragment))));
        }
    }

    /// Returns the file of a fragment, and opens it first if necessary.
    ///
    /// # Errors
    /// Those of `open`.
    pub fn get_or_open(&self, fragment: usize, open: impl FnOnce() -> Result<T>) -> Result<T> {
        let lock = || self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = lock().get(&fragment) {
            return Ok(file.clone());
        }
        let file = open()?;
        let mut files = lock();
        if files.len() >= MAX_FILES {
            files.clear();
        }
        files.insert(fragment, file.clone());
        Ok(file)
    }
}
