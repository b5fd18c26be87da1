//! A netCDF classic file of a whole array: a header, followed by the big-endian variables. [`hdf5`](crate::hdf5) uses
//! the same variables and attributes.
//!
//! Every netCDF reader supports the 64-bit offset form (CDF-2). The 64-bit data form (CDF-5) holds all types and sizes,
//! but GDAL and SciPy may not open it. So CDF-2 is tried first:
//!
//! * Unsigned integers are stored as signed ones with the attribute `_Unsigned = "true"`.
//! * 64-bit integers and dates with known bounds (axes, coordinates of sparse cells) are stored as 32-bit integers if
//!   the bounds allow it, otherwise as doubles up to 2^53, which are exact in that range. Without known bounds the file
//!   is CDF-5, because a value might not fit.
//! * Only one variable may be longer than 4 GiB, and must be the last; no dimension may be longer than 2^31-4.
//!
//! Contents of the file, according to the CF conventions:
//!
//! * The axes of a dense array are dimensions with coordinate variables. The cells of a sparse array are the dimension
//!   `cells`, and their coordinates are variables along it; if the array has only one dimension, its coordinates are
//!   the coordinate variable of the cells, whose dimension then has that name.
//! * If the array is a georeferenced raster, the coordinates of its rows and columns are those of the pixel centres in
//!   that coordinate system, which the variable `crs` describes. The transform of a rotated raster is only in `crs`.
//! * Several values per cell are an additional dimension. So is text of variable length, padded to the longest value;
//!   readers decode it to texts. If that would be much larger than the values, for more than 16 million cells, and for
//!   numbers of variable length, all values are one variable, and `NAME_offsets` contains the byte offset of each
//!   cell's values.
//! * The marker of missing numbers and dates is `_FillValue`: see [`Field::no_data`](crate::Field).
//! * Nulls hold `_FillValue` if a value is free for it, otherwise the value stored in the array; `NAME_valid` is 0 for
//!   them.
//! * Dates are counts "since 1970-01-01". Years, months and weeks, which CF cannot count, become days.
//! * The labels of an enumeration are `NAME_labels`, and up to 256 of them `flag_meanings`.
//! * The array's metadata are global attributes; those about one field are attributes of its variable.
//!
//! The attributes that define the meaning of a variable's values are generated: type, `_FillValue`, units of dates. All
//! other attributes come from the array's metadata.
//!
//! netCDF's library reads the first 4 MiB of a file, and does not open it if one of these bytes is an error. So a
//! date that is too far away to be a number of days is "not a time", and texts that are not UTF-8 are the bytes
//! that are stored, which readers refuse to decode. Damage stays an error: each variable begins at a page of its
//! own, so that readers of smaller parts can read the header and the other variables. Only variables along the
//! record dimension share pages.
//!
//! netCDF's library itself treats one value of every type wider than a byte as unwritten (-32767 for 16 bits,
//! -2147483647 for 32), unless there is a `_FillValue`. `netCDF4` masks it, xarray does not.

mod header;
mod metadata;
pub(super) mod plan;
mod records;
pub(super) mod types;
mod variables;

use std::sync::Arc;

use tilefs_base::content::Content;

use crate::column::dataset::CfDataset;
use crate::column::{Column, Columns, Exported, FormatResult, Unrepresentable};
use crate::content::MEMORY_PAGE;
use crate::content::compose::{Concat, Repeat};
use header::{NcHeader, PlacedVariable};
use plan::FilePlan;
use records::RecordSection;

pub use types::Version;

/// A netCDF file and its form.
#[derive(Clone)]
pub struct NetCdf {
    /// The version of the classic format.
    pub version: Version,
    /// The file, and what it leaves out.
    pub file: Exported,
}

/// Returns the netCDF file of an array: CDF-2, or CDF-5 if CDF-2 cannot hold it.
///
/// Columns that neither can hold are omitted, with the reason.
pub fn netcdf(columns: &Columns) -> FormatResult<NetCdf> {
    written(|version| FilePlan::of(columns, version))
}

/// Returns the netCDF file of variables that share dimensions, like [`netcdf`]. The attributes contain nothing beyond
/// the dataset's metadata. A dimension that can grow is the record dimension, if that is possible.
pub fn netcdf_of_dataset(dataset: &CfDataset<Column>) -> FormatResult<NetCdf> {
    written(|version| FilePlan::of_dataset(dataset, version))
}

fn written(plan: impl Fn(Version) -> FormatResult<FilePlan>) -> FormatResult<NetCdf> {
    let file = match plan(Version::Cdf2).and_then(|plan| write(plan, Version::Cdf2)) {
        Ok(file) => return Ok(NetCdf { version: Version::Cdf2, file }),
        Err(_) => write(plan(Version::Cdf5)?, Version::Cdf5)?,
    };
    Ok(NetCdf { version: Version::Cdf5, file })
}

/// Alignment of variables. Kernels ask for whole pages, and a page with a value that cannot be read is an error; so none
/// has the header, or values of two variables.
const ALIGNMENT: u64 = MEMORY_PAGE;

fn write(mut plan: FilePlan, version: Version) -> FormatResult<Exported> {
    if version == Version::Cdf2 {
        plan.move_longest_to_the_end()?;
    }
    let mut header = NcHeader {
        version,
        plan: &plan,
        variables: plan.variables.iter().map(|variable| PlacedVariable { variable, begin: 0 }).collect(),
    };
    // The positions do not affect the header's length.
    let too_long = || Unrepresentable::new("netCDF has no files over 2^63 bytes");
    let mut end = header.encode().len() as u64;
    let mut parts: Vec<Arc<dyn Content>> = Vec::new();
    let is_placed =
        |placed: &&mut PlacedVariable<'_>| !plan.is_record(placed.variable) && !placed.variable.content.is_empty();
    for placed in header.variables.iter_mut().filter(is_placed) {
        let begin = end.checked_next_multiple_of(ALIGNMENT).ok_or_else(too_long)?;
        parts.push(Arc::new(Repeat::zeros(begin - end)));
        parts.push(placed.variable.content.clone());
        placed.begin = begin;
        end = begin.checked_add(placed.variable.content.len()).ok_or_else(too_long)?;
    }
    if let Some((records, starts)) = RecordSection::of(&plan) {
        let begin = end.checked_next_multiple_of(ALIGNMENT).ok_or_else(too_long)?;
        for (placed, start) in header.variables.iter_mut().zip(starts) {
            placed.begin = start.map_or(placed.begin, |start| begin.saturating_add(start));
        }
        parts.push(Arc::new(Repeat::zeros(begin - end)));
        end = begin.checked_add(records.len()).ok_or_else(too_long)?;
        parts.push(Arc::new(records));
    }
    let padded = end.checked_next_multiple_of(4).filter(|&end| end <= i64::MAX as u64).ok_or_else(too_long)?;
    // Empty variables get the positions that they would have in a first record, behind the end of the file.
    let mut record = padded;
    for placed in header.variables.iter_mut().filter(|placed| placed.variable.content.is_empty()) {
        placed.begin = record;
        record = record.saturating_add(plan.size_of(placed.variable).div_ceil(4).saturating_mul(4));
    }
    parts.insert(0, Arc::new(header.encode()));
    parts.push(Arc::new(Repeat::zeros(padded - end)));
    Ok(Exported { content: Arc::new(Concat::new(parts)), left_out: plan.left_out })
}

#[cfg(test)]
mod tests;
