//! Spreads work over the machine's cores with its own threads: the tested code has a thread pool, which must not run
//! the work of tests.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Returns the results of `work` for each of the items, in any order.
pub fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let made = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let one = work(item);
                    made.lock().expect("no thread panics").push(one);
                }
            });
        }
    });
    made.into_inner().expect("no thread panics")
}
