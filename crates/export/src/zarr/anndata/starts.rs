//! `indptr` of a matrix: where its rows, or its columns, begin among its cells.

use std::fmt::Display;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use tilefs_format::error::{Error, Result};
use tilefs_reader::array::{Array, SingleFlight, decode_sums, encode_sums};
use tilefs_reader::memory;
use tilefs_reader::read::Output;
use tilefs_reader::storage::EntryKey;

use super::runs::{fetch, for_all_pieces, for_each_block, for_each_row, out_of_order};
use crate::content::Content;
use crate::element::by_elements;

/// Saves `indptr` of a matrix in the index directory, for later mounts.
pub struct SavedStarts {
    array: Arc<Array>,
    /// `None` if they are not saved.
    key: Option<EntryKey>,
}

impl SavedStarts {
    /// Creates the place for starts among `cells` cells of an array; `what` tells them from others of the array.
    ///
    /// # Errors
    /// Fails if a footer cannot be read.
    pub fn new(array: &Arc<Array>, cells: u64, what: impl Display) -> Result<Self> {
        let identity = if array.context().saved.is_worth(cells) { array.identity()? } else { None };
        Ok(SavedStarts { array: array.clone(), key: identity.map(|key| key.of(format_args!("starts of {what}"))) })
    }

    /// Returns whether the starts are saved when they are known.
    pub fn is_kept(&self) -> bool {
        self.key.is_some()
    }

    /// Returns the starts of so many rows among so many cells: those that an earlier mount has saved, or those that
    /// `make` finds in a pass over all cells.
    fn get_or_make(&self, rows: usize, cells: u64, make: impl FnOnce() -> Result<Vec<u64>>) -> Result<Vec<u64>> {
        let saved = &self.array.context().saved;
        let decode = |bytes: &[u8]| decode_sums(bytes, rows + 1).filter(|starts| starts.last() == Some(&cells));
        saved.get_or_make(
            self.key,
            decode,
            |starts| encode_sums(starts),
            || {
                let starts = make()?;
                saved.note_measured(starts.last().copied().unwrap_or(0));
                Ok(starts)
            },
        )
    }
}

/// Whether cells are sorted by the coordinates that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellOrder {
    /// Other orders are an error.
    Sorted,
    /// Any order gives the same counts.
    Any,
}

/// `indptr`: for each row, the number of cells before it, and the total at the end, `i64`. Memory: 8 bytes per row, once
/// requested; while cells are counted, also a piece of their coordinates for each thread.
pub struct RowStarts {
    /// The row of each cell, `i64`.
    rows: Arc<dyn Content>,
    order: CellOrder,
    saved: Option<SavedStarts>,
    /// Number of rows of the matrix.
    count: u64,
    starts: SingleFlight<Vec<u64>>,
}

impl RowStarts {
    /// Creates the starts of so many rows among cells with these rows. `None` if they would take more memory than
    /// `most_memory` bytes. They are saved in `saved`.
    pub fn new(
        rows: Arc<dyn Content>,
        order: CellOrder,
        count: u64,
        most_memory: usize,
        saved: Option<SavedStarts>,
    ) -> Option<Arc<Self>> {
        let fits = count < (most_memory as u64) / 8;
        fits.then(|| Arc::new(RowStarts { rows, order, saved, count, starts: SingleFlight::new() }))
    }

    /// Returns the number of cells.
    pub fn cells(&self) -> u64 {
        self.rows.len() / 8
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.count
    }

    /// Returns the starts if they are known.
    pub fn known(&self) -> Option<&[u64]> {
        self.starts.get().map(Vec::as_slice)
    }

    /// Returns the number of cells before each row, and the total at the end. The first call reads the rows of all
    /// cells, unless an earlier mount has saved the result.
    ///
    /// # Errors
    /// Fails if they cannot be read; [`Error::Damaged`] for cells outside the matrix, or in another order than said.
    pub fn get(&self) -> Result<&[u64]> {
        let rows = usize::try_from(self.count).map_err(|_| Error::internal("more rows than memory"))?;
        let starts = self.starts.get_or_make(|| match &self.saved {
            Some(saved) => saved.get_or_make(rows, self.cells(), || self.count_cells(rows)),
            None => self.count_cells(rows),
        })?;
        Ok(starts)
    }

    fn count_cells(&self, rows: usize) -> Result<Vec<u64>> {
        let mut counts = Vec::new();
        memory::resize(&mut counts, rows + 1, "where rows begin")?;
        let counts = Mutex::new(counts);
        let ends = for_all_pieces(&(0..self.cells()), |piece| self.count_piece(piece, &counts))?;
        if self.order == CellOrder::Sorted && ends.windows(2).any(|ends| ends[0].1 > ends[1].0) {
            return Err(out_of_order());
        }
        let mut starts = counts.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut before = 0;
        for start in &mut starts {
            before += *start;
            *start = before;
        }
        Ok(starts)
    }

