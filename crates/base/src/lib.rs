//! What the crates of tilefs share. It reads no arrays, knows no storage and no mount; of arrays, it has only the words in
//! which errors name places, and the number of the encoding of saved results.
//!
//! * [`error`]: the error type of all of them, with the places that errors name
//! * [`characters`], [`percent`], [`markup`], [`hex`]: what is escaped in texts for people, in paths, in XML and HTML; bytes
//!   as digits
//! * [`xml`], [`json`]: readers of texts that may be hostile, in time and memory that their length bounds
//! * [`content`], [`output`]: the bytes of a file, which may be computed, and the destination of a read, which may be a
//!   prefetch
//! * [`inputs`], [`entry_key`]: what a result depends on that is saved for later
//! * [`lru_cache`], [`memory`], [`search`]: recently used values, allocation that may fail, search that may fail
//! * [`statistics`]: counters with their names, values and texts
//! * [`calendar`], [`timestamp`]: dates, and points in time as texts
//! * [`misspelt`]: which name was probably meant

#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

pub mod calendar;
pub mod characters;
pub mod content;
pub mod entry_key;
pub mod error;
pub mod hex;
pub mod inputs;
pub mod json;
pub mod lru_cache;
pub mod markup;
pub mod memory;
pub mod misspelt;
pub mod output;
pub mod percent;
pub mod search;
pub mod statistics;
pub mod timestamp;
pub mod xml;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct BaseReadme;
