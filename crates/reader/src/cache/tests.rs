//! Hits, misses, evictions and concurrent loads of a cache.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use tilefs_threads::cancellation::Token;

use super::*;

impl CacheKey for u64 {
    fn neighbourhood(&self) -> u64 {
        *self / 4
    }
}

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

/// Reads working sets of twice the recent share one after the other, each twice.
#[test]
fn a_working_set_that_returns_comes_to_fit() {
    let cache = Cache::new(1 << 30);
    let load = |tile: u64| cache.get_or_load(key(tile), || Ok((Arc::new(Vec::<u8>::new()), 1 << 20))).map(drop);
    let set = 2 * (cache.recent.budget >> 20) as u64;
    for number in 0..20 {
        let before = cache.statistics().misses;
        for _ in 0..2 {
            (number * set..(number + 1) * set).try_for_each(load).unwrap();
        }
        let misses = cache.statistics().misses - before;
        assert!(if number == 0 { misses > set } else { misses == set }, "{misses} misses of {set} in set {number}");
    }
    assert_eq!(cache.kept.used(), 0, "values of a set that has passed are not kept");
    assert!(cache.statistics().used <= cache.budget());
}

#[test]
fn all_values_are_found_in_the_order_of_their_keys() {
    let cache = Cache::new(1 << 20);
    fill(&cache, 0..10);
    let before = cache.statistics();
    let CacheLookup::Missing(_promise) = cache.find(key(11)) else { panic!("not cached yet") };
    let mut found = Vec::new();
    cache.get_all(&[2, 3, 4, 99, 11, 8, 2], |value| found.push(value.is_some()));
    assert_eq!(found, [true, true, true, false, false, true, true]);
    let after = cache.statistics();
    assert_eq!((after.hits - before.hits, after.misses - before.misses), (5, 1), "only the load is a miss");
}

#[test]
fn oldest_values_are_evicted_over_budget() {
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
fn a_value_missed_again_survives_a_scan() {
    let cache = Cache::new(100_000_000);
    // Hit often, but only while new.
    for _ in 0..10 {
        fill(&cache, 0..5);
    }
    fill(&cache, 1_000_000..1_100_000);
    assert!((0..5).all(|tile| !cache.contains(&key(tile))));
    // Requested again soon after eviction: this is the most recently evicted key.
    let evicted = (1_000_000..1_100_000).rev().find(|&tile| !cache.contains(&key(tile))).unwrap();
    fill(&cache, evicted..evicted + 1);
    fill(&cache, 2_000_000..2_200_000);
    assert!(cache.contains(&key(evicted)));
    assert!(cache.statistics().used < 80_000_000, "a scan takes no more than the share of what is new");
}

#[test]
fn kept_values_are_evicted_over_their_share() {
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
fn heavy_values_are_kept_at_once() {
    let cache = Cache::new(1 << 30);
    cache.get_or_load(key(1), || Ok((Arc::new(vec![1u8]), 8 << 20))).unwrap();
    fill(&cache, 1000..200_000);
    assert!(cache.contains(&key(1)));
}

#[test]
fn heavy_values_of_one_reader_are_kept_only_if_they_exceed_the_recent_share() {
    let cache = Cache::new(1 << 30);
    let bytes = 8 << 20;
    let scan = |numbers: std::ops::Range<u64>, in_turn: usize| {
        for number in numbers {
            let weight = Weight { bytes, in_turn: in_turn * bytes };
            cache.get_or_load(key(number), || Ok((Arc::new(vec![1u8]), weight))).unwrap();
        }
    };
    // One after the other: a few are held.
    scan(0..100, 1);
    assert_eq!((0..100).filter(|number| cache.contains(&key(*number))).count(), cache.recent.budget / bytes);
    // In turn, but all fit: so do they.
    scan(100..200, 8);
    assert_eq!(cache.kept.used(), 0);
    // More than fit are kept, and found again.
    let misses = cache.statistics().misses;
    (0..10).for_each(|_| scan(1000..1016, 16));
    assert_eq!(cache.statistics().misses - misses, 16);
}

#[test]
fn a_value_that_bypassed_the_cache_enters_it_when_it_is_needed_again() {
    let cache = Cache::new(1 << 30);
    assert!(cache.try_bypass(key(1)));
    assert!(!cache.contains(&key(1)) && cache.statistics().misses == 1);
    assert!(!cache.try_bypass(key(1)), "it is needed again");
    fill(&cache, 1..3);
    assert!(!cache.try_bypass(key(1)) && !cache.try_bypass(key(2)), "they are cached");
    let CacheLookup::Missing(promise) = cache.find(key(3)) else { panic!("a value from nowhere") };
    assert!(!cache.try_bypass(key(3)), "it is being loaded");
    drop(promise);
    assert!(cache.try_bypass(key(3)));
    // Keys of values that were not cached take no more memory than those of evicted ones.
    assert!((1000..1_000_000).all(|number| cache.try_bypass(key(number))));
    let remembered: usize = cache.shards.iter().map(|shard| lock(shard).ghosts.len()).sum();
    assert!(remembered <= cache.most_ghosts * SHARDS && cache.statistics().used < 10_000, "{remembered} keys");
}

#[test]
fn prefetched_values_stay_until_they_are_read() {
    let cache = Cache::new(1 << 30);
    let prefetched = 128 << 20;
    cache.hold_prefetched(prefetched);
    let weight = 256 << 10;
    let load = |number| drop(cache.get_or_load(key(number), || Ok((Arc::new(vec![1u8]), weight))).unwrap());
    let ahead = (prefetched / weight) as u64;
    (0..ahead).for_each(load);
    for number in 0..10_000 {
        load(number + ahead);
        load(number);
    }
    let misses = cache.statistics().misses;
    assert_eq!(misses, 10_000 + ahead);
    assert!(cache.statistics().used <= (1 << 30) / 4);
    // With a small budget the limit holds.
    let small = Cache::<u64, Vec<u8>>::new(64 << 20);
    small.hold_prefetched(1 << 30);
    assert_eq!(small.growth.load(Ordering::Relaxed), small.most_growth);
}

#[test]
fn eviction_of_heavy_values_is_exact_lru() {
    let cache = Cache::new(1 << 30);
    let weight = 16 << 20;
    let load = |number| drop(cache.get_or_load(key(number), || Ok((Arc::new(vec![1u8]), weight))).unwrap());
    let here = || (0..1000).filter(|number| cache.contains(&key(*number))).collect::<Vec<u64>>();
    (0..500).for_each(load);
    let count = (cache.kept.budget / (weight + ENTRY_OVERHEAD)) as u64;
    assert_eq!(here(), (500 - count..500).collect::<Vec<_>>());
    // A hit makes a value the most recently used.
    load(500 - count);
    (500..500 + count - 1).for_each(load);
    assert_eq!(here(), [500 - count].into_iter().chain(500..500 + count - 1).collect::<Vec<_>>());
}

#[test]
fn a_value_over_budget_is_returned_but_not_cached() {
    let cache = Cache::new(100);
    assert_eq!(cache.get_or_load(key(0), || Ok((Arc::new(5u32), 1 << 30))).map(|value| *value).unwrap(), 5);
    assert!(!cache.contains(&key(0)));
    assert_eq!(cache.statistics().used, 0);
}

#[test]
fn an_evicted_value_is_dropped() {
    let cache = Cache::new(2000);
    let value = Arc::downgrade(&cache.get_or_load(key(0), || Ok((Arc::new([0u8; 8]), 600))).unwrap());
    assert!(value.upgrade().is_some());
    cache.get_or_load(key(1), || Ok((Arc::new([1u8; 8]), 600))).unwrap();
    assert!(value.upgrade().is_none());
}

#[test]
fn errors_are_returned_and_not_cached() {
    let cache = Cache::new(1000);
    assert!(cache.get_or_load::<usize>(key(0), || Err(Error::damaged("no"))).is_err());
    assert_eq!(*cache.get_or_load(key(0), || Ok((Arc::new(1u32), 4))).unwrap(), 1);
}

#[test]
fn a_panicking_load_wakes_waiting_threads() {
    let (cache, inside, go) = (Cache::new(1000), Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        let panicking = scope.spawn(|| {
            let _ = cache.get_or_load::<usize>(key(0), || {
                inside.wait();
                go.wait();
                panic!("on purpose")
            });
        });
        inside.wait();
        let CacheLookup::Loading(flight) = cache.find(key(0)) else { panic!("it is in flight") };
        go.wait();
        assert!(flight.wait().is_err());
        assert!(panicking.join().is_err());
    });
    assert_eq!(*cache.get_or_load(key(0), || Ok((Arc::new(2u32), 4))).unwrap(), 2);
}

/// Cancels any subset of eight concurrent callers at any time: all others get the value.
#[test]
fn callers_that_are_not_cancelled_get_the_value() {
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
        assert!(made.into_inner() <= 1 && !matches!(cache.find(key(1)), CacheLookup::Loading(_)));
        assert_eq!(*cache.get_or_load(key(1), || Ok((Arc::new(round), 8))).unwrap(), round);
    }
}

