//! Checks the coordinates of a fragment, tile by tile: they lie in the domain and in the box of their tile, this box
//! lies in the fragment's non-empty domain, the cells ascend, and none repeats unless the schema or the fragment allows
//! it. Rounded coordinates lie around their box, in any order, and may repeat.

use std::ops::Range;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::scalar::{Range as CoordinateRange, Scalar};

use super::cells::FragmentCells;
use super::stream::{CellBatch, FragmentSource, KeyStream, StreamBuffers};
use super::visible::CellFilter;
use crate::array::OpenedArray;
use crate::array::order::key::{AxisColumn, KeyOrder, KeyPlan};

/// Cells that are checked together.
const BATCH_CELLS: u64 = 16384;

/// Checks the coordinates of one visible fragment of a sparse array.
pub struct CoordinateCheck<'a> {
    array: &'a OpenedArray,
    fragment: usize,
    plan: KeyPlan,
    cells: FragmentCells,
    /// Whether several cells may have the same coordinates.
    may_repeat: bool,
}

/// The previous cell, to compare the next one with.
struct CheckedCell {
    key: Vec<u64>,
    zeros: u64,
    columns: Vec<AxisColumn>,
}

impl<'a> CoordinateCheck<'a> {
    /// # Errors
    /// Any damage in the fragment's footer; [`Error::Unsupported`] for dimensions or orders that are not sorted here.
    pub fn new(array: &'a OpenedArray, fragment: usize) -> Result<Self> {
        let outline = array.outline(fragment)?;
        let (facts, schema) = (&outline.facts, array.schema());
        let plan = KeyPlan::new(schema, KeyOrder::Global)?;
        let cells = FragmentCells::new(facts.sparse_tiles, outline.schema.capacity, facts.last_tile_cells)?;
        // A fragment that was consolidated with the times of its cells also holds the older cells of a coordinate.
        let may_repeat = schema.allows_duplicates || facts.has_timestamps || plan.is_rounded();
        Ok(CoordinateCheck { array, fragment, plan, cells, may_repeat })
    }

    /// Checks the cells of one tile, and that they follow the cells of the previous tile. Memory: one batch.
    ///
    /// # Errors
    /// The first damage in these cells, or in the data that is needed to read them.
    pub fn check_tile(&self, tile: u64) -> Result<()> {
        self.check_box(tile)?;
        let source = FragmentSource {
            array: self.array,
            fragment: self.fragment,
            cells: &self.cells,
            filter: CellFilter::new(self.array, self.fragment, &[], &[], false)?,
            selection: None,
            is_narrowed: false,
            time: 0,
            plan: &self.plan,
            has_versions: self.may_repeat,
        };
        let own = self.cells.positions_of(tile);
        let mut stream = KeyStream::new(&source, own.start.saturating_sub(1)..own.end, BATCH_CELLS, true);
        let (mut batch, mut buffers) = (CellBatch::default(), StreamBuffers::default());
        let mut before = None;
        if own.start > 0 {
            match stream.read(&mut batch, &mut buffers) {
                Ok(_) => self.check_unique(&batch, &own, &mut before)?,
                // An error in the last cell of the previous tile is reported by the check of that tile.
                Err(_) => stream = KeyStream::new(&source, own.clone(), BATCH_CELLS, true),
            }
        }
        while stream.read(&mut batch, &mut buffers)? {
            self.check_unique(&batch, &own, &mut before)?;
        }
        Ok(())
    }

    /// Checks that a tile's box lies in the fragment's non-empty domain: readers skip the fragment otherwise.
    fn check_box(&self, tile: u64) -> Result<()> {
        let outline = self.array.outline(self.fragment)?;
        let mbrs = self.array.folder().mbrs(self.array.number(self.fragment))?;
        let around = outline.facts.covering_ranges();
        let around = around.ok_or_else(|| Error::damaged("cells, but no non-empty domain"))?;
        for (number, (range, axis)) in around.iter().zip(&self.plan.axes).enumerate() {
            let own = mbrs.range(tile, number)?;
            if leaves(&own, range) {
                let reason = format!("tile {tile}: its box in the R-tree leaves the fragment's non-empty domain");
                return Err(Error::damaged(reason).in_field(&axis.name));
            }
        }
        Ok(())
    }

    /// Checks that no cell has the coordinates of the previous one, unless repetitions are allowed.
    fn check_unique(&self, batch: &CellBatch, tile: &Range<u64>, before: &mut Option<CheckedCell>) -> Result<()> {
        if self.may_repeat {
            return Ok(());
        }
        let words = self.plan.words();
        let same_texts = |a: &[AxisColumn], a_cell: usize, b_cell: usize| {
            a.iter().zip(&batch.columns).all(|(a, b)| a.text(a_cell) == b.text(b_cell))
        };
        for cell in 0..batch.count {
            let (key, zeros) = (batch.key(cell, words), batch.zeros(cell));
            let repeats = match (cell.checked_sub(1), &*before) {
                (Some(last), _) => {
                    batch.key(last, words) == key
                        && batch.zeros(last) == zeros
                        && same_texts(&batch.columns, last, cell)
                }
                (None, Some(last)) => last.key == key && last.zeros == zeros && same_texts(&last.columns, 0, cell),
                (None, None) => false,
            };
            if repeats {
                let cell = (batch.position + cell as u64).saturating_sub(tile.start);
                let place = format!("tile {}, cell {cell}", self.cells.place_of(tile.start));
                return Err(Error::damaged(format!("{place}: the coordinates of the cell before, once more")));
            }
        }
        if let Some(last) = batch.count.checked_sub(1) {
            let columns = batch.columns.iter().map(|column| column.only(last)).collect();
            *before = Some(CheckedCell { key: batch.key(last, words).to_vec(), zeros: batch.zeros(last), columns });
        }
        Ok(())
    }
}

/// Returns whether a range leaves another. `false` if either is not ASCII, because some writers compare such strings
/// differently, or if its bounds are not in order, as some writers leave them.
fn leaves(own: &CoordinateRange, around: &CoordinateRange) -> bool {
    let says_something = |range: &CoordinateRange| {
        let is_plain = |value: &Scalar| !matches!(value, Scalar::Text(text) if !text.is_ascii());
        range.is_ordered() && is_plain(&range.low) && is_plain(&range.high)
    };
    says_something(own)
        && says_something(around)
        && (own.low.compare(&around.low).is_lt() || own.high.compare(&around.high).is_gt())
}
