//! Limits concurrent decoding and its scratch memory, and counts decoded bytes.

use std::time::Instant;

use tilefs_base::statistics::{Counter, Statistic, Stopwatch, Value};
use tilefs_format::filter::Scratch;
use tilefs_threads::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A semaphore for decoding. Never block while holding a permit, so that each is returned soon.
///
/// Memory: one [`Scratch`] for each permit that was in use at the same time.
pub struct Permits {
    pool: Mutex<Pool>,
    returned: Condvar,
    decode_time: Stopwatch,
    stored_bytes: Counter,
    decoded_bytes: Counter,
}

struct Pool {
    permits: usize,
    /// Number of waiting threads. Notifying costs a system call even if there are none.
    waiting: usize,
    /// Scratch memory of returned permits, most recently used last. The kernel spreads one reader's requests over
    /// threads; the most recently used scratch is likely in a processor's cache, whichever thread used it.
    scratches: Vec<Scratch>,
}

/// A permit, returned on drop.
pub struct Permit<'a> {
    permits: &'a Permits,
    scratch: Scratch,
    since: Instant,
}

impl Permits {
    /// Creates `count` permits, but at least one.
    pub fn new(count: usize) -> Self {
        Permits {
            pool: Mutex::new(Pool { permits: count.max(1), waiting: 0, scratches: Vec::new() }),
            returned: Condvar::new(),
            decode_time: Stopwatch::default(),
            stored_bytes: Counter::default(),
            decoded_bytes: Counter::default(),
        }
    }

    /// Waits for a free permit.
    pub fn take(&self) -> Permit<'_> {
        let mut pool = self.pool();
        while pool.permits == 0 {
            pool.waiting += 1;
            pool = self.returned.wait(pool).unwrap_or_else(PoisonError::into_inner);
            pool.waiting -= 1;
        }
        pool.permits -= 1;
        let scratch = pool.scratches.pop();
        drop(pool);
        Permit { permits: self, scratch: scratch.unwrap_or_default(), since: Instant::now() }
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts decoded bytes and the stored bytes that they came from.
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
    /// Counts bytes decoded under this permit and the stored bytes that they came from.
    pub fn count(&self, stored: usize, decoded: u64) {
        self.permits.count(stored as u64, decoded);
    }

    /// Returns the scratch memory for decoding.
    pub fn scratch(&mut self) -> &mut Scratch {
        &mut self.scratch
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.permits.decode_time.add(self.since.elapsed());
        let mut pool = self.permits.pool();
        pool.permits += 1;
        pool.scratches.push(std::mem::take(&mut self.scratch));
        if pool.waiting > 0 {
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
    fn concurrency_is_bounded_by_the_permits() {
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
        let pool = permits.pool();
        assert_eq!((pool.permits, pool.waiting), (3, 0));
        assert!((2..=3).contains(&pool.scratches.len()), "as many as decoded at once: {}", pool.scratches.len());
        drop(pool);
        assert!(!permits.decode_time.get().is_zero());
    }
}
