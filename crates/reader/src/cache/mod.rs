//! What was decoded or parsed, kept under one byte budget.
//!
//! A value is looked up by key; where it is missing, one thread makes it while the others that want it
//! wait for that one. The lock is sharded, and never held while a value is made, so readers of different
//! tiles do not wait for each other.
//!
//! A value that is new stays for a short while, however often it is used in that time: who reads an array
//! from front to back uses a tile many times and then never again. Only what is wanted anew after it left is
//! kept for long, least recently used first out (the 2Q policy of Johnson and Shasha). So a scan does not
//! push out what others need again, and its memory is that of a few tiles, used over and over, which the
//! processor's caches hold.

mod buffer;

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;
use lru::LruCache;

pub use buffer::{Buffer, Buffers};

use tilefs_format::error::{Error, Result};

use crate::threads::cancellation;

/// Shards of the lock. More than the cores of most machines, few enough that each is used.
const SHARDS: usize = 32;

/// What an entry costs beside its value: the key, the links of the list, the reference counts.
const ENTRY_OVERHEAD: usize = 160;

/// New values get this part of the budget, but at least [`RECENT_BYTES`] if that is not most of it.
const RECENT_SHARE: usize = 14;

/// Enough for what is read ahead of the readers, and for what lies around them.
const RECENT_BYTES: usize = 48 << 20;

/// Values heavier than this part of the share of new ones took long to make: they are kept at once.
const HEAVY_SHARE: usize = 64;

/// One key that left is remembered (in a ghost list) for so many bytes of budget.
const BYTES_OF_A_GHOST: usize = 32 << 10;

struct Ready<V: ?Sized> {
    value: Arc<V>,
    weight: usize,
}

struct Kept<V: ?Sized> {
    ready: Ready<V>,
    /// The time of [`Cache::clock`].
    last_use: u64,
}

/// A value that is new.
enum Slot<V: ?Sized> {
    Ready(Ready<V>),
    Loading(Arc<Flight<V>>),
}

/// The entries of some of the keys. Each key is in at most one of these.
struct Shard<K, V: ?Sized> {
    /// New values, and those on their way.
    recent: HashMap<K, Slot<V>, RandomState>,
    /// Values that were wanted again after they had left `recent`, by last use.
    kept: LruCache<K, Kept<V>>,
    /// Keys of values that left `recent` not long ago.
    ghosts: LruCache<K, ()>,
}

/// A value being made, and the readers that wait for it.
pub struct Flight<V: ?Sized> {
    state: Mutex<FlightState<V>>,
    ended: Condvar,
}

struct FlightState<V: ?Sized> {
    outcome: Option<Result<Arc<V>>>,
    /// Whether anybody waits for it: waking is a system call, even where nobody does.
    is_awaited: bool,
}

/// A cache of values by keys. Its memory is bounded by the budget plus the values that readers hold at the moment.
pub struct Cache<K, V: ?Sized> {
    shards: Vec<Mutex<Shard<K, V>>>,
    hasher: RandomState,
    /// The keys of new values, oldest first.
    queue: Mutex<VecDeque<K>>,
    recent: Share,
    kept: Share,
    /// Counts the uses of kept values.
    clock: AtomicU64,
    /// How many keys that left each shard remembers.
    most_ghosts: usize,
    counts: Counts,
}

/// A part of the budget, and how much of it is used.
struct Share {
    budget: usize,
    used: AtomicUsize,
}

impl Share {
    fn of(budget: usize) -> Self {
        Share { budget, used: AtomicUsize::new(0) }
    }

