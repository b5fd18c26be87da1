//! Merges the cells of fragments into one order, and leaves one cell of those with the same coordinates.
//!
//! Each fragment's cells are in order already, so it is a matter of always taking the least of the
//! fragments' next cells: a tournament among them, in which only the winner's matches are played again.

use std::cmp::Ordering;
use std::ops::Range;

use super::key::AxisColumn;
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
        let Some(plan) = sources.first().map(|source| source.plan) else {
            return Ok(MixedWriter::new(store, &[]).finish()?);
        };
        if !self.compares {
            return self.filter(sources, store, progress);
        }
        macro_rules! with_words {
            ($($words:literal),*) => {
                match (plan.words(), plan.is_exact()) {
                    $((0..=$words, true) => Merge::<$words, true, _>::run(self, sources, store, progress),
                    (0..=$words, false) => Merge::<$words, false, _>::run(self, sources, store, progress),)*
                    (words, _) => Err(Error::unsupported(format!("merging by keys of {words} words")).into()),
                }
            };
        }
        with_words!(1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
    }

    /// Goes through the cells of one fragment, of which none replaces another.
    fn filter(&self, sources: &[FragmentSource<'_>], store: &Store, progress: impl Fn(u64)) -> Merged<MixedSegment> {
        let starts: Vec<(u32, u64)> = self.parts.iter().map(|(number, at)| (*number as u32, at.start)).collect();
        let mut writer = MixedWriter::new(store, &starts);
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
        Ok(writer.finish()?)
    }
}

/// One fragment in a merge, at its next cell.
struct Part<'a> {
    stream: Stream<'a>,
    batch: Batch,
    /// The next cell, in the batch.
    cell: usize,
    /// When the next cell was written.
    time: u64,
    is_done: bool,
}

/// The newest of the cells with certain coordinates, which the next ones are compared with.
struct Newest<const WORDS: usize> {
    key: [u64; WORDS],
    zeros: u64,
    /// Of strings that do not fit the key.
    columns: Vec<AxisColumn>,
}

struct Merge<'a, 'b, const WORDS: usize, const EXACT: bool, P> {
    parts: Vec<Part<'a>>,
    /// Keys of the parts' next cells.
    heads: Vec<[u64; WORDS]>,
    /// The losers of the matches at the inner nodes of the tournament: node 1 is the last match, and the players
    /// of node n are those of nodes 2n and 2n + 1, where part p plays at node p + number of parts.
    losers: Vec<u32>,
    buffers: StreamBuffers,
    writer: MixedWriter<'b>,
    accepts_disorder: bool,
    progress: P,
}

