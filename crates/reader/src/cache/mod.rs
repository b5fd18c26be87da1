//! Cache of decoded units and parsed indexes, under one byte budget.
//!
//! Loads are single-flight: on a miss one thread loads the value, and other threads that want it wait for that load.
//! The lock is sharded and never held during a load, so readers of different tiles do not block each other. Units that one
//! read often needs together share a shard, so that the read finds all of them under one lock.
//!
//! Eviction follows the 2Q policy of Johnson and Shasha. A new value stays for a short while, however often it is hit
//! in that time, because a sequential reader uses a tile many times and then never again. A value that is loaded again
//! after its eviction is kept for long, in LRU order. So a scan does not evict values that others still need, and the
//! scan cycles through the memory of a few tiles, which fits in the processor's caches.
//!
//! Some readers return to a value only after a whole working set, for example a merge of many fragments followed by a
//! read of its rows. Each value that is loaded again soon after its eviction enlarges the recent share until the
//! working set fits (as in ARC, by Megiddo and Modha). The value is kept only once the share is at its limit. In plain
//! 2Q each value of the set would be loaded twice, and a long read would fill the budget with values that nobody needs.
//!
//! A value that is expensive to load is kept at once if readers use it in turn with other values, and all of them
//! exceed the recent share.

mod buffer;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasher, Hash};

use foldhash::{fast, quality};
use lru::LruCache;
use tilefs_base::error::{Error, Result};
use tilefs_threads::cancellation;
use tilefs_threads::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tilefs_threads::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

pub use buffer::{BufferPool, PooledBuffer};

/// Number of lock shards: more than the cores of most machines, few enough that each is used.
const SHARDS: usize = 32;

/// Bytes an entry costs besides its value: key, list links, reference counts.
const ENTRY_OVERHEAD: usize = 160;

/// Recent values get the budget divided by this, but at least [`RECENT_BYTES`] unless that is most of the budget.
const RECENT_SHARE: usize = 14;

/// Enough for prefetched data and the data around it.
const RECENT_BYTES: usize = 48 << 20;

/// The recent share grows to at most the budget divided by this.
const MOST_RECENT_SHARE: usize = 4;

/// A value heavier than the recent share divided by this was expensive to load.
const HEAVY_SHARE: usize = 64;

/// Bytes of budget per evicted key that the ghost lists remember.
const BYTES_PER_GHOST: usize = 32 << 10;

/// The memory of a value, and of the values that are used together with it.
#[derive(Debug, Clone, Copy)]
pub struct Weight {
    /// The bytes of the value.
    pub bytes: usize,
    /// The bytes of all values that a reader uses in turn, including this one. `usize::MAX` if readers return to the
    /// value at any time.
    pub in_turn: usize,
}

/// The weight of a value to which readers return at any time, such as an index.
impl From<usize> for Weight {
    fn from(bytes: usize) -> Self {
        Weight { bytes, in_turn: usize::MAX }
    }
}

/// A key of a cache.
pub trait CacheKey: Copy + Eq + Hash {
    /// Returns a key that is the same for keys that one read often needs together. Such keys share a lock.
    fn neighbourhood(&self) -> Self;
}

/// The state of a key.
enum Slot<V: ?Sized> {
    Loading(Arc<Flight<V>>),
    /// A new value.
    Recent(Ready<V>),
    /// A value that was loaded again after its eviction, or is expensive to load, and the value of [`Cache::clock`] at
    /// its last hit.
    Kept(Ready<V>, u64),
}

struct Ready<V: ?Sized> {
    value: Arc<V>,
    weight: usize,
}

/// The keys of one shard.
struct Shard<K, V: ?Sized> {
    slots: HashMap<K, Slot<V>, fast::RandomState>,
    /// Keys of recent values that were evicted lately; none of them has a slot.
    ghosts: LruCache<K, ()>,
}

/// A load in flight, and the threads that wait for it.
pub struct Flight<V: ?Sized> {
    state: Mutex<FlightState<V>>,
    ended: Condvar,
}

