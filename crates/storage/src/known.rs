//! A folder's key together with its identity, so that a replacement of the same name is detected.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::SystemTime;

use tilefs_base::error::{Error, Locate};

use super::StoreKey;

/// A folder as it was when it was first opened. The identity is `None` in object stores, where folders are only
/// prefixes of names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KnownFolder {
    /// The folder.
    pub key: StoreKey,
    /// Identifies the folder in its file system; `None` in an object store.
    pub identity: Option<FolderIdentity>,
}

/// Identity of a folder on this machine: device, inode and, because inode numbers are reused, the creation time if the
/// file system records it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FolderIdentity {
    device: u64,
    inode: u64,
    created: Option<SystemTime>,
}

impl FolderIdentity {
    /// Returns the identity in a file's or folder's metadata.
    pub(super) fn of(metadata: &Metadata) -> Self {
        FolderIdentity { device: metadata.dev(), inode: metadata.ino(), created: metadata.created().ok() }
    }
}

impl KnownFolder {
    /// Error for a folder that another one has replaced.
    pub fn replaced(&self) -> Error {
        Error::missing("another folder has replaced it since it was opened").in_file(&self.key)
    }

    /// Error for something that was listed in the folder and no longer exists.
    pub fn vanished(&self, path: &str) -> Error {
        let reason = "it was listed a moment ago: vacuumed, removed or replaced meanwhile";
        Error::missing(reason).in_file(self.key.join(path))
    }
}
