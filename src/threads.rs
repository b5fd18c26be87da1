//! Where all threads of this process start.
//!
//! A pool decodes: on it the parts of one task are done at once (`rayon`). What waits, for requests or for each other,
//! has threads of its own, so that no decoding thread is held by it. A thread that the system refuses is an error for
//! the caller or less speed, never a panic.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{Builder, JoinHandle, scope};

use rayon::{ThreadBuilder, ThreadPoolBuilder};

/// What came of starting the pool.
pub struct Pool {
    /// How many threads decode; 0 where the calling thread does.
    pub threads: usize,
    /// Why there are not as many as wanted.
    pub refused: Option<io::Error>,
}

/// Starts a thread.
///
/// # Errors
/// Where the system lets us have no other.
pub fn start<T: Send + 'static>(
    name: impl Into<String>,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.into()).spawn(work)
}

/// Starts the threads that decode. To be called once, before anything is read: a pool that starts by itself panics
/// where a limit of processes or of address space is met.
///
/// # Errors
/// Where there is a pool already, or a thread that has been started is gone.
pub fn start_pool(wanted: usize) -> io::Result<Pool> {
    let (mut waiting, mut refused) = (Vec::with_capacity(wanted), None);
    for number in 0..wanted.max(1) {
        let (sender, receiver) = mpsc::channel::<ThreadBuilder>();
        match start(format!("decode-{number}"), move || receiver.recv().into_iter().for_each(ThreadBuilder::run)) {
            Ok(_) => waiting.push(sender),
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    let threads = waiting.len();
    let pool = match threads {
        0 => ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global(),
        threads => ThreadPoolBuilder::new()
            .num_threads(threads)
            .spawn_handler(|thread| match waiting.pop().map(|sender| sender.send(thread)) {
                Some(Ok(())) => Ok(()),
                _ => Err(io::Error::other("a thread has gone")),
            })
            .build_global(),
    };
    pool.map(|()| Pool { threads, refused }).map_err(io::Error::other)
}

/// How many cores this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

/// How many threads decode where nobody says: one more than there are cores. Mostly one of them waits, for memory or for
/// the kernel to copy what it read; with no more than cores, one of these would wait with it.
pub fn usual() -> usize {
    cores() + 1
}

/// How many threads decode.
pub fn decoding() -> usize {
    rayon::current_num_threads().max(1)
}

/// How many of `wanted` threads can be there at the same time: a limit of processes is met when a thread starts.
pub fn possible(wanted: usize) -> usize {
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap_or_else(PoisonError::into_inner);
    let wait = || {
        let gate = Arc::clone(&gate);
        Builder::new().spawn(move || drop(gate.lock()))
    };
    let threads: Vec<_> = (0..wanted).map_while(|_| wait().ok()).collect();
    drop(closed);
    let possible = threads.len();
    // They do nothing, and so do not panic.
    threads.into_iter().for_each(|thread| drop(thread.join()));
    possible
}

/// Does `work` while another thread, where there can be one, does something `beside` it.
pub fn with<T>(name: &str, beside: impl FnOnce() + Send, work: impl FnOnce() -> T) -> T {
    scope(|scope| {
        let _ = Builder::new().name(name.to_owned()).spawn_scoped(scope, beside);
        work()
    })
}

/// What `work` makes of each of the items, in their order; so many threads take one after the other. The calling thread
/// is one of them, and does all where there can be no other.
pub fn on_own<T: Send, R: Send>(
    name: &str,
    threads: usize,
    items: impl Iterator<Item = T> + Send,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let most = items.size_hint().1.unwrap_or(usize::MAX);
    let (waiting, done) = (Mutex::new(items.enumerate()), Mutex::new(Vec::new()));
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || {
        while let Some((number, item)) = next() {
            let result = work(item);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((number, result));
        }
    };
    scope(|scope| {
        for _ in 1..threads.min(most) {
            let _ = Builder::new().name(name.to_owned()).spawn_scoped(scope, run);
        }
        run();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

/// The results of `work` for the numbers up to `count`, on as many threads as decode otherwise. The first error, by
/// number, ends it.
///
/// Not on the pool: those who wait for what this makes may be all the threads there are, and one that took up other work
/// while it waits could end up waiting for itself.
///
/// # Errors
/// Those of `work`.
pub fn for_all<T: Send, E: Send>(count: usize, work: impl Fn(usize) -> Result<T, E> + Sync) -> Result<Vec<T>, E> {
    let has_failed = AtomicBool::new(false);
    // What is not begun after a failure lies behind it.
    let numbers = (0..count).take_while(|_| !has_failed.load(Ordering::Relaxed));
    let work = |number| work(number).inspect_err(|_| has_failed.store(true, Ordering::Relaxed));
    on_own("tilefs-merge", decoding(), numbers, work).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn results_come_in_order_and_errors_end_it() {
        let doubled: Vec<_> = (0..100).map(|number| number * 2).collect();
        assert_eq!(for_all(100, |number| Ok::<_, ()>(number * 2)).unwrap(), doubled);
        assert_eq!(for_all(0, |_| Err::<(), _>(())).unwrap(), []);
        let failed = for_all(1000, |number| if number == 7 { Err(number) } else { Ok(()) });
        assert_eq!(failed.unwrap_err(), 7);
    }

    #[test]
    fn so_many_work_at_once_and_no_more() {
        let all_here = Barrier::new(5);
        let results = on_own("test", 5, 0..5, |number| {
            all_here.wait();
            number
        });
        assert_eq!(results, [0, 1, 2, 3, 4]);
        let here = std::thread::current().id();
        assert!(on_own("test", 1, 0..9, |_| std::thread::current().id()).iter().all(|id| *id == here));
    }

    #[test]
    fn a_few_threads_are_possible() {
        assert_eq!(possible(0), 0);
        assert_eq!(possible(5), 5);
    }
}
