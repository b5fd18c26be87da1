//! Opens arrays and groups by path or URI.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::percent;
use tilefs_format::filter::Key;
use tilefs_format::folder::ObjectKind;
use tilefs_storage::{IndexStore, Links, LocalStorage, ObjectStores, Storage, StoreKey, is_object_uri, read_secret};
use tilefs_threads as threads;

use crate::array::directory::window::now;
use crate::array::{ArrayFolder, Context, OpenedArray, SavedIndexes, TimeWindow, object_kind};
use crate::group::{MemberPlace, OpenedGroup, PlacedMember};

/// A key file has 32 bytes or 64 digits; a larger file is not a key.
const MAX_KEY_FILE: usize = 1024;

/// Opens an array or a group as of now.
///
/// # Errors
/// As for [`ReaderOptions::open`].
pub fn open(location: impl AsRef<Path>) -> Result<OpenedObject> {
    ReaderOptions::default().open(location)
}

/// How to open an array or a group: its time, key, memory and threads.
#[derive(Debug, Clone)]
pub struct ReaderOptions {
    /// Reads the array as of this time (milliseconds since 1970, inclusive); `None` is now.
    pub at: Option<u64>,
    /// Ignores everything written before this time (milliseconds since 1970, inclusive).
    pub from: Option<u64>,
    /// Reads fragments that a consolidation replaced, as long as all of them are there, in place of what it made of them.
    pub originals: bool,
    /// The file or pipe that holds the encryption key.
    pub key_file: Option<PathBuf>,
    /// The budget in bytes of decoded tiles and parsed indexes in memory.
    pub cache_size: u64,
    /// The number of threads that decode.
    pub threads: usize,
    /// The permitted targets of links in arrays and groups.
    pub links: Links,
    /// How to reach object stores, if they can be reached.
    pub stores: Option<Arc<dyn ObjectStores>>,
    /// The folder that saves results of passes over cells for later processes; `None` disables it.
    pub index: Option<IndexOptions>,
}

/// The options of saving results of a pass over cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexOptions {
    /// The folder.
    pub folder: PathBuf,
    /// The approximate limit of its size in bytes.
    pub most: u64,
    /// Whether an unusable folder is an error.
    pub is_required: bool,
    /// Results of a pass over fewer cells are not saved.
    pub least_cells: u64,
}

impl IndexOptions {
    /// Saves results in this folder, which must be usable: up to 1 GiB, each of a pass over at least 2^16 cells. A
    /// repeated pass over fewer is not noticeable.
    pub fn in_folder(folder: PathBuf) -> Self {
        IndexOptions { folder, most: 1 << 30, is_required: true, least_cells: 1 << 16 }
    }
}

impl Default for ReaderOptions {
    fn default() -> Self {
        ReaderOptions {
            at: None,
            from: None,
            originals: false,
            key_file: None,
            cache_size: 256 << 20,
            threads: threads::usual(),
            links: Links::Anywhere,
            stores: None,
            index: None,
        }
    }
}

impl ReaderOptions {
    /// Opens an array or a group: a path, a `file://` URI, or with [`ReaderOptions::stores`] an `s3://`, `gs://` or
    /// `azure://` URI. The first call of a process starts the threads that decode.
    ///
    /// # Errors
    /// [`Error::NotAnArray`] for anything else; [`Error::Key`] for an encrypted array without its key; damage of the
    /// schema.
    pub fn open(&self, location: impl AsRef<Path>) -> Result<OpenedObject> {
        threads::start_team(self.threads);
        let (storage, folder) = self.storage_of(location.as_ref())?;
        let context = self.context(storage)?;
        context.storage.allow(&folder);
        match object_kind(&*context.storage, &folder)? {
            Some(ObjectKind::Array) => open_array(context, &folder, self.window()),
            Some(ObjectKind::Group) => {
                Ok(OpenedObject::Group(Box::new(OpenedGroup::open(context, &folder, self.window()))))
            }
            None => Err(Error::not_an_array(&folder, "there is no __schema, __array_schema.tdb or __group in it")),
        }
    }

    /// Returns the storage of a location, and its folder there. Makes no request.
    ///
    /// # Errors
    /// [`Error::NotAnArray`] for a URI of an unknown scheme.
    pub fn storage_of(&self, location: &Path) -> Result<(Arc<dyn Storage>, StoreKey)> {
        if let Some(uri) = location.to_str().filter(|typed| is_object_uri(typed)) {
            let no_stores =
                || Error::not_an_array(uri, "this tilefs was built without object stores (the feature cloud)");
            let stores = self.stores.as_ref().ok_or_else(no_stores)?;
            return Ok((stores.alone()?, uri.into()));
        }
        let path = local_path(location)?;
        let path = std::path::absolute(&path).unwrap_or(path);
        let local = LocalStorage::with_links(self.links);
        let storage = match &self.stores {
            Some(stores) => stores.beside(local),
            None => Arc::new(local),
        };
        Ok((storage, path.into()))
    }

    /// Returns the state that everything opened together shares: the key, the caches and the saved indexes.
    ///
    /// # Errors
    /// [`Error::Key`] for a key that cannot be read; [`Error::Usage`] for a required folder of indexes that cannot be
    /// used.
    pub fn context(&self, storage: Arc<dyn Storage>) -> Result<Arc<Context>> {
        let key = self.key_file.as_deref().map(read_key).transpose()?;
        self.context_with_key(storage, key)
    }

