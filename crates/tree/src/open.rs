//! Opens a path, and makes the root of its tree.

use std::iter;
use std::path::Path;
use std::sync::Arc;

use tilefs_base::error::{Error, Result};
use tilefs_format::folder::{KEY_VALUE_SCHEMA, ObjectKind};
use tilefs_format::fragment::FRAGMENT_METADATA;
use tilefs_reader::array::FolderListing;
use tilefs_reader::array::{Context, OpenedArray, TimeWindow, kind_of_entries, object_kind};
use tilefs_reader::group::OpenedGroup;
use tilefs_reader::group::changes::note;
use tilefs_storage::{Listed, Storage, StoreKey, is_object_uri};
use tilefs_vfs::node::Folder;
use tilefs_vfs::node::suggest::nearest;

use crate::array::array_folder;
use crate::directory_folder::DirectoryFolder;
use crate::group::{GroupFolder, OpenedFolder};
use crate::objects::directory::{Directory, holds_objects};
use crate::objects::open_listed;
use crate::options::TreeOptions;

/// Opens an array or a group: returns its folder as of the options' time.
///
/// # Errors
/// [`Error::NotAnArray`], which describes what the path is instead; [`Error::Key`] for an encrypted array without its
/// key; errors in an array's schema, or in the times of a group; fails if the shape of an array's files cannot be
/// determined.
pub fn open(path: &Path, options: &TreeOptions) -> Result<Arc<dyn Folder>> {
    root(open_stored(path, options)?, options)
}

/// Returns the folder of an opened object.
///
/// # Errors
/// As for [`open`].
pub fn root(stored: Stored, options: &TreeOptions) -> Result<Arc<dyn Folder>> {
    Ok(opened_folder(stored, &Arc::new(options.clone()))?.folder())
}

pub(crate) fn opened_folder(stored: Stored, options: &Arc<TreeOptions>) -> Result<OpenedFolder> {
    let options = options.clone();
    Ok(match stored {
        Stored::Array(array) => OpenedFolder::Other(Arc::new(array_folder(array, options)?)),
        Stored::Group(group) => OpenedFolder::Group(Arc::new(GroupFolder::new(group, options)?)),
        Stored::Directory(directory) => OpenedFolder::Other(Arc::new(DirectoryFolder::new(directory, options))),
    })
}

/// A stored array, group, or plain folder of these, without a tree.
pub enum Stored {
    Array(Arc<OpenedArray>),
    Group(OpenedGroup),
    Directory(Directory),
}

impl Stored {
    /// Returns the folder of the object.
    pub fn path(&self) -> &StoreKey {
        match self {
            Stored::Array(array) => array.path(),
            Stored::Group(group) => group.path(),
            Stored::Directory(directory) => directory.path(),
        }
    }

    /// Returns the context that all objects opened in it share.
    pub fn context(&self) -> &Arc<Context> {
        match self {
            Stored::Array(array) => array.context(),
            Stored::Group(group) => group.context(),
            Stored::Directory(directory) => directory.context(),
        }
    }

    /// Returns the time window as of which the object was opened.
    pub fn window(&self) -> TimeWindow {
        match self {
            Stored::Array(array) => array.window(),
            Stored::Group(group) => group.window(),
            Stored::Directory(directory) => directory.window(),
        }
    }
}

/// Opens a local or remote array or group as of the options' time.
///
/// # Errors
/// As for [`open`], except for the shape of files and the times in a group.
pub fn open_stored(path: &Path, options: &TreeOptions) -> Result<Stored> {
    let (storage, folder) = options.reading.storage_of(path)?;
    open_stored_in(storage, &folder, options)
}

/// Like [`open_stored`], in any storage.
///
/// # Errors
/// As for [`open_stored`].
pub fn open_stored_in(storage: Arc<dyn Storage>, folder: &StoreKey, options: &TreeOptions) -> Result<Stored> {
    let context = options.reading.context(storage)?;
    if options.is_watched {
        context.watch.begin();
    }
    open_in(context, folder, options)
}

/// Like [`open_stored_in`], in an existing context.
pub(super) fn open_in(context: Arc<Context>, folder: &StoreKey, options: &TreeOptions) -> Result<Stored> {
    context.storage.allow(folder);
    let window = options.reading.window();
    // A listing error is reported below.
    let _ = note(&context, folder);
    let (kind, listing) = expect_object(&*context.storage, folder)?;
    Ok(match kind {
        Some(ObjectKind::Array) => Stored::Array(open_listed(context, listing, window)?),
        Some(ObjectKind::Group) => Stored::Group(OpenedGroup::open(context, folder, window)),
        None => Stored::Directory(Directory::new(context, folder, window)),
    })
}

/// Opens an array as of the options' time.
///
/// # Errors
/// As for [`open`]; a group is not an array.
pub fn open_array(path: &Path, options: &TreeOptions) -> Result<Arc<OpenedArray>> {
    match open_stored(path, options)? {
        Stored::Array(array) => Ok(array),
        Stored::Group(group) => Err(Error::not_an_array(group.path(), "a group; give one of the arrays in it")),
        Stored::Directory(directory) => {
            Err(Error::not_an_array(directory.path(), "a folder of arrays; give one of the arrays in it"))
        }
    }
}

