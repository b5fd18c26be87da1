//! One task of finding rows: some cells of some fragments to be merged, or some of one fragment to be gone through.

use std::ops::Range;

use super::merge::{CellStream, merge};
use super::rows::{MixedSegment, MixedWriter};
use super::store::Store;
use super::stream::{Batch, FragmentSource, Stream, StreamBuffers};
use crate::error::Error;

/// Memory that the batches of one merge take together, about.
const BATCH_MEMORY: u64 = 16 << 20;

/// Cells of a batch: enough that reading one is worth the while, and no more than the chunk of a tile has.
const BATCH_CELLS: Range<u64> = 256..16384;

/// Cells of some fragments to be merged.
#[derive(Debug, Clone)]
pub struct MergeTask {
    /// Numbers of the fragments, and positions.
    pub parts: Vec<(usize, Range<u64>)>,
    /// Whether cells are compared. Without, there is one part and every cell stands for itself.
    pub compares: bool,
    /// Whether cells are merged as they come where a writer had other ideas of the order.
    pub accepts_disorder: bool,
}

/// Why a merge came to no end.
pub enum Halt {
    Failed(Error),
    /// A fragment's cells, here, are not in the order that everything was planned by.
    Disorder(String),
}

/// What a merge gives, if it comes to an end.
pub type Merged<T> = std::result::Result<T, Halt>;

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Halt::Failed(error)
    }
}

impl MergeTask {
    /// Cells to be gone through.
    pub fn cells(&self) -> u64 {
        self.parts.iter().map(|(_, positions)| positions.end - positions.start).sum()
    }

    /// Merges, telling `progress` about cells gone through.
    ///
    /// # Errors
    /// Any damage in the cells.
    pub fn run(
        &self,
        sources: &[FragmentSource<'_>],
        store: &Store,
        progress: impl Fn(u64) + Copy,
    ) -> Merged<MixedSegment> {
        let starts: Vec<(u32, u64)> = self.parts.iter().map(|(number, at)| (*number as u32, at.start)).collect();
        let mut writer = MixedWriter::new(store, &starts);
        let Some(plan) = sources.first().map(|source| source.plan) else { return Ok(writer.finish()?) };
        if !self.compares {
            self.filter(sources, &mut writer, progress)?;
            return Ok(writer.finish()?);
        }
        let cell_memory = 8 * (plan.words() as u64 + 2) + if plan.is_exact() { 0 } else { 64 };
        let batch_cells = BATCH_MEMORY / (cell_memory * self.parts.len().max(1) as u64);
        let batch_cells = batch_cells.clamp(BATCH_CELLS.start, BATCH_CELLS.end);
        let streams = self.parts.iter().map(|(number, positions)| FragmentStream {
            stream: Stream::new(&sources[*number], positions.clone(), batch_cells, true),
            accepts_disorder: self.accepts_disorder,
            progress,
        });
        merge(plan, streams.collect(), &mut writer)?;
        Ok(writer.finish()?)
    }

    /// Goes through the cells of one fragment, of which none replaces another.
    fn filter(
        &self,
        sources: &[FragmentSource<'_>],
        writer: &mut MixedWriter<'_>,
        progress: impl Fn(u64),
    ) -> Merged<()> {
        let (mut batch, mut buffers) = (Batch::default(), StreamBuffers::default());
        for (part, (number, positions)) in self.parts.iter().enumerate() {
            let mut stream = Stream::new(&sources[*number], positions.clone(), BATCH_CELLS.end, false);
            while stream.read(&mut batch, &mut buffers)? {
                for cell in 0..batch.count {
                    writer.push(part, batch.marks.is_present(cell) && batch.marks.is_shown(cell))?;
                }
                progress(batch.count as u64);
            }
        }
        Ok(())
    }
}

/// The cells of a fragment, in the order that the merge was planned by.
struct FragmentStream<'a, P> {
    stream: Stream<'a>,
    accepts_disorder: bool,
    progress: P,
}

impl<P: Fn(u64)> CellStream for FragmentStream<'_, P> {
    fn read(&mut self, batch: &mut Batch, buffers: &mut StreamBuffers) -> Merged<bool> {
        (self.progress)(batch.count as u64);
        let is_read = self.stream.read(batch, buffers)?;
        match self.stream.disorder() {
            Some(place) if !self.accepts_disorder => Err(Halt::Disorder(place.to_owned())),
            _ => Ok(is_read),
        }
    }

    fn time(&self) -> u64 {
        self.stream.source().time
    }

    fn age(&self) -> usize {
        self.stream.source().fragment
    }
}
