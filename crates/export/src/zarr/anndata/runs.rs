//! Runs: consecutive stored cells of one row. The cells of a run stay together when cells are put in row order.
//!
//! Within a space tile the cells of a row are consecutive, so they are one run. Whole runs are counted and moved
//! instead of single cells.

use std::ops::Range;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::memory;
use tilefs_base::output::Output;
use tilefs_threads::cancellation;

/// Number of cells whose coordinates are fetched at a time: in local storage, one batch.
const PIECE: u64 = 1 << 19;

/// Number of coordinates read at a time: these coordinates stay in a core's cache.
const BLOCK: u64 = 1 << 15;

/// Number of coordinates compared at a time; the compiler uses vector instructions for them.
const AT_ONCE: usize = 16;

/// The largest gap of unwanted stored cells between wanted cells that is read along: copying the gap takes less time
/// than another read.
const GAP: u32 = 1 << 10;

/// Decodes the coordinates of a piece of cells. Reading the piece block by block then takes no further requests.
pub fn fetch(coordinates: &dyn Content, cells: &Range<u64>) -> Result<()> {
    coordinates.read(cells.start * 8, Output::Ahead((cells.end - cells.start) * 8))
}

/// Returns the pieces of some cells, in order.
pub fn pieces_of(cells: &Range<u64>) -> impl ExactSizeIterator<Item = Range<u64>> + use<> {
    let (first, end) = (cells.start, cells.end);
    let count = usize::try_from((end - first).div_ceil(PIECE)).unwrap_or(usize::MAX);
    (0..count).map(move |number| {
        let first = first + number as u64 * PIECE;
        first..first.saturating_add(PIECE).min(end)
    })
}

/// Calls `visit` with the coordinates of cells, `i64`, block by block.
pub fn for_each_block(
    coordinates: &dyn Content,
    cells: Range<u64>,
    mut visit: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let (mut first, mut buffer) = (cells.start, Vec::new());
    while first < cells.end {
        cancellation::check()?;
        let count = (cells.end - first).min(BLOCK);
        memory::resize(&mut buffer, count as usize * 8, "coordinates of cells")?;
        coordinates.read_at(first * 8, &mut buffer)?;
        visit(&buffer)?;
        first += count;
    }
    Ok(())
}

/// Calls `visit` for each run among coordinates (`i64`), with its row and its number of cells.
pub fn for_each_row(coordinates: &[u8], mut visit: impl FnMut(u64, u64) -> Result<()>) -> Result<()> {
    let (mut cells, _) = coordinates.as_chunks::<8>();
    while let Some(first) = cells.first() {
        let row = u64::try_from(i64::from_le_bytes(*first));
        let row = row.map_err(|_| Error::damaged("a cell of a matrix before its first row"))?;
        let count = leading(*first, cells);
        visit(row, count as u64)?;
        cells = &cells[count..];
    }
    Ok(())
}

/// Returns the number of leading cells that equal `first`.
fn leading(first: [u8; 8], cells: &[[u8; 8]]) -> usize {
    let wanted = u64::from_le_bytes(first);
    let differences =
        |group: &[[u8; 8]]| group.iter().fold(0, |bits, cell| bits | (u64::from_le_bytes(*cell) ^ wanted));
    let mut count = 0;
    // Comparing in groups is not worth it for a short run.
    if cells.get(1) == Some(&first) {
        let (groups, _) = cells.as_chunks::<AT_ONCE>();
        count = groups.iter().take_while(|group| differences(&group[..]) == 0).count() * AT_ONCE;
    }
    count + cells[count..].iter().take_while(|cell| **cell == first).count()
}

pub fn out_of_order() -> Error {
    Error::damaged("cells that are not in the order of the array")
}

/// The start of a run: the number of its first cell in the band, in stored order (`from`) and in row order (`to`). The
/// run ends where the next stored run begins.
#[derive(Debug, Clone, Copy)]
struct RunStart {
    from: u32,
    to: u32,
}

