//! The cells of a sparse matrix in row order, gathered from the tiles of a band.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::memory;
use tilefs_base::output::Output;
use tilefs_threads::{cancellation, for_all};

use super::bands::{RowBand, RowBands};
use super::runs::{Runs, out_of_order};
use crate::content::element::by_elements;

/// Number of stored cells that may be read for each wanted one, if at least [`FEW`] are wanted.
const MOST_READ: u64 = 16;

/// Number of cells of a typical read.
const FEW: u64 = 1 << 13;

/// A band of at most so many bytes is prefetched as a whole: its tiles then take one request from a remote storage.
const WHOLE_BAND: u64 = 16 << 20;

/// Number of cells gathered at a time.
const AT_ONCE: usize = 1 << 17;

/// The cells of a matrix in row order. A read takes memory for twice the cells that it gathers at a time, or for
/// `MOST_READ` times as many in a matrix with few cells per tile.
pub struct InRowOrder {
    bands: Arc<RowBands>,
    /// Of each cell in stored order.
    of: Arc<dyn Content>,
    size: usize,
    /// Whether the values are columns, `i64`, which ascend in each row.
    are_columns: bool,
    /// The same cells in row order, read in another way, for bands that are too scattered for this one.
    otherwise: Arc<dyn Content>,
}

impl InRowOrder {
    /// Reorders `of`, which has `size` bytes for each cell. `otherwise` has the same cells in row order.
    pub fn new(
        bands: Arc<RowBands>,
        of: Arc<dyn Content>,
        size: usize,
        are_columns: bool,
        otherwise: Arc<dyn Content>,
    ) -> Self {
        InRowOrder { bands, of, size, are_columns, otherwise }
    }

    fn read_from(&self, first: u64, mut out: Output<'_>) -> Result<()> {
        let size = self.size as u64;
        let (mut cell, mut done, end) = (first, 0, first + out.len() / size);
        while cell < end {
            cancellation::check()?;
            let band = self.bands.band_of(cell)?;
            let to = end.min(band.cells.end);
            let length = (to - cell) * size;
            let own = out.part(done..done + length);
            match self.bands.runs(&band)? {
                Some(runs) => self.gather(&band, runs, cell, own)?,
                None => self.otherwise.read(cell * size, own)?,
            }
            (cell, done) = (to, done + length);
        }
        Ok(())
    }

    /// Reads cells of a band from a number on.
    fn gather(&self, band: &RowBand, runs: &Runs, first: u64, mut out: Output<'_>) -> Result<()> {
        let size = self.size as u64;
        let all = band.cells.end - band.cells.start;
        if out.wanted().is_none() && all.saturating_mul(size) <= WHOLE_BAND {
            return self.fetch(band, 0..all);
        }
        let (mut wanted, mut neighbours) = (first..first + out.len() / size, 0);
        if self.are_columns && out.wanted().is_some() {
            // Each is compared with the columns before and behind it.
            wanted = wanted.start.saturating_sub(1).max(band.cells.start)..(wanted.end + 1).min(band.cells.end);
            neighbours = first - wanted.start;
        }
        // The runs count cells of the band in 32 bits.
        let parts = runs.parts_of((wanted.start - band.cells.start) as u32..(wanted.end - band.cells.start) as u32);
        if parts.cells() > (wanted.end - wanted.start).max(FEW).saturating_mul(MOST_READ) {
            return self.otherwise.read(first * size, out);
        }
        let (mut cells, mut columns) = (Vec::new(), Vec::new());
        if self.are_columns && out.wanted().is_some() {
            memory::resize(&mut columns, ((wanted.end - wanted.start) * size) as usize, "columns of a matrix")?;
        }
        for part in &parts.parts {
            let numbers = u64::from(part.stored.start)..u64::from(part.stored.end);
            let Some(out) = out.wanted() else {
                self.fetch(band, numbers)?;
                continue;
            };
            memory::resize(&mut cells, ((numbers.end - numbers.start) * size) as usize, "cells of a matrix")?;
            let mut rest = cells.as_mut_slice();
            for stored in band.stored(numbers) {
                let own = rest.split_off_mut(..((stored.end - stored.start) * size) as usize);
                self.of.read_at(stored.start * size, own.ok_or_else(out_of_order)?)?;
            }
            let into = if self.are_columns { columns.as_mut_slice() } else { out };
            parts.copy(part, self.size, &cells, into).ok_or_else(out_of_order)?;
        }
        let Some(out) = out.wanted().filter(|_| self.are_columns) else { return Ok(()) };
        self.check_columns(wanted.start, &columns)?;
        let from = (neighbours * size) as usize;
        out.copy_from_slice(columns.get(from..from + out.len()).ok_or_else(out_of_order)?);
        Ok(())
    }

