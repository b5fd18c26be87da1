//! Cells of variable length as encoded by the codecs `vlen-utf8` and `vlen-bytes`: their number, then each cell
//! preceded by its length, all `u32` little-endian.
//!
//! Source: the codecs of numcodecs, described in Zarr's registry of extensions.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::output::Output;
use tilefs_base::search::partition_point;

use crate::column::boxes::PaddedBox;
use crate::content::offsets::{Offsets, wrong_offsets};
use crate::content::read_head;

/// Size of a length in bytes.
const LENGTH: u64 = 4;

/// The chunk of a box of cells; padding cells around the box are empty. A read takes memory for the offsets of the
/// cells in its range, and once for their values.
pub struct Interleaved {
    values: Arc<dyn Content>,
    /// As in [`Column`](crate::Column): the start of each cell's value, and the end of the last.
    offsets: Offsets,
    frame: PaddedBox,
    cells: u32,
}

impl Interleaved {
    /// Creates the chunk.
    ///
    /// # Errors
    /// Fails if there are more cells than such a chunk can count.
    pub fn new(values: Arc<dyn Content>, offsets: impl Into<Offsets>, shape: &[u64], chunk: &[u64]) -> Result<Self> {
        let frame = PaddedBox::new(shape, chunk);
        let cells = frame.cells();
        let cells = u32::try_from(cells)
            .map_err(|_| Error::unsupported(format!("a chunk of {cells} texts, where Zarr counts 2^32 - 1")))?;
        Ok(Interleaved { values, offsets: offsets.into(), frame, cells })
    }

    /// Returns the start of a cell's value among all values; for the number of cells, the end of the last value.
    fn value_start(&self, cell: u64) -> Result<u64> {
        self.offsets.at(self.frame.own_before(cell))
    }

    /// Returns the last cell whose bytes begin at or before `at`, an offset after the number of cells.
    fn cell_at(&self, at: u64) -> Result<u64> {
        let behind = partition_point(1..self.cells.into(), |cell| Ok(cell * LENGTH + self.value_start(cell)? <= at))?;
        Ok(behind - 1)
    }

    /// Reads a non-empty range of bytes from `at`, an offset after the number of cells.
    fn read_cells(&self, at: u64, mut out: Output<'_>) -> Result<()> {
        let end = at + out.len();
        let (first, last) = (self.cell_at(at)?, self.cell_at(end - 1)?);
        let own = self.frame.own_before(first)..self.frame.own_before(last + 1);
        let offsets = self.offsets.of(own.clone(), &out)?;
        // The number of value bytes before an offset within a cell: those of the cells before it, and its own up to
        // there.
        let before = |cell: u64, at: u64| -> Result<u64> {
            let (start, end) = (self.value_start(cell)?, self.value_start(cell + 1)?);
            Ok(start + at.saturating_sub(cell * LENGTH + start + LENGTH).min(end.saturating_sub(start)))
        };
        let (from, to) = (before(first, at)?, before(last, end)?);
        let length = to.checked_sub(from).filter(|&length| length <= out.len()).ok_or_else(wrong_offsets)?;
        let mut values = Vec::new();
        self.values.read(from, out.aside(length, &mut values))?;
        let Some(mut out) = out.wanted() else { return Ok(()) };
        let mut values = values.as_slice();
        for cell in first..=last {
            let [before, behind] = [cell, cell + 1].map(|cell| self.frame.own_before(cell) - own.start);
            let (Some(&start), Some(&end)) = (offsets.get(before as usize), offsets.get(behind as usize)) else {
                return Err(wrong_offsets());
            };
            let length = end.checked_sub(start).ok_or_else(wrong_offsets)?;
            let length = u32::try_from(length).map_err(|_| Error::unsupported("a text of more than 2^32 - 1 bytes"))?;
            // The part of this cell before the range.
            let into = at.saturating_sub(cell * LENGTH + start);
            let head = &length.to_le_bytes()[into.min(LENGTH) as usize..];
            let (now, later) = out.split_at_mut(head.len().min(out.len()));
            now.copy_from_slice(&head[..now.len()]);
            let left = u64::from(length) - into.saturating_sub(LENGTH).min(length.into());
            let count = usize::try_from(left).unwrap_or(usize::MAX).min(later.len());
            let (now, later) = later.split_at_mut(count);
            let (own, rest) = values.split_at_checked(count).ok_or_else(wrong_offsets)?;
            now.copy_from_slice(own);
            (out, values) = (later, rest);
        }
        Ok(())
    }
}

impl Content for Interleaved {
    fn len(&self) -> u64 {
        (LENGTH + LENGTH * u64::from(self.cells)).saturating_add(self.values.len())
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let (offset, rest) = read_head(&self.cells.to_le_bytes(), offset, out);
        if rest.is_empty() {
            return Ok(());
        }
        self.read_cells(offset - LENGTH, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_random_access, assert_reads_ahead, read_all};
    use proptest::prelude::*;

    fn offsets(values: &[Vec<u8>]) -> Arc<dyn Content> {
        let mut at = 0u64;
        let ends = values.iter().map(|value| {
            at += value.len() as u64;
            at
        });
        Arc::new([0].into_iter().chain(ends).flat_map(u64::to_le_bytes).collect::<Vec<u8>>())
    }

    proptest! {
        #[test]
        fn each_cell_is_preceded_by_its_length(
            rows in 1u64..5, columns in 1u64..5, more in 0u64..3, all in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9), 25)
        ) {
            let values = &all[..(rows * columns) as usize];
            let mut own = values.iter();
            let mut expected = ((rows + 1) as u32 * (columns + more) as u32).to_le_bytes().to_vec();
            for cell in 0..(rows + 1) * (columns + more) {
                let is_own = cell % (columns + more) < columns && cell / (columns + more) < rows;
                let value = if is_own { own.next().unwrap().clone() } else { Vec::new() };
                expected.extend((value.len() as u32).to_le_bytes());
                expected.extend(value);
            }
            let chunk = [rows + 1, columns + more];
            let content = Interleaved::new(Arc::new(values.concat()), offsets(values), &[rows, columns], &chunk).unwrap();
            prop_assert_eq!(read_all(&content), expected);
            assert_random_access(&content);
        }
    }

    #[test]
    fn offsets_determine_prefetched_values() {
        let values: Vec<Vec<u8>> = (0..3000usize).map(|i| vec![i as u8; i * 7 % 1000]).collect();
        assert_reads_ahead(|sources| {
            let offsets = sources.index(offsets(&values));
            let values = sources.values(Arc::new(values.concat()));
            Arc::new(Interleaved::new(values, offsets, &[3000], &[3100]).unwrap())
        });
    }

    #[test]
    fn offsets_that_go_backwards_are_damage() {
        let bad: Vec<u8> = [0u64, 5, 3].iter().flat_map(|offset| offset.to_le_bytes()).collect();
        let content = Interleaved::new(Arc::new(vec![0; 5]), Arc::new(bad), &[2], &[2]).unwrap();
        assert!(content.read_at(0, &mut [0; 17]).is_err());
        assert!(Interleaved::new(Arc::new(vec![]), Arc::new(vec![0; 8]), &[0], &[1 << 32]).is_err());
    }
}
