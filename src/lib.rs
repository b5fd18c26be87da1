//! tilefs presents TileDB arrays as plain files: this library is the program's server.
//!
//! * [`serve`]: the tree over HTTP and WebDAV
//!
//! The crates below: `tilefs_vfs` mounts folders and files, `tilefs_tree` makes these of arrays, `tilefs_export` makes
//! files of cells, `tilefs_reader` reads arrays, `tilefs_format` parses stored bytes.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

#[cfg(feature = "serve")]
pub mod serve;
