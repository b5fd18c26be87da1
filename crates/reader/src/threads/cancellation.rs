//! Whether anybody still waits for what a thread does: the cancellation of a request.
//!
//! A [`Token`] stands for one request. Whoever serves a request does so [under](Token::cover) its token, and threads that
//! help it do so under the same one. Work that can take long calls [`check`] again and again, at least once a batch, and
//! ends with [`Error::Cancelled`] where the token was cancelled. Work under no token, such as that of a command,
//! is never cancelled.
//!
//! The token belongs to the thread and is no argument of every function between a request and its innermost loop:
//! a function that forgot to pass it on would compile, and would not end.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tilefs_format::error::{Error, Result};

/// How often a thread that waits for another one looks whether its own request was cancelled.
pub const LOOK: Duration = Duration::from_millis(50);

thread_local! {
    static CURRENT: RefCell<Option<Token>> = const { RefCell::new(None) };
}

/// Stands for a request, in all threads that work for it.
#[derive(Debug, Clone, Default)]
pub struct Token(Arc<AtomicBool>);

impl Token {
    pub fn new() -> Self {
        Self::default()
    }

    /// Nobody waits for the result any more: work under this token ends soon.
    pub fn cancel(&self) {
        // It orders nothing: whoever sees it only stops.
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Does `work` under this token.
    pub fn cover<T>(&self, work: impl FnOnce() -> T) -> T {
        cover(Some(self.clone()), work)
    }
}

/// The token under which this thread works.
pub fn current() -> Option<Token> {
    CURRENT.with_borrow(Clone::clone)
}

/// Does `work` under a token, or under none.
pub fn cover<T>(token: Option<Token>, work: impl FnOnce() -> T) -> T {
    /// Puts the token back that was there before, after a panic too.
    struct Before(Option<Token>);

    impl Drop for Before {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }

    let _before = Before(CURRENT.replace(token));
    work()
}

/// Whether the request that this thread works for was cancelled.
pub fn is_cancelled() -> bool {
    CURRENT.with_borrow(|token| token.as_ref().is_some_and(Token::is_cancelled))
}

/// Ends work that nobody waits for. Costs about as much as reading a variable.
///
/// # Errors
/// [`Error::Cancelled`] where the request that this thread works for was cancelled.
pub fn check() -> Result<()> {
    if is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
}

/// Waits until `condition` is notified, or for a moment. To be called in a loop that looks for what it waits for.
///
/// # Errors
/// [`Error::Cancelled`] as [`check`].
pub fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> Result<MutexGuard<'a, T>> {
    check()?;
    Ok(match current() {
        Some(_) => condition.wait_timeout(guard, LOOK).unwrap_or_else(PoisonError::into_inner).0,
        None => condition.wait(guard).unwrap_or_else(PoisonError::into_inner),
    })
}

/// Waits for so long.
///
/// # Errors
/// [`Error::Cancelled`] as [`check`], soon after it was cancelled.
pub fn pause(duration: Duration) -> Result<()> {
    let deadline = Instant::now() + duration;
    loop {
        check()?;
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(if current().is_some() { left.min(LOOK) } else { left });
    }
}

/// A lock for work that takes long: a thread that waits for it can be cancelled. The next holder goes on where the last
/// one gave up.
#[derive(Debug, Default)]
pub struct Turn {
    taken: Mutex<Taken>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct Taken {
    is_taken: bool,
    /// How many threads wait: waking is a system call, even where there are none.
    waiting: usize,
}

/// The lock is held until this is dropped.
#[derive(Debug)]
pub struct Held<'a>(&'a Turn);

impl Turn {
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits until nobody else holds it.
    ///
    /// # Errors
    /// [`Error::Cancelled`] as [`check`].
    pub fn take(&self) -> Result<Held<'_>> {
        let mut taken = self.lock();
        while taken.is_taken {
            taken.waiting += 1;
            let waited = wait(&self.returned, taken);
            taken = match waited {
                Ok(taken) => taken,
                Err(error) => {
                    let mut taken = self.lock();
                    taken.waiting -= 1;
                    // It may have been woken in another's place.
                    self.wake_one(&taken);
                    return Err(error);
                }
            };
            taken.waiting -= 1;
        }
        taken.is_taken = true;
        Ok(Held(self))
    }

    fn wake_one(&self, taken: &Taken) {
        if taken.waiting > 0 && !taken.is_taken {
            self.returned.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut taken = self.0.lock();
        taken.is_taken = false;
        self.0.wake_one(&taken);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn work_is_cancelled_under_its_token_alone() {
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
    fn who_waits_for_a_turn_can_be_cancelled_and_the_others_get_it() {
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
