//! Variable-length cells: the bytes of all values end to end, and the offset of each.

use std::sync::Arc;

use tilefs_format::error::{Error, Result};
use tilefs_reader::array::dense::DenseVarColumn;
use tilefs_reader::array::sparse::VarColumn;
use tilefs_reader::read::Output;
use tilefs_threads::cancellation;

use super::Content;
use super::raw::Cells;

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
}

impl VarCells for DenseVarColumn {
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

/// Bytes of offsets read at a time.
const OFFSETS: u64 = 1 << 20;

/// Calls `each` with the length in bytes of every value. `offsets` are the u64 little-endian offsets at which the values
/// begin, plus the final end.
///
/// # Errors
/// Fails if the offsets cannot be read, or decrease, or if `each` fails.
pub(crate) fn for_each_length(offsets: &dyn Content, mut each: impl FnMut(u64) -> Result<()>) -> Result<()> {
    let (mut last, mut at) = (None, 0);
    let mut bytes = Vec::new();
    while at < offsets.len() {
        cancellation::check()?;
        bytes.resize((offsets.len() - at).min(OFFSETS) as usize, 0);
        offsets.read_at(at, &mut bytes)?;
        for offset in bytes.as_chunks().0.iter().map(|offset| u64::from_le_bytes(*offset)) {
            if let Some(last) = last {
                each(offset.checked_sub(last).ok_or_else(wrong_offsets)?)?;
            }
            last = Some(offset);
        }
        at += bytes.len() as u64;
    }
    Ok(())
}

/// Returns the error for offsets that contradict each other or the values.
pub(crate) fn wrong_offsets() -> Error {
    Error::damaged("offsets of values that do not begin at 0, or decrease")
}

/// Reads one of the u64 little-endian offsets in a content.
///
/// # Errors
/// Fails if it cannot be read.
pub(crate) fn read_offset(offsets: &dyn Content, number: u64) -> Result<u64> {
    let mut bytes = [0; 8];
    offsets.read_at(number.saturating_mul(8), &mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Reads consecutive u64 little-endian offsets in a content, from `first`.
///
/// # Errors
/// Fails if they cannot be read.
pub(crate) fn read_offsets(offsets: &dyn Content, first: u64, numbers: &mut [u64]) -> Result<()> {
    let mut bytes = vec![0; numbers.len() * 8];
    offsets.read_at(first.saturating_mul(8), &mut bytes)?;
    for (number, bytes) in numbers.iter_mut().zip(bytes.as_chunks().0) {
        *number = u64::from_le_bytes(*bytes);
    }
    Ok(())
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

impl<C: VarCells> Cells for VarOffsets<C> {
    fn count(&self) -> u64 {
        self.count + 1
    }

    fn cell_size(&self) -> usize {
        8
    }

    fn read(&self, first: u64, mut out: Output<'_>) -> Result<()> {
        let mut offsets = Vec::new();
        self.cells.read_offsets(first, out.aside(out.len() / 8, &mut offsets))?;
        let cells = out.wanted().into_iter().flat_map(|out| out.as_chunks_mut().0);
        cells.zip(offsets).for_each(|(bytes, offset): (&mut [u8; 8], u64)| *bytes = offset.to_le_bytes());
        Ok(())
    }
}
