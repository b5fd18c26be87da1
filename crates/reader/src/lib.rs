//! Reads TileDB arrays and groups: finds the stored bytes, decides which of them are visible, and returns cell values.
//!
//! The modules; each uses only those below it:
//!
//! * [`array`]: one array as of one time
//! * [`read`]: executes the plan of a read
//! * [`cache`]: decoded units and parsed indexes, under one byte budget
//! * [`storage`]: stored bytes in local folders and object stores
//! * [`threads`], [`address_space`], [`memory`], [`statistics`], [`vectors`]: threads and cancellation, the
//!   address-space limit, fallible allocation of stored sizes, counters, and loops in wide vectors

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

pub mod address_space;
pub mod array;
pub mod cache;
pub mod memory;
pub mod read;
pub mod statistics;
pub mod storage;
pub mod threads;
pub mod vectors;
