//! Presents cells as the bytes of files: each format is a [`Content`] that computes cells from byte offsets.
//!
//! The documentation leaves out modules that are public only for the program; they may change in any release.

#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

pub mod arrow;
mod bits;
#[doc(hidden)]
pub mod boxes;
#[doc(hidden)]
pub mod calendar;
#[doc(hidden)]
pub mod cf;
pub mod column;
#[doc(hidden)]
pub mod compose;
#[doc(hidden)]
pub mod computed;
pub mod content;
pub mod dataset;
#[doc(hidden)]
pub mod element;
pub mod envi;
#[doc(hidden)]
pub mod extension;
pub mod geoparquet;
pub mod georeference;
pub mod hdf5;
#[doc(hidden)]
pub mod masked;
#[doc(hidden)]
pub mod microseconds;
mod names;
pub mod netcdf;
pub mod npy;
#[doc(hidden)]
pub mod number;
#[doc(hidden)]
pub mod padded;
#[doc(hidden)]
pub mod pam;
pub mod pam_metadata;
mod pam_text;
pub mod pandas;
pub mod parquet;
mod presence;
#[doc(hidden)]
pub mod projjson;
pub mod pyramid;
pub mod raster;
#[doc(hidden)]
pub mod raw;
#[doc(hidden)]
pub mod sidecar;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod testing;
pub mod text;
pub mod tiff;
mod utf8;
#[doc(hidden)]
pub mod var;
mod views;
#[doc(hidden)]
pub mod wkt;
mod xml;
pub mod zarr;

pub use column::{Column, Columns, Exported, Field, FormatResult, Labels, Metadatum, Unrepresentable};
pub use content::{Content, Forward};
