//! Several requests under way at once.

use super::{Storage, StoreKey};
use crate::threads;

/// Whether requests for a key are waits, so that it pays to make together what may be wanted soon.
pub fn is_far(storage: &dyn Storage, key: &StoreKey) -> bool {
    storage.requests_at_once(key) > threads::decoding()
}

/// Does `work`, which makes a request or a few one after the other, for each of the items, as many at once as serves the
/// storage of this key, which is that of all; what came of each, in their order.
///
/// Where requests take no time, that is on the threads that decode. Where they are waits it is on threads of their own,
/// [`Storage::requests_at_once`] at most.
pub fn together<T: Send, R: Send>(
    storage: &dyn Storage,
    key: &StoreKey,
    items: Vec<T>,
    work: impl Fn(T) -> R + Send + Sync,
) -> Vec<R> {
    if items.len() < 2 {
        items.into_iter().map(work).collect()
    } else if is_far(storage, key) {
        threads::map_waiting("tilefs-request", storage.requests_at_once(key), items.into_iter(), work)
    } else {
        threads::map(items.into_iter(), work)
    }
}