/// Returns the kind of a folder and its listing, or the reason why it cannot be opened. The kind is `None` for a plain
/// folder with arrays or groups below it.
fn expect_object(storage: &dyn Storage, path: &StoreKey) -> Result<(Option<ObjectKind>, FolderListing)> {
    if let Some(reason) = storage.absence(path) {
        return Err(Error::not_an_array(path, with_hint(storage, path, reason)));
    }
    let listing = FolderListing::read(storage, path).map_err(|error| match error {
        // A bucket, or a folder that has just been removed.
        Error::Missing { reason, .. } => Error::not_an_array(path, reason),
        error => error,
    })?;
    let entries = listing.top();
    if let Some(kind) = kind_of_entries(entries) {
        return Ok((Some(kind), listing));
    }
    if entries.is_empty() && is_object_uri(&path.to_string()) {
        let reason = "there is nothing there: no object's name begins with this".to_owned();
        return Err(Error::not_an_array(path, with_hint(storage, path, reason)));
    }
    let has = |name: &str| entries.iter().any(|one| one.name == name);
    let reason = if has(KEY_VALUE_SCHEMA) {
        "a key-value store of TileDB before 1.7, which is not supported".to_owned()
    } else if has(FRAGMENT_METADATA) {
        "a fragment of an array; give the array's folder instead".to_owned()
    } else if array_around(storage, path).is_none() && holds_objects(storage, path, entries) {
        return Ok((None, listing));
    } else {
        "not a TileDB array or group: there is no __schema, __array_schema.tdb or __group in it, and none is below it"
            .to_owned()
    };
    Err(Error::not_an_array(path, with_hint(storage, path, reason)))
}

/// Returns whether a path is that of an array or a group, without opening it.
pub fn is_object(path: &Path, options: &TreeOptions) -> bool {
    options.reading.storage_of(path).is_ok_and(|(storage, key)| {
        storage.allow(&key);
        matches!(object_kind(&*storage, &key), Ok(Some(_)))
    })
}

/// Adds to the reason why there is nothing at a path a hint about the path that was probably meant, if possible.
fn with_hint(storage: &dyn Storage, path: &StoreKey, reason: String) -> String {
    if let Some((kind, around, rest)) = array_around(storage, path) {
        let kind = match kind {
            ObjectKind::Array => "an array",
            ObjectKind::Group => "a group",
        };
        return format!("{reason}; {around} is {kind}: give that, and {rest} after it");
    }
    let near = || {
        let (folder, name) = (path.parent()?, path.shown_name());
        // In an object store, a guess is not worth a request.
        let names = (!is_object_uri(&path.to_string())).then(|| storage.list(&folder).ok())??;
        let names: Vec<String> = names.into_iter().filter(Listed::is_folder).map(|one| one.name).collect();
        nearest(&name, &names).filter(|near| *near != name).map(|near| folder.join(near))
    };
    match near() {
        Some(near) => format!("{reason}; did you mean {near}?"),
        None => reason,
    }
}

/// Maximum number of parent folders of a path that are searched for the array around it.
const MAX_AROUND: usize = 16;

/// The same, if each takes a request.
const MAX_AROUND_REMOTE: usize = 3;

/// Returns the array or group around a path, and the rest of the path.
fn array_around(storage: &dyn Storage, path: &StoreKey) -> Option<(ObjectKind, StoreKey, String)> {
    let most = if is_object_uri(&path.to_string()) { MAX_AROUND_REMOTE } else { MAX_AROUND };
    let around = iter::successors(path.parent(), StoreKey::parent).take(most);
    around.into_iter().find_map(|folder| {
        let kind = object_kind(storage, &folder).ok()??;
        let rest = String::from_utf8_lossy(path.below(&folder)?).into_owned();
        Some((kind, folder, rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn reason(path: &Path) -> String {
        match open(path, &TreeOptions::default()) {
            Err(error @ Error::NotAnArray { .. }) => error.to_string(),
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("it opened"),
        }
    }

    #[test]
    fn errors_describe_what_a_path_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert!(reason(&path.join("none")).contains("cannot open it"));
        fs::write(path.join("file"), b"").unwrap();
        assert!(reason(&path.join("file")).contains("an array is a folder"));
        assert!(reason(path).ends_with("none is below it"));
        let array = path.join("deep/down/temperature");
        fs::create_dir_all(array.join("__schema")).unwrap();
        // A folder of arrays is opened as such.
        assert!(matches!(open_stored(path, &TreeOptions::default()), Ok(Stored::Directory(_))));
        assert!(open(path, &TreeOptions::default()).is_ok_and(|folder| folder.lookup("deep").unwrap().is_some()));
        assert!(open_array(path, &TreeOptions::default()).is_err_and(|error| error.to_string().contains("folder of")));
        let shown = array.display().to_string();
        for within in ["temp.f32", "slice/0..9/temp.f32", "__schema"] {
            let hint = format!("{shown} is an array: give that, and {within} after it");
            assert!(reason(&array.join(within)).ends_with(&hint), "{}", reason(&array.join(within)));
        }
        let typed = path.join("deep/down/temprature");
        assert!(reason(&typed).ends_with(&format!("did you mean {shown}?")), "{}", reason(&typed));
        fs::write(path.join("__fragment_metadata.tdb"), b"").unwrap();
        assert!(reason(path).contains("a fragment of an array"));
        fs::write(path.join("__kv_schema.tdb"), b"").unwrap();
        assert!(reason(path).contains("key-value store"));
    }

    #[test]
    fn a_missing_key_names_the_array() {
        let path = tilefs_fixtures::fixtures().join("arrays/dense/encrypted");
        let error = open(&path, &TreeOptions::default()).err().map(|error| error.to_string()).unwrap();
        assert!(error.contains("dense/encrypted") && error.contains("no key"), "{error}");
    }

    #[test]
    fn opening_a_group_as_an_array_fails() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("__tiledb_group.tdb"), b"").unwrap();
        assert!(open(folder.path(), &TreeOptions::default()).is_ok());
        let error = open_array(folder.path(), &TreeOptions::default()).err().map(|error| error.to_string());
        assert!(error.is_some_and(|error| error.contains("a group")));
    }
}
