//! What was decoded, kept under one byte budget.
//!
//! A value is looked up by key; where it is missing, one thread makes it while the others that want it
//! wait for that one. Least recently used values leave first. The lock is sharded, and never held
//! while a value is made, so readers of different tiles do not wait for each other.

use std::any::Any;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use crate::error::{Error, Result};

/// Shards of the lock. More than the cores of most machines, few enough that each is used.
const SHARDS: usize = 32;

/// What an entry costs beside its value: the key, the links of the list, the reference counts.
const ENTRY_OVERHEAD: usize = 160;

/// Which value: a number that stands for one stored field (or index) of one open array, see
/// [`Cache::new_source`], and a position within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// From [`Cache::new_source`]: no two owners share one.
    pub source: u64,
    /// The tile, or whatever the owner counts.
    pub tile: u64,
    /// The chunk within the tile, or whatever the owner counts.
    pub part: u32,
}

type Value = Arc<dyn Any + Send + Sync>;

enum Slot {
    Ready { value: Value, weight: usize },
    Loading(Arc<Flight>),
}

/// A value being made, and the readers that wait for it.
struct Flight {
    outcome: Mutex<Option<Result<Value>>>,
    landed: Condvar,
}

/// A cache of decoded values of any type. Its memory is bounded by the budget plus the values that
/// readers hold at the moment.
pub struct Cache {
    shards: Vec<Mutex<LruCache<Key, Slot>>>,
    hasher: RandomState,
    budget: usize,
    used: AtomicUsize,
    next_source: AtomicU64,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    hits: AtomicU64,
    misses: AtomicU64,
    evictions: AtomicU64,
}

/// What the cache has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    pub hits: u64,
    pub misses: u64,
    pub evictions: u64,
    /// Bytes held now.
    pub used: usize,
}

impl Cache {
    /// An empty cache that holds at most `budget` bytes.
    pub fn new(budget: usize) -> Self {
        Cache {
            shards: (0..SHARDS).map(|_| Mutex::new(LruCache::unbounded())).collect(),
            hasher: RandomState::new(),
            budget,
            used: AtomicUsize::new(0),
            next_source: AtomicU64::new(0),
            counts: Counts::default(),
        }
    }

    /// The budget in bytes.
    pub fn budget(&self) -> usize {
        self.budget
    }

    /// A number for [`Key::source`] that nobody else has.
    pub fn new_source(&self) -> u64 {
        self.new_sources(1)
    }

    /// The first of `count` consecutive numbers for [`Key::source`] that nobody else has.
    pub fn new_sources(&self, count: u64) -> u64 {
        self.next_source.fetch_add(count, Ordering::Relaxed)
    }

    /// What the cache has done so far.
    pub fn statistics(&self) -> Statistics {
        Statistics {
            hits: self.counts.hits.load(Ordering::Relaxed),
            misses: self.counts.misses.load(Ordering::Relaxed),
            evictions: self.counts.evictions.load(Ordering::Relaxed),
            used: self.used.load(Ordering::Relaxed),
        }
    }

    /// The value of `key`; if it is not here, `load` makes it and says how many bytes it weighs.
    /// Several callers that miss at once make it once. A value over the budget is returned, not kept.
    ///
    /// # Errors
    /// What `load` gives, to all who waited for it; errors are not kept. A panic in `load` reaches the
    /// caller that ran it, the others get an error.
    pub fn get_or_load<T, F>(&self, key: Key, load: F) -> Result<Arc<T>>
    where
        T: Any + Send + Sync,
        F: FnOnce() -> Result<(T, usize)>,
    {
        let flight = {
            let mut shard = self.shard(&key);
            match shard.get(&key) {
                Some(Slot::Ready { value, .. }) => {
                    let value = value.clone();
                    drop(shard);
                    self.counts.hits.fetch_add(1, Ordering::Relaxed);
                    return typed(value);
                }
                Some(Slot::Loading(flight)) => {
                    let flight = flight.clone();
                    drop(shard);
                    return typed(flight.wait()?);
                }
                None => {
                    let flight = Arc::new(Flight { outcome: Mutex::new(None), landed: Condvar::new() });
                    shard.put(key, Slot::Loading(flight.clone()));
                    flight
                }
            }
        };
        self.counts.misses.fetch_add(1, Ordering::Relaxed);
        let landing = Landing { cache: self, key, flight, landed: false };
        let (value, weight) = match load() {
            Ok(made) => made,
            Err(error) => {
                landing.land(Err(error.clone()), 0);
                return Err(error);
            }
        };
        let value = Arc::new(value);
        landing.land(Ok(value.clone()), weight.saturating_add(ENTRY_OVERHEAD));
        Ok(value)
    }

    /// Whether the value is here, without making it or counting the look-up as a use.
    pub fn contains(&self, key: &Key) -> bool {
        self.shard(key).contains(key)
    }

    fn shard_number(&self, key: &Key) -> usize {
        self.hasher.hash_one(key) as usize % SHARDS
    }

    fn shard(&self, key: &Key) -> MutexGuard<'_, LruCache<Key, Slot>> {
        lock(&self.shards[self.shard_number(key)])
    }

    /// Takes values out, oldest of its shard first, until the budget is kept. `first` is the shard
    /// where a value was just added, which goes last of all.
    fn evict(&self, first: usize) {
        for step in 0..=SHARDS {
            let mut shard = lock(&self.shards[(first + step) % SHARDS]);
            // Values on their way stay: they are not counted yet. Each look moves one of them to the
            // front, so as many looks as there are entries suffice.
            for _ in usize::from(step == 0)..shard.len() {
                if self.used.load(Ordering::Relaxed) <= self.budget {
                    return;
                }
                match shard.pop_lru() {
                    Some((_, Slot::Ready { weight, .. })) => {
                        self.used.fetch_sub(weight, Ordering::Relaxed);
                        self.counts.evictions.fetch_add(1, Ordering::Relaxed);
                    }
                    Some((key, loading)) => {
                        shard.put(key, loading);
                    }
                    None => break,
                }
            }
        }
    }
}

