//! The virtual tree: names and nodes. It knows nothing of the kernel, and the layers below know nothing of names.
//!
//! This crate serves the program and the Python package; its interface may change in any release.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

pub mod array;
pub mod cells;
mod directory_folder;
pub mod domains;
pub mod fields;
pub mod group;
pub mod mounted;
pub mod names;
pub mod objects;
pub mod open;
pub mod options;
pub mod shown;
mod sizing;
pub mod texts;
pub mod views;
pub mod wording;

pub use domains::{VariantLists, VariantReference};
pub use mounted::MountedTree;
pub use objects::directory::Directory;
pub use open::{Stored, is_object, open, open_array, open_stored, open_stored_in, root};
pub use options::{DomainOptions, Extent, IndexOptions, Links, TreeOptions};
pub use shown::ShownViews;
pub use tilefs_select as select;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct TreeReadme;
