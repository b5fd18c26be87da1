//! Where the rows of a sparse array come from.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::scalar::Scalar;
use tilefs_threads::cancellation;

use super::candidates::{CellCandidate, CellCandidates, coordinates_of, find, identity, read_coordinates};
use super::fates::fates;
use super::place::{CellFate, CellOrigin, CellPlace, MapForm, MapPlace, OtherCell};
use super::runs::{CellRun, RunList};
use crate::array::sparse::rows::row_map::RowMap;
use crate::array::sparse::rows::segments::{RowSegment, VisitedRows};
use crate::array::sparse::select::cells::{FragmentCells, TileCells};
use crate::array::sparse::select::visible::{CellFilter, CellVisibility};
use crate::array::sparse::{CoordinateRange, SparseView};

/// The most cells with the coordinates of a row that are compared.
const MAX_AT_ONE_PLACE: usize = 1 << 12;

/// The most cells of a selection whose hidden ones are told.
const MAX_SELECTED: usize = 1 << 14;

/// The most rows that are looked at for runs.
const MAX_ROWS_OF_RUNS: u64 = 1 << 16;

/// Returns where a row comes from, with all other cells that have its coordinates; `None` past the last row.
///
/// # Errors
/// Any damage in the data that determines which cell is the row, and in its coordinates; those of the storage.
pub fn origin_of_row(view: &SparseView, row: u64) -> Result<Option<CellOrigin>> {
    let (array, map) = (view.array(), view.map()?);
    let Some(place) = map_place(map, row)? else { return Ok(None) };
    let past = || Error::internal("a row without a cell");
    let (fragment, position) = view.stored_cell(row)?.ok_or_else(past)?;
    let query = view.query()?;
    let cell = query.cells.get(fragment).and_then(|cells| cells.at(position, 1)).ok_or_else(past)?;
    let columns = read_coordinates(&query.source(fragment)?, cell);
    let coordinates = columns.and_then(|columns| coordinates_of(&columns, &query.plan, 0));
    let coordinates = coordinates.in_fragment(array.fragment_name(fragment)).in_array(array.path())?;
    let CellCandidates { mut cells, is_complete, unread } = find(array, &ranges_of(&coordinates), MAX_AT_ONE_PLACE)?;
    let own = identity(&coordinates);
    cells.retain(|candidate| candidate.identity() == own);
    let TileCells { tile, in_tile, first, .. } = cell;
    let number = array.number(fragment);
    let mut shown = CellPlace { fragment: number, tile, in_tile, cell: first, time: None };
    let mut others = Vec::new();
    for (candidate, fate) in cells.iter().zip(fates_in(view, &cells)?) {
        let place = &candidate.place;
        if (place.fragment, place.tile, place.cell) == (number, tile, first) {
            shown.time = place.time;
        } else {
            others.push(OtherCell { coordinates: candidate.coordinates.clone(), place: place.clone(), fate });
        }
    }
    Ok(Some(CellOrigin { coordinates, shown: Some(shown), others, is_complete, unread, map: Some(place) }))
}

/// Returns the cells within ranges of coordinates that are not shown, with the fragments that could not be searched;
/// `None` if there are too many cells to tell.
///
/// # Errors
/// [`Error::Usage`] for ranges that do not fit the dimensions; any damage in the delete conditions; those of the storage.
pub fn hidden_cells(view: &SparseView, ranges: &[Option<Vec<CoordinateRange>>]) -> Result<Option<CellOrigin>> {
    let array = view.array();
    let CellCandidates { cells, is_complete, unread } = find(array, ranges, MAX_SELECTED)?;
    if !is_complete {
        return Ok(None);
    }
    let fates = fates_in(view, &cells)?;
    let hidden = cells.into_iter().zip(fates).filter(|(_, fate)| *fate != CellFate::Shown);
    let others = hidden.map(|(cell, fate)| OtherCell { coordinates: cell.coordinates, place: cell.place, fate });
    let (others, coordinates) = (others.collect(), Vec::new());
    Ok(Some(CellOrigin { coordinates, shown: None, others, is_complete, unread, map: None }))
}

