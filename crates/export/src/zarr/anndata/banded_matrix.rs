//! A pass over the stored cells of a matrix that puts the columns and the values of all wanted rows in row order.
//!
//! A reader of whole rows gets here what [`InRowOrder`](super::InRowOrder) has at any place of its two contents. Each tile
//! is decoded once, for nobody else, and its cells are copied to where they belong: nothing is kept but a part of the
//! cells for each thread.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::memory;
use tilefs_threads::{self as threads, cancellation};

use super::bands::{RowBand, RowBands};
use super::cuts::Cuts;
use super::runs::out_of_order;

/// The largest number of unwanted cells between wanted ones that are read along. They are in the same chunk, which has
/// to be decoded anyway.
const GAP: u64 = 1 << 13;

/// The cells of a matrix as stored, in bands of rows.
pub struct BandedMatrix {
    /// The bands, of the same cells.
    pub bands: Arc<RowBands>,
    /// The column of each cell, `i64`.
    pub columns: Arc<dyn Content>,
    /// The value of each cell.
    pub values: Arc<dyn Content>,
    /// The bytes of a value.
    pub value_size: usize,
    /// The cells at which the pass is divided into parts.
    pub cuts: Cuts,
}

/// Wanted cells of one band.
struct WantedCells<'o> {
    band: Arc<RowBand>,
    /// Their numbers in row order: whole rows.
    cells: Vec<Range<u64>>,
    count: u64,
    indices: &'o mut [u8],
    values: &'o mut [u8],
}

impl BandedMatrix {
    /// Reads the values of all cells, `count` in number, whose columns are 0, 1 and so on in each row.
    ///
    /// # Errors
    /// Fails if cells cannot be read; [`Error::Damaged`] for cells that are not in the order of the array.
    pub fn read_full(&self, count: u64, values: &mut [u8]) -> Result<()> {
        self.read(std::slice::from_ref(&(0..count)), 0, &mut [], values)
    }

    /// Reads cells whose numbers in row order are given, range after range, all of whole rows. Columns become integers of
    /// `index_size` bytes, 4 or 8; those of 0 bytes have to be 0, 1 and so on in each row.
    ///
    /// # Errors
    /// Fails if cells cannot be read; [`Error::Damaged`] for cells that are not in the order of the array.
    pub fn read(&self, ranges: &[Range<u64>], index_size: usize, indices: &mut [u8], values: &mut [u8]) -> Result<()> {
        let mut wanted: Vec<WantedCells<'_>> = Vec::new();
        for range in ranges {
            let mut cell = range.start;
            while cell < range.end {
                if wanted.last().is_none_or(|last| !last.band.cells.contains(&cell)) {
                    let band = self.bands.band_of(cell)?;
                    wanted.push(WantedCells { band, cells: Vec::new(), count: 0, indices: &mut [], values: &mut [] });
                }
                let Some(last) = wanted.last_mut() else { break };
                let end = range.end.min(last.band.cells.end);
                last.cells.push(cell..end);
                last.count += end - cell;
                cell = end;
            }
        }
        let (mut indices, mut values) = (indices, values);
        for one in &mut wanted {
            one.indices = take(&mut indices, one.count, index_size)?;
            one.values = take(&mut values, one.count, self.value_size)?;
        }
        threads::map(wanted.into_iter(), |wanted| self.read_band(wanted, index_size)).into_iter().collect()
    }

    fn read_band(&self, wanted: WantedCells<'_>, index_size: usize) -> Result<()> {
        let band = wanted.band.clone();
        let mut pass = BandPass::new(self, wanted, index_size)?;
        self.bands.for_each_run(&band, |row, cells| pass.add(row, cells))?;
        pass.finish()
    }
}

/// Takes the memory of so many cells from the front.
fn take<'o>(from: &mut &'o mut [u8], cells: u64, size: usize) -> Result<&'o mut [u8]> {
    let length = usize::try_from(cells).ok().and_then(|cells| cells.checked_mul(size));
    let own = length.and_then(|length| from.split_off_mut(..length));
    own.ok_or_else(|| Error::internal("wanted cells without memory"))
}

/// The place of a row's cells in the output.
#[derive(Clone, Copy)]
struct RowPlace {
    first: usize,
    next: usize,
    end: usize,
}

/// Cells that are copied.
struct BandCopy {
    /// The number of the first of them among the cells that are read, and in the output.
    from: usize,
    to: usize,
    count: usize,
    /// The number of the first of them among the cells of its row.
    in_row: usize,
}

