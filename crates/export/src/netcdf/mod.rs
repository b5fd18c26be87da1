//! A netCDF classic file of a whole array: a header, then one big-endian variable after the other. What variables there
//! are, and what is said of them, is also what [`hdf5`](super::hdf5) has.
//!
//! The 64-bit offset form (CDF-2) is what every reader of netCDF knows; the 64-bit data form (CDF-5) holds
//! all types and sizes, but GDAL and SciPy may not open it. So CDF-2 is tried first:
//!
//! * Unsigned integers are stored as the signed ones with the attribute `_Unsigned = "true"`.
//! * 64-bit integers and dates whose bounds are known (axes, coordinates of sparse cells) are stored as
//!   32-bit integers if those bounds allow, else as doubles up to 2^53, which are exact there. Where no
//!   bounds are known the file is CDF-5: a value that might not fit is no reason to lie.
//! * Only one variable may be longer than 4 GiB, which is then the last; no dimension is longer than 2^31-4.
//!
//! What the file says, after the CF conventions:
//!
//! * The axes of a dense array are dimensions with coordinate variables. The cells of a sparse array are
//!   the dimension `cells`, and its coordinates are variables along it; those of its only dimension are the coordinate
//!   variable of the cells, whose dimension then has that name.
//! * Where the array is a raster with a place on the Earth, the coordinates of its rows and columns are those of the
//!   centres of pixels in that coordinate system, which the variable `crs` describes. A rotated one has its transform
//!   there only.
//! * Several values a cell are a dimension more. Text of variable length is too, as long as the longest value; readers
//!   make texts of it. Where that would be much larger than the values, for more than 16 million cells, and for numbers
//!   of variable length, all values are one variable, and `NAME_offsets` says where those of each cell begin, in bytes.
//! * What marks missing numbers and dates is `_FillValue`: see [`Field::no_data`](super::Field).
//! * Nulls hold `_FillValue` where a value is free for it, else what the array has stored; `NAME_valid` is 0 for them.
//! * Dates are counts "since 1970-01-01". Years, months and weeks, which CF cannot count, become days.
//! * The labels of an enumeration are `NAME_labels`, and up to 256 of them `flag_meanings`.
//! * The metadata are global attributes, those of one field alone attributes of its variable.
//!
//! What a variable's values are is said by ours: its type, `_FillValue`, units of dates. Of the array's metadata
//! everything else.
//!
//! The library of netCDF itself takes one value of every type of more than a byte, -32767 of 16 bits and -2147483647 of
//! 32, for one that was never written, unless there is a `_FillValue`. `netCDF4` masks it, xarray does not.

pub(super) mod header;
mod metadata;
pub(super) mod types;
pub(super) mod variables;

use std::sync::Arc;

use super::column::{Column, Columns, Exported, FormatResult, Unrepresentable};
use super::compose::{Concat, Repeat};
use super::content::Content;
use super::dataset::Dataset;
use header::{Header, Placed};
use variables::Plan;

/// The forms of netCDF that an array can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// 64-bit offsets: six types, at most 4 GiB a variable except the last.
    Cdf2,
    /// 64-bit data: unsigned and 64-bit integers, any size.
    Cdf5,
    /// HDF5: all of that, strings, and little-endian values.
    NetCdf4,
}

impl Version {
    /// Whether it is one of the two classic formats.
    pub fn is_classic(self) -> bool {
        self != Version::NetCdf4
    }
}

/// A netCDF file and its form.
#[derive(Clone)]
pub struct NetCdf {
    pub version: Version,
    pub file: Exported,
}

/// The netCDF file of an array: CDF-2, or CDF-5 where CDF-2 cannot hold it.
///
/// Columns that neither can hold are left out, with the reason.
pub fn netcdf(columns: &Columns) -> FormatResult<NetCdf> {
    written(|version| Plan::of(columns, version))
}

/// The netCDF file of variables that share dimensions, of which it says nothing that their arrays do not: as
/// [`netcdf`] otherwise.
pub fn netcdf_of_dataset(dataset: &Dataset<Column>) -> FormatResult<NetCdf> {
    written(|version| Plan::of_dataset(dataset, version))
}

fn written(plan: impl Fn(Version) -> FormatResult<Plan>) -> FormatResult<NetCdf> {
    let file = match plan(Version::Cdf2).and_then(|plan| write(plan, Version::Cdf2)) {
        Ok(file) => return Ok(NetCdf { version: Version::Cdf2, file }),
        Err(_) => write(plan(Version::Cdf5)?, Version::Cdf5)?,
    };
    Ok(NetCdf { version: Version::Cdf5, file })
}

/// Variables begin at multiples of this, so that a reader's pages hold whole values.
const ALIGNMENT: u64 = 64;

fn write(mut plan: Plan, version: Version) -> FormatResult<Exported> {
    if version == Version::Cdf2 {
        plan.move_longest_to_the_end()?;
    }
    let mut header = Header {
        version,
        dimensions: &plan.dimensions,
        attributes: &plan.attributes,
        variables: plan.variables.iter().map(|variable| Placed { variable, begin: 0 }).collect(),
    };
    // The places do not change the header's length.
    let too_long = || Unrepresentable::new("netCDF has no files over 2^63 bytes");
    let mut end = header.encode().len() as u64;
    let mut parts: Vec<Arc<dyn Content>> = Vec::new();
    for placed in header.variables.iter_mut().filter(|placed| !placed.variable.content.is_empty()) {
        let begin = end.checked_next_multiple_of(ALIGNMENT).ok_or_else(too_long)?;
        parts.push(Arc::new(Repeat::zeros(begin - end)));
        parts.push(placed.variable.content.clone());
        placed.begin = begin;
        end = begin.checked_add(placed.variable.content.len()).ok_or_else(too_long)?;
    }
    let padded = end.checked_next_multiple_of(4).filter(|&end| end <= i64::MAX as u64).ok_or_else(too_long)?;
    // The places of a first record, which a file without records ends before.
    let mut record = padded;
    for placed in header.variables.iter_mut().filter(|placed| placed.variable.content.is_empty()) {
        placed.begin = record;
        record = record.saturating_add(placed.variable.size(&plan.dimensions).div_ceil(4).saturating_mul(4));
    }
    parts.insert(0, Arc::new(header.encode()));
    parts.push(Arc::new(Repeat::zeros(padded - end)));
    Ok(Exported { content: Arc::new(Concat::new(parts)), left_out: plan.left_out })
}

#[cfg(test)]
mod tests;