    /// As [`ReaderOptions::context`], with a key that was read before: a pipe gives it only once.
    ///
    /// # Errors
    /// [`Error::Usage`] for a required folder of indexes that cannot be used.
    pub fn context_with_key(&self, storage: Arc<dyn Storage>, key: Option<Arc<Key>>) -> Result<Arc<Context>> {
        let budget = usize::try_from(self.cache_size).unwrap_or(usize::MAX);
        let context =
            Context::new(storage, budget, self.threads, key).with_links(self.links).with_originals(self.originals);
        let Some(index) = &self.index else { return Ok(Arc::new(context)) };
        let store = match index.is_required {
            true => IndexStore::open(&index.folder, index.most)?,
            false => IndexStore::new(&index.folder, index.most),
        };
        Ok(Arc::new(context.with_saved(SavedIndexes::new(store, index.least_cells))))
    }

    /// Returns the time window of the options, which ends now by default.
    pub fn window(&self) -> TimeWindow {
        TimeWindow { start: self.from.unwrap_or(0), end: self.at.unwrap_or_else(now) }
    }
}

fn read_key(file: &Path) -> Result<Arc<Key>> {
    // An unreadable key file is not damage of the array.
    let secret = read_secret(file, MAX_KEY_FILE).map_err(|error| match error {
        Error::Io { reason, .. } | Error::Missing { reason, .. } => {
            Error::key(format!("cannot read the key: {reason}")).in_file(file.display())
        }
        error => error,
    })?;
    Ok(Arc::new(Key::parse(&secret)?))
}

/// Returns the local path of a path or a `file:///path` URI. As in TileDB, such a URI has no escapes, unless the folder
/// only exists when they are decoded.
///
/// # Errors
/// [`Error::NotAnArray`] for a URI of another scheme, which is named.
pub fn local_path(typed: &Path) -> Result<PathBuf> {
    let Some((scheme, rest)) = typed.to_str().and_then(|typed| typed.split_once("://")) else {
        return Ok(typed.to_owned());
    };
    let is_scheme = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    match scheme {
        "file" if rest.starts_with('/') => {
            let path = PathBuf::from(rest);
            let decoded = percent::unescape(rest).ok().map(|bytes| PathBuf::from(OsString::from_vec(bytes)));
            Ok(match decoded.filter(|decoded| !path.exists() && decoded.exists()) {
                Some(decoded) => decoded,
                None => path,
            })
        }
        "file" => Err(Error::not_an_array(typed.display(), "a file URI has three slashes, as in file:///data/array")),
        scheme if is_scheme(scheme) => Err(Error::not_an_array(
            typed.display(),
            format!("{scheme}:// is not supported; arrays are read from folders, s3://, gs:// and azure://"),
        )),
        _ => Ok(typed.to_owned()),
    }
}

impl OpenedGroup {
    /// Opens a member in the time window of the group.
    ///
    /// # Errors
    /// [`Error::NotAnArray`] for a member that is missing; [`Error::Unsupported`] for a group within itself; damage of
    /// an array's schema.
    pub fn open_object(&self, member: &PlacedMember) -> Result<OpenedObject> {
        let folder = match &member.place {
            MemberPlace::Stored(folder) | MemberPlace::Moved(folder) => folder,
            MemberPlace::Missing(reason) => return Err(Error::not_an_array(&member.uri, reason.clone())),
        };
        match object_kind(&*self.context().storage, folder)? {
            Some(ObjectKind::Array) => open_array(self.context().clone(), folder, self.window()),
            Some(ObjectKind::Group) => self.open_member(folder).map(|group| OpenedObject::Group(Box::new(group))),
            None => Err(Error::not_an_array(folder, "there is no array or group")),
        }
    }
}

fn open_array(context: Arc<Context>, folder: &StoreKey, window: TimeWindow) -> Result<OpenedObject> {
    let stored = ArrayFolder::open(context, folder).in_array(folder)?;
    Ok(OpenedObject::Array(Arc::new(OpenedArray::open(Arc::new(stored), window).in_array(folder)?)))
}

/// An opened array or group.
pub enum OpenedObject {
    /// An array.
    Array(Arc<OpenedArray>),
    /// A group.
    Group(Box<OpenedGroup>),
}

impl OpenedObject {
    /// Returns the array.
    ///
    /// # Errors
    /// [`Error::NotAnArray`] for a group.
    pub fn into_array(self) -> Result<Arc<OpenedArray>> {
        match self {
            OpenedObject::Array(array) => Ok(array),
            OpenedObject::Group(group) => {
                Err(Error::not_an_array(group.path(), "a group; open one of the arrays in it"))
            }
        }
    }

    /// Returns the group.
    ///
    /// # Errors
    /// [`Error::Usage`] for an array.
    pub fn into_group(self) -> Result<OpenedGroup> {
        match self {
            OpenedObject::Group(group) => Ok(*group),
            OpenedObject::Array(array) => Err(Error::usage(format!("{} is an array, not a group", array.path()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn file_uris_are_paths_and_other_schemes_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let spaced = folder.path().join("a b");
        fs::create_dir(&spaced).unwrap();
        let local = |typed: &str| local_path(Path::new(typed)).map_err(|error| error.to_string());
        assert_eq!(local("a/b").unwrap(), Path::new("a/b"));
        let uri = |path: &Path| format!("file://{}", path.display());
        assert_eq!(local(&uri(&spaced)).unwrap(), spaced);
        let escaped = folder.path().join("a%20b");
        assert_eq!(local(&uri(&escaped)).unwrap(), spaced);
        fs::create_dir(&escaped).unwrap();
        assert_eq!(local(&uri(&escaped)).unwrap(), escaped);
        for (typed, part) in
            [("http://host/a", "http:// is not"), ("tiledb://n/a", "tiledb://"), ("file://a/b", "three")]
        {
            assert!(local(typed).is_err_and(|error| error.contains(part) && error.contains(typed)), "{typed}");
        }
    }
}
