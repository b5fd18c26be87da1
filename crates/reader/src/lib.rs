//! Reads TileDB arrays and groups, of every format version, without the TileDB library.
//!
//! ```no_run
//! # fn main() -> tilefs_reader::Result<()> {
//! let dem = tilefs_reader::open("dem.tdb")?.into_array()?;
//! for attribute in &dem.schema().attributes {
//!     println!("{}: {}", attribute.name, attribute.datatype.name());
//! }
//! let heights: Vec<f32> = dem.dense()?.read("height", &[0..=99, 200..=299])?;
//!
//! let cells = tilefs_reader::open("cells")?.into_array()?;
//! for batch in cells.rows()?.columns(&["soma_joinid", "cell_type"])?.batches()? {
//!     let ids: Vec<i64> = batch?.column("soma_joinid")?.to_vec()?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! [`open`] opens an array or a group as of now, and [`ReaderOptions`] as of another time, with a key, or with another
//! budget of memory. [`OpenedArray::dense`] reads boxes, [`OpenedArray::rows`] reads rows in batches of columns,
//! [`OpenedArray::metadata`] and [`OpenedGroup::metadata`] read metadata, and [`OpenedGroup::members`] lists a group.
//! Everything is synchronous, `Send` and `Sync`. Bytes that cannot be proven right are an [`Error`] that names their place.
//!
//! Programs outside this project use `tilefs-api`, whose interface stays. This crate is the parts from which it and the
//! other crates are built, and may change in any release: [`mod@group`] and [`mod@array`], the parts of groups and arrays;
//! [`read`], which executes the plan of a read; [`cache`], decoded units and parsed indexes under one byte budget; and
//! [`vectors`], loops for the widest vectors of the processor. Each uses only those after it.
//!
//! Arrays in object stores need [`ReaderOptions::stores`], which a program passes in.

#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

pub mod array;
pub mod cache;
pub mod group;
mod open;
pub mod read;
mod typed;
pub mod vectors;

#[doc(inline)]
pub use array::sparse::{CoordinateRange, RowCondition, RowCount, ValueRange};
#[doc(inline)]
pub use array::{LongKey, Metadata, MetadataItem, OpenedArray, TimeWindow};
#[doc(inline)]
pub use group::{OpenedGroup, PlacedMember};
pub use open::{IndexOptions, OpenedObject, ReaderOptions, local_path, open};
pub use tilefs_base::error::{Error, Result};
pub use typed::{DenseReader, Number, RowBatch, RowBatches, RowReader, Values};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct ReaderReadme;
