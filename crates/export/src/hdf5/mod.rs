//! An HDF5 file of a whole array: the variables, dimensions and attributes that [`netcdf`](super::netcdf) has, little-endian.
//!
//! There are two forms. Both have all types of TileDB but numbers of variable length, which are one dataset with their
//! offsets in another, as in netCDF:
//!
//! * netCDF-4 is what netCDF's library writes: each dimension is a dimension scale, texts of variable length are strings,
//!   other texts arrays of characters, booleans bytes, and texts of attributes characters.
//! * The plain form is what h5py writes: booleans without nulls are an enumeration, texts of one length strings of that length, and only
//!   dimensions with coordinates are scales, of datasets all of whose dimensions are.
//!
//! Strings of HDF5 end at a NUL, so readers do not see those at the end of a text. A text that goes on behind one makes the
//! read fail that meets it.

mod annotated;
mod file;
mod tree;

use std::sync::Arc;

use tilefs_format::error::{Error, Result};

use super::column::{Columns, Unrepresentable};
use super::content::Content;
use super::netcdf::Version;
use super::netcdf::variables::Plan;

pub use annotated::annotated_data;

/// Whose conventions a file follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Those of the library of netCDF.
    NetCdf4,
    /// Those of h5py.
    Plain,
}

/// The HDF5 file of an array. Lengths of texts are read, no other cells.
///
/// # Errors
/// When offsets of texts cannot be read, and where HDF5 cannot hold the array.
pub fn hdf5(columns: &Columns, form: Form) -> Result<Arc<dyn Content>> {
    let unsupported = |reason: Unrepresentable| Error::unsupported(reason.to_string());
    let plan = Plan::of(columns, Version::NetCdf4).map_err(unsupported)?;
    Ok(Arc::new(tree::file(&plan, form)?))
}

#[cfg(test)]
mod tests;
