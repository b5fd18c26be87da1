//! What is to be read ahead, for all readers: who waits first is served first.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Reader;

/// How many ranges may wait, of all readers together.
const MOST_WAITING: usize = 1024;

/// A range whose reader is this close to it will be late.
const URGENT: u64 = 2 << 20;

/// Ranges that wait to be read, and the workers that wait for them.
#[derive(Default)]
pub struct Queue {
    state: Mutex<State>,
    added: Condvar,
    /// What a worker waits for that rests.
    is_urgent: Condvar,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<Job>,
    workers: usize,
    resting: usize,
    is_closed: bool,
}

/// A range that a reader will want.
pub struct Job {
    pub reader: Arc<Reader>,
    pub range: Range<u64>,
    /// Of the reader's expectations; those of an earlier one are not wanted any more.
    generation: u64,
    /// How many bytes the reader has read when it comes to this range.
    due: u64,
}

impl Job {
    /// Bytes that the reader reads before it wants this.
    fn slack(&self) -> u64 {
        self.due.saturating_sub(self.reader.served.load(Ordering::Relaxed))
    }

    /// Whether the reader still wants it and has not passed it.
    pub fn is_wanted(&self) -> bool {
        let is_passed = self.reader.served.load(Ordering::Relaxed) >= self.due + (self.range.end - self.range.start);
        !is_passed && self.reader.generation.load(Ordering::Relaxed) == self.generation
    }
}

impl Queue {
    /// Adds ranges that a reader expects to read, next first; those for which there is no room are left out.
    pub fn add(&self, reader: &Arc<Reader>, ranges: Vec<Range<u64>>) {
        let mut due = reader.served.load(Ordering::Relaxed);
        due = due.saturating_add(reader.bytes_before(&ranges));
        let generation = reader.generation.load(Ordering::Relaxed);
        let mut state = self.lock();
        for range in ranges {
            if state.waiting.len() >= MOST_WAITING {
                break;
            }
            let length = range.end - range.start;
            state.waiting.push(Job { reader: Arc::clone(reader), range, generation, due });
            due = due.saturating_add(length);
        }
        self.wake_resting(&state);
        drop(state);
        self.added.notify_all();
    }

    /// To be called when a reader has come further: something may have become urgent.
    pub fn look(&self) {
        self.wake_resting(&self.lock());
    }

    fn wake_resting(&self, state: &State) {
        if state.resting > 0 && state.waiting.iter().any(|job| job.slack() < URGENT) {
            self.is_urgent.notify_all();
        }
    }

    /// Drops all that waits for a reader.
    pub fn drop_all_of(&self, reader: &Arc<Reader>) {
        self.lock().waiting.retain(|job| !Arc::ptr_eq(&job.reader, reader));
    }

    /// The job whose reader comes first; waits for one. A worker that `rests` takes only what is urgent. `None` where the
    /// queue was closed.
    pub fn next(&self, rests: bool) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if state.is_closed {
                return None;
            }
            let first = (0..state.waiting.len()).min_by_key(|&number| state.waiting[number].slack());
            if let Some(number) = first.filter(|&number| !rests || state.waiting[number].slack() < URGENT) {
                return Some(state.waiting.swap_remove(number));
            }
            let changed = if rests { &self.is_urgent } else { &self.added };
            state.resting += usize::from(rests);
            state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.resting -= usize::from(rests);
        }
    }

    /// Counts a worker in.
    pub fn begin(&self) {
        self.lock().workers += 1;
    }

    /// Counts a worker out.
    pub fn end(&self) {
        self.lock().workers -= 1;
        self.ended.notify_all();
    }

    /// Drops all that waits and has the workers end; waits for them, for a while.
    pub fn close(&self, patience: Duration) {
        let mut state = self.lock();
        state.is_closed = true;
        state.waiting.clear();
        self.added.notify_all();
        self.is_urgent.notify_all();
        drop(self.ended.wait_timeout_while(state, patience, |state| state.workers > 0));
    }

    /// How many ranges wait.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