    /// Decodes cells whose numbers in the band, as stored, are given.
    fn fetch(&self, band: &RowBand, numbers: Range<u64>) -> Result<()> {
        let size = self.size as u64;
        let stored: Vec<Range<u64>> = band.stored(numbers).collect();
        let fetch =
            |cells: &Range<u64>| self.of.read(cells.start * size, Output::Ahead((cells.end - cells.start) * size));
        match stored.as_slice() {
            [cells] => fetch(cells),
            _ => for_all(stored.len(), |number| fetch(&stored[number])).map(|_| ()),
        }
    }

    /// Checks that columns, the first of which is that of cell `first`, ascend in each row.
    fn check_columns(&self, first: u64, columns: &[u8]) -> Result<()> {
        let starts = self.bands.starts().get()?;
        let (mut rest, _) = columns.as_chunks::<8>();
        let mut cell = first;
        for end in starts.get(starts.partition_point(|start| *start <= cell)..).unwrap_or_default() {
            let (row, behind) = rest.split_at_checked((end - cell) as usize).unwrap_or((rest, &[]));
            let pairs = row.iter().zip(row.iter().skip(1));
            let ascend =
                |ascend, (a, b): (&[u8; 8], &[u8; 8])| ascend & (i64::from_le_bytes(*a) < i64::from_le_bytes(*b));
            if !pairs.fold(true, ascend) {
                return Err(out_of_order());
            }
            (rest, cell) = (behind, *end);
            if rest.is_empty() {
                return Ok(());
            }
        }
        Err(Error::internal("columns of cells past the last one"))
    }
}

impl Content for InRowOrder {
    fn len(&self) -> u64 {
        self.bands.starts().cells().saturating_mul(self.size as u64)
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        by_elements(self.size, AT_ONCE, offset, out, |first, out| self.read_from(first, out))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{BandLimits, CellOrder, RowStarts, Sections};
    use super::*;
    use crate::testing::{assert_random_access, read_all};

    fn longs(values: impl IntoIterator<Item = i64>) -> Arc<dyn Content> {
        Arc::new(values.into_iter().flat_map(i64::to_le_bytes).collect::<Vec<u8>>())
    }

    /// The limits of bands of any kind.
    const LIMITS: BandLimits = BandLimits { band: 1 << 20, all: 1 << 20, tiles: 1 << 20, tile_cells: 10 };

    /// `indptr`, columns and values of cells in stored order.
    fn by_rows(cells: &[(i64, i64)], count: u64, extent: u64, limits: BandLimits) -> [Arc<dyn Content>; 3] {
        let unordered = longs(cells.iter().rev().map(|cell| cell.0));
        let starts = Arc::new(RowStarts::new(unordered, CellOrder::Any, count, 1 << 20, None).unwrap());
        by_bands(cells, starts, extent, limits)
    }

    /// As [`by_rows`], of cells in sections.
    fn by_sections(parts: &[Vec<(i64, i64)>], count: u64, extent: u64, limits: BandLimits) -> [Arc<dyn Content>; 3] {
        let firsts = parts.iter().scan(0, |first, part| {
            *first += part.len() as u64;
            Some(*first - part.len() as u64)
        });
        let order = CellOrder::InSections(Sections::new(extent, firsts.collect()).unwrap());
        let rows = longs(parts.iter().flatten().map(|cell| cell.0));
        let starts = Arc::new(RowStarts::new(rows, order, count, 1 << 20, None).unwrap());
        by_bands(&parts.concat(), starts, extent, limits)
    }

    fn by_bands(
        cells: &[(i64, i64)],
        starts: Arc<RowStarts>,
        extent: u64,
        limits: BandLimits,
    ) -> [Arc<dyn Content>; 3] {
        let rows = longs(cells.iter().map(|cell| cell.0));
        let bands = RowBands::new(rows, starts.clone(), extent, limits).unwrap();
        let mut sorted: Vec<((i64, i64), u32)> = cells.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        let values = |numbers: &mut dyn Iterator<Item = u32>| -> Arc<dyn Content> {
            Arc::new(numbers.flat_map(u32::to_le_bytes).collect::<Vec<u8>>())
        };
        let columns = InRowOrder::new(
            bands.clone(),
            longs(cells.iter().map(|cell| cell.1)),
            8,
            true,
            longs(sorted.iter().map(|(cell, _)| cell.1)),
        );
        let own = values(&mut (0..cells.len() as u32));
        let otherwise = values(&mut sorted.iter().map(|(_, number)| *number));
        [starts, Arc::new(columns), Arc::new(InRowOrder::new(bands, own, 4, false, otherwise))]
    }

    proptest! {
        #[test]
        fn cells_by_rows_are_what_sorting_gives(
            written in prop_oneof![Just("at once"), Just("by rows"), Just("by columns")],
            cut in 0i64..20,
            cells in prop::collection::btree_set((0i64..20, 0i64..20), 0..150),
            extents in (1i64..9, 1i64..9),
            band in prop_oneof![Just(0usize), Just(100), Just(1 << 20)],
            all in prop_oneof![Just(0usize), Just(1 << 20)],
            tiles in prop_oneof![Just(0u64), Just(160), Just(1 << 20)],
        ) {
            let mut stored: Vec<(i64, i64)> = cells.iter().copied().collect();
            stored.sort_by_key(|&(row, column)| (row / extents.0, column / extents.1, row, column));
            let (extent, limits) = (extents.0 as u64, BandLimits { band, all, tiles, tile_cells: 10 });
            // Parts whose cells share no row may come in any order, those that share rows in the order of their columns.
            let (behind, before) = stored.iter().partition(|cell| if written == "by rows" { cell.0 < cut } else { cell.1 >= cut });
            let parts: Vec<Vec<(i64, i64)>> = vec![before, behind];
            let [starts, columns, values] = match written {
                "at once" => by_rows(&stored, 20, extent, limits),
                _ => by_sections(&parts, 20, extent, limits),
            };
            if written != "at once" {
                stored = parts.concat();
            }
            let numbers: Vec<u32> = read_all(&*values).as_chunks().0.iter().map(|one| u32::from_le_bytes(*one)).collect();
            let columns_read: Vec<i64> = read_all(&*columns).as_chunks().0.iter().map(|one| i64::from_le_bytes(*one)).collect();
            let starts_read: Vec<u64> = read_all(&*starts).as_chunks().0.iter().map(|one| u64::from_le_bytes(*one)).collect();
            prop_assert_eq!(columns_read, cells.iter().map(|cell| cell.1).collect::<Vec<_>>());
            prop_assert_eq!(numbers.iter().map(|number| stored[*number as usize]).collect::<Vec<_>>(), cells.iter().copied().collect::<Vec<_>>());
            let before = |row: i64| cells.iter().filter(|cell| cell.0 < row).count() as u64;
            prop_assert_eq!(starts_read, (0..=20).map(before).collect::<Vec<_>>());
            for content in [starts, columns, values] {
                assert_random_access(&*content);
            }
        }
    }

    #[test]
    fn cells_in_another_order_are_an_error() {
        for (cells, what) in [
            (vec![(4, 0), (0, 0)], "bands the other way round"),
            (vec![(0, 1), (0, 0)], "columns that fall"),
            (vec![(1, 3), (1, 3)], "a cell twice"),
            (vec![(-1, 0)], "a negative row"),
            (vec![(9, 0)], "a row too many"),
        ] {
            let [_, columns, _] = by_rows(&cells, 9, 4, LIMITS);
            assert!(columns.read_at(0, &mut [0; 8]).is_err(), "{what}");
        }
        // Prefetching does not report errors that the read itself will not, and does not fail.
        let [starts, columns, _] = by_rows(&[(0, 1), (0, 0)], 9, 4, LIMITS);
        assert!(starts.read_at(0, &mut [0; 80]).is_ok() && columns.read(0, Output::Ahead(16)).is_ok());
    }

    /// Cells of which some cannot be read.
    struct Broken(Vec<u8>, std::ops::Range<u64>);

    impl Content for Broken {
        fn len(&self) -> u64 {
            Content::len(&self.0)
        }

        fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
            if offset < self.1.end && self.1.start < offset + out.len() {
                return Err(Error::damaged("broken"));
            }
            self.0.read(offset, out)
        }
    }

