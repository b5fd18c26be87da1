//! Where the cells of a dense array come from.

use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::scalar::Scalar;
use tilefs_format::schema::Dimension;

use super::fragments::{FragmentState, fragment_states};
use super::place::{CellFate, CellOrigin, CellPlace, OtherCell, UnreadFragment};
use super::runs::{CellRun, RunList};
use crate::array::OpenedArray;
use crate::array::dense::grid::{Grid, GridAxis};
use crate::array::dense::pieces::{Piece, PieceSource};
use crate::array::dense::scattered::ScatteredCells;
use crate::array::dense::{DenseColumn, DenseView, Selection};
use crate::array::folder::outline::FieldFile;

/// The most fragments with a cell that are listed.
const MAX_OTHERS: usize = 1 << 12;

/// The most cells of which runs are made.
const MAX_CELLS_OF_RUNS: u64 = 1 << 16;

/// Returns where a cell of a selection comes from for an attribute, by the cell's number in the file, with the cells that
/// other fragments have there; `None` past the last cell.
///
/// # Errors
/// Any damage in the footers of fragments that count; those of the storage.
pub fn origin_of_cell(
    view: &Arc<DenseView>,
    selection: &Arc<Selection>,
    attribute: usize,
    cell: u64,
) -> Result<Option<CellOrigin>> {
    let Some(position) = position_of(selection, cell) else { return Ok(None) };
    let column = column_of(view, selection, attribute)?;
    let mut shown = None;
    column.for_each_piece(cell, 1, |piece| {
        shown = place_of(view, &piece)?;
        Ok(())
    })?;
    let coordinates = coordinates_of(view.array(), view.grid(), &position)?;
    let (mut found, mut unread, mut is_complete) = (Vec::new(), Vec::new(), true);
    for (fragment, state) in states_by_age(view.array()) {
        match cell_in(view, fragment, &position) {
            Ok(Some(_)) if found.len() == MAX_OTHERS => is_complete = false,
            Ok(Some(place)) => found.push((place, state)),
            Ok(None) => {}
            Err(error) if error.is_transient() && !matches!(error, Error::Missing { .. }) => return Err(error),
            Err(error) => unread.push(UnreadFragment { fragment, error }),
        }
    }
    // A newer fragment may hide a cell, and have no value of the attribute itself.
    let newest = found.iter().rev().find(|(_, state)| state.visible().is_some()).map(|(place, _)| place.clone());
    let hidden_by = shown.clone().or(newest);
    let mut others = Vec::new();
    for (place, state) in found.into_iter().filter(|(place, _)| Some(place) != shown.as_ref()) {
        let has_value = state.visible().map(|visible| view.array().has_attribute(visible, attribute)).transpose()?;
        let fate = match (has_value, &hidden_by) {
            (None, _) => CellFate::InFragment(state),
            (Some(false), _) | (Some(true), None) => CellFate::WithoutValue,
            (Some(true), Some(by)) => CellFate::Overwritten(by.clone()),
        };
        others.push(OtherCell { coordinates: coordinates.clone(), place, fate });
    }
    Ok(Some(CellOrigin { coordinates, shown, others, is_complete, unread, map: None }))
}

/// Returns where the cells of a selection come from for an attribute, as at most `most` runs, from cell `first` on.
///
/// # Errors
/// Any damage in the footers of fragments.
pub fn runs_of_cells(
    view: &Arc<DenseView>,
    selection: &Arc<Selection>,
    attribute: usize,
    first: u64,
    most: usize,
) -> Result<Vec<CellRun>> {
    let column = column_of(view, selection, attribute)?;
    let count = column.cells().saturating_sub(first).min(MAX_CELLS_OF_RUNS);
    let mut found = Vec::new();
    column.for_each_piece(first, count, |piece| {
        let place = place_of(view, &piece)?;
        piece.for_each_line(|from, to, count, stride, out_stride| {
            let steps = |start: u64, by: u64, number: u64| start.wrapping_add(by.wrapping_mul(number));
            // Cells that do not follow each other in the tile and in the file are runs of their own.
            let is_run = out_stride == 1 && (place.is_none() || stride == 1);
            let (runs_of_line, length) = if is_run { (1, count) } else { (count, 1) };
            found.extend((0..runs_of_line).map(|number| {
                let place =
                    place.as_ref().map(|place| CellPlace { cell: steps(from, stride as u64, number), ..place.clone() });
                CellRun { first: first + steps(to, out_stride, number), count: length, place }
            }));
            Ok(())
        })
    })?;
    // Pieces come tile by tile.
    found.sort_unstable_by_key(|run| run.first);
    let mut runs = RunList::new(most);
    let _ = found.into_iter().all(|run| runs.add(run));
    Ok(runs.finish())
}

