//! The cells at some coordinates in all fragments of a sparse array, whether they count or not.

use std::ops::Range;
use std::slice;
use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::fragment::{Descent, FragmentField};
use tilefs_format::scalar::{Range as Side, Scalar};
use tilefs_threads::cancellation;

use super::fragments::{FragmentState, fragment_states};
use super::place::{CellPlace, Deletion, UnreadFragment};
use crate::array::OpenedArray;
use crate::array::order::axis::KeyAxis;
use crate::array::order::key::{AxisColumn, KeyOrder, KeyPlan};
use crate::array::sparse::select::cells::{FragmentCells, TileCells};
use crate::array::sparse::select::deletes::{Delete, visible_deletes};
use crate::array::sparse::select::files::FixedFile;
use crate::array::sparse::select::selection::{CoordinateRange, CoordinateSelection, Share};
use crate::array::sparse::select::stream::{FragmentSource, read_column};
use crate::array::sparse::select::visible::{CellFilter, CellVisibility};

/// Cells whose coordinates are compared together.
const BATCH_CELLS: u64 = 16384;

/// A cell of a fragment that may be shown.
#[derive(Debug, Clone)]
pub(super) struct CellCandidate {
    pub place: CellPlace,
    pub coordinates: Vec<Scalar>,
    pub state: FragmentState,
    /// The time of the cell, and the place of its fragment in the order of age.
    pub age: (u64, usize),
    /// Whether its fragment may hold several cells with the same coordinates, each with its time.
    pub has_versions: bool,
    /// Whether the cell was written in the array's window, as far as its own time tells.
    pub is_present: bool,
    pub deletion: Option<Deletion>,
}

impl CellCandidate {
    /// Returns bytes that are the same for cells with the same coordinates, and only for these.
    pub fn identity(&self) -> Vec<u8> {
        identity(&self.coordinates)
    }
}

/// Returns bytes that are the same for the same coordinates, and only for these.
pub(super) fn identity(coordinates: &[Scalar]) -> Vec<u8> {
    let mut bytes = Vec::new();
    coordinates.iter().for_each(|coordinate| coordinate.append_identity(&mut bytes));
    bytes
}

/// The cells that were found, oldest fragment first.
#[derive(Debug, Default)]
pub(super) struct CellCandidates {
    pub cells: Vec<CellCandidate>,
    /// Whether these are all of them.
    pub is_complete: bool,
    pub unread: Vec<UnreadFragment>,
}

/// Finds the cells within ranges of coordinates, at most `most`. A fragment with damage is left out, and named.
///
/// # Errors
/// Any damage in the array's delete conditions; those of the storage.
pub(super) fn find(
    array: &Arc<OpenedArray>,
    ranges: &[Option<Vec<CoordinateRange>>],
    most: usize,
) -> Result<CellCandidates> {
    let states = fragment_states(array);
    let mut numbers: Vec<usize> = (0..states.len()).collect();
    numbers.sort_by_key(|&number| array.folder().fragment(number).map(|entry| entry.times.t1));
    let all = array.of_fragments(array.schema.clone(), numbers.clone());
    all.read_outlines();
    let plan = KeyPlan::new(array.schema(), KeyOrder::Global).in_array(array.path())?;
    let selection = CoordinateSelection::new(&plan.axes, ranges)?;
    let search = Search { all, plan, selection, deletes: visible_deletes(array)?, most };
    let mut found = CellCandidates { is_complete: true, ..CellCandidates::default() };
    for (place, number) in numbers.into_iter().enumerate() {
        cancellation::check()?;
        let state = states.get(number).copied().unwrap_or(FragmentState::Later);
        match search.in_fragment(place, state, &mut found) {
            Ok(()) => {}
            Err(error) if error.is_transient() && !matches!(error, Error::Missing { .. }) => return Err(error),
            Err(error) => found.unread.push(UnreadFragment { fragment: number, error }),
        }
        if !found.is_complete {
            break;
        }
    }
    Ok(found)
}

/// A search in all fragments of an array's folder.
struct Search {
    /// The array of all of them, oldest first.
    all: OpenedArray,
    plan: KeyPlan,
    selection: CoordinateSelection,
    /// The deletes in the array's window.
    deletes: Vec<Delete>,
    most: usize,
}

impl Search {
    /// Adds the cells of a fragment, by its place in the order of age.
    fn in_fragment(&self, fragment: usize, state: FragmentState, found: &mut CellCandidates) -> Result<()> {
        let outline = self.all.outline(fragment)?;
        let facts = &outline.facts;
        if facts.dense {
            return Err(Error::unsupported("a dense fragment in a sparse array"));
        }
        let domain = facts.covering_ranges().unwrap_or_default();
        if facts.sparse_tiles == 0 || self.selection.share(&self.plan.axes, domain.iter()) == Share::None {
            return Ok(());
        }
        let cells = FragmentCells::new(facts.sparse_tiles, outline.schema.capacity, facts.last_tile_cells)?;
        let cells = cells.restricted(self.tiles(fragment)?.into_iter())?;
        let times = self.all.fragment_times(fragment);
        let source = FragmentSource {
            array: &self.all,
            fragment,
            cells: &cells,
            filter: CellFilter::new(&self.all, fragment, &[], &[], true)?,
            selection: None,
            is_narrowed: false,
            time: times.map_or(0, |times| times.t1),
            plan: &self.plan,
            has_versions: facts.has_timestamps,
        };
        let mut position = 0;
        while let Some(piece) = cells.at(position, BATCH_CELLS) {
            cancellation::check()?;
            self.in_tile(&source, state, piece, found)?;
            position += piece.count;
        }
        Ok(())
    }

