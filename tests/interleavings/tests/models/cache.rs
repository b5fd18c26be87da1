//! Models of the cache's single-flight loads, and of the pools of buffers.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;
use tilefs_base::error::{Error, Result};
use tilefs_interleavings::cache::{BufferPool, Cache, CacheLookup};
use tilefs_interleavings::cancellation::{POLL_INTERVAL, Token};
use tilefs_interleavings::fuse::reply_buffers::ReplyBuffers;
use tilefs_interleavings::proof::{Model, check, prove};
use tilefs_interleavings::source;
use tilefs_interleavings::sync::advance;

type Values = Arc<Cache<u8, usize>>;

/// Starts a thread that gets a value, which `load` takes a while to load.
fn get(
    values: &Values,
    key: u8,
    load: impl FnOnce() -> Result<usize> + Send + 'static,
) -> thread::JoinHandle<Result<usize>> {
    let values = Arc::clone(values);
    let load = move || {
        thread::yield_now();
        Ok((Arc::new(load()?), 8))
    };
    thread::spawn(move || values.get_or_load(key, load).map(|value| *value))
}

fn values() -> Values {
    Arc::new(Cache::new(1 << 20))
}

fn two_misses_load_once() {
    let (values, loads) = (values(), Arc::new(AtomicUsize::new(0)));
    let load = move || values.get_or_load(1, || Ok((Arc::new(loads.fetch_add(1, Ordering::SeqCst)), 8)));
    let other = thread::spawn(load.clone());
    assert!(*load().unwrap() == 0 && *other.join().unwrap().unwrap() == 0);
}

fn concurrent_misses_load_once() {
    let (values, loads) = (values(), Arc::new(AtomicUsize::new(0)));
    let threads = [(); 3].map(|()| {
        let loads = loads.clone();
        get(&values, 1, move || Ok(loads.fetch_add(1, Ordering::SeqCst)))
    });
    assert_eq!(threads.map(|thread| thread.join().unwrap().unwrap()), [0; 3]);
    assert_eq!(values.statistics().misses, 1);
}

/// Each waits for the value that the other loads, once its own is there, as in a read of several units.
fn two_readers_wait_for_each_other() {
    let values = values();
    let read = |keys: [u8; 2]| {
        let values = values.clone();
        thread::spawn(move || {
            let (mut missing, mut loading) = (Vec::new(), Vec::new());
            for key in keys {
                match values.find(key) {
                    CacheLookup::Ready(value) => assert_eq!(*value, usize::from(key)),
                    CacheLookup::Loading(flight) => loading.push((key, flight)),
                    CacheLookup::Missing(promise) => missing.push((key, promise)),
                }
            }
            missing.into_iter().for_each(|(key, promise)| drop(promise.fulfil(Arc::new(usize::from(key)), 8)));
            loading.into_iter().for_each(|(key, flight)| assert_eq!(*flight.wait().unwrap(), usize::from(key)));
        })
    };
    [read([1, 2]), read([2, 1])].into_iter().for_each(|thread| thread.join().unwrap());
}

/// The error of a load reaches the threads that wait for it; later threads load again.
fn an_error_reaches_waiting_threads() {
    let (values, loads) = (values(), Arc::new(AtomicUsize::new(0)));
    let threads = [(); 3].map(|()| {
        let loads = loads.clone();
        get(&values, 1, move || match loads.fetch_add(1, Ordering::SeqCst) {
            0 => Err(Error::damaged("the first time")),
            _ => Ok(7),
        })
    });
    let outcomes = threads.map(|thread| thread.join().unwrap());
    assert!(outcomes.iter().any(Result::is_err) && outcomes.iter().flatten().all(|value| *value == 7));
}

/// The loading thread is cancelled: another thread that waits loads the value.
fn a_waiting_thread_takes_over() {
    let values = values();
    let token = Token::new();
    let cancelled = {
        let (values, token) = (values.clone(), token.clone());
        thread::spawn(move || {
            token.cover(|| {
                values.get_or_load(1, || {
                    token.cancel();
                    Ok((Arc::new(0), 8))
                })
            })
        })
    };
    let others = [get(&values, 1, || Ok(7)), get(&values, 1, || Ok(7))];
    assert!(others.map(|thread| thread.join().unwrap().unwrap()) == [7; 2]);
    // It may also have found the value that another thread loaded.
    assert!(cancelled.join().unwrap().is_ok_and(|value| *value == 7) || token.is_cancelled());
}

