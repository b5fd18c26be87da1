//! Work that threads share: who has it begins at once, and those that have nothing to do come to help.
//!
//! Nobody waits for a helper to begin, and who waits for the last helpers takes up nothing else meanwhile. So work may
//! share out parts of itself, and may wait for other threads, wherever it may on a thread alone.
#![allow(unsafe_code)]

use std::io;
use std::mem::transmute;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Threads that help, and the work that they may help with. They end with the process.
pub struct Team {
    helpers: AtomicUsize,
    state: Mutex<State>,
    offered: Condvar,
}

#[derive(Default)]
struct State {
    offers: Vec<Offer>,
    /// How many helpers wait for an offer.
    idle: usize,
}

/// Work that has room for so many helpers more.
struct Offer {
    work: Work,
    helped: Arc<Helped>,
    room: usize,
}

/// What everybody who shares some work calls, until there is nothing left to do. As long as [`Team::share`] says, and
/// not longer.
type Work = &'static (dyn Fn() + Sync);

/// The helpers within some work.
#[derive(Default)]
struct Helped {
    within: Mutex<Within>,
    changed: Condvar,
}

#[derive(Default)]
struct Within {
    helpers: usize,
    has_panicked: bool,
}

impl Team {
    /// A team of nobody yet.
    pub const fn new() -> Self {
        let state = Mutex::new(State { offers: Vec::new(), idle: 0 });
        Team { helpers: AtomicUsize::new(0), state, offered: Condvar::new() }
    }

    /// Has another thread help.
    ///
    /// # Errors
    /// Where the system lets us have no other.
    pub fn grow(&'static self) -> io::Result<()> {
        super::start(format!("decode-{}", self.helpers()), || self.help())?;
        self.helpers.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// How many threads help.
    pub fn helpers(&self) -> usize {
        self.helpers.load(Ordering::Relaxed)
    }

    /// Calls `work` on this thread, and at the same time on up to `most` of those that have nothing to do. It is to
    /// return when there is nothing left to do. Afterwards nobody is within it, and nobody will be.
    ///
    /// # Panics
    /// Where `work` does, on whichever thread.
    pub fn share(&self, most: usize, work: &(dyn Fn() + Sync)) {
        let room = most.min(self.helpers());
        if room == 0 {
            return work();
        }
        // SAFETY: only the lifetime changes. `work` is reached through an offer alone. A helper enters it under the lock
        // under which offers are made and taken back, and counts itself in before it gives that lock up; this function
        // does not return, nor unwind, before the offer is taken back and the count is zero. What is between is `work`
        // itself, whose panic is caught, and locks and lists of this module, which do not panic.
        let shared = unsafe { transmute::<&(dyn Fn() + Sync), Work>(work) };
        let helped = Arc::<Helped>::default();
        let mut state = lock(&self.state);
        state.offers.push(Offer { work: shared, helped: Arc::clone(&helped), room });
        self.wake_one(&state);
        drop(state);
        let outcome = catch_unwind(AssertUnwindSafe(work));
        lock(&self.state).offers.retain(|offer| !Arc::ptr_eq(&offer.helped, &helped));
        let mut within = lock(&helped.within);
        while within.helpers > 0 {
            within = helped.changed.wait(within).unwrap_or_else(PoisonError::into_inner);
        }
        let has_panicked = within.has_panicked;
        drop(within);
        if let Err(panic) = outcome {
            resume_unwind(panic);
        }
        assert!(!has_panicked, "a thread that helped has panicked");
    }

    /// Wakes a helper where there is room for it, which then wakes the next: who has work is not to spend its time on that.
    fn wake_one(&self, state: &State) {
        if state.idle > 0 && !state.offers.is_empty() {
            self.offered.notify_one();
        }
    }

    /// What a helper does, for ever: enters what was offered first and has room.
    fn help(&self) {
        let mut state = lock(&self.state);
        loop {
            let Some(offer) = state.offers.first_mut() else {
                state.idle += 1;
                state = self.offered.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
                continue;
            };
            let (work, helped) = (offer.work, Arc::clone(&offer.helped));
            offer.room -= 1;
            if offer.room == 0 {
                state.offers.remove(0);
            }
            lock(&helped.within).helpers += 1;
            self.wake_one(&state);
            drop(state);
            let outcome = catch_unwind(AssertUnwindSafe(work));
            let mut within = lock(&helped.within);
            within.has_panicked |= outcome.is_err();
            within.helpers -= 1;
            drop(within);
            helped.changed.notify_one();
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

    /// Takes numbers from `next` up to `end`; how often each was taken.
    fn count_off(next: &AtomicUsize, end: usize, taken: &Mutex<BTreeMap<usize, usize>>) {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= end {
                return;
            }
            *lock(taken).entry(number).or_default() += 1;
        }
    }

    /// The same by threads that the standard library starts and joins.
    fn by_scoped_threads(threads: usize, work: &(dyn Fn() + Sync)) {
        scope(|scope| {
            (1..threads).for_each(|_| drop(scope.spawn(work)));
            work();
        });
    }

    #[test]
    fn all_is_done_once_as_by_scoped_threads() {
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
    fn helpers_come_and_no_more_than_have_room() {
        let team = team(5);
        let all_here = Barrier::new(4);
        team.share(3, &|| {
            all_here.wait();
        });
        let (within, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        for _ in 0..200 {
            team.share(2, &|| {
                most.fetch_max(within.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                (0..20).for_each(|_| yield_now());
                within.fetch_sub(1, Ordering::SeqCst);
            });
            assert_eq!(within.load(Ordering::SeqCst), 0, "nobody is within it any more");
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

    /// Work that shares out its parts, from more threads than there are helpers.
    #[test]
    fn parts_of_parts_are_done_too() {
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
    fn a_panic_is_the_callers_and_the_team_goes_on() {
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
