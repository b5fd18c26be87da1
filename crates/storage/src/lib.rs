//! Access to stored bytes. All code above reads arrays only through [`Storage`] and names objects by [`StoreKey`]s; it
//! does not know paths.
//!
//! * [`local`]: the local file system
//! * [`memory`]: objects in memory, with the semantics of an object store
//! * [`simulated`]: a wrapper that makes any storage slow or failing on demand and counts its requests
//!
//! Object stores are in a crate of their own, which a program passes in as [`ObjectStores`].

#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

pub mod bounded_folder;
pub mod cache_folder;
mod index_store;
mod key;
mod known;
pub mod local;
pub mod memory;
mod object_stores;
mod ranges;
pub mod secret;
pub mod simulated;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod together;

use tilefs_base::error::{Error, Locate, Result};

pub use index_store::{IndexStore, MOST_ENTRY};
pub use key::StoreKey;
pub use known::{FolderIdentity, KnownFolder};
pub use local::{Links, LocalStorage, make_room_for_files};
pub use memory::MemoryStorage;
pub use object_stores::{ObjectStores, Provider, is_object_uri};
pub use ranges::{Coalescing, ReadRange, coalesce, split};
pub use secret::read_secret;
pub use simulated::SimulatedStorage;
pub use together::together;

/// An entry of a stored folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The name in the folder.
    pub name: String,
    /// Whether it is a folder or a file.
    pub kind: ListedKind,
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListedKind {
    /// A folder, or the prefix of objects.
    Folder,
    /// A file or an object.
    Object {
        /// Size in bytes; `None` if learning it costs another request ([`Storage::length`]).
        length: Option<u64>,
    },
}

impl Listed {
    /// Returns whether it is a folder.
    pub fn is_folder(&self) -> bool {
        self.kind == ListedKind::Folder
    }
}

/// An object at any depth below a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedObject {
    /// The path from the folder to the object, separated by slashes.
    pub path: String,
    /// The length in bytes.
    pub length: u64,
}

/// A store of objects that can list folders, tell lengths and read ranges. TileDB never changes objects once committed.
///
/// Each method makes one request to the storage unless it says otherwise. Errors name the object or folder as their
/// file.
pub trait Storage: Send + Sync {
    /// Allows reading below this folder, because the user asked for the array or group in it. Storage that follows any
    /// link can ignore this.
    fn allow(&self, folder: &StoreKey) {
        let _ = folder;
    }

    /// Lists a folder in byte order. A missing folder lists as empty, because object stores have no empty folders.
    /// Names that are not UTF-8 cannot be TileDB's and are omitted. A listing is complete, or an error.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder exists and cannot be listed, or is a dangling link; [`Error::Missing`] if it
    /// disappears meanwhile, or if its name does although the folder around it still lists it.
    fn list(&self, folder: &StoreKey) -> Result<Vec<Listed>>;

    /// Lists all objects below a folder, by path in byte order, if this storage can do so in one request; `None` if it
    /// would take a request per folder, or there are too many objects.
    ///
    /// # Errors
    /// As [`Storage::list`].
    fn list_below(&self, folder: &StoreKey) -> Result<Option<Vec<ListedObject>>> {
        let _ = folder;
        Ok(None)
    }

    /// Returns a folder with its identity, so that [`Storage::list_in`] notices if another folder replaces it.
    ///
    /// # Errors
    /// [`Error::Missing`] if this storage can tell that the folder does not exist, otherwise as [`Storage::list`].
    fn know(&self, folder: &StoreKey) -> Result<KnownFolder> {
        Ok(KnownFolder { key: folder.clone(), identity: None })
    }

    /// Lists the folder at `path` below a known folder, or the known folder itself if `path` is empty, in byte order.
    /// Returns `None` only if the known folder certainly has no such folder.
    ///
    /// An object store lists nothing both for an empty and for a missing folder; listing the parent folder afterwards
    /// tells whether the folder is there.
    ///
    /// # Errors
    /// As [`Storage::list`]; [`Error::Missing`] if another folder has replaced the known one; [`Error::Damaged`] if
    /// `path` is not a folder.
    fn list_in(&self, root: &KnownFolder, path: &str) -> Result<Option<Vec<Listed>>> {
        let folder = root.key.join(path);
        let names = self.list(&folder)?;
        if let (true, false, Some(parent), Some(name)) =
            (names.is_empty(), path.is_empty(), folder.parent(), folder.name())
        {
            return match self.list(&parent)?.iter().find(|one| one.name.as_bytes() == name) {
                None => Ok(None),
                Some(one) if one.is_folder() => Ok(Some(names)),
                Some(_) => Err(no_folder(&folder)),
            };
        }
        Ok(Some(names))
    }

