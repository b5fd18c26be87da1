//! Forked child processes. A child has a copy of all memory but none of the threads that decode and wait for storage,
//! and locks that those threads held stay locked. So it must not read, and must not drop anything that has a lock.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tilefs_format::error::{Error, Result};

/// The process that first opened something; 0 before.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Checks that this process may read: the first process that calls this function, not its children.
///
/// # Errors
/// [`Error::Usage`] in a process that was forked from that one.
pub fn check() -> Result<()> {
    let here = std::process::id();
    match OWNER.compare_exchange(0, here, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => Ok(()),
        Err(owner) if owner == here => Ok(()),
        Err(_) => Err(Error::usage(
            "this process was forked from one that had used tilefs, and the threads that read do not survive a fork: \
             start processes with the method spawn or forkserver, or open arrays only after the fork",
        )),
    }
}

/// Returns whether this process was forked from the one that reads.
fn is_child() -> bool {
    let owner = OWNER.load(Ordering::Relaxed);
    owner != 0 && owner != std::process::id()
}

/// A value that a forked process does not drop.
pub struct Kept<T>(Arc<T>);

impl<T> Kept<T> {
    pub fn new(value: T) -> Self {
        Kept(Arc::new(value))
    }
}

impl<T> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        if is_child() {
            // One more reference, which nobody ever drops.
            Box::leak(Box::new(Arc::clone(&self.0)));
        }
    }
}
