//! Several requests under way at once.

use std::sync::{Mutex, PoisonError};
use std::thread;

use rayon::prelude::*;

use super::Storage;

/// Whether requests are waits, so that it pays to make together what may be wanted soon.
pub fn is_far(storage: &dyn Storage) -> bool {
    storage.requests_at_once() > rayon::current_num_threads()
}

/// Does `work`, which makes a request or a few one after the other, for each of the items, as many at once as serves the
/// storage; what came of each, in their order.
///
/// Where requests take no time, that is on the threads that decode. Where they are waits it is on threads of their own,
/// [`Storage::requests_at_once`] at most.
pub fn together<T: Send, R: Send>(storage: &dyn Storage, items: Vec<T>, work: impl Fn(T) -> R + Send + Sync) -> Vec<R> {
    if items.len() < 2 {
        return items.into_iter().map(work).collect();
    }
    if !is_far(storage) {
        return items.into_par_iter().map(work).collect();
    }
    let threads = storage.requests_at_once().min(items.len());
    let done = Mutex::new(Vec::with_capacity(items.len()));
    let waiting = Mutex::new(items.into_iter().enumerate());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let serve = || {
        while let Some((number, item)) = next() {
            let result = work(item);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((number, result));
        }
    };
    thread::scope(|scope| {
        // This thread is one of them.
        for _ in 1..threads {
            // Where there can be no other, it does all the work.
            let _ = thread::Builder::new().name("tilefs-request".to_owned()).spawn_scoped(scope, serve);
        }
        serve();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}
