//! Execution of a read plan: a read is a list of units, and a [`Fetcher`] loads the units that are not cached.
//!
//! A unit is the smallest piece that is decoded on its own: a chunk, or a small tile. Its stored byte ranges are known
//! before anything is read, so a whole batch of units is read from storage in one call, decoded, and copied from.

mod fetcher;
mod permits;
mod unit;

pub(crate) use fetcher::UnitCopy;
pub use fetcher::{Batches, Decoding, Fetcher};
pub use permits::Permit;
pub use unit::{Decoded, StoredRange, Unit, UnitKey, UnitPart};
