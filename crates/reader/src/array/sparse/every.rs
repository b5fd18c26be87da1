//! The rows of a merge of fragments that have no coordinates in common: all cells, counted before they were read.

use tilefs_format::error::Error;

use super::merge::{CellSink, CellStream, Halt, MergeInput, Merged};
use super::rows::InterleavedWriter;

/// Tells an [`InterleavedWriter`] of each cell, and ends the merge after so many.
pub struct EveryCell<'a, 'b> {
    writer: &'a mut InterleavedWriter<'b>,
    /// By input, the position of the next cell.
    next: Vec<u64>,
    /// The input of the last cell.
    last: usize,
    /// Rows that are still wanted.
    left: u64,
}

impl<'a, 'b> EveryCell<'a, 'b> {
    /// The first `rows` cells of inputs that start at these positions.
    pub fn new(writer: &'a mut InterleavedWriter<'b>, starts: impl Iterator<Item = u64>, rows: u64) -> Self {
        EveryCell { writer, next: starts.collect(), last: 0, left: rows }
    }

    /// The position behind the last row of each input.
    ///
    /// # Errors
    /// [`Error::Damaged`] when there were fewer cells.
    pub fn finish(self) -> Merged<Vec<u64>> {
        match self.left {
            0 => Ok(self.next),
            left => Err(too_few_cells(left).into()),
        }
    }
}

/// That there are so many cells fewer than footers say.
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
        // The cells behind need not be read.
        if self.left == 0 { Err(Halt::Enough) } else { Ok(()) }
    }
}
