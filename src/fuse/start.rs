//! Starting threads where the system may not let us have as many as wanted.

use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

/// The address space that a thread of a session needs: its stack, and the buffer into which the protocol library reads
/// requests.
const THREAD_SPACE: usize = (2 << 20) + (17 << 20);

/// How many of `wanted` threads can be there at the same time: limits of processes and of address space are met when
/// a thread starts, and a session whose threads start only in part cannot be ended.
pub fn possible_threads(wanted: usize) -> usize {
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap_or_else(PoisonError::into_inner);
    let mut threads = Vec::with_capacity(wanted);
    let (sender, allocated) = mpsc::channel();
    for _ in 0..wanted {
        let (gate, has_allocated) = (Arc::clone(&gate), sender.clone());
        let wait = move || {
            // The allocator gives every thread that allocates a large range of addresses of its own.
            let some = black_box(vec![0_u8; 100]);
            // Somebody listens for as long as the gate is closed.
            let _ = has_allocated.send(());
            drop(gate.lock());
            drop(some);
        };
        match thread::Builder::new().stack_size(THREAD_SPACE).spawn(wait) {
            Ok(thread) => {
                threads.push(thread);
                // So that the next one finds what is left.
                let _ = allocated.recv();
            }
            Err(_) => break,
        }
    }
    drop(closed);
    let possible = threads.len();
    // They do nothing, and so do not panic.
    threads.into_iter().for_each(|thread| drop(thread.join()));
    possible
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_threads_are_possible() {
        assert_eq!(possible_threads(0), 0);
        assert_eq!(possible_threads(5), 5);
    }
}