impl<'a, const WORDS: usize, const EXACT: bool, P: Fn(u64)> Merge<'a, '_, WORDS, EXACT, P> {
    fn run(task: &MergeTask, sources: &'a [FragmentSource<'a>], store: &Store, progress: P) -> Merged<MixedSegment> {
        let count = task.parts.len() as u64;
        let cell_memory = 8 * (WORDS + 2) as u64 + if EXACT { 0 } else { 64 };
        let batch_cells = BATCH_MEMORY / (cell_memory * count.max(1));
        let batch_cells = batch_cells.clamp(BATCH_CELLS.start, BATCH_CELLS.end);
        let parts = task.parts.iter().map(|(number, positions)| Part {
            stream: Stream::new(&sources[*number], positions.clone(), batch_cells, true),
            batch: Batch::default(),
            cell: 0,
            time: 0,
            is_done: false,
        });
        let starts: Vec<(u32, u64)> = task.parts.iter().map(|(number, at)| (*number as u32, at.start)).collect();
        let mut merge: Merge<'a, '_, WORDS, EXACT, P> = Merge {
            parts: parts.collect(),
            heads: vec![[0; WORDS]; starts.len()],
            losers: vec![0; starts.len().max(1)],
            buffers: StreamBuffers::default(),
            writer: MixedWriter::new(store, &starts),
            accepts_disorder: task.accepts_disorder,
            progress,
        };
        merge.play()?;
        Ok(merge.writer.finish()?)
    }

    fn play(&mut self) -> Merged<()> {
        for part in 0..self.parts.len() {
            self.fill(part)?;
            self.settle(part)?;
        }
        let Some(mut winner) = self.first_round() else { return Ok(()) };
        let mut newest: Option<Newest<WORDS>> = None;
        while !self.parts[winner].is_done {
            let is_old = newest.as_ref().is_some_and(|newest| self.is_same(winner, newest));
            let part = &self.parts[winner];
            self.writer.push(winner, !is_old && part.batch.marks.is_shown(part.cell))?;
            if !is_old {
                self.remember(winner, &mut newest);
            }
            self.advance(winner)?;
            winner = self.replay(winner);
        }
        Ok(())
    }

    /// Plays all matches once; the winner of the last.
    fn first_round(&mut self) -> Option<usize> {
        let count = self.parts.len();
        let mut winners = vec![0u32; 2 * count];
        for (part, winner) in winners[count..].iter_mut().enumerate() {
            *winner = part as u32;
        }
        for node in (1..count).rev() {
            let (a, b) = (winners[2 * node], winners[2 * node + 1]);
            let (winner, loser) = if self.is_before(b as usize, a as usize) { (b, a) } else { (a, b) };
            winners[node] = winner;
            self.losers[node] = loser;
        }
        (count > 0).then(|| winners[1] as usize)
    }

    /// Plays the matches of a part again, whose next cell is another one now; the winner of the last.
    #[inline]
    fn replay(&mut self, part: usize) -> usize {
        let mut winner = part;
        let mut node = (part + self.parts.len()) / 2;
        while node > 0 {
            let other = self.losers[node] as usize;
            if self.is_before(other, winner) {
                self.losers[node] = winner as u32;
                winner = other;
            }
            node /= 2;
        }
        winner
    }

    /// Whether the next cell of `a` comes before that of `b`.
    #[inline]
    fn is_before(&self, a: usize, b: usize) -> bool {
        let order = match EXACT {
            true => self.heads[a].cmp(&self.heads[b]),
            false => self.compare_texts(a, b),
        };
        match order {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => self.is_newer(a, b),
        }
    }

    fn compare_texts(&self, a: usize, b: usize) -> Ordering {
        let (x, y) = (&self.parts[a], &self.parts[b]);
        if x.is_done || y.is_done {
            return x.is_done.cmp(&y.is_done);
        }
        let plan = x.stream.source().plan;
        plan.compare(&self.heads[a], &self.heads[b]).unwrap_or_else(|dimension| {
            plan.compare_behind(dimension, (&x.batch.columns, x.cell), (&y.batch.columns, y.cell))
        })
    }

    /// Of cells in the same place the newest comes first, and of several fragments' the younger one's.
    #[cold]
    fn is_newer(&self, a: usize, b: usize) -> bool {
        let (x, y) = (&self.parts[a], &self.parts[b]);
        if x.is_done || y.is_done {
            return !x.is_done;
        }
        let age = |part: &Part<'_>| (part.time, part.stream.source().fragment);
        age(x) > age(y)
    }

    /// Whether the next cell of a part has the coordinates of one that is newer. There are two zeros.
    #[inline]
    fn is_same(&self, part: usize, newest: &Newest<WORDS>) -> bool {
        if self.heads[part] != newest.key {
            return false;
        }
        let part = &self.parts[part];
        let same_text =
            |(number, column): (usize, &AxisColumn)| column.text(0) == part.batch.columns[number].text(part.cell);
        part.batch.zeros(part.cell) == newest.zeros && (EXACT || newest.columns.iter().enumerate().all(same_text))
    }

    #[inline]
    fn remember(&self, part: usize, newest: &mut Option<Newest<WORDS>>) {
        let key = self.heads[part];
        let part = &self.parts[part];
        let zeros = part.batch.zeros(part.cell);
        match newest {
            Some(newest) if EXACT => (newest.key, newest.zeros) = (key, zeros),
            _ => {
                let columns = part.batch.columns.iter().map(|column| column.only(part.cell)).collect();
                *newest = Some(Newest { key, zeros, columns });
            }
        }
    }

    /// Moves a part to its next cell.
    #[inline]
    fn advance(&mut self, number: usize) -> Merged<()> {
        let part = &mut self.parts[number];
        part.cell += 1;
        if part.cell == part.batch.count {
            self.fill(number)?;
        }
        self.settle(number)
    }

    /// Drops cells that were not there in the window of time, and takes the key of the first that was.
    #[inline]
    fn settle(&mut self, number: usize) -> Merged<()> {
        loop {
            let part = &mut self.parts[number];
            if part.is_done {
                self.heads[number] = [u64::MAX; WORDS];
                return Ok(());
            }
            if part.batch.marks.is_present(part.cell) {
                break;
            }
            self.writer.push(number, false)?;
            part.cell += 1;
            if part.cell == part.batch.count {
                self.fill(number)?;
            }
        }
        let part = &mut self.parts[number];
        if let Some(time) = part.batch.marks.times.get(part.cell) {
            part.time = *time;
        }
        let words = part.stream.source().plan.words();
        self.heads[number][..words].copy_from_slice(part.batch.key(part.cell, words));
        Ok(())
    }

    /// Reads a part's next batch.
    #[cold]
    fn fill(&mut self, number: usize) -> Merged<()> {
        let part = &mut self.parts[number];
        (self.progress)(part.batch.count as u64);
        part.cell = 0;
        part.time = part.stream.source().time;
        part.is_done = !part.stream.read(&mut part.batch, &mut self.buffers)?;
        match part.stream.disorder() {
            Some(place) if !self.accepts_disorder => Err(Halt::Disorder(place.to_owned())),
            _ => Ok(()),
        }
    }
}
