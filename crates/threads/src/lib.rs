//! Threads of this process, and what they share: the only place where threads start.
//!
//! A team of threads decodes: the caller starts, and idle helpers join. Work that blocks, on requests to
//! remote storage or on the kernel, has its own threads, so that it never occupies a decoding thread. If the system
//! refuses a thread, the caller gets an error or loses speed, but nothing panics.
//!
//! Threads that help with work inherit its [cancellation] token.

#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

pub mod address_space;
pub mod cancellation;
mod lent_work;
mod log_interval;
mod per_process;
pub mod single_flight;
mod start;
pub mod sync;
mod team;

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle, scope};

use tilefs_base::error::Error;

pub use log_interval::LogInterval;
pub use per_process::{PerProcess, note_fork};
use start::check_address_space;
pub use start::{are_started, start};
use team::Team;

/// The helpers of this process, which decode besides the calling threads.
static HELPERS: PerProcess<Helpers> = PerProcess::new();

struct Helpers {
    team: Team,
    /// Whether [`start_team`] was called.
    are_started: AtomicBool,
}

fn helpers() -> &'static Helpers {
    let make = |_: Option<&Helpers>| Ok(Helpers { team: Team::new(), are_started: AtomicBool::new(false) });
    let Ok::<_, Infallible>(helpers) = HELPERS.get_or_make(make);
    helpers
}

fn team() -> &'static Team {
    &helpers().team
}

/// Starts helpers so that `wanted` threads decode at the same time, the calling thread included. Until then each caller
/// decodes alone. Only the first call of a process does anything; call it again in a forked child, which has no helpers.
/// If the system allows fewer threads, only speed is lost.
pub fn start_team(wanted: usize) {
    let Helpers { team, are_started } = helpers();
    if are_started.swap(true, Ordering::Relaxed) {
        return;
    }
    if let Err(error) = (1..wanted).try_for_each(|_| team.grow()) {
        log::info!("only {} of {wanted} decoding threads can be started: {error}", decoding());
    }
}

/// Returns the number of cores that this process may use.
pub fn cores() -> usize {
    // The standard library reads files to find out, so keep the result; 0 before. A `OnceLock` that another thread was
    // setting during a fork would never be set in the child.
    static CORES: AtomicUsize = AtomicUsize::new(0);
    match CORES.load(Ordering::Relaxed) {
        0 => {
            let cores = std::thread::available_parallelism().map_or(2, usize::from);
            CORES.store(cores, Ordering::Relaxed);
            cores
        }
        cores => cores,
    }
}

/// Returns the default number of decoding threads: one more than cores. Usually one of them waits, for memory or for
/// the kernel to copy data; with one thread per core, that core would idle.
pub fn usual() -> usize {
    cores() + 1
}

/// Returns the number of decoding threads.
pub fn decoding() -> usize {
    team().helpers() + 1
}

/// Threads that only probe how many can exist at once, because a process limit shows only when a thread starts. They
/// end by themselves; dropping the probe waits for them.
pub struct Probe(Vec<JoinHandle<()>>);

impl Probe {
    /// Starts `wanted` threads, or as many as the system allows.
    pub fn new(wanted: usize) -> Self {
        let gate = Arc::new(Mutex::new(()));
        let closed = gate.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = || {
            let gate = Arc::clone(&gate);
            check_address_space().and_then(|()| Builder::new().spawn(move || drop(gate.lock())))
        };
        let threads = (0..wanted).map_while(|_| wait().ok()).collect();
        drop(closed);
        Probe(threads)
    }

    /// Returns how many threads started.
    pub fn threads(&self) -> usize {
        self.0.len()
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // The threads do nothing and so cannot panic.
        self.0.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// Runs `work` while another thread, if one can start, runs `beside`.
pub fn with<T>(name: &str, beside: impl FnOnce() + Send, work: impl FnOnce() -> T) -> T {
    scope(|scope| {
        let token = cancellation::current();
        let beside = || cancellation::cover(token, beside);
        let _ = check_address_space().and_then(|()| Builder::new().name(name.to_owned()).spawn_scoped(scope, beside));
        work()
    })
}

/// Runs `work` for each item on the decoding team.
pub fn for_each<T>(items: impl Iterator<Item = T> + Send, work: impl Fn(T) + Sync) {
    let helpers = upper_bound(&items).saturating_sub(1);
    one_by_one(items, work, |run| team().share(helpers, run));
}

/// Maps the items with `work` on the decoding team; the results are in order.
pub fn map<T, R: Send>(items: impl Iterator<Item = T> + Send, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let helpers = upper_bound(&items).saturating_sub(1);
    in_order(items, work, |run| team().share(helpers, run))
}

/// Returns the results of `work` for the numbers below `count`, computed on the decoding team. Stops at the first
/// error, by number, or when the request is cancelled.
///
/// # Errors
/// The errors of `work`; [`Error::Cancelled`].
pub fn for_all<T: Send, E: Send + From<Error>>(
    count: usize,
    work: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let has_failed = AtomicBool::new(false);
    // Numbers not started after a failure are greater than the failed one.
    let numbers = (0..count).take_while(|_| !has_failed.load(Ordering::Relaxed));
    let work = |number| {
        let outcome = cancellation::check().map_err(E::from).and_then(|()| work(number));
        outcome.inspect_err(|_| has_failed.store(true, Ordering::Relaxed))
    };
    map(numbers, work).into_iter().collect()
}

/// As [`map`], for work that blocks: on `threads` threads, of which the caller is the first. The others live only for
/// this call; if none can start, the caller does everything.
pub fn map_waiting<T, R: Send>(
    name: &str,
    threads: usize,
    items: impl Iterator<Item = T> + Send,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let threads = threads.min(upper_bound(&items));
    in_order(items, work, |run| {
        scope(|scope| {
            for _ in 1..threads {
                let _ =
                    check_address_space().and_then(|()| Builder::new().name(name.to_owned()).spawn_scoped(scope, run));
            }
            run();
        });
    })
}

/// Returns the maximum number of items.
fn upper_bound(items: &impl Iterator) -> usize {
    items.size_hint().1.unwrap_or(usize::MAX)
}

/// Runs `work` for each item: `share` gets a closure that takes items until none is left, and calls it on several
/// threads.
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

/// As [`one_by_one`], but collects the results in the order of the items.
fn in_order<T, R: Send>(
    items: impl Iterator<Item = T> + Send,
    work: impl Fn(T) -> R + Sync,
    share: impl FnOnce(&(dyn Fn() + Sync)),
) -> Vec<R> {
    let results = Mutex::new(Vec::new());
    let keep = |(number, item)| {
        let result = work(item);
        let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
        if results.len() <= number {
            results.resize_with(number + 1, || None);
        }
        results[number] = Some(result);
    };
    one_by_one(items.enumerate(), keep, share);
    results.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn results_are_in_order_and_the_first_error_stops() {
        let doubled: Vec<_> = (0..100).map(|number| number * 2).collect();
        assert_eq!(for_all(100, |number| Ok::<_, Error>(number * 2)).unwrap(), doubled);
        assert_eq!(for_all(0, |_| Err::<(), _>(Error::usage("none"))).unwrap(), []);
        let failed = for_all(1000, |number| if number == 7 { Err(Error::usage("seven")) } else { Ok(()) });
        assert_eq!(failed.unwrap_err().to_string(), "seven");
    }

    #[test]
    fn helpers_inherit_the_token() {
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
    fn map_waiting_uses_exactly_the_given_threads() {
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

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct ThreadsReadme;
