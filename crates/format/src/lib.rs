//! What the stored bytes mean: one file per on-disk structure. Pure: bytes in, structs out, no I/O.
//!
//! Integers are little-endian and packed. Every parser checks each length, count and offset before it
//! uses or allocates anything, and names the field and the offset where it stopped.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

pub mod commit;
pub mod condition;
pub mod cursor;
pub mod datatype;
pub mod enumeration;
pub mod error;
pub mod filter;
pub mod folder;
pub mod fragment;
pub mod generic_tile;
pub mod group;
pub mod metadata;
pub mod name;
pub mod pipeline;
pub mod scalar;
pub mod schema;
pub mod text;
pub mod tile;
pub mod version;
