//! Narrows a selection from whole tiles to the cells in it, before they are merged.
//!
//! A row of a matrix touches many tiles and has few cells of each. A merge of these tiles would fetch all their coordinates
//! and compare all their cells. Here only the dimensions that the selection restricts are looked at, tile by tile on all
//! cores; the merge then has the chosen cells alone. Each cell of a touched tile is looked at, so the result does not
//! depend on the order of cells.

use std::ops::Range;

use tilefs_format::error::Result;

use super::cells::TileCells;
use super::files::FixedFile;
use super::key::{AxisColumn, CellOrder, KeyPlan};
use super::query::Query;
use super::selection::{Selection, Share};
use super::stream::{FragmentSource, read_column};
use crate::read::{Batches, Decoding};
use crate::storage::is_far;
use crate::threads::{self, cancellation};

/// Cells whose coordinates are fetched together, and with 8 bytes a coordinate 4 MiB of them.
const CELLS_AT_ONCE: u64 = 1 << 19;

/// So many threads fetch and look at coordinates at a time where requests are waits.
const WAITING_THREADS: usize = 8;

/// The part of the cache's budget that coordinates may take which are fetched and not looked at yet.
const CACHE_SHARE: u64 = 8;

/// Cells that are decoded together.
const BATCH_CELLS: u64 = 16384;

/// No more ranges of cells than this: each takes 40 bytes of memory.
const MOST_RANGES: usize = 1 << 20;

/// The query with the cells that its selection chooses instead of whole tiles; `None` where there are too few or too many
/// of these tiles for that to pay, by [`Portions::narrowed`](super::query::Portions::narrowed), or where the chosen cells are
/// scattered.
///
/// # Errors
/// Those of the storage. Where a tile is damaged there is `None`: the error belongs to whoever reads its cells.
pub fn narrowed(query: &Query) -> Result<Option<Query>> {
    let Some(selection) = &query.selection else { return Ok(None) };
    let most = query.cells.iter().fold(0u64, |sum, cells| sum.saturating_add(cells.count()));
    if most <= query.portions.narrowed.0 || most > query.portions.narrowed.1 {
        return Ok(None);
    }
    match narrow(query, selection) {
        Err(error) if !error.is_passing() => Ok(None),
        done => done,
    }
}

fn narrow(query: &Query, selection: &Selection) -> Result<Option<Query>> {
    let with_cells = (0..query.cells.len()).filter(|&fragment| query.cells[fragment].count() > 0);
    let sources: Vec<FragmentSource<'_>> = with_cells.map(|fragment| query.source(fragment)).collect::<Result<_>>()?;
    let mut stretches = Vec::new();
    for source in &sources {
        add_stretches(source, selection, &mut stretches)?;
    }
    let (context, path) = (query.array.context(), query.array.path());
    let look = |stretch: Stretch<'_>| {
        let chosen = stretch.chosen(selection);
        (stretch.source.fragment, chosen)
    };
    let all_chosen = match is_far(&*context.storage, path) {
        true => threads::map_waiting("tilefs-request", WAITING_THREADS, stretches.into_iter(), look),
        false => threads::map(stretches.into_iter(), look),
    };
    let mut positions: Vec<Vec<Range<u64>>> = vec![Vec::new(); query.cells.len()];
    let mut ranges = 0;
    for (fragment, chosen) in all_chosen {
        let chosen = chosen?;
        ranges += chosen.len();
        positions[fragment].extend(chosen);
    }
    if ranges > MOST_RANGES {
        return Ok(None);
    }
    let cells = query.cells.iter().zip(positions).map(|(cells, positions)| cells.at_positions(positions.into_iter()));
    Ok(Some(Query {
        array: query.array.clone(),
        plan: KeyPlan::new(query.array.schema(), CellOrder::Global)?,
        deletes: query.deletes.clone(),
        selection: query.selection.clone(),
        cells: cells.collect(),
        is_narrowed: true,
        portions: query.portions,
    }))
}

/// Consecutive cells of some tiles of a fragment.
struct Stretch<'a> {
    source: &'a FragmentSource<'a>,
    positions: Range<u64>,
    /// Whether their boxes tell that all are chosen.
    are_all_chosen: bool,
}

