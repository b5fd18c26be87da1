//! A value that is computed once, when it is first requested.

use std::sync::OnceLock;

use tilefs_format::error::{Error, Result};

use crate::threads::cancellation::{self, Turn};

/// A value that one thread computes while other callers wait. The value is kept, and so is an error about stored bytes.
/// Other errors are not kept: the next caller tries again. If the computing thread is cancelled, one of the waiting
/// threads computes the value.
pub struct Once<T> {
    known: OnceLock<Result<T>>,
    making: Turn,
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Once<T> {
    pub fn new() -> Self {
        Once { known: OnceLock::new(), making: Turn::new() }
    }

    /// Returns the value if it has been computed.
    pub fn get(&self) -> Option<&T> {
        self.known.get()?.as_ref().ok()
    }

    /// Returns the value, and computes it first if necessary.
    ///
    /// # Errors
    /// Those of `make`; [`Error::Cancelled`].
    pub fn get_or_make(&self, make: impl FnOnce() -> Result<T>) -> Result<&T> {
        if self.known.get().is_none() {
            let _alone = self.making.take()?;
            if self.known.get().is_none() {
                let made = make();
                // A cancelled computation may be incomplete.
                cancellation::check()?;
                match made {
                    Err(error) if error.is_passing() => return Err(error),
                    // No other thread can have set it, because this one holds the flight.
                    made => drop(self.known.set(made)),
                }
            }
        }
        match self.known.get() {
            Some(known) => known.as_ref().map_err(Clone::clone),
            None => Err(Error::internal("a computed value is missing")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    #[test]
    fn damage_is_kept_and_read_failures_are_retried() {
        let once = Once::new();
        assert!(once.get_or_make(|| Err::<u8, _>(Error::io(io::Error::other("gone")))).is_err());
        assert!(once.get().is_none());
        assert_eq!(*once.get_or_make(|| Ok(7)).unwrap(), 7);
        assert_eq!(*once.get_or_make(|| Ok(8)).unwrap(), 7);
        let once = Once::new();
        assert!(once.get_or_make(|| Err::<u8, _>(Error::damaged("bad"))).is_err());
        assert!(once.get_or_make(|| Ok(1)).is_err() && once.get().is_none());
    }

    #[test]
    fn concurrent_threads_compute_the_value_once() {
        let (once, made) = (Once::new(), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| *once.get_or_make(|| Ok(made.fetch_add(1, Ordering::Relaxed))).unwrap());
            }
        });
        assert_eq!(made.load(Ordering::Relaxed), 1);
    }
}
