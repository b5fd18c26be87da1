//! The options for opening an array: time, key, memory, threads, extent and named slices.

use std::path::PathBuf;

use tilefs_reader::OpenOptions as ReadingOptions;

use super::shown::ShownViews;
pub use tilefs_reader::IndexOptions;
pub use tilefs_reader::storage::{CloudOptions, Links};

/// The options for opening an array or a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenOptions {
    /// Show the array as of this time (milliseconds since 1970, inclusive); `None` is now.
    pub at: Option<u64>,
    /// Ignore everything written before this time (milliseconds since 1970, inclusive).
    pub from: Option<u64>,
    /// The file or pipe that contains the encryption key.
    pub key_file: Option<PathBuf>,
    /// The budget of all caches together, in bytes.
    pub cache_size: u64,
    /// Number of decoding threads.
    pub threads: usize,
    /// The box of cells that a dense array's files cover.
    pub extent: Extent,
    /// Whether the rows of sparse arrays are sorted by coordinates instead of in the array's own order.
    pub row_order: bool,
    /// The permitted targets of links in arrays and groups.
    pub links: Links,
    /// The options for object stores.
    pub cloud: CloudOptions,
    /// Where the results of passes over cells are saved for later mounts; `None` disables this.
    pub index: Option<IndexOptions>,
    /// Whether changes will be asked for later: opened objects are then recorded.
    pub is_watched: bool,
    /// The slices that `slice/` lists: name and selection.
    pub slices: Vec<(String, String)>,
    /// Optional views that are listed.
    pub shown: ShownViews,
}

/// The box of cells that the files of a dense array cover.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Extent {
    /// The domain, or the current domain if set.
    #[default]
    Domain,
    /// The smallest box that holds every written cell.
    NonEmpty,
}

impl OpenOptions {
    /// Returns the options that the array reader uses as well.
    pub fn reading(&self) -> ReadingOptions {
        let Self { at, from, key_file, cache_size, threads, links, cloud, index, .. } = self.clone();
        ReadingOptions { at, from, key_file, cache_size, threads, links, cloud, index }
    }
}

impl Default for OpenOptions {
    fn default() -> Self {
        let ReadingOptions { at, from, key_file, cache_size, threads, links, cloud, index } = ReadingOptions::default();
        OpenOptions {
            at,
            from,
            key_file,
            cache_size,
            threads,
            extent: Extent::default(),
            row_order: false,
            links,
            cloud,
            index,
            is_watched: false,
            slices: Vec::new(),
            shown: ShownViews::NONE,
        }
    }
}
