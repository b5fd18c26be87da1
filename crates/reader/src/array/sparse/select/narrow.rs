//! Narrows a selection from whole tiles to the selected cells, before a merge.
//!
//! A row of a matrix touches many tiles and selects few cells of each. Merging these tiles would fetch all their
//! coordinates and compare all their cells. Narrowing reads only the restricted dimensions, tile by tile on all cores,
//! and leaves the selected cells to the merge. It tests each cell of a touched tile along the dimensions whose range in
//! the tile's box leaves that open, so the result does not depend on the order of cells.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use tilefs_base::error::Result;
use tilefs_threads::{self as threads, cancellation};

use super::cells::TileCells;
use super::files::FixedFile;
use super::query::Query;
use super::selection::CoordinateSelection;
use super::stream::{FragmentSource, read_column};
use crate::array::order::key::{AxisColumn, KeyOrder, KeyPlan};
use crate::read::{Batches, Decoding};

/// Maximum number of cells whose coordinates are fetched together: 4 MiB at 8 bytes per coordinate.
const CELLS_AT_ONCE: u64 = 1 << 19;

/// Number of threads that fetch and test coordinates concurrently, if each request is a round trip.
const WAITING_THREADS: usize = 8;

/// Number of cells that are decoded and tested together.
const BATCH_CELLS: u64 = 16384;

/// Maximum number of ranges of selected cells. A range takes 16 bytes when it is found, and 40 in the query. Stretches
/// in flight may exceed the limit by the ranges of one stretch, at most one for every second of [`CELLS_AT_ONCE`].
const MAX_RANGES: usize = 1 << 20;

/// Returns the query restricted to the selected cells instead of whole tiles. Returns `None` if the tiles have too few
/// or too many cells for that to pay, by [`Portions::narrowed`](super::query::Portions::narrowed), or if the selected
/// cells are in more than [`MAX_RANGES`] ranges. Also returns `None` for a damaged tile: reading its cells reports the
/// error.
///
/// # Errors
/// Those of the storage.
pub fn narrowed(query: &Query) -> Result<Option<Query>> {
    let Some(selection) = &query.selection else { return Ok(None) };
    let most = query.cells.iter().fold(0u64, |sum, cells| sum.saturating_add(cells.count()));
    if most <= query.portions.narrowed.0 || most > query.portions.narrowed.1 {
        return Ok(None);
    }
    match narrow(query, selection) {
        Err(error) if !error.is_transient() => Ok(None),
        done => done,
    }
}

fn narrow(query: &Query, selection: &CoordinateSelection) -> Result<Option<Query>> {
    let with_cells = (0..query.cells.len()).filter(|&fragment| query.cells[fragment].count() > 0);
    let sources: Vec<FragmentSource<'_>> = with_cells.map(|fragment| query.source(fragment)).collect::<Result<_>>()?;
    let mut stretches = Vec::new();
    for source in &sources {
        add_stretches(source, selection, &mut stretches)?;
    }
    let (context, path) = (query.array.context(), query.array.path());
    let ranges = AtomicUsize::new(0);
    let select = |stretch: CellStretch<'_>| {
        if ranges.load(Ordering::Relaxed) > MAX_RANGES {
            return (stretch.source.fragment, Ok(Vec::new()));
        }
        let selected = stretch.selected(selection);
        ranges.fetch_add(selected.as_ref().map_or(0, Vec::len), Ordering::Relaxed);
        (stretch.source.fragment, selected)
    };
    let all_selected = match context.storage.is_remote(path) {
        true => threads::map_waiting("tilefs-request", WAITING_THREADS, stretches.into_iter(), select),
        false => threads::map(stretches.into_iter(), select),
    };
    let mut positions: Vec<Vec<Range<u64>>> = vec![Vec::new(); query.cells.len()];
    for (fragment, selected) in all_selected {
        positions[fragment].extend(selected?);
    }
    if ranges.into_inner() > MAX_RANGES {
        return Ok(None);
    }
    let cells = query.cells.iter().zip(positions).map(|(cells, positions)| cells.at_positions(positions.into_iter()));
    Ok(Some(Query {
        array: query.array.clone(),
        plan: KeyPlan::new(query.array.schema(), KeyOrder::Global)?,
        deletes: query.deletes.clone(),
        conditions: query.conditions.clone(),
        selection: query.selection.clone(),
        cells: cells.collect(),
        is_narrowed: true,
        portions: query.portions,
    }))
}

