//! The rows of a merge of fragments that have no coordinates in common: every cell is a row, and their number is known
//! before they are read.

use tilefs_base::error::Error;

use super::tournament::{CellSink, CellStream, Halt, MergeInput, Merged};
use crate::array::sparse::rows::segments::InterleavedWriter;

/// Reports each cell to an [`InterleavedWriter`], and stops the merge after a given number of rows.
pub struct EveryCell<'a, 'b> {
    writer: &'a mut InterleavedWriter<'b>,
    /// For each input, the position of its next cell.
    next: Vec<u64>,
    /// The input of the last cell.
    last: usize,
    /// The number of rows that are still wanted.
    left: u64,
}

impl<'a, 'b> EveryCell<'a, 'b> {
    /// Takes the first `rows` cells of inputs that start at these positions.
    pub fn new(writer: &'a mut InterleavedWriter<'b>, starts: impl Iterator<Item = u64>, rows: u64) -> Self {
        EveryCell { writer, next: starts.collect(), last: 0, left: rows }
    }

    /// Returns for each input the position after its last row.
    ///
    /// # Errors
    /// [`Error::Damaged`] if there were fewer cells.
    pub fn finish(self) -> Merged<Vec<u64>> {
        match self.left {
            0 => Ok(self.next),
            left => Err(too_few_cells(left).into()),
        }
    }
}

/// Returns the error for cells that the footers count but that are missing.
pub fn too_few_cells(missing: u64) -> Error {
    Error::damaged(format!("{missing} cells fewer than the footers count"))
}

impl CellSink for EveryCell<'_, '_> {
    #[inline]
    fn take<S: CellStream>(&mut self, number: usize, input: &MergeInput<S>, is_same: bool) -> Merged<()> {
        if is_same && number != self.last {
            return Err(Halt::Repetition { input: number, position: input.position() });
        }
        if input.position() != self.next[number] || !input.is_shown() {
            return Err(Error::internal("a cell that does not count among those that all count").into());
        }
        if self.left == 0 {
            return Err(Halt::Enough);
        }
        self.writer.push(number, true)?;
        (self.last, self.next[number], self.left) = (number, self.next[number] + 1, self.left - 1);
        // The cells after these need not be read.
        if self.left == 0 { Err(Halt::Enough) } else { Ok(()) }
    }
}
