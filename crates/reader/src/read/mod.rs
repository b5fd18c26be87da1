//! How decoded bytes are had: what a read needs is told as units, and a [`Fetcher`] gets those that the cache lacks.
//!
//! A unit is what is decoded at once: a chunk, or a small tile. Its stored bytes are known before anything is read, so
//! a whole batch of units is read from the storage in one call, decoded, and copied from.

mod fetcher;
mod output;
mod permits;
mod unit;

pub use fetcher::{Batches, Decoding, Fetcher};
pub use output::Output;
pub use permits::Permit;
pub use unit::{Decoded, StoredRange, Unit, UnitKey, UnitPart};
