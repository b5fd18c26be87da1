//! Variable-length cells: the bytes of all values end to end, and the offset of each.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::Result;
use tilefs_base::inputs::{Recorded, Recorder};
use tilefs_base::output::Output;
use tilefs_reader::array::dense::DenseVarColumn;
use tilefs_reader::array::sparse::VarColumn;

use super::raw::FixedCells;

/// A sequence of cells of variable length, readable from any byte.
pub trait VarCells: Send + Sync {
    /// Returns the number of cells. May have to count them.
    fn count(&self) -> Result<u64>;

    /// Returns the number of bytes of all values. May have to read offsets.
    fn byte_count(&self) -> Result<u64>;

    /// Writes to `out` the offsets of the values of cells from `first`; the end offset of the last cell is the total.
    fn read_offsets(&self, first: u64, out: Output<'_, u64>) -> Result<()>;

    /// Writes to `out` the values, starting at byte `start` of all values.
    fn read_values(&self, start: u64, out: Output<'_>) -> Result<()>;

    /// Records what the values depend on, as [`Content::record`] does.
    fn record(&self, recorder: &mut Recorder) {
        recorder.add_unknown();
    }
}

impl VarCells for DenseVarColumn {
    fn record(&self, recorder: &mut Recorder) {
        Recorded::record(self, recorder);
    }

    fn count(&self) -> Result<u64> {
        Ok(self.cells())
    }

    fn byte_count(&self) -> Result<u64> {
        DenseVarColumn::byte_count(self)
    }

    fn read_offsets(&self, first: u64, out: Output<'_, u64>) -> Result<()> {
        DenseVarColumn::read_offsets(self, first, out)
    }

    fn read_values(&self, start: u64, out: Output<'_>) -> Result<()> {
        DenseVarColumn::read_values(self, start, out)
    }
}

impl VarCells for VarColumn {
    fn record(&self, recorder: &mut Recorder) {
        Recorded::record(self, recorder);
    }

    fn count(&self) -> Result<u64> {
        self.row_count()
    }

    fn byte_count(&self) -> Result<u64> {
        VarColumn::byte_count(self)
    }

    fn read_offsets(&self, first: u64, out: Output<'_, u64>) -> Result<()> {
        VarColumn::read_offsets(self, first, out)
    }

    fn read_values(&self, start: u64, out: Output<'_>) -> Result<()> {
        VarColumn::read_values(self, start, out)
    }
}

/// The values of all cells end to end.
pub struct VarValues<C> {
    cells: Arc<C>,
    total: u64,
}

impl<C: VarCells> VarValues<C> {
    /// Creates the content.
    ///
    /// # Errors
    /// Fails if the total cannot be determined.
    pub fn new(cells: Arc<C>) -> Result<Self> {
        let total = cells.byte_count()?;
        Ok(VarValues { cells, total })
    }
}

impl<C: VarCells> Content for VarValues<C> {
    fn record(&self, recorder: &mut Recorder) {
        let Self { cells, total: _ } = self;
        recorder.add::<Self>(());
        cells.record(recorder);
    }

    fn len(&self) -> u64 {
        self.total
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        self.cells.read_values(offset, out)
    }
}

/// The offsets of variable-length cells as cells of their own: one more than there are values.
pub struct VarOffsets<C> {
    cells: Arc<C>,
    count: u64,
}

impl<C: VarCells> VarOffsets<C> {
    /// Creates the offsets.
    ///
    /// # Errors
    /// Fails if the cells cannot be counted.
    pub fn new(cells: Arc<C>) -> Result<Self> {
        let count = cells.count()?;
        Ok(VarOffsets { cells, count })
    }
}

impl<C: VarCells> FixedCells for VarOffsets<C> {
    fn record(&self, recorder: &mut Recorder) {
        let Self { cells, count: _ } = self;
        recorder.add::<Self>(());
        cells.record(recorder);
    }

    fn count(&self) -> u64 {
        self.count + 1
    }

    fn cell_size(&self) -> usize {
        8
    }

    fn read(&self, first: u64, mut out: Output<'_>) -> Result<()> {
        let mut offsets = Vec::new();
        self.cells.read_offsets(first, out.aside(out.len() / 8, &mut offsets))?;
        if let Some(out) = out.wanted() {
            out.as_chunks_mut().0.iter_mut().zip(offsets).for_each(|(bytes, offset)| *bytes = offset.to_le_bytes());
        }
        Ok(())
    }
}
