//! An HDF5 file of a whole array, with the same variables, dimensions and attributes as [`netcdf`](crate::netcdf),
//! little-endian.
//!
//! There are two forms. Both can hold all types of TileDB, except that numbers of variable length are one dataset with
//! their offsets in another, as in netCDF:
//!
//! * netCDF-4 is what netCDF's library writes: each dimension is a dimension scale, texts of variable length are
//!   strings, other texts arrays of characters, booleans bytes, and texts of attributes characters.
//! * The plain form is what h5py writes: booleans without nulls are an enumeration, texts of fixed length strings of
//!   that length. Only dimensions with coordinates are scales, and only of datasets all of whose dimensions have
//!   scales.
//!
//! Strings of HDF5 end at a NUL, so readers do not see NULs at the end of a text. Reading a text that continues after a
//! NUL is an error.

mod annotated;
mod chunks;
mod file;
mod tree;

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::Result;

use crate::column::dataset::CfDataset;
use crate::column::{Column, Columns};
use crate::netcdf::Version;
use crate::netcdf::plan::FilePlan;

pub use annotated::annotated_data;
pub use tree::Form;

/// Returns the HDF5 file of an array. Reads the lengths of texts, but no other cells.
///
/// # Errors
/// Fails if offsets of texts cannot be read, or if HDF5 cannot hold the array.
pub fn hdf5(columns: &Columns, form: Form) -> Result<Arc<dyn Content>> {
    Ok(Arc::new(tree::file(&FilePlan::of(columns, Version::NetCdf4)?, form)?))
}

/// Returns the HDF5 file of variables that share dimensions. In netCDF-4, values along dimensions that can grow are in
/// chunks; in the plain form, all dimensions have a fixed length.
///
/// # Errors
/// As for [`hdf5`].
pub fn hdf5_of_dataset(dataset: &CfDataset<Column>, form: Form) -> Result<Arc<dyn Content>> {
    Ok(Arc::new(tree::file(&FilePlan::of_dataset(dataset, Version::NetCdf4)?, form)?))
}

#[cfg(test)]
mod tests;
