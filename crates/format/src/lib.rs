//! Parsers for the TileDB storage format, one file per on-disk structure, and decoders for its filters ([`filter`]).
//! Bytes in, structs out, no I/O. Stored values are shown by [`text`] and [`time_text`].
//!
//! Integers are little-endian and packed. Every parser checks each length, count and offset before it uses it or
//! allocates by it; its errors name the field and the offset.

#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

pub mod commit;
pub mod condition;
pub mod cursor;
pub mod datatype;
pub mod enumeration;
pub mod filter;
pub mod folder;
pub mod fragment;
pub mod generic_tile;
pub mod group;
pub mod metadata;
pub mod name;
mod packed_ranges;
pub mod pipeline;
pub mod scalar;
pub mod schema;
pub mod text;
pub mod tile;
pub mod time_text;
pub mod time_unit;
pub mod version;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct FormatReadme;
