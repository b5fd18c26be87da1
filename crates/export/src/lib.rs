//! Presents cells as the bytes of files: each format is a [`Content`] that computes cells from byte offsets.

#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

pub mod arrow;
mod bits;
pub mod boxes;
pub mod calendar;
pub mod cf;
pub mod column;
pub mod compose;
pub mod computed;
pub mod content;
pub mod dataset;
pub mod element;
pub mod envi;
pub mod extension;
pub mod geoparquet;
pub mod georeference;
pub mod hdf5;
pub mod masked;
pub mod microseconds;
mod names;
pub mod netcdf;
pub mod npy;
pub mod number;
pub mod padded;
pub mod pam;
pub mod pandas;
pub mod parquet;
mod presence;
pub mod projjson;
pub mod pyramid;
pub mod raster;
pub mod raw;
pub mod sidecar;
#[cfg(test)]
pub(crate) mod testing;
pub mod text;
pub mod tiff;
mod utf8;
pub mod var;
pub mod vcf;
mod views;
pub mod wkt;
mod xml;
pub mod zarr;

pub use column::{Column, Columns, Exported, Field, FormatResult, Labels, Metadatum, Unrepresentable};
pub use content::{Content, Forward};
