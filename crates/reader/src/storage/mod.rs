//! Where the stored bytes are. Everything above reads arrays through [`Storage`] alone, and names what it reads by
//! [`StoreKey`]s: nothing above knows of paths.
//!
//! * [`local`]: the local file system
//! * [`memory`]: objects in memory, as an object store has them
//! * [`simulated`]: any storage made slow, failing or short on demand, which counts what is asked of it
//! * [`cloud`]: object stores of the cloud, with the feature of that name
//! * [`any`]: the local file system and object stores, by the key

use tilefs_format::error::{Error, Locate, Result};

#[cfg(feature = "cloud")]
pub mod any;
#[cfg(feature = "cloud")]
pub mod cloud;
mod descriptors;
mod key;
mod known;
pub mod local;
pub mod memory;
mod paths;
mod ranges;
mod secret;
#[cfg_attr(not(feature = "cloud"), allow(dead_code))]
mod settings;
pub mod simulated;
mod together;
#[cfg_attr(not(feature = "cloud"), allow(dead_code))]
mod uri;

pub use key::StoreKey;
pub use known::{FolderIdentity, KnownFolder};
pub use local::{LocalStorage, make_room_for_files};
pub use memory::MemoryStorage;
pub use paths::Links;
pub use ranges::{Coalescing, ReadRange, coalesce};
pub use secret::read_secret;
pub use settings::{CloudOptions, Settings};
pub use simulated::SimulatedStorage;
pub use together::{is_far, together};
pub use uri::is_object_uri;

/// One name in a stored folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub name: String,
    pub kind: ListedKind,
}

/// What a name in a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListedKind {
    Folder,
    Object {
        /// Its bytes; `None` where the storage would have to ask for it, which [`Storage::length`] does.
        length: Option<u64>,
    },
}

impl Listed {
    pub fn is_folder(&self) -> bool {
        self.kind == ListedKind::Folder
    }
}

/// An object somewhere below a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedObject {
    /// The names from the folder to the object, separated by slashes.
    pub path: String,
    pub length: u64,
}

/// A place that holds stored objects: list, length, read ranges. Objects of TileDB never change once committed.
///
/// Each method makes one request of the storage, or as many as it says. Errors name the object or folder as their file.
pub trait Storage: Send + Sync {
    /// Says that an array or a group in this folder was asked for, so that what is below may be read. A storage whose
    /// links may lead anywhere need not know.
    fn allow(&self, folder: &StoreKey) {
        let _ = folder;
    }

    /// The names in a folder in byte order. A folder that is not there is an empty one, as object
    /// stores have no empty folders. Names that are not UTF-8 are none of TileDB's and are left out.
    ///
    /// # Errors
    /// [`Error::Io`] when the folder is there and cannot be listed, or is a link that leads nowhere.
    fn list(&self, folder: &StoreKey) -> Result<Vec<Listed>>;

    /// All objects below a folder, by path in byte order, where this storage tells that in one request; `None` where it
    /// would take one for each folder, or there are too many.
    ///
    /// # Errors
    /// As [`Storage::list`].
    fn list_below(&self, folder: &StoreKey) -> Result<Option<Vec<ListedObject>>> {
        let _ = folder;
        Ok(None)
    }

    /// A folder and which one it is, so that [`Storage::list_in`] notices another one of its name.
    ///
    /// # Errors
    /// [`Error::Missing`] where this storage can tell that there is no such folder, else as [`Storage::list`].
    fn know(&self, folder: &StoreKey) -> Result<KnownFolder> {
        Ok(KnownFolder { key: folder.clone(), identity: None })
    }

    /// The names in the folder at `path` below a known one, or in that itself where `path` is empty, in byte order.
    /// `None` only where it is established that the known folder has no such folder.
    ///
    /// An object store gives no names both of an empty folder and of none; only the folder around it, listed afterwards,
    /// tells which.
    ///
    /// # Errors
    /// As [`Storage::list`]; [`Error::Missing`] where another folder has taken the place of the known one;
    /// [`Error::Damaged`] where `path` is that of something else than a folder.
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