fn column_of(view: &Arc<DenseView>, selection: &Arc<Selection>, attribute: usize) -> Result<DenseColumn> {
    DenseColumn::new(view.clone(), selection.clone(), attribute, FieldFile::Data, vec![0])
}

/// Returns the positions of a cell along the axes, by its number in the file.
fn position_of(selection: &Selection, cell: u64) -> Option<Vec<u64>> {
    if cell >= selection.cells() {
        return None;
    }
    let mut rest = cell;
    let mut position = vec![0; selection.axes().len()];
    for (position, axis) in position.iter_mut().zip(selection.axes()).rev() {
        *position = axis.position(rest % axis.len().max(1))?;
        rest /= axis.len().max(1);
    }
    Some(position)
}

/// Returns the first cell of a piece in its fragment; `None` for fill values.
fn place_of(view: &DenseView, piece: &Piece) -> Result<Option<CellPlace>> {
    let PieceSource::Tile { fragment, tile } = piece.source else { return Ok(None) };
    let (in_tile, number) = (view.cells_in_tile(fragment, tile)?, view.array().number(fragment));
    Ok(Some(CellPlace { fragment: number, tile, in_tile, cell: piece.tile_first, time: None }))
}

fn coordinates_of(array: &OpenedArray, grid: &Grid, position: &[u64]) -> Result<Vec<Scalar>> {
    let axes = array.schema().dimensions.iter().zip(&grid.axes).zip(position);
    let coordinate = |((dimension, axis), position): ((&Dimension, &GridAxis), &u64)| {
        let bytes = axis.low.wrapping_add(*position).to_le_bytes();
        Scalar::parse(dimension.datatype, bytes.get(..dimension.datatype.size()).unwrap_or_default())
    };
    axes.map(coordinate).collect::<Result<_>>().in_array(array.path())
}

/// Returns the numbers of all fragments with their states, oldest first.
fn states_by_age(array: &OpenedArray) -> Vec<(usize, FragmentState)> {
    let mut states: Vec<(usize, FragmentState)> = fragment_states(array).into_iter().enumerate().collect();
    states.sort_by_key(|(number, _)| array.folder().fragment(*number).map(|entry| entry.times.t1));
    states
}

/// Returns the cell that a fragment, by its number in the folder, has at a position.
fn cell_in(view: &DenseView, fragment: usize, position: &[u64]) -> Result<Option<CellPlace>> {
    let (array, grid) = (view.array(), view.grid());
    let outline = array.folder().outline(fragment)?;
    let name = array.folder().fragment(fragment).map_or("", |entry| entry.name());
    let Some(ranges) = outline.facts.non_empty_ranges() else { return Ok(None) };
    let own = grid.box_of(&ranges).in_field("non-empty domain").in_fragment(name).in_array(array.path())?;
    if !own.contains_position(position) {
        return Ok(None);
    }
    let tile_of: Vec<u64> = position.iter().zip(&grid.axes).map(|(position, axis)| position / axis.extent).collect();
    let strides = grid.cell_strides();
    let within = position.iter().zip(&grid.axes).zip(&strides);
    let number: u64 = within.map(|((position, axis), stride)| position % axis.extent * stride).sum();
    if outline.facts.dense {
        let tile = grid.tile_number(&own, &tile_of).ok_or_else(|| Error::damaged("more than 2^64 tiles"))?;
        return Ok(Some(CellPlace { fragment, tile, in_tile: grid.cells_per_tile(), cell: number, time: None }));
    }
    let alone = array.of_fragments(array.schema.clone(), vec![fragment]);
    let cells = ScatteredCells::read(&alone, 0, grid)?;
    let Some(&(tile, cell)) = cells.of_tile(&tile_of).and_then(|cells| cells.get(&number)) else { return Ok(None) };
    let in_tile = outline.facts.cells_in_tile(&outline.schema, tile).unwrap_or(0);
    Ok(Some(CellPlace { fragment, tile, in_tile, cell, time: None }))
}
