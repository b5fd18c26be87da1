//! Which folders hold arrays and groups, without opening them.

use std::path::PathBuf;

use pyo3::prelude::*;
use tilefs_base::error::{Error, Result};
use tilefs_format::folder::ObjectKind;
use tilefs_reader::array::object_kind;
use tilefs_storage::{Storage, StoreKey};

use crate::call;
use crate::options::Options;

/// Returns `"array"`, `"group"`, or `None` for anything else.
#[pyfunction]
pub fn object_type(py: Python<'_>, uri: PathBuf, options: &Options) -> PyResult<Option<&'static str>> {
    call::run(py, || {
        let (storage, folder) = options.0.reading.storage_of(&uri)?;
        storage.allow(&folder);
        match storage.absence(&folder) {
            Some(_) => Ok(None),
            None => kind(&*storage, &folder),
        }
    })
}

/// Returns the URI of each folder in a folder, and its type.
#[pyfunction]
pub fn objects(py: Python<'_>, uri: PathBuf, options: &Options) -> PyResult<Vec<(String, Option<&'static str>)>> {
    call::run(py, || {
        let (storage, folder) = options.0.reading.storage_of(&uri)?;
        storage.allow(&folder);
        if storage.absence(&folder).is_some() {
            return Err(Error::NotAnArray { path: folder.to_string(), reason: "there is no such folder".to_owned() });
        }
        let entries = storage.list_in(&storage.know(&folder)?, "")?.unwrap_or_default();
        let folders = entries.iter().filter(|entry| entry.is_folder()).map(|entry| folder.join(&entry.name));
        folders.map(|path| Ok((path.to_string(), kind(&*storage, &path)?))).collect()
    })
}

fn kind(storage: &dyn Storage, folder: &StoreKey) -> Result<Option<&'static str>> {
    Ok(object_kind(storage, folder)?.map(ObjectKind::name))
}
