//! Where all threads of this process start.
//!
//! A [team](team::Team) decodes: who has something to decode begins, and the others help. What waits, for requests to a
//! far storage or for the kernel, has threads of its own, so that no decoding thread is held by it. A thread that the
//! system refuses is an error for the caller or less speed, never a panic.

//!
//! Threads that help with work take its [cancellation] over.

pub mod cancellation;
mod log_interval;
mod team;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{Builder, JoinHandle, scope};

use tilefs_format::error::Error;

use crate::address_space;
pub use log_interval::LogInterval;
use team::Team;

/// What a thread takes where the address space is limited: a stack of 2 MiB, and what the standard library has it allocate
/// as it begins, which ends the process where it cannot be had.
const ADDRESSES: u64 = 3 << 20;

/// Those that decode, beside whoever asks for something.
static TEAM: Team = Team::new();

/// Whether this process may have other threads by now.
static ARE_STARTED: AtomicBool = AtomicBool::new(false);

/// Whether a thread was started, or should have been, since the process began.
pub fn are_started() -> bool {
    ARE_STARTED.load(Ordering::SeqCst)
}

/// Starts a thread.
///
/// # Errors
/// Where the system lets us have no other.
pub fn start<T: Send + 'static>(
    name: impl Into<String>,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    has_room()?;
    Builder::new().name(name.into()).spawn(work)
}

/// Whether a limit of address space leaves room for another thread. To be asked before one is started.
fn has_room() -> io::Result<()> {
    ARE_STARTED.store(true, Ordering::SeqCst);
    match address_space::left() {
        Some(left) if left < ADDRESSES => Err(io::ErrorKind::OutOfMemory.into()),
        _ => Ok(()),
    }
}

/// Has so many threads decode at the same time, each of which is one that asks or helps. To be called once, before
/// anything is read; until then who asks is alone. Where the system lets us have fewer, only speed is lost.
pub fn start_team(wanted: usize) {
    if let Err(error) = (1..wanted).try_for_each(|_| TEAM.grow()) {
        log::info!("only {} of {wanted} threads that decode can be started: {error}", decoding());
    }
}

/// How many cores this process may use, as it starts.
pub fn cores() -> usize {
    // The system has files read for it.
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(2, usize::from))
}

/// How many threads decode where nobody says: one more than there are cores. Mostly one of them waits, for memory or for
/// the kernel to copy what it read; with no more than cores, one of these would wait with it.
pub fn usual() -> usize {
    cores() + 1
}

/// How many threads decode.
pub fn decoding() -> usize {
    TEAM.helpers() + 1
}

/// Threads that only show how many there can be at the same time: a limit of processes is met when a thread starts. They
/// end by themselves; dropping this waits until they have.
pub struct Probe(Vec<JoinHandle<()>>);

impl Probe {
    /// Starts so many threads, or as many as the system lets us have.
    pub fn new(wanted: usize) -> Self {
        let gate = Arc::new(Mutex::new(()));
        let closed = gate.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = || {
            let gate = Arc::clone(&gate);
            has_room().and_then(|()| Builder::new().spawn(move || drop(gate.lock())))
        };
        let threads = (0..wanted).map_while(|_| wait().ok()).collect();
        drop(closed);
        Probe(threads)
    }

