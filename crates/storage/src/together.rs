//! Concurrent requests.

use tilefs_threads as threads;

use super::{Storage, StoreKey};

/// Maps `items` with `work`, which makes one request or a few in sequence, with as many concurrent calls as the storage
/// of `key` prefers. All items must be in that storage. Results are in order.
///
/// The calls run on the decoding team; if requests have [high latency](Storage::is_remote), on threads of their own, at most
/// [`Storage::requests_at_once`].
pub fn together<T: Send, R: Send>(
    storage: &dyn Storage,
    key: &StoreKey,
    items: Vec<T>,
    work: impl Fn(T) -> R + Send + Sync,
) -> Vec<R> {
    if items.len() < 2 {
        items.into_iter().map(work).collect()
    } else if storage.is_remote(key) {
        threads::map_waiting("tilefs-request", storage.requests_at_once(key), items.into_iter(), work)
    } else {
        threads::map(items.into_iter(), work)
    }
}
