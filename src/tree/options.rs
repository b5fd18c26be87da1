//! What a person may choose when an array is opened: its time, key, memory, threads, extent and named slices.

use std::path::PathBuf;

use tilefs_reader::OpenOptions as ReadingOptions;

use super::shown::ShownViews;
pub use tilefs_reader::IndexOptions;
pub use tilefs_reader::storage::{CloudOptions, Links};

/// How to open an array or a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenOptions {
    /// Show the array as of this time (milliseconds since 1970, included); `None` is now.
    pub at: Option<u64>,
    /// Ignore what was written before this time (milliseconds since 1970, included).
    pub from: Option<u64>,
    /// The file, or the pipe, that holds the encryption key.
    pub key_file: Option<PathBuf>,
    /// The budget of everything that is kept in memory to be read again, in bytes.
    pub cache_size: u64,
    /// How many threads decode.
    pub threads: usize,
    /// Which box of cells a dense array's files hold.
    pub extent: Extent,
    /// Whether the rows of sparse arrays are sorted by coordinates, instead of in the array's own order.
    pub row_order: bool,
    /// What links in arrays and groups may lead to.
    pub links: Links,
    /// How object stores are reached.
    pub cloud: CloudOptions,
    /// Where what takes a pass over cells is saved for later mounts; `None` for nowhere.
    pub index: Option<IndexOptions>,
    /// Whether it will be asked what has changed since: what is opened is then remembered.
    pub is_watched: bool,
    /// The slices that `slice/` lists: name and selection.
    pub slices: Vec<(String, String)>,
    /// The views that are listed beside those that always are.
    pub shown: ShownViews,
}

/// Which box of cells the files of a dense array hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Extent {
    /// The domain, or the current domain where one is set.
    #[default]
    Domain,
    /// The smallest box that holds every cell ever written.
    NonEmpty,
}

impl OpenOptions {
    /// The options that the reader of arrays has as well.
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
