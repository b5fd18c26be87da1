//! Models of locks for long work, of values made once, and of permits.

use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;
use tilefs_base::error::Error;
use tilefs_interleavings::cancellation::{POLL_INTERVAL, Token, Turn};
use tilefs_interleavings::proof::{Model, prove};
use tilefs_interleavings::read::permits::Permits;
use tilefs_interleavings::single_flight::SingleFlight;
use tilefs_interleavings::source;
use tilefs_interleavings::sync::advance;

const CANCELLATION: tilefs_interleavings::proof::Source = source!("crates/threads/src/cancellation.rs");

/// Runs `work` on `threads` threads, and waits for them.
fn together(threads: usize, work: impl Fn(usize) + Send + Sync + 'static) {
    let work = Arc::new(work);
    let start = |number| {
        let work = Arc::clone(&work);
        thread::spawn(move || work(number))
    };
    let started: Vec<_> = (0..threads).map(start).collect();
    started.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Counts the threads that are inside at the same time.
#[derive(Default)]
struct Inside {
    now: AtomicUsize,
    total: AtomicUsize,
}

impl Inside {
    fn visit(&self, most: usize) {
        assert!(self.now.fetch_add(1, Ordering::SeqCst) < most, "more than {most} at once");
        thread::yield_now();
        self.now.fetch_sub(1, Ordering::SeqCst);
        self.total.fetch_add(1, Ordering::SeqCst);
    }

    fn total(&self) -> usize {
        self.total.load(Ordering::SeqCst)
    }
}

fn one_at_a_time_has_the_turn() {
    let (turn, inside) = (Turn::new(), Arc::new(Inside::default()));
    let visits = inside.clone();
    together(3, move |_| {
        let _held = turn.take().unwrap();
        visits.visit(1);
    });
    assert_eq!(inside.total(), 3);
}

fn two_take_turns() {
    let (turn, inside) = (Arc::new(Turn::new()), Arc::new(Inside::default()));
    let take = move || {
        let _held = turn.take().unwrap();
        inside.visit(1);
    };
    let other = thread::spawn(take.clone());
    take();
    other.join().unwrap();
}

/// Threads that wait under a token wake when they are notified, not only at the next poll.
fn requests_take_turns() {
    let (turn, inside) = (Turn::new(), Arc::new(Inside::default()));
    let visits = inside.clone();
    together(3, move |_| {
        let _held = Token::new().cover(|| turn.take()).unwrap();
        visits.visit(1);
    });
    assert_eq!(inside.total(), 3);
}

/// One of two waiting threads is cancelled at any moment: the other one gets its turn.
fn a_cancelled_wait_passes_its_turn_on() {
    let (turn, inside) = (Arc::new(Turn::new()), Arc::new(Inside::default()));
    let (cancelled, kept) = (Token::new(), Token::new());
    let held = turn.take().unwrap();
    let wait = |token: &Token| {
        let (turn, inside, token) = (turn.clone(), inside.clone(), token.clone());
        thread::spawn(move || token.cover(|| turn.take().map(|_held| inside.visit(1))).is_ok())
    };
    let threads = [wait(&cancelled), wait(&kept)];
    let cancel = thread::spawn(move || {
        cancelled.cancel();
        advance(POLL_INTERVAL);
    });
    drop(held);
    cancel.join().unwrap();
    let [_, is_served] = threads.map(|thread| thread.join().unwrap());
    assert!(is_served && (1..=2).contains(&inside.total()));
}

#[test]
fn turns_lose_no_wake_up() {
    prove(
        &[CANCELLATION],
        &[
            Model::under_all("two take turns", two_take_turns),
            Model::under_many("one at a time has the turn", one_at_a_time_has_the_turn),
            Model::under_many("requests take turns", requests_take_turns),
            Model::under_many("a cancelled wait passes its turn on", a_cancelled_wait_passes_its_turn_on),
        ],
    );
}

/// Several threads want a value at the same time, and one of them makes it, although two attempts fail: one cannot
/// read, and one is cancelled.
fn one_thread_makes_the_value() {
    let (once, made) = (Arc::new(SingleFlight::new()), Arc::new(AtomicUsize::new(0)));
    let attempts = made.clone();
    together(3, move |_| {
        let token = Token::new();
        let value = token.cover(|| {
            once.get_or_make(|| {
                thread::yield_now();
                match attempts.fetch_add(1, Ordering::SeqCst) {
                    0 => Err(Error::io(std::io::Error::other("gone"))),
                    1 => {
                        token.cancel();
                        Err(Error::Cancelled)
                    }
                    attempt => Ok(attempt),
                }
            })
            .copied()
        });
        match value {
            Ok(attempt) => assert_eq!(attempt, 2),
            Err(error) => assert_eq!(error.is_cancelled(), token.is_cancelled()),
        }
    });
    assert_eq!(made.load(Ordering::SeqCst), 3, "two fail, and one is kept");
}

/// The first value is not kept, so the value is made a second time, but not more often.
fn a_transient_value_is_made_again() {
    let (once, made) = (Arc::new(SingleFlight::new()), Arc::new(AtomicUsize::new(0)));
    let attempts = made.clone();
    together(3, move |_| {
        let value = once.get_or_pass(|| {
            thread::yield_now();
            let attempt = attempts.fetch_add(1, Ordering::SeqCst);
            Ok((attempt, attempt > 0))
        });
        assert!(value.unwrap() < 2);
    });
    assert_eq!(made.load(Ordering::SeqCst), 2);
}

#[test]
fn values_that_are_made_once_lose_no_wake_up() {
    prove(
        &[CANCELLATION],
        &[
            Model::under_many("one thread makes the value", one_thread_makes_the_value),
            Model::under_many("a transient value is made again", a_transient_value_is_made_again),
        ],
    );
}

fn decode(permits: usize, threads: usize) {
    let inside = Arc::new(Inside::default());
    let (pool, visits) = (Permits::new(permits), inside.clone());
    together(threads, move |_| {
        let mut permit = pool.take();
        visits.visit(permits);
        permit.scratch();
    });
    assert_eq!(inside.total(), threads);
}

fn two_threads_share_a_permit() {
    let (pool, inside) = (Arc::new(Permits::new(1)), Arc::new(Inside::default()));
    let decode = move || {
        let _permit = pool.take();
        inside.visit(1);
    };
    let other = thread::spawn(decode.clone());
    decode();
    other.join().unwrap();
}

fn threads_share_one_permit() {
    decode(1, 3);
}

fn threads_share_two_permits() {
    decode(2, 4);
}

#[test]
fn permits_lose_no_wake_up() {
    prove(
        &[source!("crates/reader/src/read/permits.rs")],
        &[
            Model::under_all("two threads share a permit", two_threads_share_a_permit),
            Model::under_many("threads share one permit", threads_share_one_permit),
            Model::under_many("threads share two permits", threads_share_two_permits),
        ],
    );
}
