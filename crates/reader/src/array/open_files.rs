//! The files of a column that its reads have needed.

use std::sync::{Mutex, PoisonError};

use foldhash::HashMap;

use tilefs_format::error::Result;

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
