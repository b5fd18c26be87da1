//! A sparse matrix in row order whose cells are stored tile by tile: it is read in bands of rows as high as a tile.
//!
//! The cells of a band are consecutive, and within the band the cells of a row are ordered from left to right, like the
//! tiles and the cells within a tile. So nothing needs sorting: one pass over the rows of all cells counts the cells of
//! each row, which gives `indptr`, and a pass over a band distributes its cells row by row. That pass also verifies
//! these assumptions; cells stored in another order are an error.

use std::fmt::Display;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use tilefs_format::error::{Error, Result};
use tilefs_reader::array::{Array, SingleFlight, decode_sums, encode_sums};
use tilefs_reader::memory;
use tilefs_reader::read::Output;
use tilefs_reader::storage::EntryKey;
use tilefs_reader::threads::cancellation;

use crate::content::{Content, unknown_band};
use crate::element::by_elements;

/// Number of cells examined at a time: as many coordinates as one batch from a remote storage has.
const LOOKED_AT: u64 = 1 << 21;

/// Minimum number of bands kept, for readers at two positions.
const MIN_BANDS: usize = 2;

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
        saved.get_or_make(self.key, decode, encode_sums, || {
            let starts = make()?;
            saved.note_measured(starts.last().copied().unwrap_or(0));
            Ok(starts)
        })
    }
}

/// The starts of a matrix's rows among its cells. Memory: 8 bytes per row of the matrix, once requested.
pub struct RowBands {
    /// The row of each cell in stored order, `i64`.
    rows: Arc<dyn Content>,
    saved: Option<SavedStarts>,
    /// Number of rows of the matrix, and of a band.
    count: u64,
    extent: u64,
    starts: SingleFlight<Vec<u64>>,
}

impl RowBands {
    /// Creates the bands of cells with these rows, each `extent` rows high. `None` if the starts of the rows would take
    /// more memory than `most_memory` bytes. They are saved in `saved`.
    pub fn new(
        rows: Arc<dyn Content>,
        count: u64,
        extent: u64,
        most_memory: usize,
        saved: Option<SavedStarts>,
    ) -> Option<Arc<Self>> {
        let fits = count < (most_memory as u64) / 8;
        (fits && extent > 0).then(|| Arc::new(RowBands { rows, saved, count, extent, starts: SingleFlight::new() }))
    }

    fn cells(&self) -> u64 {
        self.rows.len() / 8
    }

    /// Returns the number of cells before each row, and the total at the end. The first call reads the rows of all
    /// cells, unless an earlier mount has saved the result.
    ///
    /// # Errors
    /// Fails if they cannot be read; [`Error::Damaged`] for cells that are not in bands, or outside the matrix.
    fn starts(&self) -> Result<&[u64]> {
        let rows = usize::try_from(self.count).map_err(|_| Error::internal("more rows than memory"))?;
        let count = || -> Result<Vec<u64>> {
            let (mut starts, mut buffer) = (Vec::<u64>::new(), Vec::new());
            memory::resize(&mut starts, rows + 1, "where rows begin")?;
            let mut band = 0;
            for_each_piece(0..self.cells(), |cells| {
                for row in self.rows_of(cells, &mut buffer)? {
                    let row = row?;
                    if row >= self.count {
                        return Err(Error::damaged(format!("a cell in row {row} of {}", self.count)));
                    }
                    if row / self.extent < band {
                        return Err(out_of_order());
                    }
                    band = row / self.extent;
                    // Less than `count`, which is the number of the last.
                    starts[row as usize + 1] += 1;
                }
                Ok(())
            })?;
            for row in 0..rows {
                starts[row + 1] += starts[row];
            }
            Ok(starts)
        };
        let starts = self.starts.get_or_make(|| match &self.saved {
            Some(saved) => saved.get_or_make(rows, self.cells(), count),
            None => count(),
        })?;
        Ok(starts)
    }