/// The runs of a band of rows. Memory: 8 bytes per run.
pub struct Runs {
    /// The runs in stored order; the last run is empty, and begins at the end of all cells.
    runs: Vec<RunStart>,
    /// Indices of the runs at which ascents begin, and of the empty run. In an ascent the rows of runs ascend, so
    /// `from` and `to` both ascend.
    ascents: Vec<usize>,
}

/// A search for the runs of a band.
pub struct RunFinder {
    first_row: u64,
    /// For each row, the numbers in row order of its next cell, and of the end of the row.
    places: Vec<(u32, u32)>,
    last_row: Option<u64>,
    stored: u32,
    most: usize,
    runs: Vec<RunStart>,
    ascents: Vec<usize>,
}

impl RunFinder {
    /// Prepares to find fewer than `most` runs in a band of rows from `first_row` on. `starts` has the number of the
    /// matrix's cells before each row, and after the last row.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for more cells than 32 bits count.
    pub fn new(first_row: u64, starts: &[u64], most: usize) -> Result<Self> {
        let before = starts.first().copied().unwrap_or(0);
        let place = |start: u64| u32::try_from(start.saturating_sub(before));
        let rows = starts.windows(2).map(|ends| Ok((place(ends[0])?, place(ends[1])?)));
        let places = rows.collect::<std::result::Result<_, std::num::TryFromIntError>>();
        let places = places.map_err(|_| Error::unsupported("a band of more than 2^32 cells"))?;
        Ok(RunFinder { first_row, places, last_row: None, stored: 0, most, runs: Vec::new(), ascents: Vec::new() })
    }

    /// Adds the next stored cells, which are in one row.
    ///
    /// # Errors
    /// [`Error::Damaged`] for cells of other rows, and for more cells of a row than `starts` tells.
    pub fn add_cells(&mut self, row: u64, cells: u64) -> Result<()> {
        let number = row.checked_sub(self.first_row).and_then(|number| usize::try_from(number).ok());
        let (next, end) = number.and_then(|number| self.places.get_mut(number)).ok_or_else(out_of_order)?;
        let to = *next;
        let behind = u32::try_from(cells).ok().and_then(|cells| to.checked_add(cells)).filter(|behind| *behind <= *end);
        *next = behind.ok_or_else(out_of_order)?;
        if self.last_row != Some(row) && self.runs.len() < self.most {
            if self.last_row.is_none_or(|last| row < last) {
                self.ascents.push(self.runs.len());
            }
            self.runs.push(RunStart { from: self.stored, to });
        }
        self.last_row = Some(row);
        // At most the number of the cells of all rows, which fits 32 bits.
        self.stored += *next - to;
        Ok(())
    }

    /// Returns the runs of all cells that were added; `None` if there are `most` or more.
    ///
    /// # Errors
    /// [`Error::Damaged`] if cells of a row are missing.
    pub fn finish(mut self) -> Result<Option<Runs>> {
        if self.places.iter().any(|(next, end)| next != end) {
            return Err(out_of_order());
        }
        if self.runs.len() >= self.most {
            return Ok(None);
        }
        self.ascents.push(self.runs.len());
        self.runs.push(RunStart { from: self.stored, to: self.stored });
        self.runs.shrink_to_fit();
        Ok(Some(Runs { runs: self.runs, ascents: self.ascents }))
    }
}

/// The stored cells to read for some wanted cells.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct StoredParts {
    /// The parts to read, in stored order.
    pub parts: Vec<StoredPart>,
    copies: Vec<CellCopy>,
}

/// Consecutive stored cells.
#[derive(Debug, PartialEq, Eq)]
pub struct StoredPart {
    /// The numbers of the cells in the band, in stored order.
    pub stored: Range<u32>,
    copies: Range<usize>,
}

/// Cells that are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CellCopy {
    /// The number of the first copied cell in its part.
    from: u32,
    /// The number of the first copied cell among the wanted cells.
    to: u32,
    count: u32,
}

