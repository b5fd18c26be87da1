//! `indptr` of a matrix: where its rows, or its columns, begin among its cells.

use std::ops::Range;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::inputs::{Recorded, Recorder};
use tilefs_base::memory;
use tilefs_base::output::Output;
use tilefs_reader::array::{Context, RunningSums};
use tilefs_threads::for_all;
use tilefs_threads::single_flight::SingleFlight;

use super::counted_runs::{CountedRuns, RunsOfPiece};
use super::cuts::Cuts;
use super::runs::{for_each_row, out_of_order};
use super::stretches::{Sections, StretchFinder, Stretches};
use crate::content::element::by_elements;

/// How cells are sorted by the coordinates that are counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CellOrder {
    /// Other orders are an error.
    Sorted,
    /// Any order gives the same counts.
    Any,
    /// By bands within each section. The cells of each band are found when cells are counted.
    InSections(Sections),
}

/// The result of a pass over all cells.
#[derive(Debug, Default)]
struct Counted {
    starts: RunningSums,
    /// Empty if cells are not in sections.
    stretches: Stretches,
    /// Not saved, and only held on request.
    runs: Option<CountedRuns>,
}

impl Counted {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = self.starts.encode();
        self.stretches.encode(&mut bytes);
        bytes
    }

    /// Decodes what is known about so many rows with so many cells in this order; `None` for other bytes.
    fn decode(bytes: &[u8], rows: usize, cells: u64, order: &CellOrder) -> Option<Self> {
        let (starts, stretches) = bytes.split_at_checked(rows.checked_add(1)?.checked_mul(size_of::<u64>())?)?;
        let starts = RunningSums::decode(starts, rows).filter(|starts| starts.total() == cells)?;
        let stretches = match order {
            CellOrder::InSections(sections) => Stretches::decode(stretches, sections, starts.as_slice())?,
            CellOrder::Sorted | CellOrder::Any => stretches.is_empty().then(Stretches::default)?,
        };
        Some(Counted { starts, stretches, runs: None })
    }
}

/// The result of a pass over one piece of the cells.
struct CountedPiece<'s> {
    /// The rows of its first and its last cell.
    ends: (u64, u64),
    stretches: Option<StretchFinder<'s>>,
    runs: Option<RunsOfPiece>,
}

/// `indptr`: for each row, the number of cells before it, and the total at the end, `i64`. Memory: 8 bytes per row, once
/// requested, and those of `Stretches`; while cells are counted, also a piece of their coordinates for each thread.
pub struct RowStarts {
    /// The row of each cell, `i64`.
    rows: Arc<dyn Content>,
    order: CellOrder,
    /// Where the starts are saved for later mounts, if anywhere.
    context: Option<Arc<Context>>,
    /// Number of rows of the matrix.
    count: u64,
    /// The cells at which the pass over all cells is divided into parts.
    cuts: Cuts,
    /// The most bytes that the runs of all cells may take to be held.
    most_runs: usize,
    counted: SingleFlight<Counted>,
}

impl Recorded for RowStarts {
    fn record(&self, recorder: &mut Recorder) {
        let Self { rows, order, context: _, count, cuts: _, most_runs: _, counted: _ } = self;
        recorder.add::<Self>((order, count));
        Content::record(rows, recorder);
    }
}

impl RowStarts {
    /// Creates the starts of so many rows among cells with these rows. `None` if they would take more memory than
    /// `most_memory` bytes. They are saved where `context` has its saved results.
    pub fn new(
        rows: Arc<dyn Content>,
        order: CellOrder,
        count: u64,
        most_memory: usize,
        context: Option<Arc<Context>>,
    ) -> Option<Self> {
        let (cuts, counted) = (Cuts::default(), SingleFlight::new());
        let fits = count < (most_memory as u64) / 8;
        fits.then(|| RowStarts { rows, order, context, count, cuts, most_runs: 0, counted })
    }

    /// Sets the parts of the pass over all cells, and how many bytes of the runs that it finds are kept: readers of kept runs
    /// do not decode the rows of cells again.
    pub fn cut_at(self, cuts: Cuts, most_runs: usize) -> Self {
        RowStarts { cuts, most_runs, ..self }
    }

