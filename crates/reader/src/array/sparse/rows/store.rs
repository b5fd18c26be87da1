//! Keeps computed data: in memory up to a limit, beyond it in a temporary file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use tilefs_base::error::{Error, Locate, Result};

/// A store of blobs, each written once.
pub struct SpillStore {
    limit: usize,
    in_memory: AtomicUsize,
    spilled: Mutex<Option<Spilled>>,
}

/// Where a blob is.
#[derive(Debug)]
pub enum Blob {
    Memory(Box<[u8]>),
    File { offset: u64, length: u32 },
}

impl Blob {
    /// Returns its length in bytes.
    pub fn length(&self) -> usize {
        match self {
            Blob::Memory(bytes) => bytes.len(),
            Blob::File { length, .. } => *length as usize,
        }
    }
}

struct Spilled {
    file: std::sync::Arc<File>,
    length: u64,
}

impl SpillStore {
    /// Returns a store that keeps at most `limit` bytes in memory.
    pub fn new(limit: usize) -> Self {
        SpillStore { limit, in_memory: AtomicUsize::new(0), spilled: Mutex::new(None) }
    }

    /// Stores a blob of less than 4 GiB.
    ///
    /// # Errors
    /// [`Error::Io`] if there is no room for temporary files.
    pub fn put(&self, bytes: Vec<u8>) -> Result<Blob> {
        let before = self.in_memory.fetch_add(bytes.len(), Ordering::Relaxed);
        if before.saturating_add(bytes.len()) <= self.limit {
            return Ok(Blob::Memory(bytes.into()));
        }
        self.in_memory.fetch_sub(bytes.len(), Ordering::Relaxed);
        let length = u32::try_from(bytes.len()).map_err(|_| Error::unsupported("4 GiB to be kept in one piece"))?;
        let (file, offset) = {
            let mut spilled = self.spilled.lock().unwrap_or_else(PoisonError::into_inner);
            let spilled = match &mut *spilled {
                Some(spilled) => spilled,
                none => {
                    none.insert(Spilled { file: std::sync::Arc::new(tempfile::tempfile().map_err(failed)?), length: 0 })
                }
            };
            let offset = spilled.length;
            spilled.length += u64::from(length);
            (spilled.file.clone(), offset)
        };
        file.write_all_at(&bytes, offset).map_err(failed)?;
        Ok(Blob::File { offset, length })
    }

    /// Returns the bytes of a blob. Reads them into `buffer` if they are in the file.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be read.
    pub fn get<'a>(&self, blob: &'a Blob, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        match blob {
            Blob::Memory(bytes) => Ok(bytes),
            Blob::File { offset, length } => {
                buffer.resize(*length as usize, 0);
                let file = {
                    let spilled = self.spilled.lock().unwrap_or_else(PoisonError::into_inner);
                    spilled.as_ref().map(|spilled| spilled.file.clone())
                };
                let file = file.ok_or_else(|| Error::internal("what was kept is gone"))?;
                file.read_exact_at(buffer, *offset).map_err(failed)?;
                Ok(buffer)
            }
        }
    }

    /// Returns the number of bytes in memory, and the number of bytes in the temporary file.
    pub fn sizes(&self) -> (usize, u64) {
        let spilled = self.spilled.lock().unwrap_or_else(PoisonError::into_inner);
        (self.in_memory.load(Ordering::Relaxed), spilled.as_ref().map_or(0, |spilled| spilled.length))
    }
}

/// Converts an error of the temporary file. The file has no name, so the kernel removes it however the process ends.
fn failed(error: io::Error) -> Error {
    Error::io(error).in_file(std::env::temp_dir().display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_in_memory_goes_to_a_file() {
        let store = SpillStore::new(10);
        let blobs: Vec<(Vec<u8>, Blob)> = (1..6u8)
            .map(|number| {
                let bytes = vec![number; usize::from(number)];
                (bytes.clone(), store.put(bytes).unwrap())
            })
            .collect();
        let mut buffer = Vec::new();
        for (bytes, blob) in &blobs {
            assert_eq!(store.get(blob, &mut buffer).unwrap(), bytes);
        }
        assert_eq!(store.sizes(), (10, 5));
        assert!(matches!(blobs[4].1, Blob::File { offset: 0, length: 5 }));
    }
}