/// Returns what became of each cell among the rows of a view, which conditions on attributes may select.
fn fates_in(view: &SparseView, cells: &[CellCandidate]) -> Result<Vec<CellFate>> {
    let (array, conditions) = (view.array(), &view.query()?.conditions);
    let mut fates = fates(cells, array.schema().allows_duplicates);
    if conditions.is_empty() {
        return Ok(fates);
    }
    let mut filters: HashMap<usize, CellFilter<'_>> = HashMap::new();
    for (CellCandidate { place, .. }, fate) in
        cells.iter().zip(&mut fates).filter(|(_, fate)| **fate == CellFate::Shown)
    {
        cancellation::check()?;
        let visible = (0..array.fragment_count()).find(|&fragment| array.number(fragment) == place.fragment);
        let visible = visible.ok_or_else(|| Error::internal("a shown cell of a hidden fragment"))?;
        let filter = match filters.entry(visible) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => free.insert(CellFilter::new(array, visible, &[], conditions, false)?),
        };
        let mut visibility = CellVisibility::default();
        let cell = TileCells { tile: place.tile, in_tile: place.in_tile, first: place.cell, count: 1 };
        filter.mark(cell, &mut visibility)?;
        if !visibility.is_shown(0) {
            *fate = CellFate::NotSelected;
        }
    }
    Ok(fates)
}

/// Returns where the rows from row `first` on come from, as at most `most` runs. Looks at a limited number of rows.
///
/// # Errors
/// Any damage in the data that determines which cells are these rows.
pub fn runs_of_rows(view: &SparseView, first: u64, most: usize) -> Result<Vec<CellRun>> {
    let (map, query) = (view.map()?, view.query()?);
    let (mut runs, mut row, mut has_room) = (RunList::new(most), first, true);
    while has_room && row - first < MAX_ROWS_OF_RUNS {
        let Some(place) = map_place(map, row)? else { break };
        let count = (place.rows.end - row).min(MAX_ROWS_OF_RUNS);
        map.for_each(row, count, |rows| {
            for (fragment, position, count) in cells_of(&rows) {
                let fragment = fragment as usize;
                let cells = query.cells.get(fragment).ok_or_else(|| Error::internal("no such fragment"))?;
                let number = view.array().number(fragment);
                has_room = has_room && add_cells(&mut runs, cells, number, (row, position, count))?;
                row += count;
            }
            Ok(())
        })?;
    }
    Ok(runs.finish())
}

/// Adds some rows, which are consecutive cells of a fragment: the first row, the position of its cell, and their number.
/// Returns whether there was room for them.
fn add_cells(
    runs: &mut RunList,
    cells: &FragmentCells,
    fragment: usize,
    (mut row, mut position, mut left): (u64, u64, u64),
) -> Result<bool> {
    while left > 0 {
        let past = || Error::internal("a cell past the end of the fragment");
        let TileCells { tile, in_tile, first, count } = cells.at(position, left).ok_or_else(past)?;
        let place = Some(CellPlace { fragment, tile, in_tile, cell: first, time: None });
        if !runs.add(CellRun { first: row, count, place }) {
            return Ok(false);
        }
        (row, position, left) = (row + count, position + count, left - count);
    }
    Ok(true)
}

/// Returns the cells of rows in their order: the fragment, the position of the first, and the number of consecutive ones.
fn cells_of(rows: &VisitedRows<'_>) -> Vec<(u32, u64, u64)> {
    match rows {
        VisitedRows::CellSlab { fragment, position, rows } => vec![(*fragment, *position, *rows)],
        VisitedRows::Scattered(addresses) => {
            addresses.iter().map(|address| (address.fragment(), address.position(), 1)).collect()
        }
        VisitedRows::Interleaved(interleaved) => {
            let mut next: Vec<(u32, u64)> =
                interleaved.parts.iter().map(|part| (part.fragment, part.position)).collect();
            let mut cells = Vec::with_capacity(interleaved.codes.len());
            for code in &interleaved.codes {
                let Some((fragment, position)) = next.get_mut(code.part()) else { continue };
                if code.is_row() {
                    cells.push((*fragment, *position, 1));
                }
                *position += 1;
            }
            cells
        }
    }
}

/// Returns the segment of the map that has a row; `None` past the last row.
fn map_place(map: &Arc<RowMap>, row: u64) -> Result<Option<MapPlace>> {
    let (segments, segment) = (map.segment_count(), map.segment_of(row)?);
    if segment >= segments {
        return Ok(None);
    }
    let rows = map.rows_of(segment)?;
    if !rows.contains(&row) {
        return Ok(None);
    }
    let form = match map.segment(segment)? {
        RowSegment::CellSlab { .. } => MapForm::Slab,
        RowSegment::Interleaved(_) => MapForm::Interleaved,
        RowSegment::Scattered(_) => MapForm::Scattered,
    };
    Ok(Some(MapPlace { segment, segments, rows, form }))
}

/// Returns the ranges that hold only these coordinates.
fn ranges_of(coordinates: &[Scalar]) -> Vec<Option<Vec<CoordinateRange>>> {
    let range = |one: &Scalar| CoordinateRange { low: Some(one.clone()), high: Some(one.clone()), step: 1 };
    coordinates.iter().map(|one| Some(vec![range(one)])).collect()
}
