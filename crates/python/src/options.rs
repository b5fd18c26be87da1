//! The options of opening, from Python's keyword arguments.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;
use tilefs_base::error::{Error, Result};
use tilefs_cloud::CloudOptions;
use tilefs_cloud::Settings;
use tilefs_reader::IndexOptions;
use tilefs_tree::{TreeOptions, select::time};

use crate::errors::exception;

/// Options for opening an array, a group or a tree.
#[pyclass(frozen, module = "tilefs._tilefs")]
pub struct Options(pub TreeOptions);

/// A point in time: milliseconds since 1970, or text as in `--at`.
#[derive(FromPyObject)]
enum Time {
    Milliseconds(u64),
    Text(String),
}

impl Time {
    /// Returns the first and the last millisecond since 1970 that it spans.
    fn span(self) -> Result<(u64, u64)> {
        match self {
            Time::Milliseconds(milliseconds) => Ok((milliseconds, milliseconds)),
            Time::Text(text) => time::typed(&text, time::span),
        }
    }
}

#[pymethods]
impl Options {
    #[new]
    #[pyo3(signature = (*, at=None, from_=None, key_file=None, cache_size=None, threads=None, config=None,
        settings=Vec::new(), anonymous=false, io_timeout=None, disk_cache=None, disk_cache_size=None, index_dir=None,
        originals=false))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new(
        py: Python<'_>,
        at: Option<Time>,
        from_: Option<Time>,
        key_file: Option<PathBuf>,
        cache_size: Option<u64>,
        threads: Option<u16>,
        config: Option<PathBuf>,
        settings: Vec<(String, String)>,
        anonymous: bool,
        io_timeout: Option<f64>,
        disk_cache: Option<PathBuf>,
        disk_cache_size: Option<u64>,
        index_dir: Option<PathBuf>,
        originals: bool,
    ) -> PyResult<Self> {
        let make = || -> Result<TreeOptions> {
            let mut options = TreeOptions::default();
            let reading = &mut options.reading;
            reading.at = at.map(Time::span).transpose()?.map(|(_, last)| last);
            reading.from = from_.map(Time::span).transpose()?.map(|(first, _)| first);
            if let (Some(at), Some(from)) = (reading.at, reading.from)
                && from > at
            {
                return Err(Error::usage("from_ is later than at, so that nothing is left to show"));
            }
            reading.key_file = key_file;
            reading.originals = originals;
            reading.cache_size = cache_size.unwrap_or(reading.cache_size);
            reading.threads = threads.map_or(reading.threads, |threads| usize::from(threads.max(1)));
            let mut all = match &config {
                Some(file) => Settings::read(file)?,
                None => Settings::default(),
            };
            settings.iter().try_for_each(|(name, value)| all.set_in_process(name, value))?;
            let usual = CloudOptions::default();
            let io_timeout = io_timeout.map(Duration::try_from_secs_f64).transpose();
            reading.stores = Some(Arc::new(CloudOptions {
                settings: all,
                anonymous,
                io_timeout: io_timeout
                    .map_err(|error| Error::usage(format!("io_timeout: {error}")))?
                    .unwrap_or(usual.io_timeout),
                disk_cache: disk_cache
                    .map(|folder| (absolute(folder), disk_cache_size.unwrap_or(CloudOptions::DISK_CACHE_SIZE))),
            }));
            reading.index = index_dir.map(|folder| IndexOptions::in_folder(absolute(folder)));
            Ok(options)
        };
        make().map(Options).map_err(|error| exception(py, &error))
    }
}

/// Returns a path that names the same folder after the process has changed its working directory and forked.
fn absolute(folder: PathBuf) -> PathBuf {
    std::path::absolute(&folder).unwrap_or(folder)
}
