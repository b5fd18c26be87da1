//! The stored numbers of a FITS image: big-endian, with an offset for integers whose sign FITS does not have.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_format::datatype::{Datatype, Kind};

use crate::column::{Column, Field, FormatResult, Unrepresentable};
use crate::content::element::{Converted, Swapped};
use crate::content::masked::Masked;
use crate::number;

/// The form in which FITS holds the numbers of a datatype.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StoredNumbers {
    datatype: Datatype,
    /// Bits of a value; negative for floats.
    pub(super) bits: i64,
    /// The value that a stored 0 stands for.
    pub(super) zero: i128,
    /// Whether values are stored in twice as many bits, so that an integer is free to stand for null.
    is_widened: bool,
}

impl StoredNumbers {
    pub(super) fn of(field: &Field) -> FormatResult<Self> {
        if field.values_per_cell.is_none() {
            return Err(Unrepresentable::varying_cells());
        }
        let datatype = field.datatype;
        let (bits, zero) = match (datatype.kind(), datatype.size() as i64 * 8) {
            (Kind::Bytes, _) => return Err(Unrepresentable::bytes()),
            (Kind::Float, bits) => (-bits, 0),
            (Kind::Signed, 8) => (8, -128),
            (Kind::Unsigned, 8) => (8, 0),
            (Kind::Signed, bits) => (bits, 0),
            (Kind::Unsigned, bits) => (bits, 1 << (bits - 1)),
        };
        Ok(StoredNumbers { datatype, bits, zero, is_widened: false })
    }

    /// Returns the form of the numbers of a column, with an integer that stands for null if cells can be null.
    pub(super) fn of_column(column: &Column) -> FormatResult<Self> {
        let numbers = StoredNumbers::of(&column.field)?;
        if column.validity.is_none() || numbers.is_float() || numbers.marker(column).is_some() {
            return Ok(numbers);
        }
        match column.field.datatype.size() as i64 * 16 {
            bits @ ..=64 => Ok(StoredNumbers { bits, zero: 0, is_widened: true, ..numbers }),
            _ => Err(Unrepresentable::nulls_among_integers()),
        }
    }

    /// Refuses integers of 64 bits if cells can be null and no integer is known to be free to stand for null.
    pub(super) fn check_nulls(self, field: &Field) -> FormatResult<()> {
        let has_marker = field.no_data.is_some() || field.null.is_some();
        if field.nullable && self.bits == 64 && !has_marker {
            return Err(Unrepresentable::nulls_among_integers());
        }
        Ok(())
    }

    pub(super) fn is_float(self) -> bool {
        self.bits < 0
    }

    /// Returns the value that marks missing cells of a column: for nullable ones that of nulls.
    pub(super) fn marker(self, column: &Column) -> Option<&Vec<u8>> {
        let field = &column.field;
        field.no_data.as_ref().or(field.null.as_ref().filter(|_| column.validity.is_some()))
    }

    /// Returns the stored integer that marks missing cells of a column, if they are integers and any is marked.
    pub(super) fn blank(self, column: &Column) -> Option<i128> {
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
    pub(super) fn values(self, column: &Column) -> Arc<dyn Content> {
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
