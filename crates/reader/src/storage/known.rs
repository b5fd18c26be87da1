//! A folder by its key and by what it is, so that another folder which is given its name is not taken for it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::SystemTime;

use tilefs_format::error::{Error, Locate};

use super::StoreKey;

/// A folder as it was when somebody asked for it. A storage has no identity for it where folders are nothing but parts
/// of names, as in object stores.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KnownFolder {
    pub key: StoreKey,
    pub identity: Option<FolderIdentity>,
}

/// What no two folders of a machine share: the device, the number on it and, as numbers are used again, the time at
/// which the folder was made, where the file system tells that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FolderIdentity {
    device: u64,
    inode: u64,
    made: Option<SystemTime>,
}

impl FolderIdentity {
    /// Of the file or folder that has this metadata.
    pub(super) fn of(metadata: &Metadata) -> Self {
        FolderIdentity { device: metadata.dev(), inode: metadata.ino(), made: metadata.created().ok() }
    }
}

impl KnownFolder {
    /// The error of a folder whose name another one has now.
    pub fn replaced(&self) -> Error {
        Error::missing("another folder has taken its place since it was looked at").in_file(&self.key)
    }

    /// The error of something in the folder that was listed and is no longer there.
    pub fn vanished(&self, path: &str) -> Error {
        let reason = "it was there a moment ago: vacuumed, taken away or replaced meanwhile";
        Error::missing(reason).in_file(self.key.join(path))
    }
}
