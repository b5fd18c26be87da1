//! Starts threads, within the limit of address space.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use super::address_space;

/// Address space per thread: a stack of 2 MiB, and the allocations of the standard library at thread start, which abort
/// the process if they fail.
const ADDRESS_SPACE_PER_THREAD: u64 = 3 << 20;

/// Whether this process may have other threads by now.
static ARE_STARTED: AtomicBool = AtomicBool::new(false);

/// Returns whether any thread was started, or its start attempted, since the process began.
pub fn are_started() -> bool {
    ARE_STARTED.load(Ordering::SeqCst)
}

/// Starts a thread.
///
/// # Errors
/// If the system refuses another thread.
pub fn start<T: Send + 'static>(
    name: impl Into<String>,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    check_address_space()?;
    Builder::new().name(name.into()).spawn(work)
}

/// Checks that the address-space limit leaves space for another thread. Must be called before each thread start.
pub(crate) fn check_address_space() -> io::Result<()> {
    ARE_STARTED.store(true, Ordering::SeqCst);
    match address_space::left() {
        Some(left) if left < ADDRESS_SPACE_PER_THREAD => Err(io::ErrorKind::OutOfMemory.into()),
        _ => Ok(()),
    }
}
