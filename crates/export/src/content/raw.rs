//! Cells of fixed size end to end: the bytes of raw files, and the values from which other formats are made.

use std::ops::Range;

use tilefs_base::content::{Content, unknown_band};
use tilefs_base::error::Result;
use tilefs_base::inputs::{Recorded, Recorder};
use tilefs_base::output::Output;
use tilefs_reader::array::dense::{AxisCoordinates, DenseColumn};

use crate::content::element::by_elements;

/// A sequence of cells of one size, readable from any cell.
pub trait FixedCells: Send + Sync {
    /// Returns the number of cells.
    fn count(&self) -> u64;

    /// Returns the size of one cell in bytes, at least 1.
    fn cell_size(&self) -> usize;

    /// Writes whole cells starting at cell `first` to `out`.
    fn read(&self, first: u64, out: Output<'_>) -> Result<()>;

    /// As [`FixedCells::read`], for a reader that needs these cells only once: see [`Content::read_once`].
    fn read_once(&self, first: u64, out: &mut [u8]) -> Result<()> {
        self.read(first, Output::Into(out))
    }

    /// Returns the cells around one that come from the same tiles, if known.
    fn band(&self, cell: u64) -> Option<Range<u64>> {
        let _ = cell;
        None
    }

    /// Records what the cells depend on, as [`Content::record`] does.
    fn record(&self, recorder: &mut Recorder) {
        recorder.add_unknown();
    }

    /// Returns about how many bytes are decoded for each cell.
    fn decoded_per_cell(&self) -> u64 {
        self.cell_size() as u64
    }
}

impl FixedCells for DenseColumn {
    fn record(&self, recorder: &mut Recorder) {
        Recorded::record(self, recorder);
    }

    fn count(&self) -> u64 {
        self.cells()
    }

    fn cell_size(&self) -> usize {
        DenseColumn::cell_size(self)
    }

    fn read(&self, first: u64, out: Output<'_>) -> Result<()> {
        DenseColumn::read(self, first, out)
    }

    fn band(&self, cell: u64) -> Option<Range<u64>> {
        DenseColumn::band(self, cell)
    }
}

impl FixedCells for AxisCoordinates {
    fn record(&self, recorder: &mut Recorder) {
        Recorded::record(self, recorder);
    }

    fn count(&self) -> u64 {
        AxisCoordinates::count(self)
    }

    fn cell_size(&self) -> usize {
        AxisCoordinates::cell_size(self)
    }

    fn read(&self, first: u64, mut out: Output<'_>) -> Result<()> {
        out.wanted().map_or(Ok(()), |out| AxisCoordinates::read(self, first, out))
    }
}

/// The content of a file of cells.
pub struct RawFile<C>(pub C);

impl<C: FixedCells> Content for RawFile<C> {
    fn record(&self, recorder: &mut Recorder) {
        let Self(cells) = self;
        recorder.add::<Self>(());
        cells.record(recorder);
    }

    fn len(&self) -> u64 {
        self.0.count().saturating_mul(self.0.cell_size() as u64)
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        by_elements(self.0.cell_size(), usize::MAX, offset, out, |first, out| self.0.read(first, out))
    }

    fn read_once(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let size = self.0.cell_size() as u64;
        let end = offset.checked_add(buf.len() as u64).filter(|end| *end <= self.len());
        match end {
            Some(end) if offset.is_multiple_of(size) && end.is_multiple_of(size) && !buf.is_empty() => {
                self.0.read_once(offset / size, buf)
            }
            _ => self.read_at(offset, buf),
        }
    }

    fn band(&self, offset: u64) -> Range<u64> {
        let size = self.0.cell_size() as u64;
        match self.0.band(offset / size) {
            Some(cells) => cells.start * size..cells.end * size,
            None => unknown_band(self.len(), offset),
        }
    }

    fn decoded_per_byte(&self) -> u64 {
        self.0.decoded_per_cell().div_ceil(self.0.cell_size() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::var::{VarCells, VarOffsets, VarValues};
    use crate::testing::assert_reads_ahead;
    use std::sync::Arc;

    /// Cell n holds the bytes n, n + 1, ...
    struct Counting;

    impl FixedCells for Counting {
        fn count(&self) -> u64 {
            1_000_003
        }

        fn cell_size(&self) -> usize {
            7
        }

        fn read(&self, first: u64, mut out: Output<'_>) -> Result<()> {
            let cells = out.wanted().into_iter().flat_map(|out| out.chunks_exact_mut(7));
            for (number, cell) in cells.enumerate() {
                for (byte, value) in cell.iter_mut().enumerate() {
                    *value = (first as usize + number + byte) as u8;
                }
            }
            Ok(())
        }
    }

    #[test]
    fn any_range_is_part_of_the_whole() {
        let file = RawFile(Counting);
        let mut whole = vec![0; file.len() as usize];
        file.read_at(0, &mut whole).unwrap();
        assert_eq!(whole[7 * 999_999 + 3], (999_999 + 3) as u8);
        for (offset, length) in [(0, 1), (3, 2), (3, 4), (6, 9), (7, 14), (5, 3_000_000), (whole.len() - 4, 4), (9, 0)]
        {
            let mut part = vec![0; length];
            file.read_at(offset as u64, &mut part).unwrap();
            assert_eq!(part, whole[offset..offset + length], "{length} bytes at {offset}");
        }
    }

    /// Cells of 12 bytes, and values of any length, backed by a content.
    struct Of(Arc<dyn Content>);

    impl FixedCells for Of {
        fn count(&self) -> u64 {
            self.0.len() / 12
        }

        fn cell_size(&self) -> usize {
            12
        }

        fn read(&self, first: u64, out: Output<'_>) -> Result<()> {
            self.0.read(first * 12, out)
        }
    }

    impl VarCells for Of {
        fn count(&self) -> Result<u64> {
            Ok(self.0.len() - 1)
        }

        fn byte_count(&self) -> Result<u64> {
            Ok(self.0.len())
        }

        fn read_offsets(&self, first: u64, out: Output<'_, u64>) -> Result<()> {
            self.0.read(first, out.aside(out.len(), &mut Vec::new()))
        }

        fn read_values(&self, start: u64, out: Output<'_>) -> Result<()> {
            self.0.read(start, out)
        }
    }

    #[test]
    fn whole_cells_are_prefetched() {
        let bytes = || Arc::new(vec![1; 6000]);
        assert_reads_ahead(|sources| Arc::new(RawFile(Of(sources.values(bytes())))));
        assert_reads_ahead(|sources| Arc::new(VarValues::new(Arc::new(Of(sources.values(bytes())))).unwrap()));
        assert_reads_ahead(|sources| {
            Arc::new(RawFile(VarOffsets::new(Arc::new(Of(sources.values(bytes())))).unwrap()))
        });
    }
}
