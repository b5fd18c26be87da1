//! A cell of a fragment, and what became of it.

use std::ops::Range;

use tilefs_base::error::Error;
use tilefs_format::scalar::Scalar;

use super::fragments::FragmentState;

/// A cell of a fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellPlace {
    /// The number of the fragment in the array's folder.
    pub fragment: usize,
    /// The number of the tile in the fragment's files.
    pub tile: u64,
    /// The number of cells of the whole tile.
    pub in_tile: u64,
    /// The number of the cell in the tile.
    pub cell: u64,
    /// The time at which the cell was written, if the fragment has a time for each cell.
    pub time: Option<u64>,
}

/// What removed a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deletion {
    /// The condition in a commit of this name, and its time.
    Condition {
        /// The name of the commit in the array's folder.
        commit: String,
        /// The time of the delete.
        time: u64,
    },
    /// A consolidation has recorded that the cell was deleted at this time.
    Recorded {
        /// The time of the delete.
        time: u64,
    },
}

/// What became of a cell of a fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellFate {
    /// It is shown.
    Shown,
    /// A newer cell with the same coordinates hides it.
    Overwritten(CellPlace),
    /// A cell of the same fragment with the same coordinates and the same time is read instead, as TileDB does.
    Tied(CellPlace),
    /// The newest cell with these coordinates, whose attributes are not those by which rows are selected.
    NotSelected,
    /// It was deleted.
    Deleted(Deletion),
    /// It was written at this time, outside of the array's window.
    OutsideOfTime(u64),
    /// Its fragment does not count.
    InFragment(FragmentState),
    /// Its fragment has no values of the attribute, so that the value of an older cell is shown, or the fill value.
    WithoutValue,
}

/// A cell beside the one that is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherCell {
    /// Its coordinates.
    pub coordinates: Vec<Scalar>,
    /// Where it is.
    pub place: CellPlace,
    /// Whether and why it is hidden.
    pub fate: CellFate,
}

/// A fragment that could not be searched for cells.
#[derive(Debug)]
pub struct UnreadFragment {
    /// Its number in the array's folder.
    pub fragment: usize,
    /// Why.
    pub error: Error,
}

/// The form of a segment of the map of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapForm {
    /// Consecutive cells of one fragment.
    Slab,
    /// Cells of several fragments, or some cells of one, in the order of a merge.
    Interleaved,
    /// Cells in any order.
    Scattered,
}

/// The segment of the map of rows that has a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapPlace {
    /// Its number.
    pub segment: usize,
    /// The number of all segments.
    pub segments: usize,
    /// Its rows.
    pub rows: Range<u64>,
    /// Its form.
    pub form: MapForm,
}

/// Where a shown cell comes from.
#[derive(Debug)]
pub struct CellOrigin {
    /// Its coordinates.
    pub coordinates: Vec<Scalar>,
    /// The stored cell; `None` for the fill value of a cell that no fragment has.
    pub shown: Option<CellPlace>,
    /// The cells of all fragments with the same coordinates, oldest fragment first.
    pub others: Vec<OtherCell>,
    /// Whether these are all of them.
    pub is_complete: bool,
    /// The fragments that could not be searched.
    pub unread: Vec<UnreadFragment>,
    /// The segment of the map of rows, for sparse arrays.
    pub map: Option<MapPlace>,
}
