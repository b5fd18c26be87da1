//! Values that are computed once, when they are first requested.

use std::sync::OnceLock;

use tilefs_format::error::{Error, Result};

use crate::threads::cancellation::{self, Turn};

/// A value that one thread computes while other callers wait. If the computing thread fails or is cancelled, one of the
/// waiting threads computes the value.
pub struct SingleFlight<T> {
    known: OnceLock<Result<T>>,
    making: Turn,
}

impl<T> Default for SingleFlight<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> From<T> for SingleFlight<T> {
    fn from(value: T) -> Self {
        SingleFlight { known: Ok(value).into(), making: Turn::new() }
    }
}

impl<T> SingleFlight<T> {
    /// Creates a value that is not known yet.
    pub fn new() -> Self {
        SingleFlight { known: OnceLock::new(), making: Turn::new() }
    }

    /// Returns the value if it has been computed.
    pub fn get(&self) -> Option<&T> {
        self.known.get()?.as_ref().ok()
    }

    /// Returns the value, and computes it first if necessary. Errors in stored bytes are kept like a value; failures to
    /// read them are not, and the next caller tries again.
    ///
    /// # Errors
    /// Those of `make`; [`Error::Cancelled`].
    pub fn get_or_make(&self, make: impl FnOnce() -> Result<T>) -> Result<&T> {
        self.get_or(make, |error| !error.is_passing())
    }

    /// As [`SingleFlight::get_or_make`], but keeps no error, for values whose cause of failure may be repaired.
    ///
    /// # Errors
    /// Those of `make`; [`Error::Cancelled`].
    pub fn get_or_retry(&self, make: impl FnOnce() -> Result<T>) -> Result<&T> {
        self.get_or(make, |_| false)
    }

    fn get_or(&self, make: impl FnOnce() -> Result<T>, is_kept: impl FnOnce(&Error) -> bool) -> Result<&T> {
        if self.known.get().is_none() {
            let _alone = self.making.take()?;
            if self.known.get().is_none() {
                let made = make();
                // A cancelled computation may be incomplete.
                cancellation::check()?;
                match made {
                    Err(error) if !is_kept(&error) => return Err(error),
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

impl<T: Clone> SingleFlight<T> {
    /// Returns the value, computed now unless one is kept. `make` also returns whether to keep its value; otherwise
    /// each caller computes the value again. No error is kept.
    ///
    /// # Errors
    /// Those of `make`; [`Error::Cancelled`].
    pub fn get_or_pass(&self, make: impl FnOnce() -> Result<(T, bool)>) -> Result<T> {
        if let Some(known) = self.get() {
            return Ok(known.clone());
        }
        let _alone = self.making.take()?;
        if let Some(known) = self.get() {
            return Ok(known.clone());
        }
        let (value, is_kept) = make()?;
        cancellation::check()?;
        if is_kept {
            let _ = self.known.set(Ok(value.clone()));
        }
        Ok(value)
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
        let once = SingleFlight::new();
        assert!(once.get_or_make(|| Err::<u8, _>(Error::io(io::Error::other("gone")))).is_err());
        assert!(once.get().is_none());
        assert_eq!(*once.get_or_make(|| Ok(7)).unwrap(), 7);
        assert_eq!(*once.get_or_make(|| Ok(8)).unwrap(), 7);
        let once = SingleFlight::new();
        assert!(once.get_or_make(|| Err::<u8, _>(Error::damaged("bad"))).is_err());
        assert!(once.get_or_make(|| Ok(1)).is_err() && once.get().is_none());
    }

    #[test]
    fn retried_errors_are_not_kept() {
        let once = SingleFlight::new();
        assert!(once.get_or_retry(|| Err::<u8, _>(Error::damaged("bad"))).is_err());
        assert_eq!(*once.get_or_retry(|| Ok(1)).unwrap(), 1);
        assert_eq!(*once.get_or_retry(|| Ok(2)).unwrap(), 1);
        assert_eq!(SingleFlight::from(3).get(), Some(&3));
    }

    #[test]
    fn passing_values_are_computed_again() {
        let once = SingleFlight::new();
        let values = [(1, false), (2, false), (3, true), (4, true)].map(|made| once.get_or_pass(|| Ok(made)).unwrap());
        assert_eq!((values, once.get()), ([1, 2, 3, 3], Some(&3)));
    }

    #[test]
    fn concurrent_threads_compute_the_value_once() {
        let (once, made) = (SingleFlight::new(), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| *once.get_or_make(|| Ok(made.fetch_add(1, Ordering::Relaxed))).unwrap());
            }
        });
        assert_eq!(made.load(Ordering::Relaxed), 1);
    }
}
