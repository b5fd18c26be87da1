//! Merges the cells of fragments into one order.
//!
//! Each fragment's cells are in order already, so the merge always takes the least of the fragments' next cells. A
//! tournament tree finds it, and only the winner's matches are replayed. A [`CellSink`] determines which of several
//! cells with the same coordinates is a row.

use std::cmp::Ordering;

use tilefs_base::error::Error;

use crate::array::order::key::{AxisColumn, KeyPlan};
use crate::array::sparse::select::stream::{CellBatch, StreamBuffers};

/// Why a merge stopped early.
pub enum Halt {
    Failed(Error),
    /// At this place, a fragment's cells are not in the order that the plan assumes.
    Disorder(String),
    /// Cells with the same place in that order, but different coordinates, are in no defined order among themselves.
    Ties,
    /// The merge has the rows that were wanted.
    Enough,
    /// The cell at this position of an input's fragment has the coordinates of another fragment's cell, although the
    /// boxes of the tiles exclude that.
    Repetition {
        input: usize,
        position: u64,
    },
}

/// The result of a merge, or why it stopped early.
pub type Merged<T> = std::result::Result<T, Halt>;

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Halt::Failed(error)
    }
}

/// The cells of one fragment in order.
pub trait CellStream {
    /// Reads the next cells; returns `false` at the end.
    fn read(&mut self, batch: &mut CellBatch, buffers: &mut StreamBuffers) -> Merged<bool>;

    /// Returns the time of cells that have no time of their own.
    fn time(&self) -> u64;

    /// Returns the rank of the fragment's cells among cells of the same time: the highest rank is the newest.
    fn age(&self) -> usize;

    /// Returns whether the fragment's cells have times of their own, so that one cell can replace another.
    fn has_versions(&self) -> bool;
}

/// A receiver of the cells of a merge, in order.
pub trait CellSink {
    /// Receives the next cell of input `number`. `is_same` tells whether it has the coordinates of the previous cell.
    fn take<S: CellStream>(&mut self, number: usize, input: &MergeInput<S>, is_same: bool) -> Merged<()>;
}

/// Passes all present cells to `sink`, the cells of each input in their order.
///
/// # Errors
/// Those of the streams and of `sink`; [`Error::Unsupported`] for keys of too many words.
pub fn merge<S: CellStream, K: CellSink>(plan: &KeyPlan, streams: Vec<S>, sink: &mut K) -> Merged<()> {
    macro_rules! with_words {
        ($is_exact:literal: $($words:literal),*) => {
            match plan.words() {
                $(0..=$words => Merge::<S, K, $words, $is_exact>::run(plan, streams, sink),)*
                words => Err(Error::unsupported(format!("merging by keys of {words} words")).into()),
            }
        };
    }
    // The code is compiled for each number of words listed here. Long keys, and slow ones with strings, share copies.
    match plan.is_exact() {
        true => with_words!(true: 1, 2, 3, 4, 8, 16, 32),
        false => with_words!(false: 1, 2, 4, 8, 32),
    }
}

/// One fragment in a merge, at its next cell.
pub struct MergeInput<S> {
    pub stream: S,
    pub batch: CellBatch,
    /// The index of the next cell in the batch.
    pub cell: usize,
    /// The time of the next cell.
    time: u64,
    is_done: bool,
}

impl<S: CellStream> MergeInput<S> {
    /// Returns the position of the next cell in the fragment.
    #[inline]
    pub fn position(&self) -> u64 {
        self.batch.position + self.cell as u64
    }

    /// Returns the age of the next cell: of cells with the same coordinates, the one with the largest value is the
    /// newest.
    #[inline]
    pub fn age(&self) -> (u64, usize) {
        (self.time, self.stream.age())
    }

    /// Returns whether the next cell is a row if it is the newest of its coordinates.
    #[inline]
    pub fn is_shown(&self) -> bool {
        self.batch.visibility.is_shown(self.cell)
    }
}