    /// All bytes of the object at `path` below a known folder, of at most `most` bytes. For objects whose names say
    /// nothing of what is in them, so that one of the same name in another folder must not be taken for them.
    ///
    /// # Errors
    /// As [`Storage::read`] and [`Storage::list_in`].
    fn read_in(&self, root: &KnownFolder, path: &str, most: u64) -> Result<Vec<u8>> {
        self.read(&root.key.join(path), most)
    }

    /// Why there is no such folder, in words for people; `None` where there is, or only [`Storage::list`] can tell.
    fn absence(&self, folder: &StoreKey) -> Option<String> {
        let _ = folder;
        None
    }

    /// The length of an object in bytes.
    ///
    /// # Errors
    /// [`Error::Missing`] when it is not there, [`Error::Io`] when that cannot be told, [`Error::Damaged`] when it is no
    /// object but a folder, a FIFO, a socket or a device.
    fn length(&self, key: &StoreKey) -> Result<u64>;

    /// Fills many ranges of one object. Near ones are read together, where that is cheaper. Leaves the ranges in
    /// another order.
    ///
    /// # Errors
    /// As [`Storage::length`]; [`Error::Damaged`] with its offset for a range that the object ends before. One error
    /// says nothing of the other ranges, whose bytes are then unspecified.
    fn read_ranges(&self, key: &StoreKey, ranges: &mut [ReadRange<'_>]) -> Result<()>;

    /// The bytes of an object from `offset`, `most` or as many as it has, and its length.
    ///
    /// # Errors
    /// As [`Storage::read_ranges`] for an offset behind its end.
    fn read_from(&self, key: &StoreKey, offset: u64, most: usize) -> Result<(Vec<u8>, u64)>;

    /// The last bytes of an object, `most` or as many as it has, and its length. For objects that are looked at once:
    /// nothing is kept open.
    ///
    /// # Errors
    /// As [`Storage::length`].
    fn read_end(&self, key: &StoreKey, most: usize) -> Result<(Vec<u8>, u64)>;

    /// All bytes of an object of at most `most` bytes.
    ///
    /// # Errors
    /// As [`Storage::length`]; [`Error::Damaged`] when it is larger.
    fn read(&self, key: &StoreKey, most: u64) -> Result<Vec<u8>> {
        let (bytes, length) = self.read_from(key, 0, usize::try_from(most).unwrap_or(usize::MAX))?;
        if length > most {
            return Err(Error::damaged(format!("{length} bytes where at most {most} are plausible")).in_file(key));
        }
        Ok(bytes)
    }

    /// Fills `into` from `offset`: one range.
    ///
    /// # Errors
    /// As [`Storage::read_ranges`].
    fn read_at(&self, key: &StoreKey, offset: u64, into: &mut [u8]) -> Result<()> {
        self.read_ranges(key, &mut [ReadRange { offset, into }])
    }

    /// How many requests under way serve the storage of a key best: as many as there are cores where they take no time,
    /// many where each is a wait.
    fn requests_at_once(&self, key: &StoreKey) -> usize {
        let _ = key;
        1
    }

    /// The key of an absolute URI, if it names a place that this storage can have.
    fn key_of_uri(&self, uri: &str) -> Option<StoreKey> {
        let path = uri.strip_prefix("file://").unwrap_or(uri);
        (path.starts_with('/') && !path.contains('\0')).then(|| path.into())
    }

    /// The one key of all those that lead to the same place (links, `..`), to tell whether two do.
    fn canonical(&self, key: &StoreKey) -> StoreKey {
        key.clone()
    }
}

/// The error of something else where a folder should be: what is in the folder would be left out.
pub(crate) fn no_folder(folder: &StoreKey) -> Error {
    Error::damaged("it is no folder, or a link to nowhere").in_file(folder)
}

/// The error of a range that an object of `length` bytes ends before.
fn past_end(length: u64, range: &ReadRange<'_>) -> Error {
    Error::damaged(format!("the file ends at {length}, {} bytes wanted", range.into.len())).at(range.offset)
}