    fn is_exceeded(&self) -> bool {
        self.used.load(Ordering::Relaxed) > self.budget
    }
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

/// What a look-up finds.
pub enum Lookup<'a, K: Copy + Eq + Hash, V: ?Sized> {
    Ready(Arc<V>),
    /// Another thread makes it.
    Loading(Arc<Flight<V>>),
    /// It is for the caller to make.
    Missing(Promise<'a, K, V>),
}

impl<K: Copy + Eq + Hash, V: ?Sized> Cache<K, V> {
    /// An empty cache that holds at most `budget` bytes.
    pub fn new(budget: usize) -> Self {
        let recent = (budget / RECENT_SHARE).max(RECENT_BYTES).min(budget - budget / 4);
        let shard = || Shard { recent: HashMap::default(), kept: LruCache::unbounded(), ghosts: LruCache::unbounded() };
        Cache {
            shards: (0..SHARDS).map(|_| Mutex::new(shard())).collect(),
            hasher: RandomState::default(),
            queue: Mutex::default(),
            recent: Share::of(recent),
            kept: Share::of(budget - recent),
            clock: AtomicU64::new(0),
            most_ghosts: (budget / BYTES_OF_A_GHOST / SHARDS).max(1),
            counts: Counts::default(),
        }
    }

    /// The budget in bytes.
    pub fn budget(&self) -> usize {
        self.recent.budget + self.kept.budget
    }

    /// The most bytes that a value may have to be kept.
    pub fn most_kept(&self) -> usize {
        self.recent.budget.max(self.kept.budget).saturating_sub(ENTRY_OVERHEAD)
    }

    /// What the cache has done so far.
    pub fn statistics(&self) -> Statistics {
        Statistics {
            hits: self.counts.hits.load(Ordering::Relaxed),
            misses: self.counts.misses.load(Ordering::Relaxed),
            evictions: self.counts.evictions.load(Ordering::Relaxed),
            used: self.recent.used.load(Ordering::Relaxed) + self.kept.used.load(Ordering::Relaxed),
        }
    }

    /// The value of `key`; if it is not here, `load` makes it and says how many bytes it weighs.
    /// Several callers that miss at once make it once. A value over its share of the budget is
    /// returned, not kept.
    ///
    /// # Errors
    /// What `load` gives, to all who waited for it; errors are not kept. A panic in `load` reaches the
    /// caller that ran it, the others get an error. [`Error::Cancelled`] reaches the cancelled caller alone: another of
    /// those who wait makes the value.
    pub fn get_or_load(&self, key: K, load: impl FnOnce() -> Result<(Arc<V>, usize)>) -> Result<Arc<V>> {
        loop {
            match self.find(key) {
                Lookup::Ready(value) => return Ok(value),
                Lookup::Loading(flight) => match flight.wait() {
                    // Whoever made it gave up, and this thread did not: it goes on in its place.
                    Err(Error::Cancelled) => cancellation::check()?,
                    outcome => return outcome,
                },
                Lookup::Missing(promise) => {
                    // Parts that it was too late for may be left out of what a cancelled thread made.
                    return match load().and_then(|made| cancellation::check().map(|()| made)) {
                        Ok((value, weight)) => Ok(promise.fulfil(value, weight)),
                        Err(error) => Err(promise.fail(error)),
                    };
                }
            }
        }
    }

    /// Looks a key up. Whoever finds that it is missing makes the value.
    pub fn find(&self, key: K) -> Lookup<'_, K, V> {
        let mut shard = self.shard(&key);
        let ready = match shard.recent.get(&key) {
            Some(Slot::Loading(flight)) => return Lookup::Loading(flight.clone()),
            Some(Slot::Ready(ready)) => Some(ready.value.clone()),
            None => None,
        };
        let kept = |kept: &mut Kept<V>| {
            kept.last_use = self.tick();
            kept.ready.value.clone()
        };
        if let Some(value) = ready.or_else(|| shard.kept.get_mut(&key).map(kept)) {
            self.counts.hits.fetch_add(1, Ordering::Relaxed);
            return Lookup::Ready(value);
        }
        self.counts.misses.fetch_add(1, Ordering::Relaxed);
        let flight = Arc::new(Flight::new());
        shard.recent.insert(key, Slot::Loading(flight.clone()));
        let returned = shard.ghosts.pop(&key).is_some();
        Lookup::Missing(Promise { cache: self, key, flight, returned, settled: false })
    }

