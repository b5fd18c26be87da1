//! tilefs presents TileDB arrays as plain files: this library is the program's mount and its server.
//!
//! * [`fuse`]: the tree as a mounted file system
//! * [`serve`]: the tree over HTTP and WebDAV
//! * [`reports`]: what a mount or server reports about itself
//! * [`read_ahead`]: prefetches for sequential and strided readers
//!
//! The crates below: `tilefs_tree` maps names to nodes, `tilefs_export` makes files of cells, `tilefs_reader` reads
//! arrays, `tilefs_format` parses stored bytes.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

pub mod fuse;
pub mod read_ahead;
mod refresh;
pub mod reports;
#[cfg(feature = "serve")]
pub mod serve;
