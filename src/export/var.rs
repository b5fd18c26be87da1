//! Variable-length cells: the bytes of all values end to end, and where each begins.

use std::sync::Arc;

use super::Content;
use super::raw::Cells;
use crate::array::dense::DenseVarColumn;
use crate::error::Result;
use crate::read::Output;

/// A row of cells of variable length that can be read from any byte.
pub trait VarCells: Send + Sync {
    /// How many cells. May have to count them.
    fn count(&self) -> Result<u64>;

    /// Bytes of all values. May have to read offsets.
    fn total(&self) -> Result<u64>;

    /// Fills `out` with where the values of cells from `first` begin; behind the last cell is the total.
    fn read_offsets(&self, first: u64, out: &mut [u64]) -> Result<()>;

    /// Fills `out` with the values from byte `start` of all of them.
    fn read_values(&self, start: u64, out: &mut [u8]) -> Result<()>;

    /// As [`Content::prepare`], for [`VarCells::read_offsets`] of so many cells.
    fn prepare_offsets(&self, first: u64, count: u64);

    /// As [`Content::prepare`], for [`VarCells::read_values`] of so many bytes.
    fn prepare_values(&self, start: u64, length: u64);
}

impl VarCells for DenseVarColumn {
    fn count(&self) -> Result<u64> {
        Ok(self.cells())
    }

    fn total(&self) -> Result<u64> {
        DenseVarColumn::total(self)
    }

    fn read_offsets(&self, first: u64, out: &mut [u64]) -> Result<()> {
        DenseVarColumn::read_offsets(self, first, out)
    }

    fn read_values(&self, start: u64, out: &mut [u8]) -> Result<()> {
        DenseVarColumn::read_values(self, start, out)
    }

    // The read itself will meet the same error and tell it.

    fn prepare_offsets(&self, first: u64, count: u64) {
        let _ = DenseVarColumn::read_offsets(self, first, Output::Ahead(count));
    }

    fn prepare_values(&self, start: u64, length: u64) {
        let _ = DenseVarColumn::read_values(self, start, Output::Ahead(length));
    }
}

/// The values of all cells end to end.
pub struct VarValues<C> {
    cells: Arc<C>,
    total: u64,
}

impl<C: VarCells> VarValues<C> {
    /// # Errors
    /// When the total cannot be told.
    pub fn new(cells: Arc<C>) -> Result<Self> {
        let total = cells.total()?;
        Ok(VarValues { cells, total })
    }
}

impl<C: VarCells> Content for VarValues<C> {
    fn len(&self) -> u64 {
        self.total
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.cells.read_values(offset, buf)
    }

    fn prepare(&self, offset: u64, length: u64) {
        let start = offset.min(self.total);
        self.cells.prepare_values(start, length.min(self.total - start));
    }
}

/// The offsets of variable-length cells as cells of their own: one more than there are values.
pub struct VarOffsets<C> {
    cells: Arc<C>,
    count: u64,
}

impl<C: VarCells> VarOffsets<C> {
    /// # Errors
    /// When the cells cannot be counted.
    pub fn new(cells: Arc<C>) -> Result<Self> {
        let count = cells.count()?;
        Ok(VarOffsets { cells, count })
    }
}

impl<C: VarCells> Cells for VarOffsets<C> {
    fn count(&self) -> u64 {
        self.count + 1
    }

    fn cell_size(&self) -> usize {
        8
    }

    fn read(&self, first: u64, out: &mut [u8]) -> Result<()> {
        let mut offsets = vec![0; out.len() / 8];
        self.cells.read_offsets(first, &mut offsets)?;
        for (bytes, offset) in out.chunks_exact_mut(8).zip(offsets) {
            bytes.copy_from_slice(&offset.to_le_bytes());
        }
        Ok(())
    }

    fn prepare(&self, first: u64, count: u64) {
        let first = first.min(self.count);
        self.cells.prepare_offsets(first, count.min(self.count - first));
    }
}