#[test]
fn different_keys_do_not_wait_for_each_other() {
    let cache = Cache::new(1000);
    let barrier = Barrier::new(2);
    // Both loaders must be inside at once, or the test hangs.
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

#[test]
fn only_what_is_cached_is_found_without_a_load() {
    let cache = Cache::<u64, Vec<u8>>::new(1 << 20);
    assert!(cache.get(&key(1)).is_none() && cache.statistics().misses == 0);
    // While a load is under way there is nothing yet.
    let CacheLookup::Missing(promise) = cache.find(key(1)) else { panic!("nothing was cached") };
    assert!(cache.get(&key(1)).is_none());
    promise.fulfil(Arc::new(vec![7]), 1);
    // Small values are recent, heavy ones are kept at once.
    let heavy = cache.recent.budget / HEAVY_SHARE + 1;
    cache.get_or_load(key(2), || Ok((Arc::new(vec![8]), heavy))).unwrap();
    assert_eq!([1, 2].map(|number| *cache.get(&key(number)).unwrap().first().unwrap()), [7, 8]);
    assert_eq!((cache.statistics().hits, cache.statistics().misses), (2, 2));
}

/// Consecutive chunks of a tile are in different shards, whatever the seed of the hash.
#[test]
fn consecutive_keys_spread_over_the_shards() {
    #[derive(Clone, Copy, PartialEq, Eq, Hash)]
    struct Key {
        file: u64,
        tile: u64,
        chunk: Option<u32>,
    }
    impl CacheKey for Key {
        fn neighbourhood(&self) -> Self {
            Key { tile: self.tile / 16, ..*self }
        }
    }
    for _ in 0..2000 {
        let cache = Cache::<Key, [u8]>::new(1 << 20);
        let mut keys = [0; SHARDS];
        for chunk in 0..4 * SHARDS as u32 {
            let key = Key { file: 0, tile: 0, chunk: Some(chunk) };
            keys[cache.shard_of(&key)] += 1;
        }
        assert!(keys.iter().all(|keys| *keys <= 24), "{keys:?}");
    }
}