    /// Whether the value is here, without making it or counting the look-up as a use.
    pub fn contains(&self, key: &K) -> bool {
        let shard = self.shard(key);
        shard.kept.contains(key) || matches!(shard.recent.get(key), Some(Slot::Ready(_)))
    }

    fn shard(&self, key: &K) -> MutexGuard<'_, Shard<K, V>> {
        lock(&self.shards[self.hasher.hash_one(key) as usize % SHARDS])
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// Adds a value that was made, if there is a share that can hold it. `returned`: it was here before.
    fn add(&self, key: K, ready: Ready<V>, returned: bool) {
        let weight = ready.weight;
        // In a small budget there is more room for new ones.
        let heavy = weight > self.recent.budget / HEAVY_SHARE && self.kept.budget > self.recent.budget;
        let mut shard = self.shard(&key);
        if (returned || heavy) && weight <= self.kept.budget {
            self.kept.used.fetch_add(weight, Ordering::Relaxed);
            shard.recent.remove(&key);
            shard.kept.put(key, Kept { ready, last_use: self.tick() });
        } else if weight <= self.recent.budget {
            self.recent.used.fetch_add(weight, Ordering::Relaxed);
            shard.recent.insert(key, Slot::Ready(ready));
            lock(&self.queue).push_back(key);
        } else {
            shard.recent.remove(&key);
        }
        drop(shard);
        self.retire();
        self.evict();
    }

    /// Takes new values out, oldest first, until they keep to their share.
    fn retire(&self) {
        while self.recent.is_exceeded() {
            let Some(key) = lock(&self.queue).pop_front() else { return };
            let mut shard = self.shard(&key);
            // Only values that are ready are in the queue, each once.
            let Some(Slot::Ready(ready)) = shard.recent.remove(&key) else { continue };
            shard.ghosts.put(key, ());
            if shard.ghosts.len() > self.most_ghosts {
                shard.ghosts.pop_lru();
            }
            drop(shard);
            self.count_out(&self.recent, &ready);
        }
    }

    /// Takes kept values out, least recently used of all shards first, until they keep to their share.
    fn evict(&self) {
        let last_use = |shard: &Mutex<Shard<K, V>>| lock(shard).kept.peek_lru().map(|(_, kept)| kept.last_use);
        while self.kept.is_exceeded() {
            let oldest = self.shards.iter().filter_map(|shard| Some((last_use(shard)?, shard))).min_by_key(|one| one.0);
            let Some((_, shard)) = oldest else { return };
            let evicted = lock(shard).kept.pop_lru();
            if let Some((_, kept)) = evicted {
                self.count_out(&self.kept, &kept.ready);
            }
        }
    }

    fn count_out(&self, share: &Share, ready: &Ready<V>) {
        share.used.fetch_sub(ready.weight, Ordering::Relaxed);
        self.counts.evictions.fetch_add(1, Ordering::Relaxed);
    }
}

/// A value that its holder has to make: others wait for it. Dropped without a value, as by a panic, they get an error.
pub struct Promise<'a, K: Copy + Eq + Hash, V: ?Sized> {
    cache: &'a Cache<K, V>,
    key: K,
    flight: Arc<Flight<V>>,
    /// Whether the value was here not long ago.
    returned: bool,
    settled: bool,
}

impl<K: Copy + Eq + Hash, V: ?Sized> Promise<'_, K, V> {
    /// Gives the value, of so many bytes, to all who wait and to the cache.
    pub fn fulfil(mut self, value: Arc<V>, weight: usize) -> Arc<V> {
        let weight = weight.saturating_add(ENTRY_OVERHEAD);
        self.cache.add(self.key, Ready { value: value.clone(), weight }, self.returned);
        self.tell(Ok(value.clone()));
        value
    }

    /// Tells all who wait why there is no value; who asks later tries again.
    pub fn fail(mut self, error: Error) -> Error {
        drop(self.cache.shard(&self.key).recent.remove(&self.key));
        self.tell(Err(error.clone()));
        error
    }

    fn tell(&mut self, outcome: Result<Arc<V>>) {
        // Which is done once: a settled promise tells nothing more.
        self.flight.end(outcome);
        self.settled = true;
    }
}

