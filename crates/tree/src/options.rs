//! The options for opening an array or a group as a tree: those of the reader, and what the tree shows.

pub use crate::domains::vcf::lists::VariantLists;
use crate::node::shown::ShownViews;
pub use tilefs_reader::IndexOptions;
pub use tilefs_storage::{CloudOptions, Links};

/// The options for opening an array or a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// The options of the reader: time, key, memory, threads, links, object stores and saved indexes.
    pub reading: tilefs_reader::OpenOptions,
    /// The box of cells that a dense array's files cover.
    pub extent: Extent,
    /// Whether the rows of sparse arrays are sorted by coordinates instead of in the array's own order.
    pub row_order: bool,
    /// Whether the tree will be refreshed later: opened objects are then recorded.
    pub is_watched: bool,
    /// The slices that `slice/` lists: name and selection.
    pub slices: Vec<(String, String)>,
    /// Lists of samples and regions that paths below `vcf/` name.
    pub variant_lists: VariantLists,
    /// Optional views that are listed.
    pub shown: ShownViews,
    /// Whether files have the names of dimensions in lower case, as OME-NGFF has those of axes.
    pub lower_case_dimensions: bool,
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