struct FlightState<V: ?Sized> {
    outcome: Option<Result<Arc<V>>>,
    /// Whether any thread waits. Notifying costs a system call even if none does.
    is_awaited: bool,
}

/// A cache of values by key. Its memory is bounded by the budget plus the values that callers currently hold.
pub struct Cache<K, V: ?Sized> {
    shards: Vec<Mutex<Shard<K, V>>>,
    /// Chooses the shard of a key. With some seeds, the faster hash puts consecutive keys into a few shards only.
    hasher: quality::RandomState,
    /// Keys of recent values, oldest first.
    queue: Mutex<VecDeque<K>>,
    /// Each key of a kept value, by the last use of the value, or by an earlier use: a hit does not change this order,
    /// because that would touch the memory of other entries.
    kept_keys: Mutex<BTreeMap<u64, K>>,
    recent: BudgetShare,
    kept: BudgetShare,
    /// Bytes by which the recent share has grown at the expense of the kept share; at most `most_growth`.
    growth: AtomicUsize,
    most_growth: usize,
    /// Logical clock: counts hits and insertions of kept values, so each has its own time.
    clock: AtomicU64,
    /// Maximum number of ghost keys per shard.
    most_ghosts: usize,
    counts: CacheCounters,
}

/// A share of the budget and its current use.
struct BudgetShare {
    budget: usize,
    used: AtomicUsize,
}

impl BudgetShare {
    fn of(budget: usize) -> Self {
        BudgetShare { budget, used: AtomicUsize::new(0) }
    }

    fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
struct CacheCounters {
    hits: AtomicU64,
    misses: AtomicU64,
    evictions: AtomicU64,
}

/// Counters of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// Lookups that found a value.
    pub hits: u64,
    /// Lookups after which the value was loaded.
    pub misses: u64,
    /// Values that were evicted.
    pub evictions: u64,
    /// Bytes currently held.
    pub used: usize,
}

/// Result of a lookup.
pub enum CacheLookup<'a, K: CacheKey, V: ?Sized> {
    /// The cached value.
    Ready(Arc<V>),
    /// Another thread is loading the value.
    Loading(Arc<Flight<V>>),
    /// The caller has to load the value.
    Missing(Promise<'a, K, V>),
}

impl<K: CacheKey, V: ?Sized> Cache<K, V> {
    /// Creates an empty cache that holds at most `budget` bytes.
    pub fn new(budget: usize) -> Self {
        let recent = (budget / RECENT_SHARE).max(RECENT_BYTES).min(budget - budget / 4);
        let shard = || Shard { slots: HashMap::default(), ghosts: LruCache::unbounded() };
        Cache {
            shards: (0..SHARDS).map(|_| Mutex::new(shard())).collect(),
            hasher: quality::RandomState::default(),
            queue: Mutex::default(),
            kept_keys: Mutex::default(),
            recent: BudgetShare::of(recent),
            kept: BudgetShare::of(budget - recent),
            growth: AtomicUsize::new(0),
            most_growth: (budget / MOST_RECENT_SHARE).saturating_sub(recent),
            clock: AtomicU64::new(0),
            most_ghosts: (budget / BYTES_PER_GHOST / SHARDS).max(1),
            counts: CacheCounters::default(),
        }
    }

    /// Returns the budget in bytes.
    pub fn budget(&self) -> usize {
        self.recent.budget + self.kept.budget
    }

    /// Returns the budget of the recent share in bytes, before the share grows.
    pub fn recent_budget(&self) -> usize {
        self.recent.budget
    }

    /// Returns the size in bytes of the largest value that can be cached.
    pub fn most_kept(&self) -> usize {
        self.recent.budget.max(self.kept.budget - self.most_growth).saturating_sub(ENTRY_OVERHEAD)
    }

