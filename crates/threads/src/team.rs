//! A team of threads that share work: the caller starts its work at once, and idle helpers join it.
//!
//! Nobody waits for a helper to start, and a caller that waits for the last helpers takes up no other work meanwhile.
//! So work may share its own parts recursively, and may block on other threads wherever a single thread could.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::lent_work::{Loan, lend};
use super::start::start;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A pool of helper threads and the work offered to them. The threads live as long as the process.
pub struct Team {
    helpers: AtomicUsize,
    state: Mutex<TeamState>,
    offered: Condvar,
}

#[derive(Default)]
struct TeamState {
    offers: Vec<Offer>,
    /// Number of helpers that wait for an offer.
    idle: usize,
}

/// Work that up to `slots` more helpers may join.
struct Offer {
    work: Arc<Loan>,
    slots: usize,
}

impl Team {
    /// Creates a team without helpers.
    pub const fn new() -> Self {
        let state = Mutex::new(TeamState { offers: Vec::new(), idle: 0 });
        Team { helpers: AtomicUsize::new(0), state, offered: Condvar::new() }
    }

    /// Adds a helper thread.
    ///
    /// # Errors
    /// If the system refuses another thread.
    pub fn grow(&'static self) -> io::Result<()> {
        start(format!("decode-{}", self.helpers()), || self.help())?;
        self.helpers.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the number of helper threads.
    pub fn helpers(&self) -> usize {
        self.helpers.load(Ordering::Relaxed)
    }

    /// Calls `work` on this thread and, at the same time, on up to `most` idle helpers. `work` must return when there
    /// is nothing left to do. When this function returns, no helper runs `work` and none will.
    ///
    /// # Panics
    /// If `work` panics on any thread.
    pub fn share(&self, most: usize, work: &(dyn Fn() + Sync)) {
        let slots = most.min(self.helpers());
        if slots == 0 {
            return work();
        }
        let (outcome, has_panicked) = lend(work, |loan| {
            let mut state = lock(&self.state);
            state.offers.push(Offer { work: Arc::clone(loan), slots });
            self.wake_one(&state);
            drop(state);
            let outcome = catch_unwind(AssertUnwindSafe(work));
            lock(&self.state).offers.retain(|offer| !Arc::ptr_eq(&offer.work, loan));
            outcome
        });
        if let Err(panic) = outcome {
            resume_unwind(panic);
        }
        assert!(!has_panicked, "a helper thread panicked");
    }

    /// Wakes one helper if there is an offer. That helper wakes the next, so that the caller does not spend its time on
    /// it.
    #[track_caller]
    fn wake_one(&self, state: &TeamState) {
        if state.idle > 0 && !state.offers.is_empty() {
            self.offered.notify_one();
        }
    }

    /// Runs forever in a helper thread: joins the oldest offer that has a slot left.
    fn help(&self) {
        let mut state = lock(&self.state);
        loop {
            let Some(offer) = state.offers.first_mut() else {
                state.idle += 1;
                state = self.offered.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
                continue;
            };
            let work = Arc::clone(&offer.work);
            offer.slots -= 1;
            if offer.slots == 0 {
                state.offers.remove(0);
            }
            self.wake_one(&state);
            drop(state);
            work.borrow();
            state = lock(&self.state);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Barrier;
    use std::thread::{scope, yield_now};

    use super::*;

    fn team(helpers: usize) -> &'static Team {
        let team: &'static Team = Box::leak(Box::new(Team::new()));
        (0..helpers).for_each(|_| team.grow().unwrap());
        team
    }

    /// Takes numbers from `next` up to `end` and counts how often each was taken.
    fn count_off(next: &AtomicUsize, end: usize, taken: &Mutex<BTreeMap<usize, usize>>) {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= end {
                return;
            }
            *lock(taken).entry(number).or_default() += 1;
        }
    }

    /// The same with threads that the standard library starts and joins.
    fn by_scoped_threads(threads: usize, work: &(dyn Fn() + Sync)) {
        scope(|scope| {
            (1..threads).for_each(|_| drop(scope.spawn(work)));
            work();
        });
    }

    #[test]
    fn work_is_done_exactly_once() {
        let team = team(3);
        for end in (0..400).chain([20_000]) {
            let run = |share: &dyn Fn(&(dyn Fn() + Sync))| {
                let (next, taken) = (AtomicUsize::new(0), Mutex::default());
                share(&|| count_off(&next, end, &taken));
                taken.into_inner().unwrap()
            };
            let once = run(&|work| by_scoped_threads(3, work));
            assert_eq!(run(&|work| team.share(3, work)), once);
            assert!(once.len() == end && once.values().all(|times| *times == 1));
        }
    }

    #[test]
    fn at_most_the_requested_helpers_join() {
        let team = team(5);
        let all_here = Barrier::new(4);
        team.share(3, &|| {
            all_here.wait();
        });
        let (active, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        for _ in 0..200 {
            team.share(2, &|| {
                most.fetch_max(active.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                (0..20).for_each(|_| yield_now());
                active.fetch_sub(1, Ordering::SeqCst);
            });
            assert_eq!(active.load(Ordering::SeqCst), 0, "no helper is inside any more");
        }
        assert!((2..=3).contains(&most.load(Ordering::SeqCst)), "{most:?}");
    }

    #[test]
    fn without_helpers_the_caller_does_it() {
        let here = std::thread::current().id();
        let calls = AtomicUsize::new(0);
        let work = || {
            assert_eq!(std::thread::current().id(), here);
            calls.fetch_add(1, Ordering::Relaxed);
        };
        team(0).share(7, &work);
        team(2).share(0, &work);
        assert_eq!(calls.into_inner(), 2);
    }

    /// Nested sharing, from more threads than there are helpers.
    #[test]
    fn sharing_can_be_nested() {
        let team = team(2);
        let done = AtomicUsize::new(0);
        scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let outer = AtomicUsize::new(0);
                    team.share(2, &|| {
                        while outer.fetch_add(1, Ordering::Relaxed) < 30 {
                            let inner = AtomicUsize::new(0);
                            team.share(2, &|| {
                                while inner.fetch_add(1, Ordering::Relaxed) < 30 {
                                    done.fetch_add(1, Ordering::Relaxed);
                                }
                            });
                        }
                    });
                });
            }
        });
        assert_eq!(done.into_inner(), 8 * 30 * 30);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_team_survives() {
        let team = team(1);
        for panics_here in [true, false] {
            let (caller, both_here) = (std::thread::current().id(), Barrier::new(2));
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                team.share(1, &|| {
                    both_here.wait();
                    assert!((std::thread::current().id() == caller) != panics_here, "as wanted");
                });
            }));
            assert!(outcome.is_err());
        }
        let both_here = Barrier::new(2);
        team.share(1, &|| {
            both_here.wait();
        });
    }
}