    /// Returns the tiles of a fragment that may have selected cells.
    fn tiles(&self, fragment: usize) -> Result<Vec<Range<u64>>> {
        let mut touched = Vec::new();
        let decide = |ranges: &[Side]| {
            cancellation::check()?;
            Ok(match self.selection.share(&self.plan.axes, ranges.iter()) {
                Share::None => Descent::Skip,
                Share::Some => Descent::Enter,
                Share::All => Descent::Take,
            })
        };
        self.all.folder().mbrs(self.all.number(fragment))?.descend(decide, |tiles| touched.push(tiles))?;
        Ok(touched)
    }

    /// Adds the selected ones of some cells of a tile.
    fn in_tile(
        &self,
        source: &FragmentSource<'_>,
        state: FragmentState,
        cells: TileCells,
        found: &mut CellCandidates,
    ) -> Result<()> {
        let columns = read_coordinates(source, cells)?;
        let mut chosen = vec![true; cells.count as usize];
        for (dimension, (column, _)) in columns.iter().enumerate() {
            self.selection.apply(dimension, column, &mut chosen);
        }
        for (number, _) in chosen.iter().enumerate().filter(|(_, is_chosen)| **is_chosen) {
            if found.cells.len() >= self.most {
                found.is_complete = false;
                return Ok(());
            }
            let cell = TileCells { first: cells.first + number as u64, count: 1, ..cells };
            let coordinates = coordinates_of(&columns, source.plan, number)?;
            found.cells.push(self.candidate(source, state, cell, coordinates)?);
        }
        Ok(())
    }

    fn candidate(
        &self,
        source: &FragmentSource<'_>,
        state: FragmentState,
        cell: TileCells,
        coordinates: Vec<Scalar>,
    ) -> Result<CellCandidate> {
        let mut visibility = CellVisibility::default();
        source.filter.mark(cell, &mut visibility)?;
        let time = visibility.times.first().copied();
        let TileCells { tile, in_tile, first, .. } = cell;
        Ok(CellCandidate {
            place: CellPlace { fragment: self.all.number(source.fragment), tile, in_tile, cell: first, time },
            coordinates,
            state,
            age: (time.unwrap_or(source.time), source.fragment),
            has_versions: source.has_versions,
            is_present: visibility.is_present(0),
            deletion: self.deletion(source.fragment, cell, visibility.is_shown(0))?,
        })
    }

    /// Returns what deleted a cell, which a consolidation has recorded unless `is_kept`.
    fn deletion(&self, fragment: usize, cell: TileCells, is_kept: bool) -> Result<Option<Deletion>> {
        if !is_kept {
            let mut time = [0; 8];
            FixedFile::of_marks(&self.all, fragment, FragmentField::DeleteTimestamps)?.read(cell, &mut time)?;
            return Ok(Some(Deletion::Recorded { time: u64::from_le_bytes(time) }));
        }
        for delete in &self.deletes {
            let mut visibility = CellVisibility::default();
            let filter = CellFilter::new(&self.all, fragment, slice::from_ref(delete), &[], true)?;
            filter.mark(cell, &mut visibility)?;
            if !visibility.is_shown(0) {
                return Ok(Some(Deletion::Condition { commit: delete.marker.clone(), time: delete.time }));
            }
        }
        Ok(None)
    }
}

/// Reads the coordinates of some cells of a tile: positions or texts, and the stored bytes of numbers.
pub(super) fn read_coordinates(source: &FragmentSource<'_>, cells: TileCells) -> Result<Vec<(AxisColumn, Vec<u8>)>> {
    let mut columns = Vec::with_capacity(source.plan.axes.len());
    for number in 0..source.plan.axes.len() {
        let (mut column, mut bytes) = (AxisColumn::default(), Vec::new());
        read_column(source, number, cells, &mut column, &mut bytes, &mut Vec::new())?;
        columns.push((column, bytes));
    }
    Ok(columns)
}

/// Returns the coordinates of one of these cells.
pub(super) fn coordinates_of(columns: &[(AxisColumn, Vec<u8>)], plan: &KeyPlan, cell: usize) -> Result<Vec<Scalar>> {
    let coordinate = |((column, bytes), axis): (&(AxisColumn, Vec<u8>), &KeyAxis)| {
        if axis.is_text() {
            return Ok(Scalar::Text(column.text(cell).to_vec()));
        }
        let value = bytes.chunks_exact(axis.datatype.size()).nth(cell);
        Scalar::parse(axis.datatype, value.ok_or_else(|| Error::internal("no such coordinate"))?)
    };
    columns.iter().zip(&plan.axes).map(coordinate).collect()
}
