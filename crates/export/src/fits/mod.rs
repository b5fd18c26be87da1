//! FITS images: the values of a dense attribute of any number of axes, with a header of keywords, for astronomy.
//!
//! After the FITS standard, version 4.0: the file consists of blocks of 2880 bytes. The header has cards of 80
//! characters. The values are big-endian and in row-major order, the last axis of the array is the first one of FITS.
//! FITS has unsigned integers of 8 bits, and signed integers of more bits. Signed integers of 8 bits and unsigned
//! integers of more bits are stored with an offset, `BZERO`: half of their range.

mod header;
mod numbers;
mod value;
mod world;

use std::sync::Arc;

use tilefs_base::content::Content;

use crate::column::{Column, Field, FormatResult, Metadatum, Unrepresentable};
use crate::content::compose::{Concat, Repeat};
use crate::raster::axis::ImageAxis;
use header::BLOCK;
use numbers::StoredNumbers;

/// Maximum number of axes of a FITS image.
const MAX_AXES: usize = 999;

/// Checks whether a FITS image can hold an attribute of an array of this rank; returns the reason if not.
pub fn check(field: &Field, rank: usize) -> FormatResult<()> {
    StoredNumbers::of(field)?.check_nulls(field)?;
    match rank + usize::from(field.values_per_cell != Some(1)) {
        0..=MAX_AXES => Ok(()),
        axes => {
            Err(Unrepresentable::new(format!("a FITS image has up to {MAX_AXES} axes, and this would have {axes}")))
        }
    }
}

/// Returns the FITS file of a column of a dense array whose axes are `axes`, with the metadata that keywords can hold.
///
/// Null and missing integers are `BLANK`, null floats are not-a-number. If no integer is free to stand for null, the values
/// are wider; for those of 64 bits, that is an error. Several values per cell are FITS' first axis. Scale and offset among
/// the notes of the field are `BSCALE` and `BZERO`: readers show what the values mean.
pub fn fits(column: &Column, axes: &[ImageAxis], metadata: &[Metadatum]) -> FormatResult<Arc<dyn Content>> {
    column.check()?;
    check(&column.field, column.shape.len())?;
    let numbers = StoredNumbers::of_column(column)?;
    let header = header::header(column, numbers, axes, metadata)?;
    let values = numbers.values(column);
    let padding = values.len().next_multiple_of(BLOCK) - values.len();
    Ok(Arc::new(Concat::new(vec![Arc::new(header), values, Arc::new(Repeat::zeros(padding))])))
}

#[cfg(test)]
mod tests;