/// A thread that waits for a load is cancelled: it stops waiting, and the load continues.
fn a_cancelled_thread_does_not_wait() {
    let (values, token) = (values(), Token::new());
    let loading = get(&values, 1, || Ok(7));
    let waiting = {
        let (values, token) = (values.clone(), token.clone());
        thread::spawn(move || token.cover(|| values.get_or_load(1, || Ok((Arc::new(7), 8)))))
    };
    token.cancel();
    advance(POLL_INTERVAL);
    assert_eq!(loading.join().unwrap().unwrap(), 7);
    match waiting.join().unwrap() {
        Ok(value) => assert_eq!(*value, 7),
        Err(error) => assert!(error.is_cancelled()),
    }
}

/// A load that panics gives an error to the waiting threads, and none of them waits forever.
fn a_panic_reaches_waiting_threads() {
    let values = values();
    let panicking = {
        let values = values.clone();
        thread::spawn(move || {
            let load = || {
                thread::yield_now();
                resume_unwind(Box::new("on purpose"))
            };
            catch_unwind(AssertUnwindSafe(|| values.get_or_load::<usize>(1, load).map(|value| *value)))
        })
    };
    let others = [get(&values, 1, || Ok(7)), get(&values, 1, || Ok(7))];
    let outcomes = others.map(|thread| thread.join().unwrap());
    assert!(outcomes.iter().flatten().all(|value| *value == 7));
    let panicked = panicking.join().unwrap();
    assert!(panicked.is_err() || panicked.is_ok_and(|found| found.is_ok_and(|value| value == 7)));
    assert_eq!(*values.get_or_load(1, || Ok((Arc::new(7), 8))).unwrap(), 7);
}

#[test]
fn the_cache_loses_no_wake_up() {
    prove(
        &[source!("crates/reader/src/cache/mod.rs")],
        &[
            Model::under_all("two misses load once", two_misses_load_once),
            Model::under_many("concurrent misses load once", concurrent_misses_load_once),
            Model::under_many("two readers wait for each other", two_readers_wait_for_each_other),
            Model::under_many("an error reaches waiting threads", an_error_reaches_waiting_threads),
            Model::under_many("a waiting thread takes over", a_waiting_thread_takes_over),
            Model::under_many("a cancelled thread does not wait", a_cancelled_thread_does_not_wait),
            Model::under_many("a panic reaches waiting threads", a_panic_reaches_waiting_threads),
        ],
    );
}

/// Threads insert, hit and evict at once; after that the cache holds what it counts, within its budget.
#[test]
fn the_budget_holds_whatever_threads_do_at_once() {
    check(|| {
        let values: Values = Arc::new(Cache::new(1500));
        let threads = [[1, 2, 1], [2, 3, 2], [1, 3, 4]].map(|keys| {
            let values = values.clone();
            thread::spawn(move || {
                for key in keys {
                    let value = values.get_or_load(key, || Ok((Arc::new(usize::from(key)), 300))).unwrap();
                    assert_eq!(*value, usize::from(key));
                }
            })
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let statistics = values.statistics();
        let held = (1..=4).filter(|key| values.contains(key)).count();
        assert_eq!(statistics.used, held * 460, "{statistics:?}");
        assert!(statistics.used <= values.budget(), "{statistics:?}");
        assert_eq!(statistics.misses - statistics.evictions, held as u64, "{statistics:?}");
    });
}

/// No buffer has two users at once, and returned buffers are used again.
#[test]
fn a_buffer_belongs_to_one_thread() {
    check(|| {
        let (replies, tiles) = (Arc::new(ReplyBuffers::default()), Arc::new(BufferPool::default()));
        let threads = [1, 2, 3].map(|number| {
            let (replies, tiles) = (replies.clone(), tiles.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    let (mut reply, mut tile) = (replies.get(8), tiles.get(4096));
                    reply.fill(number);
                    tile.fill(number);
                    thread::yield_now();
                    assert!(reply.iter().chain(&*tile).all(|byte| *byte == number));
                }
            })
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        // Used buffers come first; new ones are zeroed.
        let again = [(); 4].map(|()| replies.get(8));
        let used = again.iter().take_while(|reply| reply[0] != 0).count();
        assert!(
            (1..=3).contains(&used) && again[used..].iter().all(|reply| reply[0] == 0),
            "as many as were in use at once"
        );
    });
}
