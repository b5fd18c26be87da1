//! FITS images: the values of a dense attribute of any number of axes, with a header of keywords, for astronomy.
//!
//! After the FITS standard, version 4.0: the file consists of blocks of 2880 bytes. The header has cards of 80
//! characters. The values are big-endian and in row-major order, the last axis of the array is the first one of FITS.
//! All integers but those of 8 bits are signed; for the others, `BZERO` is half of their range.

mod header;
mod world;

use std::sync::Arc;

use tilefs_format::datatype::{Datatype, Kind};

use crate::column::{Column, Field, FormatResult, Metadatum, Unrepresentable};
use crate::content::Content;
use crate::content::compose::{Concat, Repeat};
use crate::content::element::{Converted, Swapped};
use crate::content::masked::Masked;
use crate::number;
use crate::raster::axis::ImageAxis;

/// Headers and values are padded to a multiple of this many bytes.
const BLOCK: u64 = 2880;

/// Maximum number of axes of a FITS image.
const MAX_AXES: usize = 999;

/// Checks whether a FITS image can hold an attribute of an array of this rank; returns the reason if not.
pub fn check(field: &Field, rank: usize) -> FormatResult<()> {
    StoredNumbers::of(field)?;
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

/// The form in which FITS holds the numbers of a datatype.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StoredNumbers {
    datatype: Datatype,
    /// Bits of a value; negative for floats.
    bits: i64,
    /// The value that a stored 0 stands for.
    zero: i128,
    /// Whether values are stored in twice as many bits, so that an integer is free to stand for null.
    is_widened: bool,
}

impl StoredNumbers {
    fn of(field: &Field) -> FormatResult<Self> {
        if field.values_per_cell.is_none() {
            return Err(Unrepresentable::new("a FITS image has cells of one size, and here each cell has its own"));
        }
        let datatype = field.datatype;
        let (bits, zero) = match (datatype.kind(), datatype.size() as i64 * 8) {
            (Kind::Bytes, _) => return Err(Unrepresentable::new("a FITS image has no text or blobs")),
            (Kind::Float, bits) => (-bits, 0),
            (Kind::Signed, 8) => (8, -128),
            (Kind::Unsigned, 8) => (8, 0),
            (Kind::Signed, bits) => (bits, 0),
            (Kind::Unsigned, bits) => (bits, 1 << (bits - 1)),
        };
        Ok(StoredNumbers { datatype, bits, zero, is_widened: false })
    }

    /// Returns the form of the numbers of a column, with an integer that stands for null if cells can be null.
    fn of_column(column: &Column) -> FormatResult<Self> {
        let numbers = StoredNumbers::of(&column.field)?;
        if column.validity.is_none() || numbers.is_float() || numbers.marker(column).is_some() {
            return Ok(numbers);
        }
        match column.field.datatype.size() as i64 * 16 {
            bits @ ..=64 => Ok(StoredNumbers { bits, zero: 0, is_widened: true, ..numbers }),
            _ => Err(Unrepresentable::new("cells can be null, and all integers of 64 bits may be values of others")),
        }
    }

    fn is_float(self) -> bool {
        self.bits < 0
    }

    /// Returns the value that marks missing cells of a column: for nullable ones that of nulls.
    fn marker(self, column: &Column) -> Option<&Vec<u8>> {
        let field = &column.field;
        field.no_data.as_ref().or(field.null.as_ref().filter(|_| column.validity.is_some()))
    }

    /// Returns the stored integer that marks missing cells of a column, if they are integers and any is marked.
    fn blank(self, column: &Column) -> Option<i128> {
        if self.is_widened {
            return Some(-1 << (self.bits - 1));
        }
        let not_a_time = || self.datatype.time_unit().map(|_| i128::from(i64::MIN));
        let marked = self.marker(column).and_then(|value| number::integer(self.datatype, value));
        Some(marked.or_else(not_a_time)? - self.zero)
    }

    /// Returns the value in place of nulls, little-endian, if cells can be null.
    fn null(self, column: &Column) -> Option<Vec<u8>> {
        match (self.bits, column.validity.is_some()) {
            (_, false) => None,
            (-32, _) => Some(f32::NAN.to_le_bytes().to_vec()),
            (-64, _) => Some(f64::NAN.to_le_bytes().to_vec()),
            (bits, _) if self.is_widened => {
                (i64::MIN >> (64 - bits)).to_le_bytes().get(..bits as usize / 8).map(<[u8]>::to_vec)
            }
            _ => self.marker(column).cloned(),
        }
    }

    /// Returns the stored values.
    fn values(self, column: &Column) -> Arc<dyn Content> {
        let (size, datatype) = (column.field.datatype.size(), self.datatype);
        let width = self.bits.unsigned_abs() as usize / 8;
        let mut values = column.values.clone();
        if self.is_widened {
            values = Arc::new(Converted::new(values, size, width, move |from, to| {
                for (from, to) in from.chunks_exact(size).zip(to.chunks_exact_mut(width)) {
                    let wide = number::integer(datatype, from).unwrap_or_default().to_le_bytes();
                    to.iter_mut().zip(wide).for_each(|(to, byte)| *to = byte);
                }
                Ok(())
            }));
        }
        if let (Some(validity), Some(null)) = (&column.validity, self.null(column)) {
            let per_cell = column.field.values_per_cell.unwrap_or(1) as usize;
            values = Arc::new(Masked::new(values, validity.clone(), null.repeat(per_cell)));
        }
        match (self.zero, width) {
            (0, 1) => values,
            (0, _) => Arc::new(Swapped::new(values, width)),
            // Adding half of the range is to invert the first bit.
            _ => Arc::new(Converted::new(values, width, width, move |from, to| {
                invert_first_bits(width, from, to);
                Ok(())
            })),
        }
    }
}

/// Writes little-endian integers as big-endian ones with their first bit inverted.
fn invert_first_bits(width: usize, from: &[u8], to: &mut [u8]) {
    match width {
        1 => to.iter_mut().zip(from).for_each(|(to, from)| *to = from ^ 0x80),
        2 => {
            let pairs = to.as_chunks_mut().0.iter_mut().zip(from.as_chunks().0);
            pairs.for_each(|(to, from)| *to = (u16::from_le_bytes(*from) ^ 1 << 15).to_be_bytes());
        }
        4 => {
            let pairs = to.as_chunks_mut().0.iter_mut().zip(from.as_chunks().0);
            pairs.for_each(|(to, from)| *to = (u32::from_le_bytes(*from) ^ 1 << 31).to_be_bytes());
        }
        _ => {
            let pairs = to.as_chunks_mut().0.iter_mut().zip(from.as_chunks().0);
            pairs.for_each(|(to, from)| *to = (u64::from_le_bytes(*from) ^ 1 << 63).to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests;