/// The coordinates of the previous cell.
struct PreviousCell<const WORDS: usize> {
    key: [u64; WORDS],
    /// The strings that do not fit in the key.
    columns: Vec<AxisColumn>,
}

/// Compares keys; without branches if they have one or two words.
#[inline(always)]
fn is_less<const WORDS: usize>(a: &[u64; WORDS], b: &[u64; WORDS]) -> bool {
    let pair = |key: &[u64; WORDS]| u128::from(key[0]) << 64 | u128::from(key[1 % WORDS]);
    match WORDS {
        1 => a[0] < b[0],
        2 => pair(a) < pair(b),
        _ => a < b,
    }
}

struct Merge<'a, S, K, const WORDS: usize, const EXACT: bool> {
    plan: &'a KeyPlan,
    inputs: Vec<MergeInput<S>>,
    /// The key of each input's next cell.
    heads: Vec<[u64; WORDS]>,
    /// The losers of the matches at the inner nodes of the tournament. Node 1 is the final. At node n, the winners of
    /// nodes 2n and 2n + 1 play. Input p enters at node p + number of inputs.
    losers: Vec<u32>,
    buffers: StreamBuffers,
    sink: &'a mut K,
}

impl<'a, S: CellStream, K: CellSink, const WORDS: usize, const EXACT: bool> Merge<'a, S, K, WORDS, EXACT> {
    fn run(plan: &'a KeyPlan, streams: Vec<S>, sink: &'a mut K) -> Merged<()> {
        let count = streams.len();
        let inputs = streams.into_iter().map(|stream| MergeInput {
            stream,
            batch: CellBatch::default(),
            cell: 0,
            time: 0,
            is_done: false,
        });
        let mut merge: Merge<'a, S, K, WORDS, EXACT> = Merge {
            plan,
            inputs: inputs.collect(),
            heads: vec![[0; WORDS]; count],
            losers: vec![0; count.max(1)],
            buffers: StreamBuffers::default(),
            sink,
        };
        merge.play()
    }

    fn play(&mut self) -> Merged<()> {
        for input in 0..self.inputs.len() {
            self.fill(input)?;
            self.settle(input)?;
        }
        let Some(mut winner) = self.first_round() else { return Ok(()) };
        let mut before: Option<PreviousCell<WORDS>> = None;
        while !self.inputs[winner].is_done {
            let is_same = before.as_ref().is_some_and(|before| self.is_same(winner, before));
            self.sink.take(winner, &self.inputs[winner], is_same)?;
            if !is_same {
                self.remember(winner, &mut before);
            }
            self.advance(winner)?;
            winner = self.replay(winner);
        }
        Ok(())
    }

    /// Plays all matches, and returns the winner of the final.
    fn first_round(&mut self) -> Option<usize> {
        let count = self.inputs.len();
        let mut winners = vec![0u32; 2 * count];
        for (input, winner) in winners[count..].iter_mut().enumerate() {
            *winner = input as u32;
        }
        for node in (1..count).rev() {
            let (a, b) = (winners[2 * node], winners[2 * node + 1]);
            let (winner, loser) = if self.is_before(b as usize, a as usize) { (b, a) } else { (a, b) };
            winners[node] = winner;
            self.losers[node] = loser;
        }
        (count > 0).then(|| winners[1] as usize)
    }

    /// Replays the matches of an input whose next cell has changed, and returns the winner of the final.
    #[inline]
    fn replay(&mut self, input: usize) -> usize {
        let mut winner = input;
        let mut node = (input + self.inputs.len()) / 2;
        if !EXACT {
            while node > 0 {
                let other = self.losers[node] as usize;
                if self.is_before(other, winner) {
                    self.losers[node] = winner as u32;
                    winner = other;
                }
                node /= 2;
            }
            return winner;
        }
        // The winner is as unpredictable as a random number, so selecting without branches is several times faster.
        let mut key = self.heads[input];
        while node > 0 {
            let other = self.losers[node] as usize;
            let other_key = self.heads[other];
            let mut swaps = is_less(&other_key, &key);
            if other_key == key {
                swaps = self.is_newer(other, winner);
            }
            self.losers[node] = if swaps { winner } else { other } as u32;
            winner = if swaps { other } else { winner };
            key = if swaps { other_key } else { key };
            node /= 2;
        }
        winner
    }

    /// Returns whether the next cell of `a` comes before that of `b`.
    fn is_before(&self, a: usize, b: usize) -> bool {
        let order = if EXACT { self.heads[a].cmp(&self.heads[b]) } else { self.compare_texts(a, b) };
        match order {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => self.is_newer(a, b),
        }
    }

    fn compare_texts(&self, a: usize, b: usize) -> Ordering {
        let (x, y) = (&self.inputs[a], &self.inputs[b]);
        if x.is_done || y.is_done {
            return x.is_done.cmp(&y.is_done);
        }
        let plan = self.plan;
        plan.compare(&self.heads[a], &self.heads[b]).unwrap_or_else(|dimension| {
            plan.compare_behind(dimension, (&x.batch.columns, x.cell), (&y.batch.columns, y.cell))
        })
    }

    /// Orders cells of the same place: the newer cell first, and at equal times the cell of the younger fragment.
    #[cold]
    fn is_newer(&self, a: usize, b: usize) -> bool {
        let (x, y) = (&self.inputs[a], &self.inputs[b]);
        if x.is_done || y.is_done {
            return !x.is_done;
        }
        x.age() > y.age()
    }

    /// Returns whether the next cell of an input has the coordinates of the previous cell.
    #[inline]
    fn is_same(&self, input: usize, before: &PreviousCell<WORDS>) -> bool {
        if self.heads[input] != before.key {
            return false;
        }
        let input = &self.inputs[input];
        let same_text =
            |(number, column): (usize, &AxisColumn)| column.text(0) == input.batch.columns[number].text(input.cell);
        EXACT || before.columns.iter().enumerate().all(same_text)
    }

    #[inline]
    fn remember(&self, input: usize, before: &mut Option<PreviousCell<WORDS>>) {
        let key = self.heads[input];
        let input = &self.inputs[input];
        match before {
            Some(before) if EXACT => before.key = key,
            Some(before) => {
                before.key = key;
                let columns = before.columns.iter_mut().zip(&input.batch.columns);
                columns.for_each(|(kept, column)| kept.set_only(column, input.cell));
            }
            None => {
                let columns = input.batch.columns.iter().map(|column| column.only(input.cell)).collect();
                *before = Some(PreviousCell { key, columns });
            }
        }
    }

    /// Advances an input to its next cell.
    #[inline]
    fn advance(&mut self, number: usize) -> Merged<()> {
        let input = &mut self.inputs[number];
        input.cell += 1;
        if input.cell == input.batch.count {
            self.fill(number)?;
        }
        self.settle(number)
    }

    /// Skips cells that were not present in the window of time, and loads the key of the first cell that was.
    #[inline]
    fn settle(&mut self, number: usize) -> Merged<()> {
        loop {
            let input = &mut self.inputs[number];
            if input.is_done {
                self.heads[number] = [u64::MAX; WORDS];
                return Ok(());
            }
            if input.batch.visibility.is_present(input.cell) {
                break;
            }
            input.cell += 1;
            if input.cell == input.batch.count {
                self.fill(number)?;
            }
        }
        let input = &mut self.inputs[number];
        if let Some(time) = input.batch.visibility.times.get(input.cell) {
            input.time = *time;
        }
        let words = self.plan.words();
        self.heads[number][..words].copy_from_slice(input.batch.key(input.cell, words));
        Ok(())
    }

    /// Reads the next batch of an input.
    #[cold]
    fn fill(&mut self, number: usize) -> Merged<()> {
        let input = &mut self.inputs[number];
        input.is_done = !input.stream.read(&mut input.batch, &mut self.buffers)?;
        input.cell = 0;
        input.time = input.stream.time();
        Ok(())
    }
}
