//! Opens arrays and groups by path or URI.

use std::path::{Path, PathBuf};
#[cfg(feature = "cloud")]
use std::sync::Arc;

use tilefs_base::error::Result;
#[cfg(feature = "cloud")]
use tilefs_cloud::{CloudOptions, Settings};

use crate::object::Object;

/// Opens an array or a group as of now.
///
/// # Errors
/// As for [`OpenOptions::open`].
pub fn open(location: impl AsRef<Path>) -> Result<Object> {
    OpenOptions::new().open(location)
}

/// How to open an array or a group: its time, key, memory, threads and storage.
///
/// ```no_run
/// # fn main() -> tilefs_api::Result<()> {
/// let options = tilefs_api::OpenOptions::new().at(1_700_000_000_000).cache_size(1 << 30);
/// # #[cfg(feature = "cloud")]
/// let options = options.setting("vfs.s3.region", "eu-west-1")?;
/// let array = options.open("s3://bucket/array")?.into_array()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    reading: tilefs_reader::ReaderOptions,
    #[cfg(feature = "cloud")]
    cloud: CloudOptions,
}

impl OpenOptions {
    /// Creates options to open an array or group as of now.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the array as of this time, in milliseconds since 1970: writes at that time are included.
    pub fn at(mut self, time: u64) -> Self {
        self.reading.at = Some(time);
        self
    }

    /// Ignores everything written before this time, in milliseconds since 1970.
    pub fn from(mut self, time: u64) -> Self {
        self.reading.from = Some(time);
        self
    }

    /// Takes the encryption key from this file or pipe.
    pub fn key_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.reading.key_file = Some(file.into());
        self
    }

    /// Limits the memory of decoded tiles and parsed indexes to this many bytes. The default is 256 MiB.
    pub fn cache_size(mut self, bytes: u64) -> Self {
        self.reading.cache_size = bytes;
        self
    }

    /// Decodes on this many threads. The first array or group that a process opens determines the number. The default is
    /// one more than cores.
    pub fn threads(mut self, threads: usize) -> Self {
        self.reading.threads = threads;
        self
    }

    /// Saves results of passes over many cells in this folder, for later processes.
    pub fn index_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.reading.index = Some(tilefs_reader::IndexOptions::in_folder(folder.into()));
        self
    }

    /// Sends requests without a signature, for public buckets.
    #[cfg(feature = "cloud")]
    pub fn anonymous(mut self) -> Self {
        self.cloud.anonymous = true;
        self
    }

    /// Sets a setting of object stores by the name that TileDB gives it, such as `vfs.s3.region`.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage) for a setting that is not supported, for a value of the wrong type, and for
    /// a secret: those are in a file or in the environment.
    #[cfg(feature = "cloud")]
    pub fn setting(mut self, name: &str, value: &str) -> Result<Self> {
        self.cloud.settings.set_typed(name, value)?;
        Ok(self)
    }

    /// Adds the settings of object stores in a file, as `tiledb.Config().save` writes it.
    ///
    /// # Errors
    /// If the file cannot be read; [`Error::Usage`](crate::Error::Usage) for a value of the wrong type.
    #[cfg(feature = "cloud")]
    pub fn settings_file(mut self, file: impl AsRef<Path>) -> Result<Self> {
        self.cloud.settings.extend(Settings::read(file.as_ref())?);
        Ok(self)
    }

    /// Opens an array or a group: a path, a `file://` URI, or with the feature `cloud` an `s3://`, `gs://` or `azure://`
    /// URI. The first call of a process starts the threads that decode.
    ///
    /// # Errors
    /// [`Error::NotAnArray`](crate::Error::NotAnArray) for anything else; [`Error::Key`](crate::Error::Key) for an
    /// encrypted array without its key; damage of the schema.
    pub fn open(&self, location: impl AsRef<Path>) -> Result<Object> {
        self.reading().open(location).map(Object::new)
    }
    /// Returns the options of the reader.
    #[cfg(feature = "cloud")]
    fn reading(&self) -> tilefs_reader::ReaderOptions {
        tilefs_reader::ReaderOptions { stores: Some(Arc::new(self.cloud.clone())), ..self.reading.clone() }
    }

    /// Returns the options of the reader.
    #[cfg(not(feature = "cloud"))]
    fn reading(&self) -> &tilefs_reader::ReaderOptions {
        &self.reading
    }
}
