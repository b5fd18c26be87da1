//! One task of finding rows: merges some cells of several fragments, or filters some cells of one fragment.

use std::ops::Range;

use tilefs_base::error::{Error, Result};

use super::distinct::distinct_rows;
use super::every::{EveryCell, too_few_cells};
use super::newest::Newest;
use super::prefetch;
use super::tournament::{CellStream, Halt, Merged, merge};
use crate::array::Budget;
use crate::array::order::key::KeyPlan;
use crate::array::sparse::rows::segments::{InterleavedWriter, RowSegment};
use crate::array::sparse::rows::store::SpillStore;
use crate::array::sparse::select::query::Query;
use crate::array::sparse::select::stream::{CellBatch, FragmentSource, KeyStream, StreamBuffers};

/// Approximate memory of all batches of one merge, unless there are very many of them.
const BATCH_MEMORY: u64 = 16 << 20;

/// Cells of a batch: at least enough to make up for the cost of reading a batch, at most as many as a chunk of a tile
/// has.
const BATCH_CELLS: Range<u64> = 256..16384;

/// With very many fragments, batches are shorter than that to stay within their share of the budget, but have at least
/// this many cells.
const LEAST_OF_MANY: u64 = 16;

/// Cells of some fragments, and how to find the rows among them.
#[derive(Debug, Clone)]
pub struct MergeTask {
    /// The numbers of the fragments, and the positions of their cells.
    pub parts: Vec<(usize, Range<u64>)>,
    pub kind: MergeKind,
}

/// How to find rows among cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeKind {
    /// Cells are not compared. There is one part, and every visible cell is a row.
    Filter,
    /// The newest of the cells with the same coordinates is a row, if it is visible.
    Newest,
    /// The same for cells whose coordinates were rounded after they were sorted, as far as cells with the same
    /// coordinates meet in a merge of the cells in stored order. As in libtiledb, cells that do not meet
    /// are all rows.
    NewestThatMeet,
    /// The newest of the cells with the same coordinates for cells that are merged in stored order, although not all
    /// are in the array's order.
    AsTheyCome,
    /// No two fragments have cells with the same coordinates, and every cell is visible: the first `rows` cells are
    /// rows.
    Every { rows: u64 },
}

impl MergeTask {
    /// Returns the number of cells to process, saturating if fragments claim more than 64 bits count.
    pub fn cells(&self) -> u64 {
        let counts = self.parts.iter().map(|(_, positions)| positions.end - positions.start);
        counts.fold(0, u64::saturating_add)
    }

    /// Finds the rows, which `store` keeps. Reports the number of cells processed to `progress`. For
    /// [`MergeKind::Every`], also returns for each part the position after its last row.
    ///
    /// # Errors
    /// Any damage in the cells.
    pub fn run(
        &self,
        query: &Query,
        store: &SpillStore,
        progress: &dyn Fn(u64),
    ) -> Merged<(RowSegment, Option<Vec<u64>>)> {
        let sources: Vec<FragmentSource<'_>> =
            self.parts.iter().map(|(fragment, _)| query.source(*fragment)).collect::<Result<_>>()?;
        if self.reads_cells() {
            let cells: Vec<_> = sources.iter().zip(self.parts.iter().map(|(_, positions)| positions.clone())).collect();
            prefetch::coordinates(&cells, self.kind != MergeKind::Filter)?;
        }
        let segment = match self.kind {
            MergeKind::Filter => self.filter(&sources, store, progress)?,
            MergeKind::Every { rows } => {
                let (segment, ends) = self.merge_every(&query.plan, &sources, rows, store, progress)?;
                return Ok((segment, Some(ends)));
            }
            MergeKind::NewestThatMeet => self.merge_in_order(&query.plan, &sources, true, store, progress)?,
            MergeKind::Newest => match self.merge_in_order(&query.plan, &sources, false, store, progress) {
                Err(Halt::Ties) => self.merge_as_they_come(query, &sources, store, progress)?,
                done => done?,
            },
            MergeKind::AsTheyCome => self.merge_as_they_come(query, &sources, store, progress)?,
        };
        Ok((segment, None))
    }

    /// Returns whether finding the rows reads cells. The cells of a single fragment need not be read if all are rows.
    fn reads_cells(&self) -> bool {
        !matches!((self.kind, &self.parts[..]), (MergeKind::Every { .. }, [_]))
    }

