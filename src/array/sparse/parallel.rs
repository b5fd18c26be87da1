//! Work done once, on all cores, while others wait for it.
//!
//! Not on the pool that decodes: those who wait may be all the workers there are, and a worker that took up other work
//! while it waits could end up waiting for itself.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// How many threads work: as many as decode otherwise.
pub fn threads() -> usize {
    rayon::current_num_threads().max(1)
}

/// The results of `work` for the numbers up to `count`. The first error, by number, ends it.
///
/// # Errors
/// Those of `work`.
pub fn for_all<T: Send, E: Send>(count: usize, work: impl Fn(usize) -> Result<T, E> + Sync) -> Result<Vec<T>, E> {
    let next = AtomicUsize::new(0);
    let has_failed = AtomicBool::new(false);
    let results: Mutex<Vec<Option<Result<T, E>>>> = Mutex::new((0..count).map(|_| None).collect());
    let run = || {
        while !has_failed.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let result = work(number);
            has_failed.fetch_or(result.is_err(), Ordering::Relaxed);
            results.lock().unwrap_or_else(PoisonError::into_inner)[number] = Some(result);
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads().min(count) {
            // This thread does all the work where there can be no other.
            let _ = thread::Builder::new().name("tilefs-merge".to_owned()).spawn_scoped(scope, run);
        }
        run();
    });
    // What was not begun is so because something before or after it has failed.
    results.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_errors_end_it() {
        assert_eq!(
            for_all(100, |number| Ok::<_, ()>(number * 2)).unwrap(),
            (0..100).map(|n| n * 2).collect::<Vec<_>>()
        );
        assert_eq!(for_all(0, |_| Err::<(), _>(())).unwrap(), []);
        let failed = for_all(1000, |number| if number == 7 { Err(number) } else { Ok(()) });
        assert_eq!(failed.unwrap_err(), 7);
    }
}
