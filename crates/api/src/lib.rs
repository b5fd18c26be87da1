//! Reads TileDB arrays and groups, of every format version, without the TileDB library.
//!
//! Local folders need no feature. Arrays at `s3://`, `gs://` and `azure://` need the feature `cloud`, which brings clients
//! for HTTP and TLS. Until there is a release, a project names the repository, or a checkout of it:
//!
//! ```toml
//! tilefs-api = { git = "https://github.com/tilefs/tilefs", features = ["cloud"] }
//! tilefs-api = { path = "../tilefs/crates/api", features = ["cloud"] }
//! ```
//!
//! ```no_run
//! # fn main() -> tilefs_api::Result<()> {
//! let dem = tilefs_api::open("dem.tdb")?.into_array()?;
//! for attribute in &dem.schema().attributes {
//!     println!("{}: {}", attribute.name, attribute.datatype.name());
//! }
//! let heights: Vec<f32> = dem.dense()?.read("height", &[0..=99, 200..=299])?;
//!
//! let cells = tilefs_api::open("s3://bucket/cells")?.into_array()?;
//! for batch in cells.rows()?.columns(&["soma_joinid", "cell_type"])?.batches()? {
//!     let ids: Vec<i64> = batch?.column("soma_joinid")?.to_vec()?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! [`open`] opens an array or a group as of now, and [`OpenOptions`] as of another time, with a key, or with another
//! budget of memory. [`Array::dense`] reads boxes, [`Array::rows`] reads rows in batches of columns, and
//! [`Array::select`] those that a text such as `day=2020-01` selects. [`Array::metadata`] and [`Group::metadata`] read metadata, and
//! [`Group::members`] lists a group. Everything is synchronous, `Send` and `Sync`. Bytes that cannot be proven right are an
//! [`Error`] that names their [`Place`](error::Place).
//!
//! Schemas and values have the types of [`format`](mod@format).

#![deny(missing_docs, unnameable_types)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

mod array;
mod object;
mod open;

pub use array::Array;
pub use object::{Group, Member, Object};
pub use open::{OpenOptions, open};
#[doc(inline)]
pub use tilefs_base::error;
#[doc(inline)]
pub use tilefs_base::error::{Error, Result};
pub use tilefs_format as format;
#[doc(inline)]
pub use tilefs_reader::{
    CoordinateRange, DenseReader, LongKey, Metadata, MetadataItem, Number, RowBatch, RowBatches, RowCondition,
    RowCount, RowReader, ValueRange, Values,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct ApiReadme;