    #[test]
    fn damage_affects_only_the_rows_that_have_it() {
        // Two tiles of four rows; the one on the right is broken in its last row.
        let cells: Vec<(i64, i64)> =
            (0..24_000).map(|cell| (cell / 3000 % 4, cell % 3000 + cell / 12_000 * 3000)).collect();
        let rows = longs(cells.iter().map(|cell| cell.0));
        let starts = Arc::new(RowStarts::new(rows.clone(), CellOrder::Any, 4, 1 << 10, None).unwrap());
        let limits = BandLimits { tile_cells: 12_000, ..LIMITS };
        let bands = RowBands::new(rows, starts, 4, limits).unwrap();
        let columns = cells.iter().flat_map(|cell| cell.1.to_le_bytes()).collect();
        let broken = Arc::new(Broken(columns, 21_000 * 8..21_001 * 8));
        let columns = InRowOrder::new(bands, broken, 8, true, longs([]));
        let read = |row: u64, of: u64, count: usize| {
            let mut bytes = vec![0; count * 8];
            columns.read_at((row * 6000 + of) * 8, &mut bytes).map(|()| bytes)
        };
        let expected: Vec<u8> = (0i64..6000).flat_map(i64::to_le_bytes).collect();
        for row in 0..3 {
            assert!(read(row, 0, 6000).unwrap() == expected, "{row}");
        }
        assert!(read(3, 0, 2000).unwrap() == expected[..16_000]);
        assert!(read(3, 0, 6000).is_err() && read(3, 3000, 1).is_err() && read(3, 2999, 1).is_err());
    }

    #[test]
    fn bands_without_rows_are_refused() {
        let starts = Arc::new(RowStarts::new(longs([]), CellOrder::Any, 10, 1 << 30, None).unwrap());
        assert!(RowBands::new(longs([]), starts, 0, LIMITS).is_none());
    }
}
