//! Folders of stored objects that are opened when something in them is needed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::SystemTime;

use tilefs_base::error::Result;
use tilefs_storage::StoreKey;
use tilefs_vfs::node::{Entry, ExtendedAttributes, Folder, Node};

use crate::fields::xattrs;

/// The folder of a stored object, which is opened when something in it is needed.
pub trait OpenedLater: Send + Sync {
    /// Returns where the object is stored.
    fn path(&self) -> &StoreKey;

    /// Returns its folder, if it is open.
    fn opened(&self) -> Option<&dyn Folder>;

    /// Opens it, unless it is open.
    ///
    /// # Errors
    /// Fails if there is no object, or if it cannot be opened.
    fn open(&self) -> Result<&dyn Folder>;

    /// Returns the time of the folder before it is opened.
    fn modified_before(&self) -> SystemTime;
}

/// A folder that is opened when something in it is needed.
pub struct Later<T>(pub T);

impl<T: OpenedLater> Folder for Later<T> {
    fn inner(&self) -> Option<&dyn Folder> {
        self.0.opened()
    }

    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        self.0.open()?.lookup(name)
    }

    fn list(&self) -> Result<Vec<Entry>> {
        self.0.open()?.list()
    }

    fn modified(&self) -> SystemTime {
        self.0.opened().map_or_else(|| self.0.modified_before(), Folder::modified)
    }

    /// Contains only the path until the object is opened: `ls -l` requests these attributes, and should open none.
    fn extended_attributes(&self) -> ExtendedAttributes {
        self.0.opened().map_or_else(|| xattrs::of_unopened(self.0.path()), Folder::extended_attributes)
    }

    fn source(&self) -> Option<u64> {
        Some(source_of(self.0.path()))
    }
}

/// Returns the number that identifies the data stored in a folder.
pub fn source_of(folder: &StoreKey) -> u64 {
    let mut hasher = DefaultHasher::new();
    folder.hash(&mut hasher);
    hasher.finish()
}