/// Cuts the cells of a fragment into stretches. Tiles of which no cell is chosen are left out.
fn add_stretches<'a>(
    source: &'a FragmentSource<'a>,
    selection: &Selection,
    stretches: &mut Vec<Stretch<'a>>,
) -> Result<()> {
    let budget = source.array.context().budget() as u64 / CACHE_SHARE / size_of::<u64>() as u64;
    let most = CELLS_AT_ONCE.min(budget / WAITING_THREADS as u64).max(BATCH_CELLS);
    let mbrs = source.mbrs()?;
    let (mut boxes, mut ranges) = (mbrs.boxes(), Vec::new());
    let first = stretches.len();
    for (place, tile) in (0..).zip(source.cells.tiles()) {
        cancellation::check()?;
        boxes.read(tile, &mut ranges)?;
        let are_all_chosen = match selection.share(&source.plan.axes, ranges.iter()) {
            Share::None => continue,
            Share::Some => false,
            Share::All => true,
        };
        let positions = source.cells.positions_of(place);
        match stretches[first..].last_mut() {
            Some(last)
                if last.positions.end == positions.start
                    && last.are_all_chosen == are_all_chosen
                    && positions.end - last.positions.start <= most =>
            {
                last.positions.end = positions.end;
            }
            _ => stretches.push(Stretch { source, positions, are_all_chosen }),
        }
    }
    Ok(())
}

impl Stretch<'_> {
    /// The positions of the chosen cells.
    ///
    /// # Errors
    /// Any damage in the coordinates; those of the storage.
    fn chosen(&self, selection: &Selection) -> Result<Vec<Range<u64>>> {
        if self.are_all_chosen {
            return Ok(vec![self.positions.clone()]);
        }
        self.fetch(selection)?;
        let mut chosen = Vec::new();
        let count = self.positions.end - self.positions.start;
        self.source.cells.for_each_tile(self.positions.start, count, |before, cells| {
            self.look_at(selection, cells, self.positions.start + before, &mut chosen)
        })?;
        Ok(chosen)
    }

    /// Fetches the coordinates into the cache.
    fn fetch(&self, selection: &Selection) -> Result<()> {
        let (source, mut units) = (self.source, Vec::new());
        let axes = source.plan.axes.iter().enumerate();
        for (number, _) in axes.filter(|(number, axis)| selection.restricts(*number) && !axis.is_text()) {
            let file = FixedFile::of_dimension(source.array, source.fragment, number)?;
            let count = self.positions.end - self.positions.start;
            source.cells.for_each_tile(self.positions.start, count, |_, cells| file.units(cells, &mut units))?;
        }
        Batches::new(&source.array.context().fetcher, &units, Decoding::OnThisThread).fetch_before_reading()
    }

    /// Adds the positions of the chosen cells among some of one tile, the first of which is at `position`.
    fn look_at(
        &self,
        selection: &Selection,
        cells: TileCells,
        position: u64,
        chosen: &mut Vec<Range<u64>>,
    ) -> Result<()> {
        let (mut column, mut bytes, mut marks) = (AxisColumn::default(), Vec::new(), Vec::new());
        let mut done = 0;
        while done < cells.count {
            cancellation::check()?;
            let count = BATCH_CELLS.min(cells.count - done);
            let batch = TileCells { first: cells.first + done, count, ..cells };
            marks.clear();
            marks.resize(count as usize, true);
            for number in (0..self.source.plan.axes.len()).filter(|&number| selection.restricts(number)) {
                column.clear();
                read_column(self.source, number, batch, &mut column, &mut bytes, &mut Vec::new())?;
                selection.apply(number, &column, &mut marks);
            }
            add_marked(&marks, position + done, chosen);
            done += count;
        }
        Ok(())
    }
}

/// Adds the positions of the marked cells, of which the first is at `position`.
fn add_marked(marks: &[bool], position: u64, chosen: &mut Vec<Range<u64>>) {
    let mut at = 0;
    while let Some(start) = marks[at..].iter().position(|is_chosen| *is_chosen).map(|skipped| at + skipped) {
        let length = marks[start..].iter().position(|is_chosen| !is_chosen).unwrap_or(marks.len() - start);
        at = start + length;
        add(chosen, position + start as u64..position + at as u64);
    }
}

/// Adds positions behind those that are there.
fn add(chosen: &mut Vec<Range<u64>>, positions: Range<u64>) {
    match chosen.last_mut() {
        Some(last) if last.end == positions.start => last.end = positions.end,
        _ => chosen.push(positions),
    }
}
