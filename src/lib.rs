//! tilefs reads TileDB arrays from first principles and presents them as plain files.
//!
//! The rooms, each using only the ones below it:
//!
//! * [`tree`]: the virtual tree, names to nodes
//! * [`export`]: cells as file bytes
//! * [`filter`]: undoing the filters of tiles
//! * [`format`]: what the stored bytes mean
//! * [`error`]: what can go wrong, and where

pub mod error;
pub mod export;
pub mod filter;
pub mod format;
pub mod tree;
