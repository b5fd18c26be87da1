//! A read-only file system in user space: folders that look names up, files whose bytes are computed when they are read,
//! and the mount that shows them. It knows no arrays; whatever implements [`Folder`] can be mounted.
//!
//! * [`node`]: folders, files, listings, suggestions
//! * [`fuse`]: a tree as a mounted file system
//! * [`reports`]: what a mount or server reports about itself
//! * [`read_ahead`]: prefetches for sequential and strided readers
//! * [`refresh`]: when to look for changes
//!
//! `examples/squares.rs` mounts a tree of its own.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

pub mod fuse;
pub mod node;
pub mod read_ahead;
pub mod refresh;
pub mod reports;

pub use node::{Changed, Entry, EntryKind, File, Folder, Node, Refreshed, ServedTree};
