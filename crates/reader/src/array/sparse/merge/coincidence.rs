//! Determines whether cells of different fragments can have the same coordinates: only if the boxes of the fragments,
//! and then the boxes of their tiles, intersect along every dimension.

use std::ops::Range;

use tilefs_base::error::{Error, Locate, Result};

use crate::array::sparse::select::box_join::{BoxList, for_each_pair, intersect};
use crate::array::sparse::select::query::{MOST_PAIRS, Query};
use crate::array::sparse::select::stream::FragmentSource;

/// Whether all cells of several fragments are rows, as far as this is known before the cells are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coincidence {
    /// No two fragments have coordinates in common, and no cell is deleted or filtered: every cell is a row.
    Nowhere,
    /// Cells of different fragments may have the same coordinates, or some cells may not be rows.
    Possible,
}

/// Some consecutive cells of a fragment.
pub struct TileStretch<'a> {
    pub source: &'a FragmentSource<'a>,
    pub positions: Range<u64>,
}

/// Compares the boxes of whole fragments. Reads nothing but footers.
///
/// # Errors
/// Any damage in the footers.
pub fn by_fragments(query: &Query, stretches: &[TileStretch<'_>]) -> Result<Coincidence> {
    let mut meet = false;
    let boxes = boxes_of_fragments(query, stretches)?;
    let is_complete = boxes.is_some_and(|boxes| for_each_pair(&boxes, &mut { MOST_PAIRS }, |_, _| meet = true));
    Ok(if is_complete && !meet { Coincidence::Nowhere } else { Coincidence::Possible })
}

/// Compares the boxes of tiles. Reads the R-trees of fragments whose boxes intersect. Returns [`Coincidence::Possible`]
/// if more than [`MOST_PAIRS`] boxes and pairs would have to be compared.
///
/// # Errors
/// Any damage in the footers and the R-trees.
pub fn by_tiles(query: &Query, stretches: &[TileStretch<'_>]) -> Result<Coincidence> {
    let Some(of_fragments) = boxes_of_fragments(query, stretches)? else { return Ok(Coincidence::Possible) };
    let (mut budget, mut pairs) = (MOST_PAIRS, Vec::new());
    if !for_each_pair(&of_fragments, &mut budget, |a, b| pairs.push((a, b))) {
        return Ok(Coincidence::Possible);
    }
    for (a, b) in pairs {
        let mut tiles = BoxList::new(query.joined_dimensions().count());
        let mut owners = Vec::new();
        for (own, other) in [(a, b), (b, a)] {
            if !add_tiles(query, &stretches[own], of_fragments.ends(other), &mut budget, &mut tiles)? {
                return Ok(Coincidence::Possible);
            }
            owners.resize(tiles.count(), own);
        }
        let mut meet = false;
        let is_complete = for_each_pair(&tiles, &mut budget, |a, b| meet |= owners[a] != owners[b]);
        if meet || !is_complete {
            return Ok(Coincidence::Possible);
        }
    }
    Ok(Coincidence::Nowhere)
}

/// Returns the box of the fragment of each stretch; `None` if some cells may not be rows, or a box is missing or
/// unreliable.
fn boxes_of_fragments(query: &Query, stretches: &[TileStretch<'_>]) -> Result<Option<BoxList>> {
    let mut boxes = BoxList::new(query.joined_dimensions().count());
    for TileStretch { source, .. } in stretches {
        let all_count = source.filter.keeps_all() && source.selection.is_none() && !source.has_versions;
        let own = query.box_of_fragment(source.fragment)?;
        let Some(own) = own.filter(|_| all_count && source.is_strictly_ordered()) else { return Ok(None) };
        boxes.push(own.into_iter());
    }
    Ok(Some(boxes))
}

/// Adds the tiles of a stretch that intersect a box; returns `false` if there are more tiles than `budget`.
fn add_tiles(
    query: &Query,
    stretch: &TileStretch<'_>,
    within: &[(u64, u64)],
    budget: &mut u64,
    boxes: &mut BoxList,
) -> Result<bool> {
    let TileStretch { source, positions } = stretch;
    let mbrs = source.mbrs()?;
    let (mut stored, mut ranges) = (mbrs.boxes(), Vec::new());
    let mut position = positions.start;
    while position < positions.end {
        let Some(left) = budget.checked_sub(1) else { return Ok(false) };
        *budget = left;
        let cells = source.cells.at(position, u64::MAX);
        let cells = cells.ok_or_else(|| source.place(Error::damaged("a cell past the end of the fragment")))?;
        stored.read(cells.tile, &mut ranges).map_err(|error| source.place(error))?;
        let own: Option<Vec<(u64, u64)>> = query
            .joined_dimensions()
            .map(|dimension| {
                let (axis, range) = (query.plan.axes.get(dimension)?, ranges.get(dimension)?);
                axis.position(&range.low).zip(axis.position(&range.high))
            })
            .collect();
        let own = own.ok_or_else(|| {
            let reason = format!("the box of tile {} leaves the domain", cells.tile);
            source.place(Error::damaged(reason).in_field("R-tree"))
        })?;
        if intersect(&own, within) {
            boxes.push(own.into_iter());
        }
        position += cells.count;
    }
    Ok(true)
}
