//! How many threads decode at once, in what memory, and how much they have decoded.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tilefs_format::filter::Scratch;

use crate::statistics::{Counter, Statistic, Stopwatch, Value};

/// Permits to decode. Whoever has one does not wait for anything, so that each comes back soon.
///
/// Memory: a [`Scratch`] for each permit that was in use at the same time.
pub struct Permits {
    left: Mutex<Left>,
    returned: Condvar,
    decode_time: Stopwatch,
    stored_bytes: Counter,
    decoded_bytes: Counter,
}

struct Left {
    permits: usize,
    /// How many threads wait for one: to wake them is a system call, even where there are none.
    waiting: usize,
    /// Of the permits here, those that were in use. The kernel gives the requests of one reader to thread after thread;
    /// what was used last is in a processor's cache, whichever thread used it.
    scratches: Vec<Scratch>,
}

/// A permit, given back when it is dropped.
pub struct Permit<'a> {
    permits: &'a Permits,
    scratch: Scratch,
    since: Instant,
}

impl Permits {
    /// At least one.
    pub fn new(count: usize) -> Self {
        Permits {
            left: Mutex::new(Left { permits: count.max(1), waiting: 0, scratches: Vec::new() }),
            returned: Condvar::new(),
            decode_time: Stopwatch::default(),
            stored_bytes: Counter::default(),
            decoded_bytes: Counter::default(),
        }
    }

    /// A permit, as soon as one is free.
    pub fn take(&self) -> Permit<'_> {
        let mut left = self.left();
        while left.permits == 0 {
            left.waiting += 1;
            left = self.returned.wait(left).unwrap_or_else(PoisonError::into_inner);
            left.waiting -= 1;
        }
        left.permits -= 1;
        let scratch = left.scratches.pop();
        drop(left);
        Permit { permits: self, scratch: scratch.unwrap_or_default(), since: Instant::now() }
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts bytes that were decoded, and the stored ones that they came from.
    pub fn count(&self, stored: u64, decoded: u64) {
        self.stored_bytes.add(stored);
        self.decoded_bytes.add(decoded);
    }

    pub fn statistics(&self) -> Vec<Statistic> {
        let total = |name, help, counter: &Counter| Statistic::new(name, help, Value::Total(counter.get()));
        vec![
            total("stored_bytes", "Bytes of stored tiles and metadata that were decoded", &self.stored_bytes),
            total("decoded_bytes", "Bytes that these decoded to", &self.decoded_bytes),
            Statistic::new(
                "decode_seconds",
                "Time that all threads together spent decoding",
                Value::Time(self.decode_time.get()),
            ),
        ]
    }
}

impl Permit<'_> {
    /// Counts bytes that are decoded with it, and the stored ones that they come from.
    pub fn count(&self, stored: usize, decoded: u64) {
        self.permits.count(stored as u64, decoded);
    }

    /// What to decode in.
    pub fn scratch(&mut self) -> &mut Scratch {
        &mut self.scratch
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.permits.decode_time.add(self.since.elapsed());
        let mut left = self.permits.left();
        left.permits += 1;
        left.scratches.push(std::mem::take(&mut self.scratch));
        if left.waiting > 0 {
            self.permits.returned.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    #[test]
    fn no_more_work_than_may() {
        let permits = Permits::new(3);
        let (working, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..12 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let permit = permits.take();
                        most.fetch_max(working.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        thread::yield_now();
                        working.fetch_sub(1, Ordering::SeqCst);
                        drop(permit);
                    }
                });
            }
        });
        assert!((2..=3).contains(&most.load(Ordering::SeqCst)), "{most:?}");
        let left = permits.left();
        assert_eq!((left.permits, left.waiting), (3, 0));
        assert!((2..=3).contains(&left.scratches.len()), "as many as decoded at once: {}", left.scratches.len());
        drop(left);
        assert!(!permits.decode_time.get().is_zero());
    }
}
