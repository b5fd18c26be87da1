//! Columns whose values are computed from the cells of stored columns, row by row.
//!
//! Formats need the length of a column before its bytes, so the cells of all rows are computed once to add up their
//! lengths, several blocks of rows concurrently on idle threads. Only the start of each block is kept. A read computes
//! the blocks that it touches again, for the one column that it reads; a few recent ones are cached.

mod cells;
mod content;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use tilefs_base::error::{Error, Result};
use tilefs_base::inputs::{Inputs, Recorded, Recorder};
use tilefs_base::lru_cache::LruCache;
use tilefs_threads::for_all;
use tilefs_threads::single_flight::SingleFlight;

use crate::column::Field;

use cells::Size;

pub use cells::{CellKind, Cells};

/// Maximum number of rows of a block, unless there would be too many blocks.
const BLOCK_ROWS: u64 = 1024;

/// Number of stored bytes at which a block ends, unless there would be too many blocks.
const BLOCK_BYTES: u64 = 1 << 20;

/// Approximate maximum number of blocks; longer tables have longer blocks.
const MAX_BLOCKS: u64 = 1 << 14;

/// Bytes of the cells of recent blocks that are cached.
const KEPT_BYTES: usize = 8 << 20;

/// The representation of lists in computed columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// As lists, for formats that have them.
    Lists,
    /// As texts, in the notation of their domain.
    Texts,
}

/// Computes cells of columns from stored ones.
pub trait Compute: Send + Sync {
    /// Returns the number of rows.
    fn rows(&self) -> u64;

    /// Returns the columns.
    fn columns(&self) -> &[ComputedField];

    /// Returns for each row its start among the stored bytes from which it is computed, and the end of the last row.
    /// Positions never decrease.
    ///
    /// # Errors
    /// Fails if they cannot be read.
    fn positions(&self, rows: Range<u64>) -> Result<Vec<u64>>;

    /// Computes rows of one column, or of all if `column` is `None`, and appends a cell for each row to each of
    /// `cells`, which has an entry per wanted column.
    ///
    /// # Errors
    /// Fails if a stored cell cannot be read or is malformed; the error names its place.
    fn compute(&self, rows: Range<u64>, column: Option<usize>, cells: &mut [Cells]) -> Result<()>;

    /// Records what the cells of the columns depend on, as [`Recorded`] does.
    fn record(&self, recorder: &mut Recorder);

    /// Prefetches the stored cells from which a column is computed.
    ///
    /// # Errors
    /// Fails if it cannot be read.
    fn read_ahead(&self, rows: Range<u64>, column: usize) -> Result<()>;
}

/// A column that is computed.
#[derive(Debug, Clone)]
pub struct ComputedField {
    /// Its name and type; that of an element, if its cells are lists.
    pub field: Field,
    /// The kind of its cells.
    pub kind: CellKind,
}

/// The columns that are computed from the rows of a table. Memory: for each column 16 bytes per block of 1024 rows or a
/// MiB of stored bytes, whichever ends it first; tables of more than some 16 million rows have longer blocks instead of
/// more. In addition, up to 8 MiB of recently computed cells; while lengths are measured, one block on each thread.
pub struct ComputedColumns {
    compute: Box<dyn Compute>,
    measured: SingleFlight<MeasuredBlocks>,
    /// Recently computed blocks, by column and number.
    kept: LruCache<(usize, usize), Arc<Cells>>,
    /// What all columns depend on, once it was recorded.
    inputs: OnceLock<Option<Inputs>>,
}

/// The blocks of a table, and the offsets at which each begins.
struct MeasuredBlocks {
    /// The first row of each block, and the number of rows.
    rows: Vec<u64>,
    /// By column: the bytes and elements before each block, and of all.
    before: Vec<Vec<Size>>,
}

/// All columns at once: they depend on the same, which may be much.
impl Recorded for ComputedColumns {
    fn record(&self, recorder: &mut Recorder) {
        let Self { compute, measured: _, kept: _, inputs } = self;
        recorder.add_inputs(inputs.get_or_init(|| Inputs::of("computed columns", &**compute)).as_ref());
    }
}