/// A pass over the runs of a band.
struct BandPass<'p> {
    matrix: &'p BandedMatrix,
    index_size: usize,
    indices: &'p mut [u8],
    values: &'p mut [u8],
    first_row: u64,
    /// For each row of the band; `None` if its cells are not wanted.
    places: Vec<Option<RowPlace>>,
    /// The stored cells that are read next, where their part ends at the latest, and what is copied from them.
    part: Range<u64>,
    end_of_part: u64,
    copies: Vec<BandCopy>,
    cells: Vec<u8>,
}

impl<'p> BandPass<'p> {
    fn new(matrix: &'p BandedMatrix, wanted: WantedCells<'p>, index_size: usize) -> Result<Self> {
        let WantedCells { band, cells, indices, values, .. } = wanted;
        let (first_row, rows) = (band.rows.start, band.rows.start as usize..=band.rows.end as usize);
        let starts = matrix.bands.starts().get()?.get(rows).unwrap_or_default();
        let mut places = vec![None; starts.len().saturating_sub(1)];
        let mut to = 0;
        for range in cells {
            let mut row = starts.partition_point(|start| *start < range.start);
            let mut cell = range.start;
            while cell < range.end {
                let (Some(place), Some(&[start, end])) = (places.get_mut(row), starts.get(row..row + 2)) else {
                    return Err(out_of_order());
                };
                if start != cell || end > range.end {
                    return Err(Error::internal("cells of a part of a row"));
                }
                let count = (end - start) as usize;
                *place = Some(RowPlace { first: to, next: to, end: to + count });
                (to, cell, row) = (to + count, end, row + 1);
            }
        }
        let (part, copies, cells) = (0..0, Vec::new(), Vec::new());
        Ok(BandPass { matrix, index_size, indices, values, first_row, places, part, end_of_part: 0, copies, cells })
    }

    /// Adds the next run: stored cells of a row.
    fn add(&mut self, row: u64, mut cells: Range<u64>) -> Result<()> {
        let number = row.checked_sub(self.first_row).and_then(|number| usize::try_from(number).ok());
        let place = number.and_then(|number| self.places.get_mut(number)).ok_or_else(out_of_order)?;
        let Some(mut own) = *place else { return Ok(()) };
        let first = own.next;
        own.next = first
            .checked_add((cells.end - cells.start) as usize)
            .filter(|end| *end <= own.end)
            .ok_or_else(out_of_order)?;
        *place = Some(own);
        let mut to = first;
        while !cells.is_empty() {
            let is_near = cells.start.checked_sub(self.part.end).is_some_and(|gap| gap <= GAP);
            if cells.start >= self.end_of_part || !is_near {
                self.copy()?;
                // From where the part before ended, so that chunks are whole.
                let start = if cells.start.saturating_sub(self.end_of_part) <= GAP && self.end_of_part > 0 {
                    self.end_of_part.min(cells.start)
                } else {
                    cells.start
                };
                self.part = start..start;
                self.end_of_part = self.matrix.cuts.end_of_part(cells.start);
            }
            let end = cells.end.min(self.end_of_part);
            let count = (end - cells.start) as usize;
            let from = (cells.start - self.part.start) as usize;
            self.copies.push(BandCopy { from, to, count, in_row: to - own.first });
            self.part.end = end;
            (to, cells.start) = (to + count, end);
        }
        Ok(())
    }

    /// Reads the part and copies the cells from it.
    fn copy(&mut self) -> Result<()> {
        if self.copies.is_empty() {
            return Ok(());
        }
        cancellation::check()?;
        let (count, value_size) = ((self.part.end - self.part.start) as usize, self.matrix.value_size);
        memory::resize(&mut self.cells, count.saturating_mul(8), "columns of a matrix")?;
        self.matrix.columns.read_once(self.part.start * 8, &mut self.cells)?;
        let (columns, _) = self.cells.as_chunks::<8>();
        for BandCopy { from, to, count, in_row } in &self.copies {
            let columns = columns.get(*from..*from + count).ok_or_else(out_of_order)?;
            // Each has to be greater than the one before it in the row.
            let checked = if *in_row == 0 { *to } else { to - 1 };
            let out = self.indices.get_mut(checked * self.index_size..(to + count) * self.index_size);
            let out = out.ok_or_else(out_of_order)?;
            let are_right = match self.index_size {
                0 => are_consecutive(columns, *in_row),
                4 => copy_narrow(columns, out, to - checked),
                _ => copy_wide(columns, out, to - checked),
            };
            if !are_right {
                return Err(out_of_order());
            }
        }
        memory::resize(&mut self.cells, count.saturating_mul(value_size), "values of a matrix")?;
        self.matrix.values.read_once(self.part.start * value_size as u64, &mut self.cells)?;
        for BandCopy { from, to, count, .. } in &self.copies {
            let [from, to, count] = [from, to, count].map(|number| number * value_size);
            let out = self.values.get_mut(to..to + count).ok_or_else(out_of_order)?;
            out.copy_from_slice(self.cells.get(from..from + count).ok_or_else(out_of_order)?);
        }
        self.copies.clear();
        Ok(())
    }

