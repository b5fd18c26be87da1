//! Cancellation of requests: whether anybody still waits for a thread's work.
//!
//! A [`Token`] stands for one request. The thread that serves a request runs [under](Token::cover) its token, and
//! helper threads run under the same one. Long work calls [`check`] repeatedly, at least once per batch, and ends with
//! [`Error::Cancelled`] once the token is cancelled. Work without a token, such as that of a command, is never
//! cancelled.
//!
//! The token is thread-local and not an argument of every function between a request and its innermost loop: a function
//! that forgot to pass it on would still compile, and could not be cancelled.

use std::cell::{Cell, RefCell};
use std::thread;
use std::time::{Duration, Instant};

use tilefs_base::error::{Error, Result};

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, thread_local};

/// Interval at which a waiting thread polls for the cancellation of its own request.
pub const POLL_INTERVAL: Duration = Duration::from_millis(50);

thread_local! {
    static CURRENT: RefCell<Option<Token>> = const { RefCell::new(None) };
}

// Not that of models: no thread sees the number of another one.
std::thread_local! {
    static CHECKS: Cell<u64> = const { Cell::new(0) };
}

/// Identifies a request in all threads that work for it.
#[derive(Debug, Clone, Default)]
pub struct Token(Arc<AtomicBool>);

impl Token {
    /// Creates the token of a new request.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels the request: work under this token ends soon.
    pub fn cancel(&self) {
        // Relaxed: no other memory depends on the flag.
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether the request was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Runs `work` under this token.
    pub fn cover<T>(&self, work: impl FnOnce() -> T) -> T {
        cover(Some(self.clone()), work)
    }
}

/// Returns the token of the current thread.
pub fn current() -> Option<Token> {
    CURRENT.with_borrow(Clone::clone)
}

/// Runs `work` under the given token, or under none.
pub fn cover<T>(token: Option<Token>, work: impl FnOnce() -> T) -> T {
    /// Restores the previous token, also after a panic.
    struct Restore(Option<Token>);

    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }

    let _restore = Restore(CURRENT.replace(token));
    work()
}

/// Returns whether the request that this thread works for was cancelled.
pub fn is_cancelled() -> bool {
    CURRENT.with_borrow(|token| token.as_ref().is_some_and(Token::is_cancelled))
}

/// Returns an error once the current request is cancelled. Costs about as much as reading a variable.
///
/// # Errors
/// [`Error::Cancelled`] if the request that this thread works for was cancelled.
pub fn check() -> Result<()> {
    CHECKS.set(CHECKS.get().wrapping_add(1));
    if is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
}

/// Returns how often this thread has called [`check`]. Tests take it for the number of steps of long work.
pub fn checks() -> u64 {
    CHECKS.get()
}

/// Waits until `condition` is notified, or for at most [`POLL_INTERVAL`] under a token. Call it in a loop that tests
/// the condition.
///
/// # Errors
/// [`Error::Cancelled`] as [`check`].
pub fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> Result<MutexGuard<'a, T>> {
    check()?;
    Ok(match current() {
        Some(_) => condition.wait_timeout(guard, POLL_INTERVAL).unwrap_or_else(PoisonError::into_inner).0,
        None => condition.wait(guard).unwrap_or_else(PoisonError::into_inner),
    })
}

/// Sleeps for `duration`.
///
/// # Errors
/// [`Error::Cancelled`] soon after the cancellation.
pub fn pause(duration: Duration) -> Result<()> {
    let deadline = Instant::now() + duration;
    loop {
        check()?;
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(if current().is_some() { left.min(POLL_INTERVAL) } else { left });
    }
}

/// A lock for long work: waiting for it can be cancelled. If a holder gives up, the next one continues the work.
#[derive(Debug, Default)]
pub struct Turn {
    state: Mutex<TurnState>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct TurnState {
    is_taken: bool,
    /// Number of waiting threads. Notifying costs a system call even if there are none.
    waiting: usize,
}

/// Holds the lock until it is dropped.
#[derive(Debug)]
pub struct Held<'a>(&'a Turn);

impl Turn {
    /// Creates a lock that nobody holds.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits until the lock is free and takes it.
    ///
    /// # Errors
    /// [`Error::Cancelled`] as [`check`].
    pub fn take(&self) -> Result<Held<'_>> {
        let mut state = self.lock();
        while state.is_taken {
            state.waiting += 1;
            state = match wait(&self.returned, state) {
                Ok(state) => state,
                Err(error) => {
                    // If this thread consumed a wake-up, it found the lock taken again since: that holder will notify.
                    self.lock().waiting -= 1;
                    return Err(error);
                }
            };
            state.waiting -= 1;
        }
        state.is_taken = true;
        Ok(Held(self))
    }

    fn lock(&self) -> MutexGuard<'_, TurnState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_taken = false;
        if state.waiting > 0 {
            self.0.returned.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn only_work_under_the_token_is_cancelled() {
        let (outer, inner) = (Token::new(), Token::new());
        assert!(check().is_ok());
        outer.cover(|| {
            inner.cancel();
            assert!(check().is_ok());
            inner.cover(|| assert!(matches!(check(), Err(Error::Cancelled))));
            assert!(cover(None, check).is_ok());
            assert!(check().is_ok());
            let panicked = catch_unwind(AssertUnwindSafe(|| inner.cover(|| panic!("on purpose"))));
            assert!(panicked.is_err() && check().is_ok(), "a panic takes its token with it");
            outer.cancel();
            assert!(check().is_err());
        });
        assert!(check().is_ok() && current().is_none());
    }

    #[test]
    fn waiting_for_a_turn_can_be_cancelled() {
        for cancelled in 0u32..32 {
            let (turn, within, done) = (Turn::new(), AtomicUsize::new(0), AtomicUsize::new(0));
            let tokens: Vec<Token> = (0..5).map(|_| Token::new()).collect();
            let held = turn.take().unwrap();
            thread::scope(|scope| {
                for (number, token) in tokens.iter().enumerate() {
                    let (turn, within, done) = (&turn, &within, &done);
                    scope.spawn(move || {
                        let outcome = token.cover(|| turn.take());
                        if outcome.is_ok() {
                            assert_eq!(within.fetch_add(1, Ordering::SeqCst), 0, "one at a time");
                            within.fetch_sub(1, Ordering::SeqCst);
                            done.fetch_add(1, Ordering::SeqCst);
                        } else {
                            assert!(cancelled >> number & 1 == 1, "who was not cancelled gets its turn");
                        }
                    });
                }
                (0..5).filter(|number| cancelled >> number & 1 == 1).for_each(|number| tokens[number].cancel());
                drop(held);
            });
            assert!(done.load(Ordering::SeqCst) >= 5 - cancelled.count_ones() as usize);
        }
    }

    #[test]
    fn a_cancelled_wait_ends_soon() {
        let (turn, token) = (Turn::new(), Token::new());
        let _held = turn.take().unwrap();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| token.cover(|| turn.take().is_err()));
            thread::sleep(Duration::from_millis(20));
            assert!(!waiting.is_finished());
            let start = Instant::now();
            token.cancel();
            assert!(waiting.join().unwrap());
            assert!(start.elapsed() < Duration::from_millis(900), "{:?}", start.elapsed());
        });
    }
}