/// Consecutive cells of consecutive tiles of a fragment.
struct CellStretch<'a> {
    source: &'a FragmentSource<'a>,
    positions: Range<u64>,
    /// The dimensions along which the boxes of their tiles do not show that all cells are selected.
    tested: Vec<usize>,
}

/// Cuts the cells of a fragment into stretches. Skips tiles without selected cells.
fn add_stretches<'a>(
    source: &'a FragmentSource<'a>,
    selection: &CoordinateSelection,
    stretches: &mut Vec<CellStretch<'a>>,
) -> Result<()> {
    let cells = source.array.context().budget().fetched_coordinates() / size_of::<u64>();
    let most = CELLS_AT_ONCE.min((cells / WAITING_THREADS) as u64).max(BATCH_CELLS);
    let mbrs = source.mbrs()?;
    let (mut boxes, mut ranges, mut tested) = (mbrs.boxes(), Vec::new(), Vec::new());
    let first = stretches.len();
    for (place, tile) in (0..).zip(source.cells.tiles()) {
        cancellation::check()?;
        boxes.read(tile, &mut ranges)?;
        if !selection.find_tested(&source.plan.axes, &ranges, &mut tested) {
            continue;
        }
        let positions = source.cells.positions_of(place);
        match stretches[first..].last_mut() {
            Some(last)
                if last.positions.end == positions.start
                    && last.tested == tested
                    && positions.end - last.positions.start <= most =>
            {
                last.positions.end = positions.end;
            }
            _ => stretches.push(CellStretch { source, positions, tested: tested.clone() }),
        }
    }
    Ok(())
}

impl CellStretch<'_> {
    /// Returns the positions of the selected cells.
    ///
    /// # Errors
    /// Any damage in the coordinates; those of the storage.
    fn selected(&self, selection: &CoordinateSelection) -> Result<Vec<Range<u64>>> {
        if self.tested.is_empty() {
            return Ok(vec![self.positions.clone()]);
        }
        self.fetch()?;
        let mut selected = Vec::new();
        let count = self.positions.end - self.positions.start;
        self.source.cells.for_each_tile(self.positions.start, count, |before, cells| {
            self.test(selection, cells, self.positions.start + before, &mut selected)
        })?;
        Ok(selected)
    }

    /// Fetches the coordinates into the cache.
    fn fetch(&self) -> Result<()> {
        let (source, mut units) = (self.source, Vec::new());
        let is_text = |number: &usize| source.plan.axes.get(*number).is_none_or(|axis| axis.is_text());
        for number in self.tested.iter().filter(|number| !is_text(number)) {
            let file = FixedFile::of_dimension(source.array, source.fragment, *number)?;
            let count = self.positions.end - self.positions.start;
            source.cells.for_each_tile(self.positions.start, count, |_, cells| file.units(&[cells], &mut units))?;
        }
        Batches::new(&source.array.context().fetcher, &units, Decoding::OnThisThread).fetch_before_reading()
    }

    /// Tests some cells of one tile, from `position` on, and adds the positions of the selected ones.
    fn test(
        &self,
        selection: &CoordinateSelection,
        cells: TileCells,
        position: u64,
        selected: &mut Vec<Range<u64>>,
    ) -> Result<()> {
        let (mut column, mut bytes, mut marks) = (AxisColumn::default(), Vec::new(), Vec::new());
        let mut done = 0;
        while done < cells.count {
            cancellation::check()?;
            let count = BATCH_CELLS.min(cells.count - done);
            let batch = TileCells { first: cells.first + done, count, ..cells };
            marks.clear();
            marks.resize(count as usize, true);
            for &number in &self.tested {
                column.clear();
                read_column(self.source, number, batch, &mut column, &mut bytes, &mut Vec::new())?;
                selection.apply(number, &column, &mut marks);
            }
            add_marked(&marks, position + done, selected);
            done += count;
        }
        Ok(())
    }
}

/// Adds the positions of the marked cells, counted from `position`.
fn add_marked(marks: &[bool], position: u64, selected: &mut Vec<Range<u64>>) {
    let mut at = 0;
    while let Some(start) = marks[at..].iter().position(|is_selected| *is_selected).map(|skipped| at + skipped) {
        let length = marks[start..].iter().position(|is_selected| !is_selected).unwrap_or(marks.len() - start);
        at = start + length;
        add(selected, position + start as u64..position + at as u64);
    }
}

/// Appends a range of positions, and joins it with the last one if it follows it.
fn add(selected: &mut Vec<Range<u64>>, positions: Range<u64>) {
    match selected.last_mut() {
        Some(last) if last.end == positions.start => last.end = positions.end,
        _ => selected.push(positions),
    }
}
