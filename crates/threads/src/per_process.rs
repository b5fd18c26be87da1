//! Values of which each process has its own, also after a fork.
//!
//! A forked child has a copy of all memory, but only the thread that forked: those that decode and those that wait for
//! storage are gone, and locks that they held stay locked. So the child must neither use nor drop what has locks or
//! threads. It makes its own instead, and never frees what it inherited.
//!
//! Invariant of the `unsafe` code: the pointer is null or leads to a box that [`PerProcess::get_or_make`] made. Such a
//! box is freed only by [`Drop`], which has the value for itself, or before anybody else has seen it.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::process;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// How often [`note_fork`] was called in this process and in those from which it was forked.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Notes in a child that it was forked. A child is known by its process id, too, but that may be the id of a process
/// that it descends from: of one that has ended, or 1 in a namespace of its own.
pub fn note_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// A value that each process makes for itself. No lock is taken, so that none can be held during a fork.
pub struct PerProcess<T> {
    current: AtomicPtr<Owned<T>>,
    /// May be sent and shared as if it held the value.
    holds: PhantomData<OnceLock<T>>,
}

struct Owned<T> {
    /// See [`this_process`].
    owner: u64,
    value: T,
}

impl<T> PerProcess<T> {
    /// Creates it without a value.
    pub const fn new() -> Self {
        PerProcess { current: AtomicPtr::new(ptr::null_mut()), holds: PhantomData }
    }

    /// Creates it with the value of this process.
    pub fn of(value: T) -> Self {
        let owned = Box::new(Owned { owner: this_process(), value });
        PerProcess { current: AtomicPtr::new(Box::into_raw(owned)), holds: PhantomData }
    }

    /// Returns the value of this process. `make` makes it, from the value of the process from which this one was forked
    /// if there is one. Of that value it may only read parts that never change. If several threads make a value at the
    /// same time, all of them get the first.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn get_or_make<E>(&self, make: impl FnOnce(Option<&T>) -> Result<T, E>) -> Result<&T, E> {
        let here = this_process();
        let found = self.current.load(Ordering::Acquire);
        // SAFETY: by the invariant, and because `self` is borrowed.
        let known = unsafe { found.as_ref() };
        if let Some(owned) = known.filter(|owned| owned.owner == here) {
            return Ok(&owned.value);
        }
        let made = Box::new(Owned { owner: here, value: make(known.map(|owned| &owned.value))? });
        let made = Box::into_raw(made);
        let current = match self.current.compare_exchange(found, made, Ordering::AcqRel, Ordering::Acquire) {
            // The value of the other process stays as it is: it may have locks.
            Ok(_) => made,
            Err(faster) => {
                // SAFETY: nobody else has seen it.
                drop(unsafe { Box::from_raw(made) });
                faster
            }
        };
        // SAFETY: by the invariant; it is not null, because `made` is not, and only such values are put there.
        Ok(unsafe { &(*current).value })
    }
}

impl<T> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let current = *self.current.get_mut();
        // SAFETY: by the invariant.
        let is_own = unsafe { current.as_ref() }.is_some_and(|owned| owned.owner == this_process());
        if is_own {
            // SAFETY: nobody else has a reference to what is being dropped.
            drop(unsafe { Box::from_raw(current) });
        }
    }
}

/// Returns a number that differs from those of all processes from which this one was forked.
fn this_process() -> u64 {
    u64::from(FORKS.load(Ordering::Relaxed)) << 32 | u64::from(process::id())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    fn value<T>(of: &PerProcess<T>, make: impl FnOnce(Option<&T>) -> T) -> &T {
        let Ok(value) = of.get_or_make(|before| Ok::<_, Infallible>(make(before)));
        value
    }

    /// Makes the value that of another process, as after a fork.
    fn give_away<T>(of: &mut PerProcess<T>) {
        // SAFETY: the value is there, and nobody else has it.
        unsafe { (**of.current.get_mut()).owner = u64::MAX };
    }

    #[test]
    fn a_value_is_made_once_and_dropped_once() {
        let alive = Arc::new(());
        let own = PerProcess::new();
        let first: *const Arc<()> = value(&own, |before| before.cloned().unwrap_or_else(|| alive.clone()));
        assert!(ptr::eq(first, value(&own, |_| Arc::new(()))));
        assert_eq!(Arc::strong_count(&alive), 2);
        drop(own);
        assert_eq!(Arc::strong_count(&alive), 1);
        drop(PerProcess::<Arc<()>>::new());
    }

    #[test]
    fn a_failure_is_tried_again() {
        let own = PerProcess::new();
        assert_eq!(own.get_or_make(|_| Err::<u8, _>("failed")), Err("failed"));
        assert_eq!(own.get_or_make(|_| Ok::<_, &str>(7)), Ok(&7));
    }

    #[test]
    fn what_another_process_made_is_replaced_and_never_dropped() {
        let (inherited, made) = (Arc::new(1), Arc::new(2));
        let mut own = PerProcess::of(inherited.clone());
        give_away(&mut own);
        let now = value(&own, |before| {
            assert_eq!(before.map(|before| **before), Some(1));
            made.clone()
        });
        assert_eq!(**now, 2);
        drop(own);
        assert_eq!((Arc::strong_count(&inherited), Arc::strong_count(&made)), (2, 1));
        let mut unused = PerProcess::of(inherited.clone());
        give_away(&mut unused);
        drop(unused);
        assert_eq!(Arc::strong_count(&inherited), 3);
    }

    #[test]
    fn threads_that_make_a_value_at_once_get_the_same() {
        for _ in 0..100 {
            let (own, all_here, alive) = (PerProcess::new(), Barrier::new(4), Arc::new(()));
            let get = || {
                value(&own, |_| {
                    all_here.wait();
                    alive.clone()
                });
                let kept: &Arc<()> = value(&own, |_| Arc::new(()));
                ptr::from_ref(kept).addr()
            };
            let found: Vec<usize> = thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(get)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(found.iter().all(|place| *place == found[0]));
            assert_eq!(Arc::strong_count(&alive), 2, "the others were dropped");
        }
    }
}