impl Runs {
    /// Returns the memory of the runs in bytes.
    pub fn memory(&self) -> usize {
        self.runs.len() * size_of::<RunStart>() + self.ascents.len() * size_of::<usize>()
    }

    /// Returns the number of ascents: usually the number of space tiles of the band.
    pub fn ascents(&self) -> usize {
        self.ascents.len().saturating_sub(1)
    }

    /// Returns the parts to read for the cells whose numbers in row order are `wanted`.
    pub fn parts_of(&self, wanted: Range<u32>) -> StoredParts {
        let StoredParts { mut parts, mut copies } = StoredParts::default();
        for ascent in self.ascents.windows(2) {
            // Include the next run, whose start is the end of the ascent's last run.
            let Some(runs) = self.runs.get(ascent[0]..=ascent[1]) else { continue };
            let own = &runs[..runs.len() - 1];
            let end = own.partition_point(|run| run.to < wanted.end);
            let first = own.partition_point(|run| run.to <= wanted.start).saturating_sub(1);
            for pair in runs[first.min(end)..=end].windows(2) {
                let [RunStart { from, to }, RunStart { from: behind, .. }] = [pair[0], pair[1]];
                let skipped = wanted.start.saturating_sub(to).min(behind - from);
                let count = (behind - from - skipped).min(wanted.end - to - skipped);
                if count > 0 {
                    add(
                        &mut parts,
                        &mut copies,
                        CellCopy { from: from + skipped, to: to + skipped - wanted.start, count },
                    );
                }
            }
        }
        StoredParts { parts, copies }
    }
}

/// Adds a copy. Its `from` counts all stored cells, and is at or after the end of the previous copy.
fn add(parts: &mut Vec<StoredPart>, copies: &mut Vec<CellCopy>, copy: CellCopy) {
    let end = copy.from + copy.count;
    match parts.last_mut() {
        Some(part) if copy.from - part.stored.end <= GAP => {
            copies.push(CellCopy { from: copy.from - part.stored.start, ..copy });
            part.stored.end = end;
            part.copies.end = copies.len();
        }
        _ => {
            parts.push(StoredPart { stored: copy.from..end, copies: copies.len()..copies.len() + 1 });
            copies.push(CellCopy { from: 0, ..copy });
        }
    }
}

impl StoredParts {
    /// Returns the number of stored cells to read, including the gaps that are read along.
    pub fn cells(&self) -> u64 {
        self.parts.iter().map(|part| u64::from(part.stored.end - part.stored.start)).sum()
    }