    /// How many there were.
    pub fn threads(&self) -> usize {
        self.0.len()
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // They do nothing, and so do not panic.
        self.0.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// Does `work` while another thread, where there can be one, does something `beside` it.
pub fn with<T>(name: &str, beside: impl FnOnce() + Send, work: impl FnOnce() -> T) -> T {
    scope(|scope| {
        let token = cancellation::current();
        let beside = || cancellation::cover(token, beside);
        let _ = has_room().and_then(|()| Builder::new().name(name.to_owned()).spawn_scoped(scope, beside));
        work()
    })
}

/// Does `work` for each of the items, as many at the same time as decode.
pub fn for_each<T>(items: impl Iterator<Item = T> + Send, work: impl Fn(T) + Sync) {
    let helpers = most_of(&items).saturating_sub(1);
    one_by_one(items, work, |run| TEAM.share(helpers, run));
}

/// What `work` makes of each of the items, in their order; as many at the same time as decode.
pub fn map<T, R: Send>(items: impl Iterator<Item = T> + Send, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let helpers = most_of(&items).saturating_sub(1);
    in_order(items, work, |run| TEAM.share(helpers, run))
}

/// The results of `work` for the numbers up to `count`, as many at the same time as decode. The first error, by number,
/// ends it, and so does the cancellation of the request.
///
/// # Errors
/// Those of `work`; [`Error::Cancelled`].
pub fn for_all<T: Send, E: Send + From<Error>>(
    count: usize,
    work: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let has_failed = AtomicBool::new(false);
    // What is not begun after a failure lies behind it.
    let numbers = (0..count).take_while(|_| !has_failed.load(Ordering::Relaxed));
    let work = |number| {
        let outcome = cancellation::check().map_err(E::from).and_then(|()| work(number));
        outcome.inspect_err(|_| has_failed.store(true, Ordering::Relaxed))
    };
    map(numbers, work).into_iter().collect()
}

/// As [`map`], for what waits: on so many threads, of which the calling one is the first. The others start and end with
/// this; where there can be none, the calling one does all.
pub fn map_waiting<T, R: Send>(
    name: &str,
    threads: usize,
    items: impl Iterator<Item = T> + Send,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let threads = threads.min(most_of(&items));
    in_order(items, work, |run| {
        scope(|scope| {
            for _ in 1..threads {
                let _ = has_room().and_then(|()| Builder::new().name(name.to_owned()).spawn_scoped(scope, run));
            }
            run();
        });
    })
}

/// How many items there are at most.
fn most_of(items: &impl Iterator) -> usize {
    items.size_hint().1.unwrap_or(usize::MAX)
}

/// Does `work` for each of the items by something that takes one after the other, which `share` has several threads call.
fn one_by_one<T>(
    items: impl Iterator<Item = T> + Send,
    work: impl Fn(T) + Sync,
    share: impl FnOnce(&(dyn Fn() + Sync)),
) {
    let items = Mutex::new(items);
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let token = cancellation::current();
    share(&|| {
        cancellation::cover(token.clone(), || {
            while let Some(item) = next() {
                work(item);
            }
        });
    });
}

/// As [`one_by_one`], with what came of each of the items, in their order.
fn in_order<T, R: Send>(
    items: impl Iterator<Item = T> + Send,
    work: impl Fn(T) -> R + Sync,
    share: impl FnOnce(&(dyn Fn() + Sync)),
) -> Vec<R> {
    let done = Mutex::new(Vec::new());
    let keep = |(number, item)| {
        let result = work(item);
        done.lock().unwrap_or_else(PoisonError::into_inner).push((number, result));
    };
    one_by_one(items.enumerate(), keep, share);
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn results_come_in_order_and_errors_end_it() {
        let doubled: Vec<_> = (0..100).map(|number| number * 2).collect();
        assert_eq!(for_all(100, |number| Ok::<_, Error>(number * 2)).unwrap(), doubled);
        assert_eq!(for_all(0, |_| Err::<(), _>(Error::usage("none"))).unwrap(), []);
        let failed = for_all(1000, |number| if number == 7 { Err(Error::usage("seven")) } else { Ok(()) });
        assert_eq!(failed.unwrap_err().to_string(), "seven");
    }

    #[test]
    fn helpers_take_the_cancellation_over() {
        start_team(3);
        let token = cancellation::Token::new();
        let is_covered = |_| cancellation::is_cancelled();
        token.cover(|| {
            let done = AtomicUsize::new(0);
            let outcome = for_all(1 << 40, |number| {
                if done.fetch_add(1, Ordering::Relaxed) == 1000 {
                    token.cancel();
                }
                Ok::<_, Error>(number)
            });
            assert!(matches!(outcome, Err(Error::Cancelled)));
            assert!(map(0..100, is_covered).into_iter().all(|covered| covered));
            assert!(map_waiting("test", 5, 0..100, is_covered).into_iter().all(|covered| covered));
            with("test", || assert!(cancellation::is_cancelled()), || assert!(cancellation::is_cancelled()));
        });
        assert!(map(0..100, is_covered).into_iter().all(|covered| !covered), "the next work is not cancelled");
    }

    #[test]
    fn so_many_work_at_once_and_no_more() {
        let all_here = Barrier::new(5);
        let results = map_waiting("test", 5, 0..5, |number| {
            all_here.wait();
            number
        });
        assert_eq!(results, [0, 1, 2, 3, 4]);
        let here = std::thread::current().id();
        assert!(map_waiting("test", 1, 0..9, |_| std::thread::current().id()).iter().all(|id| *id == here));
    }

    #[test]
    fn a_few_threads_are_possible() {
        assert_eq!(Probe::new(0).threads(), 0);
        assert_eq!(Probe::new(5).threads(), 5);
    }
}
