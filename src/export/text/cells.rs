//! Where the cells of a column lie in its values: after each other, or where the offsets say.

use std::sync::Arc;

use crate::error::{Error, Locate, Result};
use crate::export::column::{Column, Fit, Misfit};
use crate::export::content::Content;

/// The cells of a column, each some elements: numbers, or bytes of a text.
pub struct Cells {
    name: String,
    /// Bytes of an element.
    pub size: u64,
    count: Count,
    pub values: Arc<dyn Content>,
    /// A byte a cell, 0 for null.
    pub validity: Option<Arc<dyn Content>>,
}

/// How many elements a cell has.
enum Count {
    Each(u64),
    /// Where the offsets say.
    Offsets(Arc<dyn Content>),
}

impl Cells {
    /// The cells of a column whose lengths agree.
    pub fn new(column: &Column) -> Fit<Self> {
        let field = &column.field;
        let count = match (field.values_per_cell, &column.offsets) {
            (Some(values), _) => Count::Each(u64::from(values)),
            (None, Some(offsets)) => Count::Offsets(offsets.clone()),
            (None, None) => return Err(Misfit::new(format!("{}: it has no offsets", field.name))),
        };
        Ok(Cells {
            name: field.name.clone(),
            size: field.datatype.size() as u64,
            count,
            values: column.values.clone(),
            validity: column.validity.clone(),
        })
    }

    /// The elements of each cell, where all have the same number.
    pub fn each(&self) -> Option<u64> {
        match self.count {
            Count::Each(count) => Some(count),
            Count::Offsets(_) => None,
        }
    }

    /// The elements of all cells of so many rows.
    pub fn total(&self, rows: u64) -> Option<u64> {
        match self.each() {
            Some(each) => rows.checked_mul(each),
            None => Some(self.values.len() / self.size),
        }
    }

    /// The number of the first element of each of `count` rows from `first`, and of the row after them.
    ///
    /// # Errors
    /// When offsets cannot be read, or fall, or lie outside of the values.
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

    /// As [`Content::prepare`], for `count` rows from `first`.
    pub fn prepare(&self, first: u64, count: u64) {
        self.validity.iter().for_each(|validity| validity.prepare(first, count));
        let (start, end) = match &self.count {
            Count::Each(each) => (first * each, (first + count) * each),
            Count::Offsets(offsets) => {
                offsets.prepare(first * 8, (count + 1) * 8);
                let mut ends = Vec::with_capacity(1);
                let mut end = |row| self.elements(row, 0, &mut ends).ok().and(ends.first().copied());
                // The read itself will meet the same error and tell it.
                let Some((start, end)) = end(first).zip(end(first + count)) else { return };
                (start, end)
            }
        };
        self.values.prepare(start * self.size, end.saturating_sub(start) * self.size);
    }

    /// As [`Content::prepare`], for a part of what is made of these cells, in proportion to the `whole`: exact for
    /// cells of one size, near enough for others.
    pub fn prepare_part(&self, offset: u64, length: u64, whole: u64) {
        let part = |content: &dyn Content| {
            let scale = |at: u64| (u128::from(at) * u128::from(content.len()) / u128::from(whole.max(1))) as u64;
            let (start, end) = (scale(offset.min(whole)), scale(offset.saturating_add(length).min(whole)));
            content.prepare(start, end - start);
        };
        part(&self.values);
        if let Count::Offsets(offsets) = &self.count {
            part(offsets);
        }
        self.validity.iter().for_each(|validity| part(validity));
    }
}