    /// Makes the recent share large enough for `bytes` of prefetched values, as far as its limit allows. Without this,
    /// the share would grow only after values have been evicted before their use.
    pub fn hold_prefetched(&self, bytes: usize) {
        let wanted = bytes.saturating_add(RECENT_BYTES).saturating_sub(self.recent.budget);
        self.growth.fetch_max(wanted.min(self.most_growth), Ordering::Relaxed);
    }

    /// Returns the current counters.
    pub fn statistics(&self) -> Statistics {
        Statistics {
            hits: self.counts.hits.load(Ordering::Relaxed),
            misses: self.counts.misses.load(Ordering::Relaxed),
            evictions: self.counts.evictions.load(Ordering::Relaxed),
            used: self.recent.used() + self.kept.used(),
        }
    }

    /// Returns the value of `key`. On a miss, `load` produces the value and its weight.
    ///
    /// Concurrent misses load the value once. A value larger than its share of the budget is returned but not cached.
    ///
    /// # Errors
    /// The error of `load`, for every thread that waited; errors are not cached. If `load` panics, the panic propagates
    /// to the caller that ran it and the waiting threads get an error. [`Error::Cancelled`] reaches only the cancelled
    /// caller: one of the waiting threads retries the load.
    pub fn get_or_load<W: Into<Weight>>(&self, key: K, load: impl FnOnce() -> Result<(Arc<V>, W)>) -> Result<Arc<V>> {
        loop {
            match self.find(key) {
                CacheLookup::Ready(value) => return Ok(value),
                CacheLookup::Loading(flight) => match flight.wait() {
                    // The loading thread was cancelled, but this one was not: retry.
                    Err(Error::Cancelled) => cancellation::check()?,
                    outcome => return outcome,
                },
                CacheLookup::Missing(promise) => {
                    // A cancelled thread may have produced an incomplete value.
                    return match load().and_then(|made| cancellation::check().map(|()| made)) {
                        Ok((value, weight)) => Ok(promise.fulfil(value, weight)),
                        Err(error) => Err(promise.fail(error)),
                    };
                }
            }
        }
    }

    /// Returns the value of `key` if it is cached, without counting a miss if it is not.
    pub fn get(&self, key: &K) -> Option<Arc<V>> {
        self.shard(key).slots.get_mut(key).and_then(|slot| self.hit(slot))
    }

    /// Passes the value of each key to `visit`, in order; `None` if it is not cached, without counting a miss.
    ///
    /// The entries of keys of the same neighbourhood are found before any of their values is touched, so that the
    /// processor waits for the memory of all of them at once.
    pub fn get_all(&self, keys: &[K], mut visit: impl FnMut(Option<Arc<V>>)) {
        for neighbours in keys.chunk_by(|one, next| one.neighbourhood() == next.neighbourhood()) {
            let Some(first) = neighbours.first() else { continue };
            let mut shard = self.shard(first);
            let counts = neighbours.iter().filter_map(|key| match shard.slots.get(key)? {
                Slot::Loading(_) => None,
                Slot::Recent(ready) | Slot::Kept(ready, _) => Some(Arc::strong_count(&ready.value)),
            });
            std::hint::black_box(counts.fold(0, usize::wrapping_add));
            for key in neighbours {
                visit(shard.slots.get_mut(key).and_then(|slot| self.hit(slot)));
            }
        }
    }

    /// Returns the value of a slot, if it is loaded, and counts a hit.
    fn hit(&self, slot: &mut Slot<V>) -> Option<Arc<V>> {
        let ready = match slot {
            Slot::Loading(_) => return None,
            Slot::Recent(ready) => ready,
            Slot::Kept(ready, last_use) => {
                *last_use = self.tick();
                ready
            }
        };
        self.counts.hits.fetch_add(1, Ordering::Relaxed);
        Some(ready.value.clone())
    }