    /// Copies the last cells.
    fn finish(mut self) -> Result<()> {
        self.copy()?;
        let are_complete = self.places.iter().flatten().all(|place| place.next == place.end);
        if are_complete { Ok(()) } else { Err(out_of_order()) }
    }
}

/// Returns whether columns are `first`, the next number and so on.
fn are_consecutive(columns: &[[u8; 8]], first: usize) -> bool {
    columns.iter().zip(first as u64..).all(|(column, number)| u64::from_le_bytes(*column) == number)
}

/// Copies columns as integers of 32 bits, behind those that are there `before`. Returns whether they fit and all ascend.
fn copy_narrow(columns: &[[u8; 8]], out: &mut [u8], before: usize) -> bool {
    let (out, _) = out.as_chunks_mut::<4>();
    let mut bits = 0;
    for (to, column) in out.iter_mut().skip(before).zip(columns) {
        let column = u64::from_le_bytes(*column);
        bits |= column;
        *to = (column as u32).to_le_bytes();
    }
    let ascend = |all, pair: &[[u8; 4]]| all & (u32::from_le_bytes(pair[0]) < u32::from_le_bytes(pair[1]));
    bits <= i32::MAX as u64 && out.windows(2).fold(true, ascend)
}

/// As [`copy_narrow`], of 64 bits.
fn copy_wide(columns: &[[u8; 8]], out: &mut [u8], before: usize) -> bool {
    let (out, _) = out.as_chunks_mut::<8>();
    out.iter_mut().skip(before).zip(columns).for_each(|(to, column)| *to = *column);
    let ascend = |all, pair: &[[u8; 8]]| all & (i64::from_le_bytes(pair[0]) < i64::from_le_bytes(pair[1]));
    out.windows(2).fold(true, ascend)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{BandLimits, CellOrder, RowStarts, Sections};
    use super::*;

    const ROWS: u64 = 20;
    const ALL_ROWS: Range<u64> = 0..ROWS;
    const LIMITS: BandLimits = BandLimits { band: 1 << 20, all: 1 << 20, tiles: 1 << 20, tile_cells: 10 };

    fn longs(values: impl IntoIterator<Item = i64>) -> Arc<dyn Content> {
        Arc::new(values.into_iter().flat_map(i64::to_le_bytes).collect::<Vec<u8>>())
    }

    /// The matrix of cells (row, column) that were written in parts, and whose values are 100 * row + column.
    fn matrix(parts: &[Vec<(i64, i64)>], extent: u64, most_runs: usize, cuts: (u64, u64)) -> BandedMatrix {
        let cells = parts.concat();
        let firsts: Vec<u64> = parts
            .iter()
            .scan(0, |next, part| {
                let first = *next;
                *next += part.len() as u64;
                Some(first)
            })
            .collect();
        let cuts = Cuts::new(firsts.clone(), cuts.0, cuts.1);
        let rows = longs(cells.iter().map(|cell| cell.0));
        let order = match parts {
            [_] => CellOrder::Any,
            _ => CellOrder::InSections(Sections::new(extent, firsts).unwrap()),
        };
        let starts = RowStarts::new(rows.clone(), order, ROWS, 1 << 20, None).unwrap();
        let starts = Arc::new(starts.cut_at(cuts.clone(), most_runs));
        let bands = RowBands::new(rows, starts, extent, LIMITS).unwrap();
        let values: Arc<dyn Content> = Arc::new(
            cells.iter().flat_map(|(row, column)| ((100 * row + column) as u16).to_le_bytes()).collect::<Vec<u8>>(),
        );
        BandedMatrix { bands, columns: longs(cells.iter().map(|cell| cell.1)), values, value_size: 2, cuts }
    }

    /// Reads rows, and returns the column and the value of each cell.
    fn cells_of(matrix: &BandedMatrix, rows: &[Range<u64>], index_size: usize) -> Result<Vec<(i64, u16)>> {
        let starts = matrix.bands.starts().get()?;
        let ranges: Vec<Range<u64>> =
            rows.iter().map(|rows| starts[rows.start as usize]..starts[rows.end as usize]).collect();
        let count: usize = ranges.iter().map(|range| range.clone().count()).sum();
        let (mut indices, mut values) = (vec![0xff; count * index_size], vec![0xff; count * 2]);
        matrix.read(&ranges, index_size, &mut indices, &mut values)?;
        let columns = indices.chunks_exact(index_size).map(|bytes| {
            let mut whole = [0; 8];
            whole[..index_size].copy_from_slice(bytes);
            i64::from_le_bytes(whole)
        });
        let values = values.as_chunks().0.iter().map(|value| u16::from_le_bytes(*value));
        Ok(columns.zip(values).collect())
    }

    proptest! {
        #[test]
        fn rows_are_what_sorting_gives(
            written in prop_oneof![Just("at once"), Just("by rows"), Just("by columns")],
            cut in 0i64..20,
            cells in prop::collection::btree_set((0i64..ROWS as i64, 0i64..20), 0..150),
            extents in (1i64..9, 1i64..9),
            most_runs in prop_oneof![Just(0usize), Just(100), Just(1 << 20)],
            cuts in (1u64..30, 1u64..30),
            asked in prop::collection::vec(0..=ROWS, 0..8),
            index_size in prop_oneof![Just(4usize), Just(8)],
        ) {
            let mut stored: Vec<(i64, i64)> = cells.iter().copied().collect();
            stored.sort_by_key(|&(row, column)| (row / extents.0, column / extents.1, row, column));
            let parts: Vec<Vec<(i64, i64)>> = match written {
                "at once" => vec![stored],
                _ => {
                    let (before, behind) = stored.iter().partition(|cell| if written == "by rows" { cell.0 < cut } else { cell.1 < cut });
                    if written == "by rows" { vec![behind, before] } else { vec![before, behind] }
                }
            };
            let matrix = matrix(&parts, extents.0 as u64, most_runs, cuts);
            let mut ends = asked;
            ends.sort_unstable();
            let rows: Vec<Range<u64>> = ends.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect();
            for rows in [rows, vec![ALL_ROWS]] {
                let expected: Vec<(i64, u16)> = rows
                    .iter()
                    .flat_map(|rows| cells.iter().filter(|cell| rows.contains(&(cell.0 as u64))))
                    .map(|&(row, column)| (column, (100 * row + column) as u16))
                    .collect();
                prop_assert_eq!(cells_of(&matrix, &rows, index_size).unwrap(), expected, "{:?}", rows);
            }
        }
    }

    #[test]
    fn cells_that_are_not_in_the_order_of_the_array_are_an_error() {
        let whole = |cells: &[(i64, i64)], index_size| {
            let matrix = matrix(&[cells.to_vec()], 4, 1 << 10, (3, 8));
            cells_of(&matrix, &[ALL_ROWS], index_size)
        };
        for index_size in [4, 8] {
            assert!(whole(&[(0, 5), (0, 7), (1, 3), (0, 9), (4, 0)], index_size).is_ok());
            for wrong in [&[(0, 5), (0, 5)][..], &[(0, 5), (1, 3), (0, 4)], &[(0, 5), (4, 0), (1, 3)]] {
                assert!(matches!(whole(wrong, index_size), Err(Error::Damaged { .. })), "{wrong:?}");
            }
        }
        let wide = 1 << 31;
        assert!(whole(&[(0, wide)], 8).is_ok() && whole(&[(0, wide)], 4).is_err() && whole(&[(0, -1)], 4).is_err());
    }

    #[test]
    fn full_matrices_are_read_without_their_columns() {
        let read = |cells: &[(i64, i64)]| {
            let matrix = matrix(&[cells.to_vec()], 4, 1 << 10, (3, 8));
            let mut values = vec![0xff; 2 * cells.len()];
            matrix.read_full(cells.len() as u64, &mut values).map(|()| values)
        };
        let all = |columns: i64| (0..ROWS as i64).flat_map(move |row| (0..columns).map(move |column| (row, column)));
        for columns in [1, 2, 7] {
            let cells: Vec<(i64, i64)> = all(columns).collect();
            let expected: Vec<u8> =
                cells.iter().flat_map(|(row, column)| ((100 * row + column) as u16).to_le_bytes()).collect();
            assert_eq!(read(&cells).unwrap(), expected);
            for (place, wrong) in [(0, columns), (cells.len() - 1, 0), (cells.len() / 2, 9)] {
                let mut cells = cells.clone();
                if cells[place].1 != wrong {
                    cells[place].1 = wrong;
                    assert!(
                        matches!(read(&cells), Err(Error::Damaged { .. })),
                        "{columns} columns, {wrong} at {place}"
                    );
                }
            }
        }
    }

    #[test]
    fn ranges_have_whole_rows() {
        let matrix = matrix(&[vec![(0, 1), (0, 2), (1, 3)]], 4, 0, (3, 8));
        let read = |range: Range<u64>, count: usize| {
            matrix.read(&[range], 4, &mut vec![0; 4 * count], &mut vec![0; 2 * count])
        };
        assert!(read(0..2, 2).is_ok() && read(2..3, 1).is_ok() && read(3..3, 0).is_ok());
        assert!(read(0..1, 1).is_err() && read(1..3, 2).is_err() && read(2..4, 2).is_err() && read(0..2, 1).is_err());
    }
}
