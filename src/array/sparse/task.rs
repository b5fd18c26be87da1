//! One task of finding rows: some cells of some fragments to be merged, or some of one fragment to be gone through.

use std::ops::Range;

use super::distinct::distinct_rows;
use super::merge::{CellStream, merge};
use super::newest::Newest;
use super::rows::{InterleavedWriter, Segment};
use super::store::Store;
use super::stream::{CellBatch, FragmentSource, Stream, StreamBuffers};
use crate::error::Error;

/// Memory that the batches of one merge take together, about, where there are not very many of them.
const BATCH_MEMORY: u64 = 16 << 20;

/// Cells of a batch: enough that reading one is worth the while, and no more than the chunk of a tile has.
const BATCH_CELLS: Range<u64> = 256..16384;

/// The part of the cache's budget that the batches of very many fragments may take together. To stay within it their
/// batches have fewer cells than would be worth the while ...
const MANY_BATCHES: u64 = 16;

/// ... but not fewer than this.
const LEAST_OF_MANY: u64 = 16;

/// Cells of some fragments to be merged.
#[derive(Debug, Clone)]
pub struct MergeTask {
    /// Numbers of the fragments, and positions.
    pub parts: Vec<(usize, Range<u64>)>,
    /// Whether cells are compared. Without, there is one part and every cell stands for itself.
    pub compares: bool,
    /// Whether cells are merged as they come, though not all are in the order of the array.
    pub accepts_disorder: bool,
}

/// Why a merge came to no end.
pub enum Halt {
    Failed(Error),
    /// A fragment's cells, here, are not in the order that everything was planned by.
    Disorder(String),
    /// Cells of the same place in that order, but of different coordinates, are in no order of their own.
    Ties,
}

/// What a merge gives, if it comes to an end.
pub type Merged<T> = std::result::Result<T, Halt>;

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Halt::Failed(error)
    }
}

impl MergeTask {
    /// Cells to be gone through; as many as can be counted where fragments claim more.
    pub fn cells(&self) -> u64 {
        let counts = self.parts.iter().map(|(_, positions)| positions.end - positions.start);
        counts.fold(0, u64::saturating_add)
    }

    /// Merges, telling `progress` about cells gone through.
    ///
    /// # Errors
    /// Any damage in the cells.
    pub fn run(&self, sources: &[FragmentSource<'_>], store: &Store, progress: impl Fn(u64) + Copy) -> Merged<Segment> {
        if !self.compares {
            return self.filter(sources, store, progress);
        }
        if !self.accepts_disorder {
            match self.merge_in_order(sources, store, progress) {
                Err(Halt::Ties) => {}
                done => return done,
            }
        }
        let fragments: Vec<usize> = self.parts.iter().map(|(number, _)| *number).collect();
        let streams = self.streams(sources, true, progress);
        let budget = sources.first().map_or(0, |source| source.array.context().budget());
        Ok(Segment::Scattered(distinct_rows(sources, &fragments, streams, budget, store)?))
    }

    fn merge_in_order(
        &self,
        sources: &[FragmentSource<'_>],
        store: &Store,
        progress: impl Fn(u64) + Copy,
    ) -> Merged<Segment> {
        let mut writer = InterleavedWriter::new(store, &self.starts());
        if let Some(source) = sources.first() {
            let mut newest = Newest::new(&mut writer, self.parts.iter().map(|(_, positions)| positions.start));
            merge(source.plan, self.streams(sources, false, progress), &mut newest)?;
            newest.finish()?;
        }
        Ok(Segment::Interleaved(writer.finish()?))
    }

    fn starts(&self) -> Vec<(u32, u64)> {
        self.parts.iter().map(|(number, positions)| (*number as u32, positions.start)).collect()
    }

    fn streams<'a, P: Fn(u64) + Copy>(
        &self,
        sources: &'a [FragmentSource<'_>],
        accepts_disorder: bool,
        progress: P,
    ) -> Vec<FragmentStream<'a, P>> {
        let Some(plan) = sources.first().map(|source| source.plan) else { return Vec::new() };
        let cell_memory = 8 * (plan.words() as u64 + 2) + if plan.is_exact() { 0 } else { 64 };
        let budget = sources.first().map_or(0, |source| source.array.context().budget() as u64);
        let batch_cells = batch_cells(self.parts.len() as u64, cell_memory, budget);
        let streams = self.parts.iter().map(|(number, positions)| FragmentStream {
            stream: Stream::new(&sources[*number], positions.clone(), batch_cells, true),
            accepts_disorder,
            progress,
        });
        streams.collect()
    }

    /// Goes through the cells of one fragment, of which none replaces another.
    fn filter(&self, sources: &[FragmentSource<'_>], store: &Store, progress: impl Fn(u64)) -> Merged<Segment> {
        let mut writer = InterleavedWriter::new(store, &self.starts());
        let (mut batch, mut buffers) = (CellBatch::default(), StreamBuffers::default());
        for (part, (number, positions)) in self.parts.iter().enumerate() {
            let mut stream = Stream::new(&sources[*number], positions.clone(), BATCH_CELLS.end, false);
            while stream.read(&mut batch, &mut buffers)? {
                for cell in 0..batch.count {
                    writer.push(part, batch.visibility.is_present(cell) && batch.visibility.is_shown(cell))?;
                }
                progress(batch.count as u64);
            }
        }
        Ok(Segment::Interleaved(writer.finish()?))
    }
}

/// Cells of each batch, where so many parts are merged whose cells take so many bytes.
fn batch_cells(parts: u64, cell_memory: u64, budget: u64) -> u64 {
    let cells_of = |memory: u64| memory / (cell_memory * parts).max(1);
    let most = cells_of(BATCH_MEMORY.max(budget / MANY_BATCHES)).max(LEAST_OF_MANY);
    cells_of(BATCH_MEMORY).clamp(BATCH_CELLS.start, BATCH_CELLS.end).min(most)
}

/// The cells of a fragment, in the order that the merge was planned by.
struct FragmentStream<'a, P> {
    stream: Stream<'a>,
    accepts_disorder: bool,
    progress: P,
}

impl<P: Fn(u64)> CellStream for FragmentStream<'_, P> {
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
            assert_eq!(batch_cells(parts, cell_memory, budget), cells, "{parts} parts");
        }
    }

    #[test]
    fn claimed_cells_are_counted_as_far_as_numbers_go() {
        let task = MergeTask { parts: vec![(0, 0..u64::MAX), (1, 0..9)], compares: true, accepts_disorder: false };
        assert_eq!(task.cells(), u64::MAX);
    }
}
