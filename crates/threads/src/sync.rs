//! Locks, condition variables, atomics and the clock: those of the standard library.
//!
//! Files whose threads wait for each other import them from here, so that `tests/interleavings` can compile the same
//! files with primitives that run threads in every order and lose wake-ups on purpose.

pub use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, atomic};
pub use std::thread_local;
pub use std::time::Instant;
