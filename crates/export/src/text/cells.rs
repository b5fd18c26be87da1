//! The positions of a column's cells among its values: consecutive, or given by offsets.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::inputs::{Recorded, Recorder};
use tilefs_base::output::Output;

use crate::column::{Column, FormatResult, Unrepresentable};
use crate::content::offsets::Offsets;
use crate::content::validity::{RowValidity, Validity};

/// The cells of a column, each consisting of elements: numbers, or bytes of a text.
pub struct ColumnCells {
    name: String,
    /// Size of an element in bytes.
    pub size: u64,
    count: Count,
    values: Arc<dyn Content>,
    /// Which cells are null, if any can be.
    pub validity: Option<Validity>,
}

/// The number of elements of a cell.
enum Count {
    Each(u64),
    /// Given by the offsets.
    Offsets(Offsets),
}

impl Recorded for ColumnCells {
    fn record(&self, recorder: &mut Recorder) {
        let Self { name, size, count, values, validity } = self;
        recorder.add::<Self>((name, size, self.each(), validity.is_some()));
        if let Count::Offsets(offsets) = count {
            offsets.record(recorder);
        }
        Content::record(values, recorder);
        validity.iter().for_each(|validity| validity.record(recorder));
    }
}

impl ColumnCells {
    /// Creates the cells of a column whose lengths agree.
    pub fn new(column: &Column) -> FormatResult<Self> {
        let field = &column.field;
        if column.elements.is_some() {
            return Err(Unrepresentable::new("text tables have no lists of texts, or of numbers that can be null"));
        }
        let count = match (field.values_per_cell, &column.offsets) {
            (Some(values), _) => Count::Each(u64::from(values)),
            (None, Some(offsets)) => Count::Offsets(offsets.clone()),
            (None, None) => return Err(Unrepresentable::new(format!("{}: it has no offsets", field.name))),
        };
        Ok(ColumnCells {
            name: field.name.clone(),
            size: field.datatype.size() as u64,
            count,
            values: column.values.clone(),
            validity: column.validity.clone(),
        })
    }

    /// Returns the name of the column.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of elements of each cell, if it is the same for all.
    pub fn each(&self) -> Option<u64> {
        match self.count {
            Count::Each(count) => Some(count),
            Count::Offsets(_) => None,
        }
    }

    /// Returns the total number of elements of this many rows.
    pub fn total(&self, rows: u64) -> Option<u64> {
        match self.each() {
            Some(each) => rows.checked_mul(each),
            None => Some(self.values.len() / self.size),
        }
    }

    /// Writes to `out` the number of the first element of each of `count` rows from `first`, and of the row after them.
    ///
    /// # Errors
    /// Fails if offsets cannot be read, decrease, or lie outside the values.
    pub fn elements(&self, first: u64, count: u64, out: &mut Vec<u64>) -> Result<()> {
        out.clear();
        let offsets = match &self.count {
            Count::Each(each) => {
                out.extend((first..=first + count).map(|row| row * each));
                return Ok(());
            }
            Count::Offsets(offsets) => offsets,
        };
        let mut bytes = [0; 8 * 128];
        let (mut before, mut row) = (0, first);
        while row <= first + count {
            let part = bytes.len().min((first + count + 1 - row) as usize * 8);
            offsets.read_at(row * 8, &mut bytes[..part])?;
            for offset in bytes[..part].as_chunks().0 {
                let offset = u64::from_le_bytes(*offset);
                if offset < before || offset > self.values.len() || !offset.is_multiple_of(self.size) {
                    return Err(Error::damaged(format!("the offset {offset} of a value")).in_field(&self.name));
                }
                out.push(offset / self.size);
                before = offset;
            }
            row += part as u64 / 8;
        }
        Ok(())
    }

    /// Returns the number of the first element of a row or, after the last row, the number of all elements.
    ///
    /// # Errors
    /// As for [`ColumnCells::elements`].
    pub fn element(&self, row: u64) -> Result<u64> {
        let mut element = Vec::with_capacity(1);
        self.elements(row, 0, &mut element)?;
        Ok(element.first().copied().unwrap_or(0))
    }

    /// Reads elements into `scratch`, or prefetches them if `out` has no memory.
    ///
    /// # Errors
    /// Fails if they cannot be read.
    pub fn read_values(&self, elements: Range<u64>, out: &Output<'_>, scratch: &mut Vec<u8>) -> Result<()> {
        let length = elements.end.saturating_sub(elements.start).saturating_mul(self.size);
        let values = out.aside(length, scratch);
        if values.is_empty() { Ok(()) } else { self.values.read(elements.start * self.size, values) }
    }

    /// Prefetches the cells between two positions: their validity, values, and offsets. A position is a row, and the
    /// number of elements of its cell before the position.
    ///
    /// # Errors
    /// Fails if they cannot be read.
    pub fn read_ahead(&self, from: (u64, u64), to: (u64, u64)) -> Result<()> {
        let rows = from.0..to.0 + u64::from(to.1 > 0);
        if rows.is_empty() {
            return Ok(());
        }
        if let Count::Offsets(offsets) = &self.count {
            offsets.read(rows.start * 8, Output::Ahead((rows.end - rows.start + 1) * 8))?;
        }
        let elements = self.element(from.0)? + from.1..self.element(to.0)? + to.1;
        let ahead = Output::Ahead(0);
        RowValidity::default().read(self.validity.as_ref(), rows, &ahead)?;
        self.read_values(elements, &ahead, &mut Vec::new())
    }
}
