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
//! let cells = tilefs_reader::open("s3://bucket/cells")?.into_array()?;
//! for batch in cells.rows()?.columns(&["soma_joinid", "cell_type"])?.batches()? {
//!     let ids: Vec<i64> = batch?.column("soma_joinid")?.to_vec()?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! [`open`] opens an array or a group as of now, and [`OpenOptions`] as of another time, with a key, or with another
//! budget of memory. [`Array::dense`] reads boxes, [`Array::rows`] reads rows in batches of columns,
//! [`Array::metadata`] and [`Group::metadata`] read metadata, and [`Group::members`] lists a group. Everything is
//! synchronous, `Send` and `Sync`. Bytes that cannot be proven right are an [`Error`] that names their place.
//!
//! The modules; each uses only those below it:
//!
//! * [`open`]: arrays and groups by path or URI; `api`, the typed reads above
//! * [`group`](mod@group): the members of a group, and changes of opened folders
//! * [`mod@array`]: one array as of one time
//! * [`read`]: executes the plan of a read
//! * [`cache`]: decoded units and parsed indexes, under one byte budget
//! * [`storage`]: stored bytes in local folders and object stores
//! * [`threads`], [`address_space`], [`memory`], [`statistics`], [`vectors`], [`percent`]: threads and
//!   cancellation, the address-space limit, fallible allocation of stored sizes, counters, loops in wide vectors, and
//!   percent escapes

#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

pub mod address_space;
mod api;
pub mod array;
pub mod cache;
pub mod group;
pub mod memory;
mod open;
pub mod percent;
pub mod read;
pub mod statistics;
pub mod storage;
mod sync;
pub mod threads;
pub mod vectors;

pub use api::{DenseReader, Number, RowBatch, RowBatches, RowReader, Values};
pub use array::{Array, Metadata, ObjectKind, TimeWindow};
pub use group::{Group, Member};
pub use open::{IndexOptions, Object, OpenOptions, local_path, open};
pub use tilefs_format::error::{Error, Result};