    /// Copies the wanted cells of a part, `size` bytes each, from `cells` (the cells of the part) to `out` (all wanted
    /// cells). `None` if `cells` or `out` is too short.
    pub fn copy(&self, part: &StoredPart, size: usize, cells: &[u8], out: &mut [u8]) -> Option<()> {
        for CellCopy { from, to, count } in self.copies.get(part.copies.clone())? {
            let [from, to, count] = [from, to, count].map(|number| *number as usize * size);
            out.get_mut(to..to + count)?.copy_from_slice(cells.get(from..from + count)?);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(rows: &[i64]) -> Vec<u8> {
        rows.iter().flat_map(|row| row.to_le_bytes()).collect()
    }

    /// Runs of rows, some long.
    fn stored_rows() -> impl Strategy<Value = Vec<i64>> {
        let run = (0i64..9, prop_oneof![1usize..3, 1usize..80, Just(2000)]);
        let runs = prop::collection::vec(run, 0..30);
        runs.prop_map(|runs| runs.into_iter().flat_map(|(row, count)| vec![row; count]).collect())
    }

    proptest! {
        #[test]
        fn rows_come_with_the_number_of_their_cells(rows in stored_rows()) {
            let mut found = Vec::new();
            for_each_row(&bytes(&rows), |row, count| {
                found.push((row as i64, count as usize));
                Ok(())
            })
            .unwrap();
            let expected: Vec<_> = rows.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect();
            prop_assert_eq!(found, expected);
        }

        /// Compares the cells with a stable sort of all cells by their rows.
        #[test]
        fn parts_have_the_wanted_cells(
            rows in stored_rows(),
            blocks in prop::collection::vec(1usize..3000, 1..5),
            asked in prop::collection::vec((any::<u32>(), any::<u32>()), 1..10),
        ) {
            let mut sorted: Vec<usize> = (0..rows.len()).collect();
            sorted.sort_by_key(|cell| rows[*cell]);
            let starts: Vec<u64> = (0..=9).map(|row| 77 + rows.iter().filter(|own| **own < row).count() as u64).collect();
            let mut finder = RunFinder::new(0, &starts, usize::MAX).unwrap();
            let mut rest = &rows[..];
            for block in blocks.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (now, later) = rest.split_at((*block).min(rest.len()));
                for_each_row(&bytes(now), |row, cells| finder.add_cells(row, cells)).unwrap();
                rest = later;
            }
            let runs = finder.finish().unwrap().unwrap();
            let count = rows.chunk_by(|a, b| a == b).count();
            prop_assert_eq!(runs.runs.len(), count + 1);
            let falls = rows.windows(2).filter(|pair| pair[0] > pair[1]).count();
            prop_assert_eq!(runs.ascents(), falls + usize::from(!rows.is_empty()));
            for (a, b) in asked {
                let (a, b) = (a % (rows.len() as u32 + 1), b % (rows.len() as u32 + 1));
                let wanted = a.min(b)..a.max(b);
                let parts = runs.parts_of(wanted.clone());
                let mut out = vec![0xff; wanted.len() * 4];
                for part in &parts.parts {
                    let cells: Vec<u8> = part.stored.clone().flat_map(u32::to_le_bytes).collect();
                    parts.copy(part, 4, &cells, &mut out).unwrap();
                }
                let expected: Vec<u8> = sorted[wanted.start as usize..wanted.end as usize].iter().flat_map(|cell| (*cell as u32).to_le_bytes()).collect();
                prop_assert!(out == expected, "{wanted:?}");
                // A part begins and ends with wanted cells; unwanted cells between them are read along.
                let is_wanted = |cell: u32| expected.as_chunks().0.contains(&cell.to_le_bytes());
                let ends = parts.parts.iter().flat_map(|part| [part.stored.start, part.stored.end - 1]);
                prop_assert!(ends.clone().all(is_wanted));
                prop_assert!(parts.parts.windows(2).all(|pair| pair[0].stored.end + GAP < pair[1].stored.start));
                prop_assert_eq!(parts.cells(), parts.parts.iter().map(|part| part.stored.len() as u64).sum::<u64>());
            }
        }
    }

    #[test]
    fn other_cells_than_those_counted_are_an_error() {
        let found = |rows: &[i64]| {
            let mut finder = RunFinder::new(4, &[10, 12, 12, 13], 100)?;
            for_each_row(&bytes(rows), |row, cells| finder.add_cells(row, cells))?;
            finder.finish()
        };
        assert!(found(&[4, 6, 4]).is_ok_and(|runs| runs.is_some()));
        for rows in [&[4, 4][..], &[4, 6], &[4, 4, 4], &[4, 5, 6], &[4, 4, 6, 6], &[3, 4, 6], &[4, 4, 7], &[-1, 4, 6]] {
            assert!(matches!(found(rows), Err(Error::Damaged { .. })), "{rows:?}");
        }
    }

    #[test]
    fn too_many_runs_are_not_kept() {
        for (most, is_kept) in [(0, false), (2, false), (3, false), (4, true)] {
            let mut finder = RunFinder::new(0, &[0, 2, 3], most).unwrap();
            for_each_row(&bytes(&[0, 1, 0]), |row, cells| finder.add_cells(row, cells)).unwrap();
            assert_eq!(finder.finish().unwrap().is_some(), is_kept, "{most}");
        }
        assert!(RunFinder::new(0, &[0, 1 << 32], 1).is_err());
    }
}