    /// Reads the rows of some cells.
    fn rows_of<'b>(
        &self,
        cells: Range<u64>,
        buffer: &'b mut Vec<u8>,
    ) -> Result<impl Iterator<Item = Result<u64>> + 'b> {
        read_cells(&*self.rows, 8, cells, buffer)?;
        Ok(buffer.as_chunks::<8>().0.iter().map(|bytes| {
            u64::try_from(i64::from_le_bytes(*bytes))
                .map_err(|_| Error::damaged("a cell of a matrix before its first row"))
        }))
    }

    /// Returns the rows of the band that contains a cell, and the band's cells.
    fn band_of(&self, cell: u64) -> Result<(Range<u64>, Range<u64>)> {
        let starts = self.starts()?;
        let row = (starts.partition_point(|start| *start <= cell) as u64).saturating_sub(1);
        let first = row - row % self.extent;
        let rows = first..first.saturating_add(self.extent).min(self.count);
        let at = |row: u64| starts.get(row as usize).copied().ok_or_else(|| Error::internal("no such row"));
        let cells = at(rows.start)?..at(rows.end)?;
        if !cells.contains(&cell) {
            return Err(Error::internal("a cell past the last one"));
        }
        Ok((rows, cells))
    }
}

fn out_of_order() -> Error {
    Error::damaged("cells that are not in the order of the array")
}

/// Calls `work` with the cells, about two million at a time.
fn for_each_piece(cells: Range<u64>, mut work: impl FnMut(Range<u64>) -> Result<()>) -> Result<()> {
    let mut first = cells.start;
    while first < cells.end {
        cancellation::check()?;
        let next = first.saturating_add(LOOKED_AT).min(cells.end);
        work(first..next)?;
        first = next;
    }
    Ok(())
}

fn read_cells(of: &dyn Content, size: usize, cells: Range<u64>, buffer: &mut Vec<u8>) -> Result<()> {
    // At most LOOKED_AT cells of a few bytes.
    memory::resize(buffer, (cells.end - cells.start) as usize * size, "cells of a matrix")?;
    of.read_at(cells.start * size as u64, buffer)
}

/// `indptr`: for each row, the number of cells before it, and the total at the end, `i64`.
pub struct RowStarts(pub Arc<RowBands>);

impl Content for RowStarts {
    fn len(&self) -> u64 {
        // The starts of its rows fit in memory.
        (self.0.count + 1) * 8
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let starts = self.0.starts()?;
        by_elements(8, usize::MAX, offset, out, |first, mut out| {
            let numbers = starts.get(first as usize..).unwrap_or_default().iter();
            let wanted = out.wanted().unwrap_or_default();
            wanted.as_chunks_mut().0.iter_mut().zip(numbers).for_each(|(to, start)| *to = start.to_le_bytes());
            Ok(())
        })
    }
}

/// The cells of a matrix in row order. Memory: recently used bands of [`BandLimits::all`] bytes in total, or
/// `MIN_BANDS` bands.
pub struct InRowOrder {
    bands: Arc<RowBands>,
    /// Of each cell in stored order.
    of: Arc<dyn Content>,
    size: usize,
    /// Whether the values are columns, `i64`, which ascend in each row.
    are_columns: bool,
    /// The same cells in row order, read in another way, for bands that are too large for this one.
    otherwise: Arc<dyn Content>,
    limits: BandLimits,
    /// Keyed by first cell.
    kept: Mutex<LruCache<u64, Arc<Band>>>,
}

/// The memory that bands may take.
#[derive(Debug, Clone, Copy)]
pub struct BandLimits {
    /// Maximum size in bytes of a band that is reordered.
    pub band: usize,
    /// Total size in bytes of the bands that are kept.
    pub all: usize,
}

struct Band {
    cells: Range<u64>,
    bytes: SingleFlight<Vec<u8>>,
}

impl InRowOrder {
    /// Reorders `of`, which has `size` bytes for each cell. `otherwise` has the same cells in row order.
    pub fn new(
        bands: Arc<RowBands>,
        of: Arc<dyn Content>,
        size: usize,
        are_columns: bool,
        otherwise: Arc<dyn Content>,
        limits: BandLimits,
    ) -> Self {
        InRowOrder { bands, of, size, are_columns, otherwise, limits, kept: Mutex::new(LruCache::unbounded()) }
    }