    /// Reads a whole object of at most `most` bytes at `path` below a known folder. For objects whose names do not
    /// identify their content, so that an object of the same name in a replacement folder must not be taken for them.
    ///
    /// # Errors
    /// As [`Storage::read`] and [`Storage::list_in`].
    fn read_in(&self, root: &KnownFolder, path: &str, most: u64) -> Result<Vec<u8>> {
        self.read(&root.key.join(path), most)
    }

    /// Closes an object and forgets its length, so that the next read opens it again. For an object that turned out
    /// shorter than other metadata say: it may have been restored meanwhile.
    fn forget(&self, key: &StoreKey) {
        let _ = key;
    }

    /// Explains why there is no such folder; `None` if it exists, or if only [`Storage::list`] can tell.
    fn absence(&self, folder: &StoreKey) -> Option<String> {
        let _ = folder;
        None
    }

    /// Returns the length of an object in bytes.
    ///
    /// # Errors
    /// [`Error::Missing`] if it does not exist, [`Error::Io`] if that cannot be determined, [`Error::Damaged`] if it is
    /// a folder, a FIFO, a socket or a device.
    fn length(&self, key: &StoreKey) -> Result<u64>;

    /// Fills many ranges of one object, coalescing near ones if that is cheaper. Reorders `ranges`.
    ///
    /// # Errors
    /// As [`Storage::length`]; [`Error::Damaged`] with the offset of a range that extends past the end of the object.
    /// After an error, the content of the other ranges is unspecified.
    fn read_ranges(&self, key: &StoreKey, ranges: &mut [ReadRange<'_>]) -> Result<()>;

    /// Reads up to `most` bytes of an object from `offset`; returns them and the object's length.
    ///
    /// # Errors
    /// As [`Storage::read_ranges`] for an offset past the end.
    fn read_from(&self, key: &StoreKey, offset: u64, most: usize) -> Result<(Vec<u8>, u64)>;

    /// Reads up to `most` bytes at the end of an object; returns them and the object's length. For objects that are
    /// read once: nothing is kept open.
    ///
    /// # Errors
    /// As [`Storage::length`].
    fn read_end(&self, key: &StoreKey, most: usize) -> Result<(Vec<u8>, u64)>;

    /// Reads a whole object of at most `most` bytes.
    ///
    /// # Errors
    /// As [`Storage::length`]; [`Error::Damaged`] if it is larger.
    fn read(&self, key: &StoreKey, most: u64) -> Result<Vec<u8>> {
        let (bytes, length) = self.read_from(key, 0, usize::try_from(most).unwrap_or(usize::MAX))?;
        if length > most {
            return Err(Error::damaged(format!("{length} bytes where at most {most} are plausible")).in_file(key));
        }
        Ok(bytes)
    }

    /// Reads one range into `into` from `offset`.
    ///
    /// # Errors
    /// As [`Storage::read_ranges`].
    fn read_at(&self, key: &StoreKey, offset: u64, into: &mut [u8]) -> Result<()> {
        self.read_ranges(key, &mut [ReadRange { offset, into }])
    }

    /// Returns whether requests for a key have high latency, because each is a round trip. Then it pays to request much
    /// at once, and what will likely be needed.
    fn is_remote(&self, key: &StoreKey) -> bool {
        let _ = key;
        false
    }

    /// Returns the preferred number of concurrent requests for a key, if they have [high latency](Storage::is_remote).
    fn requests_at_once(&self, key: &StoreKey) -> usize {
        let _ = key;
        1
    }

    /// Returns the key of an absolute URI, if it names a place in this storage.
    fn key_of_uri(&self, uri: &str) -> Option<StoreKey> {
        let path = uri.strip_prefix("file://").unwrap_or(uri);
        (path.starts_with('/') && !path.contains('\0')).then(|| path.into())
    }

    /// Returns a text that identifies the place of a key among all storages of all machines that share a folder of indexes:
    /// its canonical form, and for an object store the server too, because two may have buckets of one name. Makes no
    /// request.
    ///
    /// # Errors
    /// If the place cannot be reached.
    fn identity(&self, key: &StoreKey) -> Result<String> {
        Ok(format!("{:?}", self.canonical(key)))
    }

    /// Returns the canonical form of a key (links and `..` resolved), to tell whether two keys name the same place.
    fn canonical(&self, key: &StoreKey) -> StoreKey {
        key.clone()
    }
}

/// Error for a non-folder where a folder should be: its contents would silently be omitted.
pub fn no_folder(folder: &StoreKey) -> Error {
    Error::damaged("it is no folder, or a link to nowhere").in_file(folder)
}

/// Error for a range that extends past the end of an object of `length` bytes.
pub fn past_end(length: u64, range: &ReadRange<'_>) -> Error {
    Error::damaged(format!("the file ends at {length}, {} bytes wanted", range.into.len())).at(range.offset)
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct StorageReadme;
