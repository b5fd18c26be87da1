//! The files of a column that its reads have needed.

use std::sync::{Mutex, PoisonError};

use foldhash::HashMap;
use tilefs_format::error::Result;

use crate::storage::{Storage, StoreKey, is_far, together};

/// Files of so many fragments are kept at hand.
const MOST: usize = 64;

/// The files of a column, by fragment, resolved once. Memory: those of at most [`MOST`] fragments.
pub struct OpenFiles<T> {
    files: Mutex<HashMap<usize, T>>,
}

impl<T: Clone> OpenFiles<T> {
    pub fn new() -> Self {
        OpenFiles { files: Mutex::default() }
    }

    /// Opens the files of some fragments that are not at hand, all at once, where requests for the array's `path` are
    /// waits. [`OpenFiles::get_or_open`] gives the error of one that cannot be opened.
    pub fn open_ahead(
        &self,
        storage: &dyn Storage,
        path: &StoreKey,
        fragments: impl Iterator<Item = usize>,
        open: impl Fn(usize) -> Result<T> + Send + Sync,
    ) where
        T: Send,
    {
        if !is_far(storage, path) {
            return;
        }
        let missing: Vec<usize> = {
            let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
            fragments.filter(|fragment| !files.contains_key(fragment)).take(MOST).collect()
        };
        if missing.len() > 1 {
            together(storage, path, missing, |fragment| drop(self.get_or_open(fragment, || open(fragment))));
        }
    }

    /// The file of a fragment, opened now if it is not at hand.
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
        if files.len() >= MOST {
            files.clear();
        }
        files.insert(fragment, file.clone());
        Ok(file)
    }
}
