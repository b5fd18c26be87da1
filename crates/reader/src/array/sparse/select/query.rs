//! The inputs from which the rows of a sparse array are computed: the array, the order, delete conditions, a selection,
//! and conditions on attributes.

use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::schema::Layout;
use tilefs_threads as threads;

use super::box_join::{BoxList, for_each_pair};
use super::cells::{CellSlab, FragmentCells, TileCells};
use super::conditions::RowCondition;
use super::deletes::Delete;
use super::selection::CoordinateSelection;
use super::stream::FragmentSource;
use super::visible::CellFilter;
use crate::array::order::axis::Scale;
use crate::array::order::key::KeyPlan;
use crate::array::order::writers::{ORDERED_SINCE, writers_agree};
use crate::array::{Budget, OpenedArray};

/// Maximum number of boxes and pairs compared to find out whether fragments have coordinates in common.
pub const MOST_PAIRS: u64 = 1 << 24;

/// Limits for the work of finding rows in one step.
#[derive(Debug, Clone, Copy)]
pub struct Portions {
    /// Approximate number of rows that must read cells and are found at a time, at least 1.
    pub segment_rows: u64,
    /// If at most this many fragments overlap with others, all their R-trees are read before the first row is found ...
    pub chained_fragments: usize,
    /// ... unless they have more tiles than this.
    pub chained_tiles: u64,
    /// A selection is narrowed from tiles to cells if the touched tiles together have more cells than the first number
    /// and at most the second.
    pub narrowed: (u64, u64),
    /// With more fragments or tiles, an R-tree is read when rows are read that its fragment overlaps with, provided
    /// that at most one in this many fragments overlaps at any one place.
    pub fragments_of_one_place: usize,
}

impl Default for Portions {
    /// Segments are so long that making one takes far longer than starting it in each fragment. Reading the R-trees of
    /// few fragments takes few requests, and shows which tiles are rows as they are stored.
    fn default() -> Self {
        Portions {
            segment_rows: 1 << 20,
            chained_fragments: 256,
            chained_tiles: 1 << 16,
            // Merging fewer cells is as fast as testing them. With more cells, the first rows would have to wait.
            narrowed: (1 << 17, 1 << 26),
            fragments_of_one_place: 4,
        }
    }
}

/// The inputs from which rows are computed.
pub struct Query {
    pub array: Arc<OpenedArray>,
    pub plan: KeyPlan,
    pub deletes: Vec<Delete>,
    /// Conditions on attributes: rows are the cells for which all of them hold.
    pub conditions: Vec<RowCondition>,
    pub selection: Option<CoordinateSelection>,
    /// For each fragment that is visible in the array, the cells of all tiles that can have rows.
    pub cells: Vec<FragmentCells>,
    /// Whether these cells are exactly the selected ones.
    pub is_narrowed: bool,
    pub portions: Portions,
}

/// A number of rows, exact or an upper bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowCount {
    /// Exactly this many rows.
    Exactly(u64),
    /// At most this many rows. The exact number is known once the cells that determine it have been read.
    AtMost(u64),
}

impl RowCount {
    /// Returns an upper bound for the number of rows.
    pub fn most(self) -> u64 {
        match self {
            RowCount::Exactly(rows) | RowCount::AtMost(rows) => rows,
        }
    }

    /// Returns the number of rows, if it is known.
    pub fn exact(self) -> Option<u64> {
        match self {
            RowCount::Exactly(rows) => Some(rows),
            RowCount::AtMost(_) => None,
        }
    }
}