    /// Returns the number of cells.
    pub fn cells(&self) -> u64 {
        self.rows.len() / 8
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.count
    }

    /// Returns the starts if they are known.
    pub fn known(&self) -> Option<&[u64]> {
        self.counted.get().map(|counted| counted.starts.as_slice())
    }

    /// Returns the number of cells before each row, and the total at the end. The first call reads the rows of all
    /// cells, unless an earlier mount has saved the result.
    ///
    /// # Errors
    /// Fails if they cannot be read; [`Error::Damaged`] for cells outside the matrix, or in another order than said.
    pub fn get(&self) -> Result<&[u64]> {
        Ok(self.counted()?.starts.as_slice())
    }

    /// Returns the cells of each band, if cells are in sections.
    ///
    /// # Errors
    /// As [`RowStarts::get`].
    pub fn stretches(&self) -> Result<Option<&Stretches>> {
        let are_in_sections = matches!(self.order, CellOrder::InSections(_));
        are_in_sections.then(|| self.counted().map(|counted| &counted.stretches)).transpose()
    }

    /// Returns the runs of all cells, if they are held. They are not if an earlier mount has counted the cells.
    ///
    /// # Errors
    /// As [`RowStarts::get`].
    pub fn runs(&self) -> Result<Option<&CountedRuns>> {
        Ok(self.counted()?.runs.as_ref())
    }

    fn counted(&self) -> Result<&Counted> {
        let count = self.count_in_memory()?;
        self.counted.get_or_make(|| {
            let Some(context) = &self.context else { return self.count_cells() };
            let decode = |bytes: &[u8]| Counted::decode(bytes, count, self.cells(), &self.order);
            context.saved.get_or_make_of(("starts", self.cells()), self, decode, Counted::encode, Self::count_cells)
        })
    }

    fn count_in_memory(&self) -> Result<usize> {
        usize::try_from(self.count).map_err(|_| Error::internal("more rows than memory"))
    }

    fn count_cells(&self) -> Result<Counted> {
        let mut counts = Vec::new();
        memory::resize(&mut counts, self.count_in_memory()?.saturating_add(1), "where rows begin")?;
        let counts = Mutex::new(counts);
        let left = AtomicUsize::new(self.most_runs);
        let parts: Vec<Range<u64>> = self.cuts.parts(0..self.cells()).collect();
        let mut pieces = for_all(parts.len(), |number| self.count_piece(parts[number].clone(), &counts, &left))?;
        let runs = CountedRuns::of_pieces(pieces.iter_mut().map(|piece| piece.runs.take()));
        if self.order == CellOrder::Sorted && pieces.windows(2).any(|pair| pair[0].ends.1 > pair[1].ends.0) {
            return Err(out_of_order());
        }
        let mut finders = pieces.into_iter().filter_map(|piece| piece.stretches);
        let mut stretches = Stretches::default();
        if let Some(mut joined) = finders.next() {
            finders.try_for_each(|behind| joined.add_all(behind))?;
            stretches = joined.finish();
        }
        let counts = counts.into_inner().unwrap_or_else(PoisonError::into_inner);
        let starts = RunningSums::of_counts(counts).ok_or_else(|| Error::internal("counts that begin with no zero"))?;
        Ok(Counted { starts, stretches, runs })
    }

    /// Adds the cells of each row `r` to element `r + 1` of `counts`.
    fn count_piece(&self, cells: Range<u64>, counts: &Mutex<Vec<u64>>, left: &AtomicUsize) -> Result<CountedPiece<'_>> {
        let (mut first, mut last, mut cell) = (None, 0, cells.start);
        let mut runs = (self.most_runs > 0).then(|| RunsOfPiece::new(cells.start));
        let mut stretches = match &self.order {
            CellOrder::InSections(sections) => Some(StretchFinder::new(sections)),
            CellOrder::Sorted | CellOrder::Any => None,
        };
        let (mut found, mut coordinates) = (Vec::new(), Vec::new());
        memory::resize(&mut coordinates, (cells.end - cells.start) as usize * 8, "coordinates of cells")?;
        self.rows.read_once(cells.start * 8, &mut coordinates)?;
        for_each_row(&coordinates, |row, cells| {
            if row >= self.count {
                return Err(Error::damaged(format!("a cell in row {row} of {}", self.count)));
            }
            if self.order == CellOrder::Sorted && row < last {
                return Err(out_of_order());
            }
            first.get_or_insert(row);
            last = row;
            // Less than the number of elements.
            found.push((row as usize + 1, cells));
            if let Some(stretches) = &mut stretches {
                stretches.add_cells(row, cell..cell + cells)?;
            }
            runs = runs.take().and_then(|mut runs| runs.add(row, cells).then_some(runs));
            cell += cells;
            Ok(())
        })?;
        let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
        found.iter().for_each(|(number, cells)| counts[*number] += cells);
        let runs = runs.filter(|runs| runs.fits(left));
        Ok(CountedPiece { ends: (first.unwrap_or(0), last), stretches, runs })
    }
}

