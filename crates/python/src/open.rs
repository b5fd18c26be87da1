//! Opens an array or a group.

use std::path::PathBuf;

use pyo3::prelude::*;
use tilefs_base::error::{Error, Result};
use tilefs_reader::OpenedObject;
use tilefs_threads as threads;
use tilefs_tree::{Stored, TreeOptions, open_stored};

use crate::call;
use crate::context::ProcessContext;
use crate::group::shown;
use crate::options::Options;

/// Opens a path or URI.
#[pyfunction]
pub fn open(py: Python<'_>, uri: PathBuf, options: &Options) -> PyResult<Py<PyAny>> {
    let options = &options.0;
    let (opened, context) = call::run(py, || {
        let stored = stored(uri, options)?;
        let context = ProcessContext::of(&stored, options);
        match stored {
            Stored::Array(array) => Ok((OpenedObject::Array(array), context)),
            Stored::Group(group) => Ok((OpenedObject::Group(Box::new(group)), context)),
            Stored::Directory(directory) => {
                Err(Error::not_an_array(directory.path(), "a folder of arrays and groups; open one of them"))
            }
        }
    })?;
    shown(py, opened, context)
}

/// Opens a path or URI of an array, a group or a folder of these. The first call of a process starts the threads that
/// decode.
///
/// # Errors
/// As for [`open_stored`].
pub fn stored(uri: PathBuf, options: &TreeOptions) -> Result<Stored> {
    threads::start_team(options.reading.threads);
    open_stored(&uri, options)
}