impl<K: Copy + Eq + Hash, V: ?Sized> Drop for Promise<'_, K, V> {
    fn drop(&mut self) {
        if !self.settled {
            drop(self.cache.shard(&self.key).recent.remove(&self.key));
            self.tell(Err(Error::internal("a decoder stopped unexpectedly")));
        }
    }
}

impl<V: ?Sized> Flight<V> {
    fn new() -> Self {
        Flight { state: Mutex::new(FlightState { outcome: None, is_awaited: false }), ended: Condvar::new() }
    }

    /// The value, as soon as the thread that makes it has done so.
    ///
    /// # Errors
    /// That thread's; [`Error::Cancelled`] where that thread was cancelled, or this one.
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

/// A poisoned lock only means that another thread panicked between two consistent states.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::threads::cancellation::Token;

    fn key(number: u64) -> u64 {
        number
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
                        Ok((Arc::new(vec![7u8; 10]), 10))
                    });
                    assert_eq!(*value.unwrap(), vec![7u8; 10]);
                });
            }
        });
        assert_eq!(made.load(Ordering::SeqCst), 1);
    }

    fn fill(cache: &Cache<u64, Vec<u8>>, tiles: std::ops::Range<u64>) {
        for tile in tiles {
            cache.get_or_load(key(tile), || Ok((Arc::new(vec![0u8; 1000]), 1000))).unwrap();
            assert!(cache.statistics().used <= cache.budget());
        }
    }

    #[test]
    fn the_oldest_leave_when_the_budget_is_used_up() {
        let cache = Cache::new(100_000);
        fill(&cache, 0..1000);
        let statistics = cache.statistics();
        assert_eq!(statistics.misses, 1000);
        assert!(statistics.evictions >= 900, "{statistics:?}");
        let kept: Vec<u64> = (0..1000).filter(|&tile| cache.contains(&key(tile))).collect();
        assert_eq!(kept.len() as u64, 1000 - statistics.evictions);
        assert_eq!(kept, (1000 - kept.len() as u64..1000).collect::<Vec<_>>(), "the newest are left");
    }

    #[test]
    fn what_comes_back_outlives_a_scan() {
        let cache = Cache::new(100_000_000);
        // Used often, but only while they are new.
        for _ in 0..10 {
            fill(&cache, 0..5);
        }
        fill(&cache, 1_000_000..1_100_000);
        assert!((0..5).all(|tile| !cache.contains(&key(tile))));
        // Wanted again not long after it left, as is the newest that did.
        let evicted = (1_000_000..1_100_000).rev().find(|&tile| !cache.contains(&key(tile))).unwrap();
        fill(&cache, evicted..evicted + 1);
        fill(&cache, 2_000_000..2_200_000);
        assert!(cache.contains(&key(evicted)));
        assert!(cache.statistics().used < 80_000_000, "a scan takes no more than the share of what is new");
    }

    #[test]
    fn kept_values_leave_when_their_share_is_used_up() {
        let cache = Cache::new(64_000);
        for tile in 0..100 {
            fill(&cache, tile..tile + 1);
            fill(&cache, 1_000_000..1_000_100);
            fill(&cache, tile..tile + 1);
        }
        assert!(cache.kept.used.load(Ordering::Relaxed) <= cache.kept.budget);
        assert!(cache.contains(&key(99)));
    }

    #[test]
    fn the_heavy_are_kept_at_once() {
        let cache = Cache::new(1 << 30);
        cache.get_or_load(key(1), || Ok((Arc::new(vec![1u8]), 8 << 20))).unwrap();
        fill(&cache, 1000..200_000);
        assert!(cache.contains(&key(1)));
    }

    #[test]
    fn of_few_heavy_ones_the_least_recently_used_leaves() {
        let cache = Cache::new(1 << 30);
        let weight = 16 << 20;
        let load = |number| drop(cache.get_or_load(key(number), || Ok((Arc::new(vec![1u8]), weight))).unwrap());
        let here = || (0..1000).filter(|number| cache.contains(&key(*number))).collect::<Vec<u64>>();
        (0..500).for_each(load);
        let count = (cache.kept.budget / (weight + ENTRY_OVERHEAD)) as u64;
        assert_eq!(here(), (500 - count..500).collect::<Vec<_>>());
        // One that is used again is the newest of all.
        load(500 - count);
        (500..500 + count - 1).for_each(load);
        assert_eq!(here(), [500 - count].into_iter().chain(500..500 + count - 1).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_larger_than_the_budget_is_given_but_not_kept() {
        let cache = Cache::new(100);
        assert_eq!(cache.get_or_load(key(0), || Ok((Arc::new(5u32), 1 << 30))).map(|value| *value).unwrap(), 5);
        assert!(!cache.contains(&key(0)));
        assert_eq!(cache.statistics().used, 0);
    }

    #[test]
    fn nothing_keeps_a_value_that_left() {
        let cache = Cache::new(2000);
        let value = Arc::downgrade(&cache.get_or_load(key(0), || Ok((Arc::new([0u8; 8]), 600))).unwrap());
        assert!(value.upgrade().is_some());
        cache.get_or_load(key(1), || Ok((Arc::new([1u8; 8]), 600))).unwrap();
        assert!(value.upgrade().is_none());
    }

    #[test]
    fn errors_are_told_and_not_kept() {
        let cache = Cache::new(1000);
        assert!(cache.get_or_load(key(0), || Err(Error::damaged("no"))).is_err());
        assert_eq!(*cache.get_or_load(key(0), || Ok((Arc::new(1u32), 4))).unwrap(), 1);
    }

    #[test]
    fn a_panic_frees_those_who_wait() {
        let cache = Cache::new(1000);
        thread::scope(|scope| {
            let panicking = scope.spawn(|| {
                let _ = cache.get_or_load(key(0), || {
                    thread::sleep(Duration::from_millis(50));
                    panic!("on purpose")
                });
            });
            thread::sleep(Duration::from_millis(20));
            let waited = cache.get_or_load(key(0), || Ok((Arc::new(1u32), 4)));
            assert!(waited.is_err());
            assert!(panicking.join().is_err());
        });
        assert_eq!(*cache.get_or_load(key(0), || Ok((Arc::new(2u32), 4))).unwrap(), 2);
    }

    /// Of eight that want a value, any number is cancelled at any time: all others get it.
    #[test]
    fn whoever_is_cancelled_the_others_get_the_value() {
        for round in 0..60u64 {
            let (cancelled, cache) = (round.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56, Cache::new(1 << 20));
            let tokens: Vec<Token> = (0..8).map(|_| Token::new()).collect();
            let (made, barrier) = (AtomicUsize::new(0), Barrier::new(9));
            thread::scope(|scope| {
                for (number, token) in tokens.iter().enumerate() {
                    let (cache, made, barrier) = (&cache, &made, &barrier);
                    scope.spawn(move || {
                        barrier.wait();
                        let load = || {
                            for _ in 0..20 {
                                thread::sleep(Duration::from_micros(50));
                                cancellation::check()?;
                            }
                            made.fetch_add(1, Ordering::SeqCst);
                            Ok((Arc::new(round), 8))
                        };
                        match token.cover(|| cache.get_or_load(key(1), load)) {
                            Ok(value) => assert_eq!(*value, round),
                            Err(error) => assert!(error.is_cancelled() && cancelled >> number & 1 == 1, "{error}"),
                        }
                    });
                }
                barrier.wait();
                for number in (0..8).filter(|number| cancelled >> number & 1 == 1) {
                    thread::sleep(Duration::from_micros(round % 300));
                    tokens[number].cancel();
                }
            });
            assert!(made.into_inner() <= 1 && !matches!(cache.find(key(1)), Lookup::Loading(_)));
            assert_eq!(*cache.get_or_load(key(1), || Ok((Arc::new(round), 8))).unwrap(), round);
        }
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
                        Ok((Arc::new(tile), 8))
                    })
                });
            }
        });
    }
}
