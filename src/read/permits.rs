//! How many threads decode at once.

use std::sync::{Condvar, Mutex, PoisonError};

/// Permits to decode. Whoever has one does not wait for anything, so that each comes back soon.
pub struct Permits {
    free: Mutex<usize>,
    returned: Condvar,
}

/// A permit, given back when it is dropped.
pub struct Permit<'a> {
    permits: &'a Permits,
}

impl Permits {
    /// At least one.
    pub fn new(count: usize) -> Self {
        Permits { free: Mutex::new(count.max(1)), returned: Condvar::new() }
    }

    /// A permit, as soon as one is free.
    pub fn take(&self) -> Permit<'_> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            free = self.returned.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        Permit { permits: self }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.permits.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.permits.returned.notify_one();
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
        assert_eq!(*permits.free.lock().unwrap(), 3);
    }
}
