//! Values that are computed once, when they are first requested.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tilefs_base::error::{Error, Result};

use crate::cancellation::{self, Turn};

/// An error in stored bytes is kept at least for this time, so that the readers of one moment get it at once.
const LEAST_KEPT: Duration = Duration::from_secs(1);

/// An error is kept for this many times as long as it took to find it, so that looking for it again and again costs a
/// tenth of the time at most.
const KEPT_TIMES: u32 = 10;

/// A value that one thread computes while other callers wait. If the computing thread fails or is cancelled, one of the
/// waiting threads computes the value.
pub struct SingleFlight<T> {
    known: OnceLock<T>,
    damage: Mutex<Option<Box<KeptError>>>,
    making: Turn,
}

/// An error in stored bytes, and when to look at them again: they may be restored.
struct KeptError {
    error: Error,
    until: Option<Instant>,
}

impl<T> Default for SingleFlight<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> From<T> for SingleFlight<T> {
    fn from(value: T) -> Self {
        SingleFlight { known: value.into(), ..Self::new() }
    }
}

impl<T> SingleFlight<T> {
    /// Creates a value that is not known yet.
    pub fn new() -> Self {
        SingleFlight { known: OnceLock::new(), damage: Mutex::new(None), making: Turn::new() }
    }

    /// Returns the value if it has been computed.
    pub fn get(&self) -> Option<&T> {
        self.known.get()
    }

    /// Returns the value, and computes it first if necessary. Errors in stored bytes are kept for a while, at least ten
    /// times as long as it took to find them; failures to read them are not, and the next caller tries again.
    ///
    /// # Errors
    /// Those of `make`; [`Error::Cancelled`].
    pub fn get_or_make(&self, make: impl FnOnce() -> Result<T>) -> Result<&T> {
        self.get_or(make, |error| !error.is_transient())
    }

    /// As [`SingleFlight::get_or_make`], but keeps no error, for values whose cause of failure may be repaired.
    ///
    /// # Errors
    /// Those of `make`; [`Error::Cancelled`].
    pub fn get_or_retry(&self, make: impl FnOnce() -> Result<T>) -> Result<&T> {
        self.get_or(make, |_| false)
    }

    fn get_or(&self, make: impl FnOnce() -> Result<T>, is_kept: impl FnOnce(&Error) -> bool) -> Result<&T> {
        if let Some(known) = self.get() {
            return Ok(known);
        }
        let _alone = self.making.take()?;
        if let Some(known) = self.get() {
            return Ok(known);
        }
        let begin = Instant::now();
        if let Some(error) = self.kept_error(begin) {
            return Err(error);
        }
        let made = make();
        // A cancelled computation may be incomplete.
        cancellation::check()?;
        match made {
            // No other thread can have set it, because this one holds the flight.
            Ok(value) => Ok(self.known.get_or_init(|| value)),
            Err(error) => {
                if is_kept(&error) {
                    self.keep_error(&error, begin.elapsed());
                }
                Err(error)
            }
        }
    }

    /// Returns the error that is kept at a time.
    fn kept_error(&self, now: Instant) -> Option<Error> {
        let damage = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = damage.as_ref().filter(|kept| kept.until.is_none_or(|until| now < until));
        kept.map(|kept| kept.error.clone())
    }

    /// Keeps an error that took this long to find.
    fn keep_error(&self, error: &Error, took: Duration) {
        let until = Instant::now().checked_add(took.saturating_mul(KEPT_TIMES).max(LEAST_KEPT));
        let kept = KeptError { error: error.clone(), until };
        *self.damage.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(kept));
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
            let _ = self.known.set(value.clone());
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
    fn damage_is_kept_for_a_while_and_read_failures_are_retried() {
        let once = SingleFlight::new();
        assert!(once.get_or_make(|| Err::<u8, _>(Error::io(io::Error::other("gone")))).is_err());
        assert!(once.get().is_none());
        assert_eq!(*once.get_or_make(|| Ok(7)).unwrap(), 7);
        assert_eq!(*once.get_or_make(|| Ok(8)).unwrap(), 7);
        let once = SingleFlight::new();
        let begin = Instant::now();
        assert!(once.get_or_make(|| Err::<u8, _>(Error::damaged("bad"))).is_err());
        assert!(once.kept_error(begin).is_some() && once.get().is_none());
        assert!(once.kept_error(begin + Duration::from_secs(3600)).is_none());
        // An hour of looking for it is not repeated soon.
        once.keep_error(&Error::damaged("bad"), Duration::from_secs(3600));
        assert!(once.kept_error(begin + 5 * Duration::from_secs(3600)).is_some());
        assert!(once.get_or_make(|| Ok(1)).is_err());
        once.keep_error(&Error::damaged("bad"), Duration::ZERO);
        while once.kept_error(Instant::now()).is_some() {
            thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(*once.get_or_make(|| Ok(1)).unwrap(), 1);
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
    fn transient_values_are_computed_again() {
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