impl Recorded for dyn Compute {
    fn record(&self, recorder: &mut Recorder) {
        Compute::record(self, recorder);
    }
}

impl ComputedColumns {
    /// Creates the columns. Computes nothing.
    pub fn new(compute: Box<dyn Compute>) -> Arc<Self> {
        let kept = LruCache::with_bytes(usize::MAX, KEPT_BYTES);
        Arc::new(ComputedColumns { compute, measured: SingleFlight::new(), kept, inputs: OnceLock::new() })
    }

    /// Returns whether the cells of a column are lists.
    fn is_list(&self, column: usize) -> bool {
        self.compute.columns().get(column).is_some_and(|column| column.kind.is_list())
    }

    fn measured(&self) -> Result<&MeasuredBlocks> {
        self.measured.get_or_retry(|| {
            let rows = self.blocks()?;
            let columns = self.compute.columns();
            let mut before = vec![vec![Size::default()]; columns.len()];
            let all = rows.windows(2).map(|ends| ends[0]..ends[1]).collect::<Vec<Range<u64>>>();
            let sizes = for_all(all.len(), |number| {
                let rows = all.get(number).cloned().unwrap_or_default();
                let mut cells: Vec<Cells> = columns.iter().map(|column| Cells::new(column.kind)).collect();
                self.compute.compute(rows.clone(), None, &mut cells)?;
                check_counts(&cells, &rows)?;
                Ok::<_, Error>(cells.iter().map(Cells::size).collect::<Vec<Size>>())
            })?;
            for block in sizes {
                for (before, size) in before.iter_mut().zip(block) {
                    let last = before.last().copied().unwrap_or_default();
                    before.push(Size {
                        bytes: last.bytes.saturating_add(size.bytes),
                        elements: last.elements.saturating_add(size.elements),
                    });
                }
            }
            Ok(MeasuredBlocks { rows, before })
        })
    }

    /// Returns the first row of each block, and the number of rows.
    fn blocks(&self) -> Result<Vec<u64>> {
        let total = self.compute.rows();
        let last = |positions: Vec<u64>| positions.last().copied().unwrap_or(0);
        let stored = if total == 0 { 0 } else { last(self.compute.positions(total - 1..total)?) };
        let (most_rows, most_bytes) = (BLOCK_ROWS.max(total / MAX_BLOCKS), BLOCK_BYTES.max(stored / MAX_BLOCKS));
        let (mut rows, mut first) = (vec![0], 0);
        while first < total {
            let positions = self.compute.positions(first..first.saturating_add(most_rows).min(total))?;
            let mut start = positions.first().copied().unwrap_or(0);
            for (number, position) in positions.iter().enumerate().skip(2) {
                // The row before this position does not fit.
                if position.saturating_sub(start) > most_bytes {
                    rows.push(first + number as u64 - 1);
                    start = positions.get(number - 1).copied().unwrap_or(*position);
                }
            }
            first = first.saturating_add(most_rows).min(total);
            rows.push(first);
        }
        Ok(rows)
    }

    /// Returns the cells of a block of a column.
    fn block(&self, column: usize, number: usize, rows: Range<u64>) -> Result<Arc<Cells>> {
        if let Some(block) = self.kept.get(&(column, number)) {
            return Ok(block);
        }
        let kind = self.compute.columns().get(column).ok_or_else(|| Error::internal("no such column"))?.kind;
        let mut cells = [Cells::new(kind)];
        // Compute without the lock, so that other blocks can be computed meanwhile.
        self.compute.compute(rows.clone(), Some(column), &mut cells)?;
        check_counts(&cells, &rows)?;
        let [cells] = cells;
        let block = Arc::new(cells);
        self.kept.change(|kept| kept.put((column, number), block.clone(), block.memory()));
        Ok(block)
    }
}

/// Checks that each of the columns has a cell for each row.
fn check_counts(cells: &[Cells], rows: &Range<u64>) -> Result<()> {
    match cells.iter().all(|cells| cells.count() == rows.end - rows.start) {
        true => Ok(()),
        false => Err(Error::internal("a computed column with another number of cells")),
    }
}

#[cfg(test)]
mod tests;
