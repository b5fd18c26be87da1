//! Reads TileDB arrays and groups: where the stored bytes are, which of them count, and the values of their cells.
//!
//! The modules, each using only ones below it:
//!
//! * [`array`]: one array as of one time
//! * [`read`]: carries out the plan of a read
//! * [`cache`]: decoded units and parsed indexes, under one byte budget
//! * [`storage`]: the stored bytes in local folders and object stores
//! * [`threads`], [`address_space`], [`memory`], [`statistics`], [`vectors`]: threads and their cancellation, the limit of
//!   address space, memory for stored numbers, counters, and loops in wide vectors

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