    /// Looks a key up. On a miss the caller must load the value and settle the promise.
    pub fn find(&self, key: K) -> CacheLookup<'_, K, V> {
        let mut shard = self.shard(&key);
        match shard.slots.get_mut(&key) {
            Some(Slot::Loading(flight)) => return CacheLookup::Loading(flight.clone()),
            Some(slot) => {
                if let Some(value) = self.hit(slot) {
                    return CacheLookup::Ready(value);
                }
            }
            None => {}
        }
        self.counts.misses.fetch_add(1, Ordering::Relaxed);
        let flight = Arc::new(Flight::new());
        shard.slots.insert(key, Slot::Loading(flight.clone()));
        let returned = shard.ghosts.pop(&key).is_some();
        CacheLookup::Missing(Promise { cache: self, key, flight, returned, settled: false })
    }

    /// Returns whether the value is cached, without counting a hit or touching the value's recency.
    pub fn contains(&self, key: &K) -> bool {
        matches!(self.shard(key).slots.get(key), Some(Slot::Recent(_) | Slot::Kept(..)))
    }

    /// Returns whether the value is cached or its load is in flight, without counting a hit or touching its recency.
    pub fn contains_soon(&self, key: &K) -> bool {
        self.shard(key).slots.contains_key(key)
    }

    /// Returns whether a caller that needs a value only once should load it without the cache: if the value is not
    /// cached, and was not evicted recently. Then counts a miss, and remembers the key like an evicted key, so that the
    /// value enters the cache when it is needed again.
    pub fn try_bypass(&self, key: K) -> bool {
        let mut shard = self.shard(&key);
        let is_new = !shard.slots.contains_key(&key) && !shard.ghosts.contains(&key);
        if is_new {
            self.counts.misses.fetch_add(1, Ordering::Relaxed);
            self.remember(&mut shard, key);
        }
        is_new
    }

    /// Adds a key to the list of recently evicted keys.
    fn remember(&self, shard: &mut Shard<K, V>, key: K) {
        shard.ghosts.put(key, ());
        if shard.ghosts.len() > self.most_ghosts {
            shard.ghosts.pop_lru();
        }
    }

    fn shard(&self, key: &K) -> MutexGuard<'_, Shard<K, V>> {
        lock(&self.shards[self.shard_of(key)])
    }

    /// Returns the number of the shard of a key.
    fn shard_of(&self, key: &K) -> usize {
        self.hasher.hash_one(key.neighbourhood()) as usize % SHARDS
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// Inserts a loaded value if its share can hold it. `returned` tells whether the key was evicted recently.
    fn add(&self, key: K, value: Arc<V>, weight: Weight, returned: bool) {
        let Weight { bytes: weight, in_turn } = weight;
        let ready = Ready { value, weight };
        let is_heavy = weight > self.recent.budget / HEAVY_SHARE && in_turn.max(weight) > self.recent.budget;
        // With a small budget, `recent` is the larger share.
        let is_heavy = is_heavy && self.kept.budget > self.recent.budget;
        let is_kept = returned && !self.grow(weight);
        let mut shard = self.shard(&key);
        if (is_kept || is_heavy) && weight <= self.kept.budget - self.most_growth {
            self.kept.used.fetch_add(weight, Ordering::Relaxed);
            let used = self.tick();
            shard.slots.insert(key, Slot::Kept(ready, used));
            lock(&self.kept_keys).insert(used, key);
        } else if weight <= self.recent.budget {
            self.recent.used.fetch_add(weight, Ordering::Relaxed);
            shard.slots.insert(key, Slot::Recent(ready));
            lock(&self.queue).push_back(key);
        } else {
            shard.slots.remove(&key);
        }
        drop(shard);
        self.retire();
        self.evict();
    }

    /// Enlarges the recent share for a value that was evicted too early; returns whether that was possible.
    fn grow(&self, weight: usize) -> bool {
        let grown = |growth: usize| growth.checked_add(weight).filter(|growth| *growth <= self.most_growth);
        self.growth.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).is_ok()
    }

    /// Evicts recent values, oldest first, until their share is within its budget.
    fn retire(&self) {
        while self.recent.used() > self.recent.budget + self.growth.load(Ordering::Relaxed) {
            let Some(key) = lock(&self.queue).pop_front() else { return };
            let mut shard = self.shard(&key);
            // The queue holds only keys of recent values, each once.
            let Some(Slot::Recent(ready)) = shard.slots.remove(&key) else { continue };
            self.remember(&mut shard, key);
            drop(shard);
            self.count_out(&self.recent, &ready);
        }
    }

    /// Evicts kept values, least recently used first, until their share is within its budget.
    fn evict(&self) {
        while self.kept.used() > self.kept.budget - self.growth.load(Ordering::Relaxed) {
            let Some((used, key)) = lock(&self.kept_keys).pop_first() else { return };
            let mut shard = self.shard(&key);
            match shard.slots.get(&key) {
                Some(&Slot::Kept(_, last_use)) if last_use > used => drop(lock(&self.kept_keys).insert(last_use, key)),
                Some(Slot::Kept(..)) => {
                    let evicted = shard.slots.remove(&key);
                    drop(shard);
                    if let Some(Slot::Kept(ready, _)) = evicted {
                        self.count_out(&self.kept, &ready);
                    }
                }
                _ => {}
            }
        }
    }

    fn count_out(&self, share: &BudgetShare, ready: &Ready<V>) {
        share.used.fetch_sub(ready.weight, Ordering::Relaxed);
        self.counts.evictions.fetch_add(1, Ordering::Relaxed);
    }
}

