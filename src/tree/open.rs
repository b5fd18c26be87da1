//! From a path on disk to the root of its tree.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::array::array_folder;
use super::node::Folder;
use super::options::OpenOptions;
use crate::array::{Array, ArrayFolder, Context, TimeWindow};
use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::filter::Key;
use crate::storage::{LocalStorage, Storage};

/// A key file is 32 bytes or 64 digits; more than this is something else.
const MOST_KEY_FILE: u64 = 1024;

/// Opens an array: its folder of files as of the options' time.
///
/// # Errors
/// As [`open_array`]; when the shape of its files cannot be told.
pub fn open(path: &Path, options: &OpenOptions) -> Result<Arc<dyn Folder>> {
    Ok(Arc::new(array_folder(open_array(path, options)?, Arc::new(options.clone()))?))
}

/// Opens an array as of the options' time.
///
/// # Errors
/// [`Error::NotAnArray`] with what the path is instead; [`Error::Key`] for an encrypted array without its
/// key; whatever is wrong with its schema.
pub fn open_array(path: &Path, options: &OpenOptions) -> Result<Arc<Array>> {
    let path = &std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let storage = LocalStorage::new();
    expect_array(&storage, path)?;
    let key = match &options.key_file {
        Some(file) => Some(Arc::new(Key::parse(&storage.read(file, MOST_KEY_FILE)?)?)),
        None => None,
    };
    let cache = Arc::new(Cache::new(usize::try_from(options.cache_size).unwrap_or(usize::MAX)));
    let context = Arc::new(Context { storage: Arc::new(storage), cache, key });
    let folder = Arc::new(ArrayFolder::open(context, path)?);
    Ok(Arc::new(Array::open(folder, window(options))?))
}

/// From the options' start to their end, which is now if they do not say.
fn window(options: &OpenOptions) -> TimeWindow {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(u64::MAX, |since| since.as_millis() as u64);
    TimeWindow { start: options.from.unwrap_or(0), end: options.at.unwrap_or(now) }
}

/// Says what a path is when it is no array.
fn expect_array(storage: &dyn Storage, path: &Path) -> Result<()> {
    let reason = match path.metadata() {
        Err(error) => format!("cannot open it: {error}"),
        Ok(metadata) if !metadata.is_dir() => "not a TileDB array: an array is a folder".to_owned(),
        Ok(_) => {
            let names = storage.list(path)?;
            let has = |name: &str| names.iter().any(|one| one.name == name);
            if has("__schema") || has("__array_schema.tdb") {
                return Ok(());
            } else if has("__kv_schema.tdb") {
                "a key-value store of TileDB before 1.7, which is not supported".to_owned()
            } else if has("__fragment_metadata.tdb") {
                "a fragment of an array; give the array's folder instead".to_owned()
            } else {
                "not a TileDB array or group: there is no __schema, __array_schema.tdb or __group in it".to_owned()
            }
        }
    };
    Err(Error::NotAnArray { path: path.display().to_string(), reason })
}
