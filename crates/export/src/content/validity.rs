//! The validity of nullable values: which cells have a value, and which are null.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::Result;
use tilefs_base::output::Output;

use super::bits::Bits;
use super::compose::Slice;
use super::element::Converted;

/// Bytes that are read at a time to count nulls: few enough for the processor's caches.
const COUNTED_AT_ONCE: u64 = 64 << 10;

/// Bytes that are read at a time to find a null.
const SEARCHED_AT_ONCE: u64 = 1 << 20;

/// Which cells have a value. As a content, it has one byte for each cell, as TileDB stores it: 0 if the cell is null.
#[derive(Clone)]
pub struct Validity(Arc<dyn Content>);

typed_content!(Validity);

impl Validity {
    /// Returns whether a cell has a value.
    ///
    /// # Errors
    /// Fails if the validity cannot be read.
    pub fn is_valid(&self, cell: u64) -> Result<bool> {
        let mut byte = [0];
        self.read_at(cell, &mut byte)?;
        Ok(byte != [0])
    }

    /// Returns the validity of `count` cells from `first`, cut off at the last cell.
    pub fn part(&self, first: u64, count: u64) -> Validity {
        Validity(Arc::new(Slice::new(self.content(), first, count)))
    }

    /// Returns one bit per cell, 0 for null, as Arrow and Parquet store validity.
    pub fn bits(&self) -> Bits {
        Bits::new(self.content())
    }

    /// Returns one byte per cell: 1 if the cell has a value, otherwise 0. TileDB stores any byte but 0 for a value.
    pub fn valid_cells(&self) -> Converted {
        self.booleans(|byte| byte != 0)
    }

    /// Returns one byte per cell: 1 if the cell is null, otherwise 0.
    pub fn null_cells(&self) -> Converted {
        self.booleans(|byte| byte == 0)
    }

    fn booleans(&self, of: impl Fn(u8) -> bool + Send + Sync + 'static) -> Converted {
        Converted::new(self.content(), 1, 1, move |from, to| {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = of(*from).into());
            Ok(())
        })
    }

    /// Counts the null cells.
    ///
    /// # Errors
    /// Fails if the validity cannot be read.
    pub fn null_count(&self) -> Result<u64> {
        let mut count = 0;
        self.for_each_part(COUNTED_AT_ONCE, |part| {
            count += part.iter().filter(|&&byte| byte == 0).count() as u64;
            true
        })?;
        Ok(count)
    }

    /// Returns whether any cell is null. Reads the validity up to the first null cell.
    ///
    /// # Errors
    /// Fails if the validity cannot be read.
    pub fn has_nulls(&self) -> Result<bool> {
        let mut has_nulls = false;
        self.for_each_part(SEARCHED_AT_ONCE, |part| {
            has_nulls = part.contains(&0);
            !has_nulls
        })?;
        Ok(has_nulls)
    }

    /// Calls `each` with one part of `at_once` bytes after the other, until it returns `false`.
    fn for_each_part(&self, at_once: u64, mut each: impl FnMut(&[u8]) -> bool) -> Result<()> {
        let mut bytes = vec![0; self.len().min(at_once) as usize];
        let mut at = 0;
        while at < self.len() {
            let part = &mut bytes[..(self.len() - at).min(at_once) as usize];
            self.read_at(at, part)?;
            if !each(part) {
                break;
            }
            at += part.len() as u64;
        }
        Ok(())
    }
}

/// Which of some rows are null, in memory.
#[derive(Default)]
pub struct RowValidity {
    /// One byte for each row, 0 for null; empty if no cell of the column can be null.
    bytes: Vec<u8>,
}

impl RowValidity {
    /// Reads the validity of some rows of a column. A column without validity has no null cells.
    ///
    /// # Errors
    /// Fails if the validity cannot be read.
    pub fn of(column: Option<&Validity>, rows: Range<u64>) -> Result<Self> {
        let mut validity = RowValidity::default();
        validity.read(column, rows, &Output::Into(&mut []))?;
        Ok(validity)
    }

    /// Replaces the validity by that of other rows, or prefetches it if `out` has no memory.
    ///
    /// # Errors
    /// Fails if the validity cannot be read.
    pub fn read(&mut self, column: Option<&Validity>, rows: Range<u64>, out: &Output<'_>) -> Result<()> {
        self.bytes.clear();
        match column {
            Some(validity) if rows.start < rows.end => {
                validity.read(rows.start, out.aside(rows.end - rows.start, &mut self.bytes))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether the cell of a row is null.
    pub fn is_null(&self, row: usize) -> bool {
        self.bytes.get(row) == Some(&0)
    }

    /// Returns the null rows.
    pub fn nulls(&self) -> impl Iterator<Item = usize> {
        self.bytes.iter().enumerate().filter(|(_, byte)| **byte == 0).map(|(row, _)| row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_random_access, read_all};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_form_agrees_with_the_bytes(bytes in proptest::collection::vec(0u8..4, 0..300), first in 0u64..300, count in 0u64..300) {
            let validity = Validity::from(Arc::new(bytes.clone()));
            let nulls: Vec<usize> = (0..bytes.len()).filter(|&cell| bytes[cell] == 0).collect();
            prop_assert_eq!(validity.null_count().unwrap(), nulls.len() as u64);
            prop_assert_eq!(validity.has_nulls().unwrap(), !nulls.is_empty());
            for (cell, byte) in bytes.iter().enumerate() {
                prop_assert_eq!(validity.is_valid(cell as u64).unwrap(), *byte != 0);
            }
            let valid: Vec<u8> = bytes.iter().map(|byte| u8::from(*byte != 0)).collect();
            prop_assert_eq!(&read_all(&validity.valid_cells()), &valid);
            prop_assert_eq!(read_all(&validity.null_cells()), valid.iter().map(|valid| 1 - valid).collect::<Vec<u8>>());
            let part: Vec<u8> = bytes.iter().copied().skip(first as usize).take(count as usize).collect();
            prop_assert_eq!(read_all(&*validity.part(first, count)), part);
            let rows = RowValidity::of(Some(&validity), 0..bytes.len() as u64).unwrap();
            prop_assert_eq!(rows.nulls().collect::<Vec<usize>>(), nulls);
            assert_random_access(&validity.bits());
        }
    }

    #[test]
    fn nulls_are_counted_across_parts() {
        let bytes: Vec<u8> = (0..2 * SEARCHED_AT_ONCE + 5).map(|cell| u8::from(cell % SEARCHED_AT_ONCE != 4)).collect();
        let validity = Validity::from(Arc::new(bytes));
        assert_eq!(validity.null_count().unwrap(), 3);
        assert!(!validity.part(5, SEARCHED_AT_ONCE - 1).has_nulls().unwrap());
        assert!(validity.part(5, SEARCHED_AT_ONCE).has_nulls().unwrap());
    }

    #[test]
    fn columns_without_validity_have_no_nulls() {
        let mut rows = RowValidity::of(Some(&Validity::from(Arc::new(vec![0, 1]))), 0..2).unwrap();
        assert!(rows.is_null(0) && !rows.is_null(1));
        rows.read(None, 0..2, &Output::Into(&mut [])).unwrap();
        assert!(!rows.is_null(0));
    }
}