    fn bytes_of(&self, cells: &Range<u64>) -> u64 {
        (cells.end - cells.start).saturating_mul(self.size as u64)
    }

    /// Returns the slot of a band, which may not be filled yet.
    fn slot(&self, cells: &Range<u64>) -> Arc<Band> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Band { cells: cells.clone(), bytes: SingleFlight::new() });
        let slot = kept.get_or_insert(cells.start, new).clone();
        let mut bytes: u64 = kept.iter().map(|(_, band)| self.bytes_of(&band.cells)).sum();
        while bytes > self.limits.all as u64 && kept.len() > MIN_BANDS {
            bytes -= kept.pop_lru().map_or(bytes, |(_, band)| self.bytes_of(&band.cells));
        }
        slot
    }

    /// Returns the cells of a band, row by row.
    fn sorted(&self, rows: &Range<u64>, cells: &Range<u64>) -> Result<Vec<u8>> {
        let starts = self.bands.starts()?.get(rows.start as usize..=rows.end as usize).unwrap_or_default();
        // The destination of the next cell of each row.
        let mut next: Vec<u64> = starts.iter().map(|start| start - cells.start).collect();
        let mut sorted = Vec::new();
        memory::resize(&mut sorted, (cells.end - cells.start) as usize * self.size, "a band of a matrix")?;
        let (mut coordinates, mut values) = (Vec::new(), Vec::new());
        for_each_piece(cells.clone(), |piece| {
            read_cells(&*self.of, self.size, piece.clone(), &mut values)?;
            let mut places = Places { rows, starts, first_cell: cells.start, next: &mut next };
            let rows = self.bands.rows_of(piece, &mut coordinates)?;
            match self.size {
                4 => scatter::<4>(rows, &mut places, &values, &mut sorted),
                8 => scatter::<8>(rows, &mut places, &values, &mut sorted),
                size => rows.zip(values.chunks_exact(size)).try_for_each(|(row, value)| {
                    let place = places.take(row?)? * size;
                    sorted.get_mut(place..place + size).ok_or_else(out_of_order)?.copy_from_slice(value);
                    Ok(())
                }),
            }
        })?;
        if self.are_columns {
            let (columns, _) = sorted.as_chunks::<8>();
            for bounds in starts.windows(2) {
                let [from, to] = [bounds[0], bounds[1]].map(|start| (start - cells.start) as usize);
                let row = columns.get(from..to).unwrap_or_default();
                if !row.is_sorted_by(|a, b| i64::from_le_bytes(*a) < i64::from_le_bytes(*b)) {
                    return Err(out_of_order());
                }
            }
        }
        Ok(sorted)
    }

    fn read_from(&self, first: u64, mut out: Output<'_>) -> Result<()> {
        let size = self.size as u64;
        let (mut cell, mut done, end) = (first, 0, first + out.len() / size);
        while cell < end {
            cancellation::check()?;
            let (rows, cells) = self.bands.band_of(cell)?;
            let to = end.min(cells.end);
            let length = (to - cell) * size;
            let own = out.part(done..done + length);
            match own {
                own if self.bytes_of(&cells) > self.limits.band as u64 => self.otherwise.read(cell * size, own)?,
                Output::Ahead(_) => {
                    self.bands.rows.read(cells.start * 8, Output::Ahead((cells.end - cells.start) * 8))?;
                    self.of.read(cells.start * size, Output::Ahead(self.bytes_of(&cells)))?;
                }
                Output::Into(out) => {
                    let slot = self.slot(&cells);
                    let sorted = slot.bytes.get_or_make(|| self.sorted(&rows, &cells))?;
                    let start = ((cell - cells.start) * size) as usize;
                    out.copy_from_slice(sorted.get(start..start + out.len()).ok_or_else(out_of_order)?);
                }
            }
            (cell, done) = (to, done + length);
        }
        Ok(())
    }
}