impl Query {
    /// Returns the number of rows as far as it is known from the footers. Every cell is a row if no cell is deleted or
    /// filtered, and no two fragments can have coordinates in common.
    ///
    /// # Errors
    /// Any damage in the footers.
    pub fn count_by_footers(&self) -> Result<RowCount> {
        let most = self.cells.iter().fold(0u64, |sum, cells| sum.saturating_add(cells.count()));
        // Not collected into a list: there may be millions.
        let with_cells = || (0..self.cells.len()).filter(|&number| self.cells[number].count() > 0);
        if (self.selection.is_some() || !self.conditions.is_empty()) && most > 0 {
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

    /// Returns whether the boxes of some fragments show that no two have coordinates in common.
    fn are_apart<I: Iterator<Item = usize>>(&self, fragments: impl Fn() -> I) -> Result<bool> {
        let mut boxes = BoxList::new(self.joined_dimensions().count());
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

    /// Returns whether a fragment's writer compared coordinates as this reader does, so that its boxes contain its
    /// cells.
    fn has_reliable_box(&self, fragment: usize) -> Result<bool> {
        let version = self.array.sorting_version(fragment)?;
        Ok(version >= ORDERED_SINCE || writers_agree(&self.plan, version))
    }

    /// Returns the dimensions along which boxes are compared: the numeric ones. A writer that orders strings
    /// differently may count others as lying between two strings.
    pub fn joined_dimensions(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.plan.axes.len()).filter(|&dimension| !self.plan.axes[dimension].is_text())
    }

    /// Returns the range of positions that a fragment's footer allows for its cells along each of the
    /// [`Query::joined_dimensions`]; `None` if it has no box, or one that leaves the domain.
    pub fn box_of_fragment(&self, fragment: usize) -> Result<Option<Vec<(u64, u64)>>> {
        self.joined_dimensions().map(|dimension| self.range_in_footer(fragment, dimension)).collect()
    }

    /// Returns the lowest and the highest position along a numeric dimension that a fragment's footer allows for its
    /// cells. Planning relies on them for every format version. `None` for strings, and if the footer has no box or one
    /// that leaves the domain.
    ///
    /// # Errors
    /// Any damage in the footer.
    pub fn range_in_footer(&self, fragment: usize, dimension: usize) -> Result<Option<(u64, u64)>> {
        let outline = self.array.outline(fragment)?;
        let range = outline.facts.non_empty_range(dimension);
        let Some((axis, range)) = self.plan.axes.get(dimension).zip(range) else { return Ok(None) };
        let range = axis.possible(&range);
        Ok(axis.position(&range.low).zip(axis.position(&range.high)))
    }

    /// Returns the most rows that there can be: the number of cells.
    pub fn most_rows(&self) -> u64 {
        self.cells.iter().fold(0, |sum, cells| sum.saturating_add(cells.count()))
    }

    /// Describes what determines how the map of the rows is cut into segments and parts, besides the rows.
    pub fn cut(&self) -> String {
        format!("{:?} {} {}", self.portions, threads::decoding(), self.budget().bytes())
    }

    /// Returns the budget of the caches.
    pub fn budget(&self) -> Budget {
        self.array.context().budget()
    }

    /// Returns whether the stored rows are surely sorted by coordinates, the first dimension being the most
    /// significant.
    pub fn is_row_major(&self) -> bool {
        self.plan.is_row_major(|dimension| self.is_one_tile(dimension)) && self.is_surely_ordered()
    }

    /// As [`Query::is_row_major`], the last dimension being the most significant.
    pub fn is_column_major(&self) -> bool {
        self.plan.is_column_major(|dimension| self.is_one_tile(dimension)) && self.is_surely_ordered()
    }

    /// As [`SparseView::band_of_rows`](crate::array::sparse::view::SparseView::band_of_rows).
    pub fn band_of_rows(&self) -> Option<u64> {
        let schema = self.array.schema();
        let [axis, _] = self.plan.axes.as_slice() else { return None };
        let Scale::Integer { extent: Some(extent), .. } = axis.scale else { return None };
        let is_by_tiles = schema.tile_order == Layout::RowMajor && !self.plan.is_hilbert();
        (is_by_tiles && !self.is_row_major() && self.is_surely_ordered()).then_some(extent)
    }

    /// Returns the dimensions by which the stored rows are surely sorted, the most significant first; none if they are not
    /// known to be sorted by all.
    pub fn sorted_by(&self) -> Vec<usize> {
        // Several fragments with duplicates come one after the other.
        let has_several = || self.cells.iter().filter(|cells| cells.count() > 0).count() > 1;
        let (dimensions, is_one_tile) = (0..self.plan.axes.len(), |dimension| self.is_one_tile(dimension));
        match () {
            () if self.array.schema().allows_duplicates && has_several() => Vec::new(),
            () if !self.are_fragments_ordered() => Vec::new(),
            () if self.plan.is_row_major(is_one_tile) => dimensions.collect(),
            () if self.plan.is_column_major(is_one_tile) => dimensions.rev().collect(),
            () => Vec::new(),
        }
    }

    fn is_surely_ordered(&self) -> bool {
        !self.array.schema().allows_duplicates && self.are_fragments_ordered()
    }

    /// Returns whether the cells of each fragment are surely in the array's order.
    fn are_fragments_ordered(&self) -> bool {
        let is_ordered = |fragment: usize| self.source(fragment).is_ok_and(|source| source.is_surely_ordered());
        (0..self.cells.len()).all(is_ordered)
    }

    /// Returns whether all cells surely lie in one space tile along a dimension, according to the fragments' boxes.
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

    /// Returns whether the cells of a fragment have times of their own, and several may have the same coordinates.
    fn has_versions(&self, fragment: usize) -> Result<bool> {
        Ok(!self.array.schema().allows_duplicates && self.array.outline(fragment)?.facts.has_timestamps)
    }

    /// Visits consecutive cells of fragments tile by tile: passes the fragment, and the pieces of a tile that follow
    /// each other in ascending order. Adds the fragment to errors.
    ///
    /// # Errors
    /// Those of `visit`; [`Error::Damaged`] for cells past the end of their fragment.
    pub fn for_each_tile(
        &self,
        slabs: impl Iterator<Item = CellSlab>,
        mut visit: impl FnMut(u32, &[TileCells]) -> Result<()>,
    ) -> Result<()> {
        let place = |fragment: u32, outcome: Result<()>| {
            outcome.in_fragment(self.array.fragment_name(fragment as usize)).in_array(self.array.path())
        };
        let (mut fragment, mut pieces): (u32, Vec<TileCells>) = (0, Vec::new());
        for slab in slabs {
            let cells = self.cells.get(slab.fragment as usize).ok_or_else(|| Error::internal("no such fragment"))?;
            let visited = cells.for_each_tile(slab.position, slab.cells, |_, piece| {
                let follows = |last: &TileCells| {
                    fragment == slab.fragment && last.tile == piece.tile && last.range().end <= piece.first
                };
                if pieces.last().is_some_and(|last| !follows(last)) {
                    place(fragment, visit(fragment, &pieces))?;
                    pieces.clear();
                }
                fragment = slab.fragment;
                pieces.push(piece);
                Ok(())
            });
            place(slab.fragment, visited)?;
        }
        if pieces.is_empty() { Ok(()) } else { place(fragment, visit(fragment, &pieces)) }
    }

    /// Returns a fragment, ready for reading its cells.
    ///
    /// # Errors
    /// Any damage in the metadata that determine which of its cells are rows.
    pub fn source(&self, fragment: usize) -> Result<FragmentSource<'_>> {
        let array = &*self.array;
        let place = |error: Error| error.in_fragment(array.fragment_name(fragment)).in_array(array.path());
        let cells = self.cells.get(fragment).ok_or_else(|| Error::internal("no such fragment"))?;
        let entry = array.folder().fragment(array.number(fragment));
        let time = entry.map_or(0, |entry| entry.times.t1);
        let has_versions = self.has_versions(fragment)?;
        let filter = CellFilter::new(array, fragment, &self.deletes, &self.conditions, has_versions);
        let filter = filter.map_err(place)?;
        let (plan, selection) = (&self.plan, self.selection.as_ref());
        let is_narrowed = self.is_narrowed;
        Ok(FragmentSource { array, fragment, cells, filter, selection, is_narrowed, time, plan, has_versions })
    }
}
