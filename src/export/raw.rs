//! Fixed-size cells end to end: the bytes of a raw attribute file.

use super::Content;
use crate::array::dense::{AxisCoordinates, DenseColumn};
use crate::error::Result;
use crate::read::Output;

/// Reads of more bytes than this are split over the cores.
const SPLIT: usize = 2 << 20;

/// A row of cells of one size that can be read from any cell.
pub trait Cells: Send + Sync {
    /// How many cells.
    fn count(&self) -> u64;

    /// Bytes of one cell, at least 1.
    fn cell_size(&self) -> usize;

    /// Fills `out` with whole cells from cell `first`.
    fn read(&self, first: u64, out: &mut [u8]) -> Result<()>;

    /// As [`Content::prepare`], in cells.
    fn prepare(&self, first: u64, count: u64);
}

impl Cells for DenseColumn {
    fn count(&self) -> u64 {
        self.cells()
    }

    fn cell_size(&self) -> usize {
        DenseColumn::cell_size(self)
    }

    fn read(&self, first: u64, out: &mut [u8]) -> Result<()> {
        DenseColumn::read(self, first, out)
    }

    fn prepare(&self, first: u64, count: u64) {
        // The read itself will meet the same error and tell it.
        let _ = DenseColumn::read(self, first, Output::Ahead(count * self.cell_size() as u64));
    }
}

impl Cells for AxisCoordinates {
    fn count(&self) -> u64 {
        AxisCoordinates::count(self)
    }

    fn cell_size(&self) -> usize {
        AxisCoordinates::cell_size(self)
    }

    fn read(&self, first: u64, out: &mut [u8]) -> Result<()> {
        AxisCoordinates::read(self, first, out)
    }

    fn prepare(&self, _first: u64, _count: u64) {}
}

/// The content of a file of cells.
pub struct RawFile<C>(pub C);

impl<C: Cells> RawFile<C> {
    /// Reads whole cells, on several cores where there are many.
    fn read_cells(&self, first: u64, out: &mut [u8]) -> Result<()> {
        let size = self.0.cell_size();
        if out.len() <= SPLIT || out.len() < 2 * size {
            return self.0.read(first, out);
        }
        let half = out.len() / size / 2;
        let (left, right) = out.split_at_mut(half * size);
        let (left, right) =
            rayon::join(|| self.read_cells(first, left), || self.read_cells(first + half as u64, right));
        left.and(right)
    }
}

impl<C: Cells> Content for RawFile<C> {
    fn len(&self) -> u64 {
        self.0.count().saturating_mul(self.0.cell_size() as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let size = self.0.cell_size();
        let (mut cell, into) = (offset / size as u64, (offset % size as u64) as usize);
        let mut rest = buf;
        if into > 0 {
            // The read begins within a cell.
            let mut whole = vec![0; size];
            self.0.read(cell, &mut whole)?;
            let length = rest.len().min(size - into);
            let (now, later) = rest.split_at_mut(length);
            now.copy_from_slice(&whole[into..into + length]);
            rest = later;
            cell += 1;
        }
        let (cells, tail) = rest.split_at_mut(rest.len() / size * size);
        self.read_cells(cell, cells)?;
        if !tail.is_empty() {
            let mut whole = vec![0; size];
            self.0.read(cell + (cells.len() / size) as u64, &mut whole)?;
            tail.copy_from_slice(&whole[..tail.len()]);
        }
        Ok(())
    }

    fn prepare(&self, offset: u64, length: u64) {
        let size = self.0.cell_size() as u64;
        let first = offset / size;
        let end = offset.saturating_add(length).div_ceil(size).min(self.0.count());
        self.0.prepare(first, end.saturating_sub(first));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cell n holds the bytes n, n + 1, ...
    struct Counting;

    impl Cells for Counting {
        fn count(&self) -> u64 {
            1_000_003
        }

        fn cell_size(&self) -> usize {
            7
        }

        fn read(&self, first: u64, out: &mut [u8]) -> Result<()> {
            for (number, cell) in out.chunks_exact_mut(7).enumerate() {
                for (byte, value) in cell.iter_mut().enumerate() {
                    *value = (first as usize + number + byte) as u8;
                }
            }
            Ok(())
        }

        fn prepare(&self, _first: u64, _count: u64) {}
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
}