/// The obligation to load a value for which others wait. If dropped unsettled, for example by a panic, the waiting
/// threads get an error.
pub struct Promise<'a, K: CacheKey, V: ?Sized> {
    cache: &'a Cache<K, V>,
    key: K,
    flight: Arc<Flight<V>>,
    /// Whether the key was evicted recently.
    returned: bool,
    settled: bool,
}

impl<K: CacheKey, V: ?Sized> Promise<'_, K, V> {
    /// Hands the value to all waiting threads and to the cache.
    pub fn fulfil(mut self, value: Arc<V>, weight: impl Into<Weight>) -> Arc<V> {
        let weight = weight.into();
        let weight = Weight { bytes: weight.bytes.saturating_add(ENTRY_OVERHEAD), ..weight };
        self.cache.add(self.key, value.clone(), weight, self.returned);
        self.tell(Ok(value.clone()));
        value
    }

    /// Hands the error to all waiting threads; later lookups try again.
    pub fn fail(mut self, error: Error) -> Error {
        drop(self.cache.shard(&self.key).slots.remove(&self.key));
        self.tell(Err(error.clone()));
        error
    }

    fn tell(&mut self, outcome: Result<Arc<V>>) {
        // Called once: a settled promise is consumed.
        self.flight.end(outcome);
        self.settled = true;
    }
}

impl<K: CacheKey, V: ?Sized> Drop for Promise<'_, K, V> {
    fn drop(&mut self) {
        if !self.settled {
            drop(self.cache.shard(&self.key).slots.remove(&self.key));
            self.tell(Err(Error::internal("a decoder stopped unexpectedly")));
        }
    }
}

impl<V: ?Sized> Flight<V> {
    fn new() -> Self {
        Flight { state: Mutex::new(FlightState { outcome: None, is_awaited: false }), ended: Condvar::new() }
    }

    /// Waits for the load and returns its value.
    ///
    /// # Errors
    /// The error of the load; [`Error::Cancelled`] if the loading thread or this one was cancelled.
    pub fn wait(&self) -> Result<Arc<V>> {
        let mut state = lock(&self.state);
        loop {
            if let Some(outcome) = &state.outcome {
                return outcome.clone();
            }
            state.is_awaited = true;
            state = cancellation::wait(&self.ended, state)?;
        }
    }

    fn end(&self, outcome: Result<Arc<V>>) {
        let mut state = lock(&self.state);
        state.outcome.get_or_insert(outcome);
        if state.is_awaited {
            self.ended.notify_all();
        }
    }
}

/// Ignores poisoning: panics can only happen between two consistent states.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
