//! What the rows of a sparse array come from: the array, the order, delete conditions and a selection.

use std::sync::Arc;

use tilefs_format::error::{Error, Locate, Result};
use tilefs_format::schema::Layout;

use super::axis::Scale;
use super::box_join::{Boxes, for_each_pair};
use super::cells::FragmentCells;
use super::deletes::Delete;
use super::key::KeyPlan;
use super::selection::Selection;
use super::stream::FragmentSource;
use super::visible::CellFilter;
use super::writers::{ORDERED_SINCE, writers_agree};
use crate::array::{Array, Budget};

/// Pairs of boxes that are compared to find out whether fragments have coordinates in common.
pub const MOST_PAIRS: u64 = 1 << 24;

/// How much of finding rows is done at a time.
#[derive(Debug, Clone, Copy)]
pub struct Portions {
    /// About so many rows that take reading are found at a time, at least 1.
    pub segment_rows: u64,
    /// As many fragments that overlap with others have all their R-trees read before the first row is found ...
    pub chained_fragments: usize,
    /// ... unless they have more tiles than this.
    pub chained_tiles: u64,
    /// A selection is narrowed from tiles to cells if the touched tiles together have more cells than the first number
    /// and at most the second.
    pub narrowed: (u64, u64),
    /// The R-trees of more are read when rows are wanted that their fragments lie across, where at most one of so many
    /// lies across each place.
    pub fragments_of_one_place: usize,
}

impl Default for Portions {
    /// Segments are long enough that beginning anew in each fragment is little work beside making one. The R-trees of
    /// few fragments take few requests, and show which tiles are rows as they are stored.
    fn default() -> Self {
        Portions {
            segment_rows: 1 << 20,
            chained_fragments: 256,
            chained_tiles: 1 << 16,
            // Fewer cells are merged as fast as they are tested. With more, the first rows would have to wait.
            narrowed: (1 << 17, 1 << 26),
            fragments_of_one_place: 4,
        }
    }
}

/// What rows come from.
pub struct Query {
    pub array: Arc<Array>,
    pub plan: KeyPlan,
    pub deletes: Vec<Delete>,
    pub selection: Option<Selection>,
    /// By fragment, as visible in the array: the cells of all tiles that can have rows.
    pub cells: Vec<FragmentCells>,
    /// Whether these cells are exactly the selected ones.
    pub is_narrowed: bool,
    pub portions: Portions,
}

/// A number of rows, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowCount {
    /// So many rows.
    Exactly(u64),
    /// There are no more; how many is known once the cells have been read that decide it.
    AtMost(u64),
}

impl RowCount {
    /// As many rows as there can be.
    pub fn most(self) -> u64 {
        match self {
            RowCount::Exactly(rows) | RowCount::AtMost(rows) => rows,
        }
    }

    /// How many rows there are, if that is known.
    pub fn exact(self) -> Option<u64> {
        match self {
            RowCount::Exactly(rows) => Some(rows),
            RowCount::AtMost(_) => None,
        }
    }
}

impl Query {
    /// The number of rows as far as footers tell it: every cell is a row where all cells count and no two fragments can
    /// have coordinates in common.
    ///
    /// # Errors
    /// Any damage in the footers.
    pub fn count_by_footers(&self) -> Result<RowCount> {
        let most = self.cells.iter().fold(0u64, |sum, cells| sum.saturating_add(cells.count()));
        // Not collected: there may be millions.
        let with_cells = || (0..self.cells.len()).filter(|&number| self.cells[number].count() > 0);
        if self.selection.is_some() && most > 0 {
            return Ok(RowCount::AtMost(most));
        }
        for fragment in with_cells() {
            if self.has_versions(fragment)? || !CellFilter::surely_keeps_all(&self.array, fragment, &self.deletes)? {
                return Ok(RowCount::AtMost(most));
            }
        }
        if self.array.schema().allows_duplicates || with_cells().nth(1).is_none() || self.are_apart(with_cells)? {
            return Ok(RowCount::Exactly(most));
        }
        Ok(RowCount::AtMost(most))
    }

    /// Whether the boxes of some fragments tell that no two have coordinates in common.
    fn are_apart<I: Iterator<Item = usize>>(&self, fragments: impl Fn() -> I) -> Result<bool> {
        let mut boxes = Boxes::new(self.joined_dimensions().count());
        boxes.reserve(fragments().count());
        for fragment in fragments() {
            if !self.has_reliable_box(fragment)? {
                return Ok(false);
            }
            let Some(ends) = self.box_of_fragment(fragment)? else { return Ok(false) };
            boxes.push(ends.into_iter());
        }
        let mut meet = false;
        Ok(for_each_pair(&boxes, &mut { MOST_PAIRS }, |_, _| meet = true) && !meet)
    }

    /// Whether a fragment's writer compared coordinates as they are compared here, so that its boxes hold its cells.
    pub fn has_reliable_box(&self, fragment: usize) -> Result<bool> {
        let version = self.array.outline(fragment)?.facts.version;
        Ok(version >= ORDERED_SINCE || writers_agree(&self.plan, version))
    }

