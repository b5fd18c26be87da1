//! An open file of a server, with the state of its reader between requests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tilefs_base::content::Content;
use tilefs_vfs::read_ahead::{ReadAhead, Reader};

/// An open file. It keeps the prefetching state of a reader between requests, because programs read a file with many
/// requests for a range each, mostly in sequence.
pub struct ServedFile {
    pub content: Arc<dyn Content>,
    read_ahead: Arc<ReadAhead>,
    /// The reader, unless a request is using it.
    reader: Mutex<Option<Arc<Reader>>>,
}

impl ServedFile {
    pub fn new(content: Arc<dyn Content>, read_ahead: Arc<ReadAhead>) -> Self {
        ServedFile { content, read_ahead, reader: Mutex::default() }
    }

    pub fn length(&self) -> u64 {
        self.content.len()
    }

    /// Locks the reader.
    pub fn reader(&self) -> MutexGuard<'_, Option<Arc<Reader>>> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ServedFile {
    fn drop(&mut self) {
        if let Some(reader) = self.reader().take() {
            self.read_ahead.close(&reader);
        }
    }
}