/// The destinations of a band's cells.
struct Places<'a> {
    rows: &'a Range<u64>,
    /// The start of each row among all cells, and the end of the last.
    starts: &'a [u64],
    first_cell: u64,
    /// The destination in the band of the next cell of each row.
    next: &'a mut [u64],
}

impl Places<'_> {
    /// Returns the destination of the next cell of a row.
    fn take(&mut self, row: u64) -> Result<usize> {
        let number = row.checked_sub(self.rows.start).ok_or_else(out_of_order)? as usize;
        let end = self.starts.get(number + 1).ok_or_else(out_of_order)? - self.first_cell;
        let next = self.next.get_mut(number).filter(|next| **next < end).ok_or_else(out_of_order)?;
        *next += 1;
        Ok(*next as usize - 1)
    }
}

fn scatter<const SIZE: usize>(
    mut rows: impl Iterator<Item = Result<u64>>,
    places: &mut Places<'_>,
    values: &[u8],
    sorted: &mut [u8],
) -> Result<()> {
    let (sorted, _) = sorted.as_chunks_mut::<SIZE>();
    let mut values = values.as_chunks::<SIZE>().0.iter();
    rows.by_ref().zip(values.by_ref()).try_for_each(|(row, value)| {
        let place = places.take(row?)?;
        *sorted.get_mut(place).ok_or_else(out_of_order)? = *value;
        Ok(())
    })
}

impl Content for InRowOrder {
    fn len(&self) -> u64 {
        self.bands.cells().saturating_mul(self.size as u64)
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        by_elements(self.size, usize::MAX, offset, out, |first, out| self.read_from(first, out))
    }

    fn band(&self, offset: u64) -> Range<u64> {
        let size = self.size as u64;
        match self.bands.starts.get().and_then(|_| self.bands.band_of(offset / size).ok()) {
            Some((_, cells)) => cells.start * size..cells.end * size,
            None => unknown_band(self.len(), offset),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{assert_random_access, read_all};

    fn longs(values: impl IntoIterator<Item = i64>) -> Arc<dyn Content> {
        Arc::new(values.into_iter().flat_map(i64::to_le_bytes).collect::<Vec<u8>>())
    }

    const LIMITS: BandLimits = BandLimits { band: 1 << 20, all: 1 << 20 };

    /// `indptr`, columns and values of cells in stored order.
    fn by_rows(cells: &[(i64, i64)], count: u64, extent: u64, limits: BandLimits) -> [Arc<dyn Content>; 3] {
        let bands = RowBands::new(longs(cells.iter().map(|cell| cell.0)), count, extent, 1 << 20, None).unwrap();
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
            limits,
        );
        let own = values(&mut (0..cells.len() as u32));
        let otherwise = values(&mut sorted.iter().map(|(_, number)| *number));
        let values = InRowOrder::new(bands.clone(), own, 4, false, otherwise, limits);
        [Arc::new(RowStarts(bands)), Arc::new(columns), Arc::new(values)]
    }

    proptest! {
        #[test]
        fn cells_by_rows_are_what_sorting_gives(
            cells in prop::collection::btree_set((0i64..20, 0i64..20), 0..150),
            extents in (1i64..9, 1i64..9),
            band in prop_oneof![Just(0usize), Just(100), Just(1 << 20)],
            all in prop_oneof![Just(0usize), Just(1 << 20)],
        ) {
            let mut stored: Vec<(i64, i64)> = cells.iter().copied().collect();
            stored.sort_by_key(|&(row, column)| (row / extents.0, column / extents.1, row, column));
            let [starts, columns, values] = by_rows(&stored, 20, extents.0 as u64, BandLimits { band, all });
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

    #[test]
    fn more_rows_than_memory_are_refused() {
        assert!(RowBands::new(longs([]), 1 << 40, 2048, 1 << 30, None).is_none());
        assert!(RowBands::new(longs([]), 10, 0, 1 << 30, None).is_none());
    }
}