    /// The dimensions along which boxes are compared: those of numbers. Between two strings there can be others that a
    /// writer puts elsewhere.
    pub fn joined_dimensions(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.plan.axes.len()).filter(|&dimension| !self.plan.axes[dimension].is_text())
    }

    /// The ends of a fragment's non-empty domain along the dimensions of [`Query::joined_dimensions`], as positions;
    /// `None` where it has none, or one that leaves the domain.
    pub fn box_of_fragment(&self, fragment: usize) -> Result<Option<Vec<(u64, u64)>>> {
        let outline = self.array.outline(fragment)?;
        let Some(ranges) = outline.facts.non_empty_ranges() else { return Ok(None) };
        let ends = self.joined_dimensions().map(|dimension| {
            let (axis, range) = (&self.plan.axes[dimension], ranges.get(dimension)?);
            axis.position(&range.low).zip(axis.position(&range.high))
        });
        Ok(ends.collect())
    }

    /// Returns the lowest and the highest position along a numeric dimension that a fragment's footer allows for its cells.
    /// Planning relies on them for every format version. `None` for strings, and if the footer has no box or one that
    /// leaves the domain.
    ///
    /// # Errors
    /// Any damage in the footer.
    pub fn told_range(&self, fragment: usize, dimension: usize) -> Result<Option<(u64, u64)>> {
        let outline = self.array.outline(fragment)?;
        let range = outline.facts.non_empty_range(dimension);
        let Some((axis, range)) = self.plan.axes.get(dimension).zip(range) else { return Ok(None) };
        Ok(axis.position(&range.low).zip(axis.position(&range.high)))
    }

    /// The budget of the caches.
    pub fn budget(&self) -> Budget {
        self.array.context().budget()
    }

    /// Whether the rows are surely sorted by coordinates already, the first dimension being the most significant.
    pub fn is_row_major(&self) -> bool {
        self.plan.is_row_major(|dimension| self.is_one_tile(dimension)) && self.is_surely_ordered()
    }

    /// As [`Query::is_row_major`], the last dimension being the most significant.
    pub fn is_column_major(&self) -> bool {
        self.plan.is_column_major(|dimension| self.is_one_tile(dimension)) && self.is_surely_ordered()
    }

    /// As [`SparseView::band_of_rows`](super::view::SparseView::band_of_rows).
    pub fn band_of_rows(&self) -> Option<u64> {
        let schema = self.array.schema();
        let [axis, _] = self.plan.axes.as_slice() else { return None };
        let Scale::Integer { extent: Some(extent), .. } = axis.scale else { return None };
        let is_by_tiles = schema.tile_order == Layout::RowMajor && !self.plan.is_hilbert();
        (is_by_tiles && !self.is_row_major() && self.is_surely_ordered()).then_some(extent)
    }

    fn is_surely_ordered(&self) -> bool {
        let is_ordered = |fragment: usize| self.source(fragment).is_ok_and(|source| source.is_surely_ordered());
        !self.array.schema().allows_duplicates && (0..self.cells.len()).all(is_ordered)
    }

    /// Whether all cells surely lie in one space tile along a dimension: the boxes of the fragments do.
    fn is_one_tile(&self, dimension: usize) -> bool {
        let tiles = |fragment: usize| {
            let outline = self.array.outline(fragment).ok()?;
            let range = outline.facts.non_empty_range(dimension)?;
            let axis = self.plan.axes.get(dimension)?;
            Some([axis.tile(axis.position(&range.low)?), axis.tile(axis.position(&range.high)?)])
        };
        let Some(ends) = (0..self.cells.len()).map(tiles).collect::<Option<Vec<_>>>() else { return false };
        let mut tiles = ends.iter().flatten();
        let first = tiles.next();
        tiles.all(|tile| Some(tile) == first)
    }

    /// Whether cells of a fragment have times of their own, and several may have the same coordinates.
    fn has_versions(&self, fragment: usize) -> Result<bool> {
        Ok(!self.array.schema().allows_duplicates && self.array.outline(fragment)?.facts.has_timestamps)
    }

    /// A fragment, ready to be gone through.
    ///
    /// # Errors
    /// Any damage in the metadata of what decides which of its cells count.
    pub fn source(&self, fragment: usize) -> Result<FragmentSource<'_>> {
        let array = &*self.array;
        let place = |error: Error| error.in_fragment(array.fragment_name(fragment)).in_array(array.path());
        let cells = self.cells.get(fragment).ok_or_else(|| Error::internal("no such fragment"))?;
        let entry = array.folder().fragment(array.number(fragment));
        let time = entry.map_or(0, |entry| entry.times.t1);
        let has_versions = self.has_versions(fragment)?;
        let filter = CellFilter::new(array, fragment, &self.deletes, has_versions).map_err(place)?;
        let (plan, selection) = (&self.plan, self.selection.as_ref());
        let is_narrowed = self.is_narrowed;
        Ok(FragmentSource { array, fragment, cells, filter, selection, is_narrowed, time, plan, has_versions })
    }
}
