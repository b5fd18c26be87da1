//! Presents cells as the bytes of files: each format is a [`Content`](tilefs_base::content::Content) that computes cells
//! from byte offsets.
//!
//! The documentation leaves out modules that are public only for the program; they may change in any release.

#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

pub mod arrow;
#[doc(hidden)]
pub mod cf;
pub mod column;
pub mod content;
pub mod fits;
pub mod geo;
pub mod hdf5;
pub mod netcdf;
pub mod nifti;
pub mod npy;
#[doc(hidden)]
pub mod number;
pub mod parquet;
pub mod pyramid;
pub mod raster;
pub mod tables;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod testing;
pub mod text;
pub mod tiff;
pub mod zarr;

pub use column::{Column, Columns, Exported, Field, FormatResult, Labels, Metadatum, Unrepresentable};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct ExportReadme;