impl Content for RowStarts {
    fn len(&self) -> u64 {
        // The starts of its rows fit in memory.
        (self.count + 1) * 8
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let starts = self.get()?;
        by_elements(8, usize::MAX, offset, out, |first, mut out| {
            let numbers = starts.get(first as usize..).unwrap_or_default().iter();
            let wanted = out.wanted().unwrap_or_default();
            wanted.as_chunks_mut().0.iter_mut().zip(numbers).for_each(|(to, start)| *to = start.to_le_bytes());
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{assert_random_access, read_all};

    fn longs(values: &[i64]) -> Arc<dyn Content> {
        Arc::new(values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>())
    }

    proptest! {
        #[test]
        fn starts_are_the_numbers_of_cells_before(rows in prop::collection::vec(0i64..12, 0..200)) {
            let mut sorted = rows.clone();
            sorted.sort_unstable();
            let expected: Vec<u64> = (0..=12).map(|row| sorted.partition_point(|own| *own < row) as u64).collect();
            for (rows, order) in [(&rows, CellOrder::Any), (&sorted, CellOrder::Any), (&sorted, CellOrder::Sorted)] {
                let starts = RowStarts::new(longs(rows), order, 12, 1 << 10, None).unwrap();
                prop_assert_eq!(starts.get().unwrap(), &expected[..]);
                let bytes: Vec<u8> = expected.iter().flat_map(|start| start.to_le_bytes()).collect();
                prop_assert_eq!(read_all(&starts), bytes);
                assert_random_access(&starts);
            }
            let unsorted = RowStarts::new(longs(&rows), CellOrder::Sorted, 12, 1 << 10, None).unwrap();
            prop_assert_eq!(unsorted.get().is_ok(), rows.is_sorted());
        }
    }

    /// Cells are counted piece by piece, and a piece is looked at block by block.
    #[test]
    fn the_order_is_checked_from_piece_to_piece() {
        let mut rows: Vec<i64> = (0..700_000).map(|cell| cell / 300).collect();
        let starts = |rows: &[i64]| RowStarts::new(longs(rows), CellOrder::Sorted, 3000, 1 << 20, None).unwrap();
        let expected: Vec<u64> = (0..=3000).map(|row| (row * 300).min(700_000)).collect();
        assert_eq!(starts(&rows).get().unwrap(), expected);
        for swapped in [1 << 15, 1 << 19, 600_000] {
            rows.swap(swapped - 1, swapped);
            assert_eq!(starts(&rows).get().is_err(), rows[swapped - 1] > rows[swapped], "{swapped}");
            rows.swap(swapped - 1, swapped);
            let (before, after) = (rows[swapped - 1], rows[swapped]);
            (rows[swapped - 1], rows[swapped]) = (9, 8);
            assert!(starts(&rows).get().is_err(), "{swapped}");
            (rows[swapped - 1], rows[swapped]) = (before, after);
        }
    }

    #[test]
    fn cells_outside_the_matrix_are_an_error() {
        for rows in [[-1], [9]] {
            let starts = RowStarts::new(longs(&rows), CellOrder::Any, 9, 1 << 10, None).unwrap();
            assert!(starts.get().is_err());
        }
    }

    #[test]
    fn more_rows_than_memory_are_refused() {
        assert!(RowStarts::new(longs(&[]), CellOrder::Any, 1 << 40, 1 << 30, None).is_none());
    }
}
