//! Where the stored bytes are. Everything above reads arrays through [`Storage`] alone.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Locate, Result};

mod descriptors;
pub mod local;
mod paths;
mod secret;

pub use local::{LocalStorage, make_room_for_files};
pub use paths::Links;
pub use secret::read_secret;

/// One name in a stored folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub name: String,
    pub is_folder: bool,
}

/// A place that holds stored files: list, size, read ranges.
pub trait Storage: Send + Sync {
    /// Says that an array or a group in this folder was asked for, so that what is below may be read. A storage whose
    /// links may lead anywhere need not know.
    fn allow(&self, folder: &Path) {
        let _ = folder;
    }

    /// The names in a folder in byte order. A folder that is not there is an empty one, as object
    /// stores have no empty folders. Names that are not UTF-8 are none of TileDB's and are left out.
    ///
    /// # Errors
    /// [`Error::Io`] when the folder is there and cannot be listed, or is a link that leads nowhere.
    fn list(&self, folder: &Path) -> Result<Vec<Listed>>;

    /// Opens a file for reading at any offset.
    ///
    /// # Errors
    /// [`Error::Io`] when it is missing or unreadable, [`Error::Damaged`] when it is no file but a folder, a FIFO, a
    /// socket or a device.
    fn open(&self, file: &Path) -> Result<Arc<dyn StoredFile>>;

    /// The last bytes of a file, `most` or as many as it has, and its length. For files that are looked at once: nothing
    /// is kept open.
    ///
    /// # Errors
    /// As [`Storage::open`] and [`StoredFile::read_at`].
    fn read_end(&self, file: &Path, most: usize) -> Result<(Vec<u8>, u64)> {
        let stored = self.open(file)?;
        let length = stored.len();
        let mut end = vec![0; usize::try_from(length).map_or(most, |length| length.min(most))];
        stored.read_at(length - end.len() as u64, &mut end).in_file(file)?;
        Ok((end, length))
    }

    /// The one path of all those that lead to the same place (links, `..`), to tell whether two do.
    fn canonical(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }

    /// All bytes of a file of at most `most` bytes.
    ///
    /// # Errors
    /// As [`Storage::open`]; [`Error::Damaged`] when it is larger.
    fn read(&self, file: &Path, most: u64) -> Result<Vec<u8>> {
        let stored = self.open(file)?;
        let length = stored.len();
        if length > most {
            return Err(Error::damaged(format!("{length} bytes where at most {most} are plausible")).in_file(file));
        }
        let mut bytes = vec![0; length as usize];
        stored.read_at(0, &mut bytes).in_file(file)?;
        Ok(bytes)
    }
}

/// A stored file, open for reading. Stored files of TileDB never change once committed.
pub trait StoredFile: Send + Sync {
    /// Its length in bytes when it was opened.
    fn len(&self) -> u64;

    /// Whether it has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buf` from `offset`.
    ///
    /// # Errors
    /// [`Error::Damaged`] when the file ends before that, [`Error::Io`] when it cannot be read.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;
}