    fn merge_as_they_come(
        &self,
        query: &Query,
        sources: &[FragmentSource<'_>],
        store: &SpillStore,
        progress: &dyn Fn(u64),
    ) -> Merged<RowSegment> {
        let streams = self.streams(&query.plan, sources, true, progress);
        Ok(RowSegment::Scattered(distinct_rows(&query.plan, sources, streams, query.budget(), store)?))
    }

    fn merge_in_order(
        &self,
        plan: &KeyPlan,
        sources: &[FragmentSource<'_>],
        accepts_disorder: bool,
        store: &SpillStore,
        progress: &dyn Fn(u64),
    ) -> Merged<RowSegment> {
        let mut writer = InterleavedWriter::new(store, &self.starts());
        let mut newest = Newest::new(&mut writer, self.parts.iter().map(|(_, positions)| positions.start));
        merge(plan, self.streams(plan, sources, accepts_disorder, progress), &mut newest)?;
        newest.finish()?;
        Ok(RowSegment::Interleaved(writer.finish()?))
    }

    fn merge_every(
        &self,
        plan: &KeyPlan,
        sources: &[FragmentSource<'_>],
        rows: u64,
        store: &SpillStore,
        progress: &dyn Fn(u64),
    ) -> Merged<(RowSegment, Vec<u64>)> {
        let mut writer = InterleavedWriter::new(store, &self.starts());
        if let [(_, positions)] = &self.parts[..] {
            let end = positions.start.checked_add(rows).filter(|end| *end <= positions.end);
            let end = end.ok_or_else(|| sources[0].place(too_few_cells(rows - (positions.end - positions.start))))?;
            (0..rows).try_for_each(|_| writer.push(0, true))?;
            return Ok((RowSegment::Interleaved(writer.finish()?), vec![end]));
        }
        let mut every = EveryCell::new(&mut writer, self.parts.iter().map(|(_, positions)| positions.start), rows);
        match merge(plan, self.streams(plan, sources, false, progress), &mut every) {
            Ok(()) | Err(Halt::Enough) => {}
            Err(Halt::Repetition { input, position }) => {
                let Some(source) = sources.get(input) else { return Err(Error::internal("no such input").into()) };
                let place = source.cells.at(position, 1).map_or((0, 0), |cell| (cell.tile, cell.first));
                let reason = format!(
                    "tile {}, cell {}: coordinates of another fragment's cell, though the boxes of their tiles lie apart",
                    place.0, place.1
                );
                return Err(source.place(Error::damaged(reason)).into());
            }
            Err(Halt::Ties) => return Err(Error::damaged("coordinates out of order").into()),
            Err(halt) => return Err(halt),
        }
        let ends = every.finish()?;
        Ok((RowSegment::Interleaved(writer.finish()?), ends))
    }

    fn starts(&self) -> Vec<(u32, u64)> {
        self.parts.iter().map(|(number, positions)| (*number as u32, positions.start)).collect()
    }

    fn streams<'a>(
        &self,
        plan: &KeyPlan,
        sources: &'a [FragmentSource<'_>],
        accepts_disorder: bool,
        progress: &'a dyn Fn(u64),
    ) -> Vec<FragmentStream<'a>> {
        let cell_memory = 8 * (plan.words() as u64 + 2) + if plan.is_exact() { 0 } else { 64 };
        let budget = sources.first().map_or(Budget::new(0), |source| source.array.context().budget());
        let batch_cells = batch_cells(self.parts.len() as u64, cell_memory, budget);
        let streams = self.parts.iter().zip(sources).map(|((_, positions), source)| FragmentStream {
            stream: KeyStream::new(source, positions.clone(), batch_cells, true),
            accepts_disorder,
            progress,
        });
        streams.collect()
    }

    /// Filters the cells of one fragment, none of which replaces another.
    fn filter(&self, sources: &[FragmentSource<'_>], store: &SpillStore, progress: &dyn Fn(u64)) -> Merged<RowSegment> {
        let mut writer = InterleavedWriter::new(store, &self.starts());
        let (mut batch, mut buffers) = (CellBatch::default(), StreamBuffers::default());
        for (part, ((_, positions), source)) in self.parts.iter().zip(sources).enumerate() {
            let mut stream = KeyStream::new(source, positions.clone(), BATCH_CELLS.end, false);
            while stream.read(&mut batch, &mut buffers)? {
                for cell in 0..batch.count {
                    writer.push(part, batch.visibility.is_present(cell) && batch.visibility.is_shown(cell))?;
                }
                progress(batch.count as u64);
            }
        }
        Ok(RowSegment::Interleaved(writer.finish()?))
    }
}

/// Returns the number of cells of each batch for a merge of `parts` parts whose cells take `cell_memory` bytes, within
/// a share of the budget.
fn batch_cells(parts: u64, cell_memory: u64, budget: Budget) -> u64 {
    let cells_of = |memory: u64| memory / (cell_memory * parts).max(1);
    let most = cells_of(BATCH_MEMORY.max(budget.merge_batches() as u64)).max(LEAST_OF_MANY);
    cells_of(BATCH_MEMORY).clamp(BATCH_CELLS.start, BATCH_CELLS.end).min(most)
}

/// The cells of a fragment, in the order that the merge's plan assumes.
struct FragmentStream<'a> {
    stream: KeyStream<'a>,
    accepts_disorder: bool,
    /// Not generic: a merge is compiled for each type of stream, and its code is large.
    progress: &'a dyn Fn(u64),
}

impl CellStream for FragmentStream<'_> {
    fn read(&mut self, batch: &mut CellBatch, buffers: &mut StreamBuffers) -> Merged<bool> {
        (self.progress)(batch.count as u64);
        let is_read = self.stream.read(batch, buffers)?;
        match self.stream.disorder() {
            _ if self.accepts_disorder => Ok(is_read),
            Some(place) => Err(Halt::Disorder(place.to_owned())),
            None if self.stream.has_loose_ties() => Err(Halt::Ties),
            None => Ok(is_read),
        }
    }

    fn time(&self) -> u64 {
        self.stream.source().time
    }

    fn age(&self) -> usize {
        self.stream.source().fragment
    }

    fn has_versions(&self) -> bool {
        self.stream.source().has_versions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_of_many_fragments_have_fewer_cells() {
        for (parts, cell_memory, budget, cells) in [
            (1, 24, 1 << 30, 16384),
            (2, 0, 0, 16384),
            (1000, 24, 1 << 30, 699),
            (5000, 24, 1 << 30, 256),
            (5000, 24, 16 << 20, 139),
            (65_000, 24, 1 << 30, 43),
            (1 << 20, 24, 1 << 30, 16),
        ] {
            assert_eq!(batch_cells(parts, cell_memory, Budget::new(budget)), cells, "{parts} parts");
        }
    }

    #[test]
    fn claimed_cells_are_counted_as_far_as_numbers_go() {
        let task = MergeTask { parts: vec![(0, 0..u64::MAX), (1, 0..9)], kind: MergeKind::Newest };
        assert_eq!(task.cells(), u64::MAX);
    }
}