/// Ends a flight exactly once, also when the loader panics.
struct Landing<'a> {
    cache: &'a Cache,
    key: Key,
    flight: Arc<Flight>,
    landed: bool,
}

impl Landing<'_> {
    fn land(mut self, outcome: Result<Value>, weight: usize) {
        self.finish(outcome, weight);
        self.landed = true;
    }

    fn finish(&self, outcome: Result<Value>, weight: usize) {
        let number = self.cache.shard_number(&self.key);
        {
            let mut shard = lock(&self.cache.shards[number]);
            match &outcome {
                Ok(value) if weight <= self.cache.budget => {
                    self.cache.used.fetch_add(weight, Ordering::Relaxed);
                    shard.put(self.key, Slot::Ready { value: value.clone(), weight });
                }
                _ => {
                    shard.pop(&self.key);
                }
            }
        }
        *lock(&self.flight.outcome) = Some(outcome);
        self.flight.landed.notify_all();
        if self.cache.used.load(Ordering::Relaxed) > self.cache.budget {
            self.cache.evict(number);
        }
    }
}

impl Drop for Landing<'_> {
    fn drop(&mut self) {
        if !self.landed {
            self.finish(Err(Error::damaged("a decoder stopped unexpectedly")), 0);
        }
    }
}

impl Flight {
    fn wait(&self) -> Result<Value> {
        let mut outcome = lock(&self.outcome);
        loop {
            match &*outcome {
                Some(result) => return result.clone(),
                None => outcome = self.landed.wait(outcome).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

fn typed<T: Any + Send + Sync>(value: Value) -> Result<Arc<T>> {
    value.downcast().map_err(|_| Error::damaged("a cached value has another type than its key says"))
}

/// A poisoned lock only means that another thread panicked between two consistent states.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;
    use std::time::Duration;

    use super::*;

    fn key(tile: u64) -> Key {
        Key { source: 0, tile, part: 0 }
    }

    #[test]
    fn one_thread_makes_what_many_want() {
        let cache = Cache::new(1 << 20);
        let barrier = Barrier::new(8);
        let made = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    barrier.wait();
                    let value = cache.get_or_load(key(1), || {
                        made.fetch_add(1, Ordering::SeqCst);
                        thread::sleep(Duration::from_millis(50));
                        Ok((vec![7u8; 10], 10))
                    });
                    assert_eq!(*value.unwrap(), vec![7u8; 10]);
                });
            }
        });
        assert_eq!(made.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn the_oldest_leave_when_the_budget_is_used_up() {
        let cache = Cache::new(100_000);
        for tile in 0..1000 {
            cache.get_or_load(key(tile), || Ok((vec![0u8; 1000], 1000))).unwrap();
            assert!(cache.statistics().used <= 100_000);
        }
        let statistics = cache.statistics();
        assert_eq!(statistics.misses, 1000);
        assert!(statistics.evictions >= 900, "{statistics:?}");
        assert!(cache.contains(&key(999)));
        let kept = (0..1000).filter(|&tile| cache.contains(&key(tile))).count();
        assert_eq!(kept as u64, 1000 - statistics.evictions);
    }

    #[test]
    fn what_is_larger_than_the_budget_is_given_but_not_kept() {
        let cache = Cache::new(100);
        assert_eq!(cache.get_or_load(key(0), || Ok((5u32, 1 << 30))).map(|value| *value).unwrap(), 5);
        assert!(!cache.contains(&key(0)));
        assert_eq!(cache.statistics().used, 0);
    }

    #[test]
    fn nothing_keeps_a_value_that_left() {
        let cache = Cache::new(1000);
        let value = Arc::downgrade(&cache.get_or_load(key(0), || Ok(([0u8; 8], 600))).unwrap());
        assert!(value.upgrade().is_some());
        cache.get_or_load(key(1), || Ok(([1u8; 8], 600))).unwrap();
        assert!(value.upgrade().is_none());
    }

    #[test]
    fn errors_are_told_and_not_kept() {
        let cache = Cache::new(1000);
        assert!(cache.get_or_load::<u32, _>(key(0), || Err(Error::damaged("no"))).is_err());
        assert_eq!(*cache.get_or_load(key(0), || Ok((1u32, 4))).unwrap(), 1);
    }

    #[test]
    fn a_panic_frees_those_who_wait() {
        let cache = Cache::new(1000);
        thread::scope(|scope| {
            let panicking = scope.spawn(|| {
                let _ = cache.get_or_load::<u32, _>(key(0), || {
                    thread::sleep(Duration::from_millis(50));
                    panic!("on purpose")
                });
            });
            thread::sleep(Duration::from_millis(20));
            let waited = cache.get_or_load(key(0), || Ok((1u32, 4)));
            assert!(waited.is_err());
            assert!(panicking.join().is_err());
        });
        assert_eq!(*cache.get_or_load(key(0), || Ok((2u32, 4))).unwrap(), 2);
    }

    #[test]
    fn different_keys_do_not_wait_for_each_other() {
        let cache = Cache::new(1000);
        let barrier = Barrier::new(2);
        // Both loaders are inside at once, or this never ends.
        thread::scope(|scope| {
            for tile in 0..2 {
                let (cache, barrier) = (&cache, &barrier);
                scope.spawn(move || {
                    cache.get_or_load(key(tile), || {
                        barrier.wait();
                        Ok((tile, 8))
                    })
                });
            }
        });
    }
}
