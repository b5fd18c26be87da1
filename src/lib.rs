//! tilefs reads TileDB arrays from first principles and presents them as plain files.
//!
//! The rooms, each using only ones below it (ARCHITECTURE.md has them with the way of a read):
//!
//! * [`fuse`]: the tree as a mounted file system
//! * [`read_ahead`]: who reads in a foreseeable way finds the next bytes decoded
//! * [`tree`]: the virtual tree, names to nodes
//! * [`export`]: cells as file bytes
//! * [`array`]: one array as of one time
//! * [`read`]: how decoded bytes are had
//! * [`cache`]: what was decoded, under one byte budget
//! * [`filter`]: undoing the filter pipeline
//! * [`format`]: what the stored bytes mean
//! * [`storage`]: where the stored bytes are
//! * [`error`]: what can go wrong, and where
//!
//! [`threads`], [`address_space`] and [`memory`] are for those who start threads, choose budgets, and make room,
//! [`statistics`] for those who count.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

pub mod address_space;
pub mod array;
pub mod cache;
pub mod error;
pub mod export;
pub mod filter;
pub mod format;
pub mod fuse;
pub mod memory;
pub mod read;
pub mod read_ahead;
pub mod statistics;
pub mod storage;
pub mod threads;
pub mod tree;
pub mod vectors;
