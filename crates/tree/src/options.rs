//! The options for opening an array or a group as a tree: those of the reader, and what the tree shows.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

pub use tilefs_reader::IndexOptions;
pub use tilefs_storage::Links;

pub use crate::cells::dense::Extent;
use crate::shown::ShownViews;

/// The options for opening an array or a group.
#[derive(Debug, Clone, Default)]
pub struct TreeOptions {
    /// The options of the reader: time, key, memory, threads, links, object stores and saved indexes.
    pub reading: tilefs_reader::ReaderOptions,
    /// The box of cells that a dense array's files cover.
    pub extent: Extent,
    /// Whether the rows of sparse arrays are sorted by coordinates instead of in the array's own order.
    pub row_order: bool,
    /// Whether the tree will be refreshed later: opened objects are then recorded.
    pub is_watched: bool,
    /// The slices that `slice/` lists: name and selection.
    pub slices: Vec<(String, String)>,
    /// The options that only one domain has.
    pub of_domains: DomainOptions,
    /// Optional views that are listed.
    pub shown: ShownViews,
    /// Whether dimensions have the names of the axes of an image in lower case, as OME-NGFF has them.
    pub axes_of_images: bool,
}

/// The options of domains, which are of different types.
#[derive(Clone, Default)]
pub struct DomainOptions(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl DomainOptions {
    /// Adds the options of a domain, instead of earlier ones of the same type.
    pub fn with<T: Any + Send + Sync>(mut self, options: T) -> Self {
        self.0.insert(TypeId::of::<T>(), Arc::new(options));
        self
    }

    /// Returns the options of a domain, or the default ones.
    pub fn get<T: Any + Default + Send + Sync>(&self) -> Arc<T> {
        let given = self.0.get(&TypeId::of::<T>()).cloned();
        given.and_then(|options| options.downcast().ok()).unwrap_or_default()
    }
}

impl fmt::Debug for DomainOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "options of {} domains", self.0.len())
    }
}
