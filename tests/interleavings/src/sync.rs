//! The primitives of a model: those of shuttle, with condition variables that can lose wake-ups, wake threads for no
//! reason, and time out by a clock that the model sets.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::Sub;
use std::panic::Location;
use std::sync::{LockResult, OnceLock};
use std::time::Duration;

pub use crate::thread_local_of_model as thread_local;
pub use shuttle::sync::{Arc, Mutex, MutexGuard, PoisonError, atomic};

/// The place of a call that wakes threads: file, line and column.
pub type WakeUp = (&'static str, u32, u32);

// All threads of a model run on the thread of the test, one at a time.
std::thread_local! {
    static SEEN: RefCell<BTreeSet<WakeUp>> = const { RefCell::new(BTreeSet::new()) };
    static LOST: Cell<Option<WakeUp>> = const { Cell::new(None) };
    static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static CONDITIONS: RefCell<Vec<Arc<shuttle::sync::Condvar>>> = const { RefCell::new(Vec::new()) };
    static TIMED: RefCell<Vec<(Duration, Arc<shuttle::sync::Condvar>)>> = const { RefCell::new(Vec::new()) };
}

/// Starts an execution of a model, in which the wake-ups of one call are lost.
pub fn begin(lost: Option<WakeUp>) {
    LOST.set(lost);
    NOW.set(Duration::ZERO);
    CONDITIONS.take();
    TIMED.take();
}

/// Returns the calls that woke threads, or would have, since the last call of this function.
pub fn take_seen() -> BTreeSet<WakeUp> {
    SEEN.take()
}

/// Wakes all waiting threads without a reason.
pub fn wake_spuriously() {
    let conditions = CONDITIONS.with_borrow(Clone::clone);
    conditions.iter().for_each(|condition| condition.notify_all());
}

/// Lets time pass, which wakes the threads whose waits time out. Without this, no wait times out.
pub fn advance(time: Duration) {
    NOW.set(NOW.get() + time);
    let mut over = TIMED.with_borrow(Clone::clone);
    over.retain(|(deadline, _)| *deadline <= NOW.get());
    // Other threads that wait for the same condition also wake, spuriously.
    over.iter().for_each(|(_, condition)| condition.notify_all());
}

/// A time of the model's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(Duration);

impl Instant {
    pub fn now() -> Self {
        Instant(NOW.get())
    }

    pub fn elapsed(&self) -> Duration {
        NOW.get().sub(self.0)
    }
}

/// A condition variable.
#[derive(Debug, Default)]
pub struct Condvar(OnceLock<Arc<shuttle::sync::Condvar>>);

/// Whether a wait timed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

impl Condvar {
    pub const fn new() -> Self {
        Condvar(OnceLock::new())
    }

    fn inner(&self) -> &Arc<shuttle::sync::Condvar> {
        self.0.get_or_init(|| {
            let inner = Arc::<shuttle::sync::Condvar>::default();
            CONDITIONS.with_borrow_mut(|conditions| conditions.push(Arc::clone(&inner)));
            inner
        })
    }

    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        self.inner().wait(guard)
    }

    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        time: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let timed = (NOW.get() + time, Arc::clone(self.inner()));
        TIMED.with_borrow_mut(|all| all.push(timed.clone()));
        let guard = self.wait(guard).unwrap_or_else(PoisonError::into_inner);
        TIMED.with_borrow_mut(|all| {
            let own = all.iter().position(|(at, inner)| *at == timed.0 && Arc::ptr_eq(inner, &timed.1));
            own.map(|own| all.swap_remove(own))
        });
        Ok((guard, WaitTimeoutResult(NOW.get() >= timed.0)))
    }

    pub fn wait_timeout_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        time: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let deadline = NOW.get() + time;
        while condition(&mut guard) {
            let left = deadline.saturating_sub(NOW.get());
            if left.is_zero() {
                return Ok((guard, WaitTimeoutResult(true)));
            }
            guard = self.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok((guard, WaitTimeoutResult(false)))
    }

    #[track_caller]
    pub fn notify_one(&self) {
        if !is_lost(Location::caller()) {
            self.inner().notify_one();
        }
    }

    #[track_caller]
    pub fn notify_all(&self) {
        if !is_lost(Location::caller()) {
            self.inner().notify_all();
        }
    }
}

/// Notes a call that wakes threads; returns whether its wake-ups are lost.
fn is_lost(place: &'static Location<'static>) -> bool {
    let wake_up = (place.file(), place.line(), place.column());
    SEEN.with_borrow_mut(|seen| seen.insert(wake_up));
    LOST.get() == Some(wake_up)
}

/// A value of each thread of a model.
pub struct LocalKey<T: 'static>(pub &'static shuttle::thread::LocalKey<RefCell<T>>);

impl<T: 'static> LocalKey<T> {
    pub fn with_borrow<R>(&self, work: impl FnOnce(&T) -> R) -> R {
        self.0.with(|value| work(&value.borrow()))
    }

    pub fn replace(&self, value: T) -> T {
        self.0.with(|old| old.replace(value))
    }

    pub fn set(&self, value: T) {
        drop(self.replace(value));
    }
}

/// Declares such a value, as the macro of the standard library does.
#[macro_export]
macro_rules! thread_local_of_model {
    (static $name:ident: RefCell<$value:ty> = const { $init:expr };) => {
        static $name: $crate::sync::LocalKey<$value> = {
    shuttle::thread_local!(static OF_THREAD: RefCell<$value> = const { $init });
            $crate::sync::LocalKey(&OF_THREAD)
        };
    };
}
