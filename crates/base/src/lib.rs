//! What the crates of tilefs share, and what knows no arrays, no storage and no mount.
//!
//! [`error`] is the error type of all of them, with the places that errors name; [`characters`] tells which characters
//! must not be shown as they are. [`xml`] and [`json`] read texts that may be hostile, in time and memory that their
//! length bounds. [`hex`] prints bytes as digits.

#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

pub mod characters;
pub mod error;
pub mod hex;
pub mod json;
pub mod xml;
