//! The shared prefetch queue, ordered by how soon each reader needs its range.

use std::ops::Range;
use std::time::Duration;

use tilefs_threads::sync::atomic::Ordering;
use tilefs_threads::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::reader::Reader;

/// Maximum number of queued ranges of all readers.
const MOST_WAITING: usize = 1024;

/// A range is urgent if its reader is this many bytes away from it.
const URGENT: u64 = 2 << 20;

/// Queued ranges, and the workers that wait for them.
#[derive(Default)]
pub struct Queue {
    state: Mutex<QueueState>,
    added: Condvar,
    /// Notified for the spare worker when a range becomes urgent.
    is_urgent: Condvar,
    ended: Condvar,
}

#[derive(Default)]
struct QueueState {
    waiting: Vec<PrefetchJob>,
    workers: usize,
    idle_spares: usize,
    is_closed: bool,
}

/// A range to prefetch for a reader.
pub struct PrefetchJob {
    pub reader: Arc<Reader>,
    pub range: Range<u64>,
    /// Generation of the reader's expectations; jobs of an earlier one are obsolete.
    generation: u64,
    /// Value of the reader's `served` when it reaches this range.
    due: u64,
}

impl PrefetchJob {
    /// Returns how many bytes the reader will read before it needs this range.
    fn slack(&self) -> u64 {
        self.due.saturating_sub(self.reader.served.load(Ordering::Relaxed))
    }

    /// Returns whether the range is neither obsolete nor already passed by the reader.
    pub fn is_wanted(&self) -> bool {
        let is_passed = self.reader.served.load(Ordering::Relaxed) >= self.due + (self.range.end - self.range.start);
        !is_passed && self.reader.generation.load(Ordering::Relaxed) == self.generation
    }
}

impl Queue {
    /// Queues ranges for a reader, next first; drops those that exceed the limit.
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
            state.waiting.push(PrefetchJob { reader: Arc::clone(reader), range, generation, due });
            due = due.saturating_add(length);
        }
        self.wake_spare(&state);
        drop(state);
        self.added.notify_all();
    }

    /// Must be called after a reader advanced, because a range may have become urgent.
    pub fn reader_advanced(&self) {
        self.wake_spare(&self.lock());
    }

    #[track_caller]
    fn wake_spare(&self, state: &QueueState) {
        if state.idle_spares > 0 && state.waiting.iter().any(|job| job.slack() < URGENT) {
            self.is_urgent.notify_all();
        }
    }

    /// Removes all queued ranges of a reader.
    pub fn remove_reader(&self, reader: &Arc<Reader>) {
        self.lock().waiting.retain(|job| !Arc::ptr_eq(&job.reader, reader));
    }

    /// Waits for the job with the least slack. The spare worker takes only urgent ones. Returns `None` when the queue
    /// is closed.
    pub fn next(&self, is_spare: bool) -> Option<PrefetchJob> {
        let mut state = self.lock();
        loop {
            if state.is_closed {
                return None;
            }
            let first = (0..state.waiting.len()).min_by_key(|&number| state.waiting[number].slack());
            if let Some(number) = first.filter(|&number| !is_spare || state.waiting[number].slack() < URGENT) {
                return Some(state.waiting.swap_remove(number));
            }
            let changed = if is_spare { &self.is_urgent } else { &self.added };
            state.idle_spares += usize::from(is_spare);
            state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle_spares -= usize::from(is_spare);
        }
    }

    /// Registers a worker.
    pub fn begin(&self) {
        self.lock().workers += 1;
    }

    /// Unregisters a worker.
    pub fn end(&self) {
        self.lock().workers -= 1;
        self.ended.notify_all();
    }

    /// Clears the queue and stops the workers; waits for them up to `timeout`.
    pub fn close(&self, timeout: Duration) {
        let mut state = self.lock();
        state.is_closed = true;
        state.waiting.clear();
        self.added.notify_all();
        self.is_urgent.notify_all();
        drop(self.ended.wait_timeout_while(state, timeout, |state| state.workers > 0));
    }

    /// Returns the number of queued ranges.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