    /// Adds the cells of each row `r` to element `r + 1` of `counts`. Returns the rows of the first and the last cell.
    fn count_piece(&self, cells: Range<u64>, counts: &Mutex<Vec<u64>>) -> Result<(u64, u64)> {
        let (mut first, mut last) = (None, 0);
        let mut found = Vec::new();
        fetch(&*self.rows, &cells)?;
        for_each_block(&*self.rows, cells, |block| {
            found.clear();
            for_each_row(block, |row, cells| {
                if row >= self.count {
                    return Err(Error::damaged(format!("a cell in row {row} of {}", self.count)));
                }
                if self.order == CellOrder::Sorted && row < last {
                    return Err(out_of_order());
                }
                first.get_or_insert(row);
                last = row;
                // Less than the number of elements.
                found.push((row as usize + 1, cells));
                Ok(())
            })?;
            let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            for (number, cells) in &found {
                counts[*number] += cells;
            }
            Ok(())
        })?;
        Ok((first.unwrap_or(0), last))
    }
}

impl Content for RowStarts {
    fn len(&self) -> u64 {
        // The starts of its rows fit in memory.
        (self.count + 1) * 8
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let starts = self.get()?;
        by_elements(8, usize::MAX, offset, out, |first, mut out| {
            let numbers = starts.get(first as usize..).unwrap_or_default().iter();
            let wanted = out.wanted().unwrap_or_default();
            wanted.as_chunks_mut().0.iter_mut().zip(numbers).for_each(|(to, start)| *to = start.to_le_bytes());
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{assert_random_access, read_all};

    fn longs(values: &[i64]) -> Arc<dyn Content> {
        Arc::new(values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>())
    }

    proptest! {
        #[test]
        fn starts_are_the_numbers_of_cells_before(rows in prop::collection::vec(0i64..12, 0..200)) {
            let mut sorted = rows.clone();
            sorted.sort_unstable();
            let expected: Vec<u64> = (0..=12).map(|row| sorted.partition_point(|own| *own < row) as u64).collect();
            for (rows, order) in [(&rows, CellOrder::Any), (&sorted, CellOrder::Any), (&sorted, CellOrder::Sorted)] {
                let starts = RowStarts::new(longs(rows), order, 12, 1 << 10, None).unwrap();
                prop_assert_eq!(starts.get().unwrap(), &expected[..]);
                let bytes: Vec<u8> = expected.iter().flat_map(|start| start.to_le_bytes()).collect();
                prop_assert_eq!(read_all(&*starts), bytes);
                assert_random_access(&*starts);
            }
            let unsorted = RowStarts::new(longs(&rows), CellOrder::Sorted, 12, 1 << 10, None).unwrap();
            prop_assert_eq!(unsorted.get().is_ok(), rows.is_sorted());
        }
    }

    /// Cells are counted piece by piece, and a piece is looked at block by block.
    #[test]
    fn the_order_is_checked_from_piece_to_piece() {
        let mut rows: Vec<i64> = (0..700_000).map(|cell| cell / 300).collect();
        let starts = |rows: &[i64]| RowStarts::new(longs(rows), CellOrder::Sorted, 3000, 1 << 20, None).unwrap();
        let expected: Vec<u64> = (0..=3000).map(|row| (row * 300).min(700_000)).collect();
        assert_eq!(starts(&rows).get().unwrap(), expected);
        for swapped in [1 << 15, 1 << 19, 600_000] {
            rows.swap(swapped - 1, swapped);
            assert_eq!(starts(&rows).get().is_err(), rows[swapped - 1] > rows[swapped], "{swapped}");
            rows.swap(swapped - 1, swapped);
            let (before, after) = (rows[swapped - 1], rows[swapped]);
            (rows[swapped - 1], rows[swapped]) = (9, 8);
            assert!(starts(&rows).get().is_err(), "{swapped}");
            (rows[swapped - 1], rows[swapped]) = (before, after);
        }
    }

    #[test]
    fn cells_outside_the_matrix_are_an_error() {
        for rows in [[-1], [9]] {
            let starts = RowStarts::new(longs(&rows), CellOrder::Any, 9, 1 << 10, None).unwrap();
            assert!(starts.get().is_err());
        }
    }

    #[test]
    fn more_rows_than_memory_are_refused() {
        assert!(RowStarts::new(longs(&[]), CellOrder::Any, 1 << 40, 1 << 30, None).is_none());
    }
}
