//! Open folders, and whether the kernel may answer from the listing that it cached.
//!
//! The kernel caches the listing of a folder as a client reads it. A refresh invalidates that cache, but a client that
//! opened the folder before may still be reading: then the kernel caches the old listing after the invalidation, and
//! would answer from it until the next one. So the kernel drops its cache when a folder is opened of which an old listing
//! was open during a refresh or later.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use fuser::FileType;

use super::handles::Handles;

/// An entry of an open folder.
pub struct FolderEntry {
    /// The number of its inode.
    pub number: u64,
    pub kind: FileType,
    pub name: String,
}

/// An open folder: its listing.
pub struct OpenFolder {
    /// The number of the inode.
    number: u64,
    /// The number of refreshes before it was listed.
    generation: u64,
    pub entries: Vec<FolderEntry>,
}

/// The open folders of a mount. Memory: the listings, and 8 bytes for each folder that was open during a refresh and has
/// not been opened since.
pub struct OpenFolders {
    handles: Handles<OpenFolder>,
    /// The inodes of folders of which the kernel may have cached an old listing.
    outdated: Mutex<HashSet<u64>>,
}

impl OpenFolders {
    pub fn new() -> Self {
        OpenFolders { handles: Handles::new(), outdated: Mutex::default() }
    }

    /// Opens a folder with the entries that it had after `generation` refreshes; `latest` returns their number now.
    /// Returns the handle, and whether the kernel may keep the listing that it has cached.
    pub fn open(
        &self,
        number: u64,
        generation: u64,
        entries: Vec<FolderEntry>,
        latest: impl Fn() -> u64,
    ) -> (u64, bool) {
        let handle = self.handles.open(Arc::new(OpenFolder { number, generation, entries }));
        let mut outdated = self.outdated.lock().unwrap_or_else(PoisonError::into_inner);
        // A refresh before this one was added did not see it.
        let latest = latest();
        if generation != latest {
            outdated.insert(number);
        }
        let keeps = !outdated.contains(&number);
        if !keeps && !self.handles.any(|open| open.number == number && open.generation != latest) {
            outdated.remove(&number);
        }
        (handle, keeps)
    }

    /// Notes that the listings of all open folders may be older than the tree.
    pub fn refresh(&self) {
        let mut outdated = self.outdated.lock().unwrap_or_else(PoisonError::into_inner);
        self.handles.any(|open| {
            outdated.insert(open.number);
            false
        });
    }

    /// Returns the folder of a handle; `None` if it was closed or never opened.
    pub fn get(&self, handle: u64) -> Option<Arc<OpenFolder>> {
        self.handles.get(handle)
    }

    /// Returns how many are open.
    pub fn count(&self) -> usize {
        self.handles.count()
    }

    /// Closes a handle.
    pub fn close(&self, handle: u64) {
        self.handles.close(handle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLDER: u64 = 7;

    #[test]
    fn the_kernel_drops_a_listing_that_was_open_during_a_refresh() {
        let folders = OpenFolders::new();
        let open = |generation, latest| folders.open(FOLDER, generation, Vec::new(), || latest);
        let (first, keeps) = open(0, 0);
        assert!(keeps);
        folders.refresh();
        // While the old listing is open, and once after that, the kernel may have cached it.
        assert!(!open(1, 1).1 && !open(1, 1).1);
        folders.close(first);
        assert!(!open(1, 1).1);
        assert!(open(1, 1).1);
        assert!(folders.open(FOLDER + 1, 1, Vec::new(), || 1).1, "another folder");
    }

    #[test]
    fn the_kernel_drops_a_listing_that_was_made_during_a_refresh() {
        let folders = OpenFolders::new();
        let (handle, keeps) = folders.open(FOLDER, 0, Vec::new(), || 1);
        assert!(!keeps);
        folders.close(handle);
        assert!(!folders.open(FOLDER, 1, Vec::new(), || 1).1);
        assert!(folders.open(FOLDER, 1, Vec::new(), || 1).1);
    }
}
