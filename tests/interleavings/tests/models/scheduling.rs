//! Models of the requests' scheduler, of the prefetch queue, and of the end of a session.

#![allow(clippy::single_range_in_vec_init, reason = "lists of one range")]

use std::time::Duration;

use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use shuttle::sync::{Arc, Barrier};
use shuttle::thread;

use tilefs_interleavings::cancellation;
use tilefs_interleavings::fuse::requests::Requests;
use tilefs_interleavings::fuse::session_end::SessionEnd;
use tilefs_interleavings::proof::{Model, check, prove};
use tilefs_interleavings::read_ahead::Reader;
use tilefs_interleavings::read_ahead::queue::Queue;
use tilefs_interleavings::source;
use tilefs_interleavings::sync::advance;

/// A tenth of a second: the scheduler checks requests this often.
const CHECK: Duration = Duration::from_millis(100);

/// Some thread that makes requests.
const READER: u32 = 7;

/// Lets time pass until a condition holds.
fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        advance(CHECK);
        thread::yield_now();
    }
}

/// Starts the thread that watches requests. Only requests of thread 0 are abandoned.
fn watch(requests: &Arc<Requests>) -> thread::JoinHandle<()> {
    let requests = Arc::clone(requests);
    thread::spawn(move || requests.watch(|| true, |thread| thread == 0))
}

/// Starts a request thread that handles one request.
fn ask(requests: &Arc<Requests>, thread: u32, work: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    let requests = Arc::clone(requests);
    thread::spawn(move || requests.handle(&Arc::new(()), thread, |()| work()))
}

/// The watching thread ends with the mount, even if there never was a request.
fn watching_ends() {
    let requests = Arc::new(Requests::new(2));
    let watching = watch(&requests);
    requests.end();
    watching.join().unwrap();
}

/// The request of a reader that is gone is cancelled, even if the watching thread slept when it came.
fn an_abandoned_request_ends() {
    let requests = Arc::new(Requests::new(2));
    let watching = watch(&requests);
    ask(&requests, 0, || until(cancellation::is_cancelled)).join().unwrap();
    requests.end();
    watching.join().unwrap();
}

/// Every request is served once, whichever thread takes it.
fn queued_requests_are_served() {
    let (requests, served) = (Arc::new(Requests::new(2)), Arc::new(AtomicUsize::new(0)));
    let threads = [(); 3].map(|()| {
        let served = served.clone();
        ask(&requests, READER, move || {
            thread::yield_now();
            served.fetch_add(1, Ordering::SeqCst);
        })
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(served.load(Ordering::SeqCst), 3);
    assert_eq!(requests.oldest(), Duration::ZERO);
}

/// Two requests are queued behind one that waits for them: an extra thread serves the first, and then the second at
/// once. The extra thread ends with the mount.
fn requests_behind_a_slow_one_are_served() {
    let requests = Arc::new(Requests::new(2));
    let watching = watch(&requests);
    let (both_served, first_served) = (Arc::new(Barrier::new(2)), Arc::new(AtomicBool::new(false)));
    let begun = Arc::new(Barrier::new(2));
    let slow = {
        let (begun, both_served) = (begun.clone(), both_served.clone());
        ask(&requests, READER, move || {
            begun.wait();
            both_served.wait();
        })
    };
    begun.wait();
    let served = first_served.clone();
    requests.handle(&Arc::new(()), READER, move |()| served.store(true, Ordering::SeqCst));
    until(|| first_served.load(Ordering::SeqCst));
    // From here on no time passes.
    requests.handle(&Arc::new(()), READER, move |()| {
        both_served.wait();
    });
    slow.join().unwrap();
    requests.end();
    watching.join().unwrap();
}

#[test]
fn the_scheduler_of_requests_loses_no_wake_up() {
    prove(
        &[source!("crates/vfs/src/fuse/requests.rs")],
        &[
            Model::under_all("watching ends", watching_ends),
            Model::under_many("an abandoned request ends", an_abandoned_request_ends),
            Model::under_many("requests behind a slow one are served", requests_behind_a_slow_one_are_served),
        ],
    );
}

#[test]
fn every_request_is_served_once() {
    check(queued_requests_are_served);
}

/// Starts a prefetch worker, which counts the jobs that it takes.
fn worker(queue: &Arc<Queue>, is_spare: bool, taken: &Arc<AtomicUsize>) -> thread::JoinHandle<()> {
    let (queue, taken) = (Arc::clone(queue), Arc::clone(taken));
    queue.begin();
    thread::spawn(move || {
        while queue.next(is_spare).is_some() {
            taken.fetch_add(1, Ordering::SeqCst);
        }
        queue.end();
    })
}

/// Waits until this many jobs were taken. No time passes, so that no worker wakes by itself.
fn until_taken(taken: &AtomicUsize, count: usize) {
    while taken.load(Ordering::SeqCst) < count {
        thread::yield_now();
    }
}

/// Closing the queue waits for workers, idle or not.
fn idle_workers_end() {
    let (queue, taken) = (Arc::new(Queue::default()), Arc::default());
    let workers = [worker(&queue, false, &taken), worker(&queue, true, &taken)];
    queue.close(Duration::from_secs(2));
    workers.into_iter().for_each(|worker| worker.join().unwrap());
}

fn a_worker_takes_added_jobs() {
    let (queue, taken) = (Arc::new(Queue::default()), Arc::default());
    let worker = worker(&queue, false, &taken);
    let reader = Arc::new(Reader::default());
    for number in 1..=2 {
        queue.add(&reader, vec![0..1]);
        until_taken(&taken, number);
    }
    queue.close(Duration::from_secs(2));
    worker.join().unwrap();
}

/// The spare worker takes a job that is urgent from the start, and one that becomes urgent as the reader approaches it.
fn the_spare_worker_takes_urgent_jobs() {
    let (queue, taken) = (Arc::new(Queue::default()), Arc::default());
    let worker = worker(&queue, true, &taken);
    let reader = Arc::new(Reader::default());
    queue.add(&reader, vec![0..8 << 20, 8 << 20..9 << 20]);
    until_taken(&taken, 1);
    thread::yield_now();
    assert_eq!(taken.load(Ordering::SeqCst), 1, "the reader is far from the second");
    reader.served.store(7 << 20, Ordering::SeqCst);
    queue.reader_advanced();
    until_taken(&taken, 2);
    queue.close(Duration::from_secs(2));
    worker.join().unwrap();
}

#[test]
fn the_prefetch_queue_loses_no_wake_up() {
    prove(
        &[source!("crates/vfs/src/read_ahead/queue.rs")],
        &[
            Model::under_many("idle workers end", idle_workers_end),
            Model::under_many("a worker takes added jobs", a_worker_takes_added_jobs),
            Model::under_many("the spare worker takes urgent jobs", the_spare_worker_takes_urgent_jobs),
        ],
    );
}

/// One thread waits for the end without a limit, another for a limited time.
fn the_end_of_a_session_is_noticed() {
    let end = Arc::new(SessionEnd::default());
    let (first, second) = (end.clone(), end.clone());
    let waiting = thread::spawn(move || first.wait());
    let waiting_for = thread::spawn(move || {
        second.wait_for(Duration::from_secs(5));
        second.result()
    });
    end.set(Err("broken".to_owned()));
    end.set(Ok(()));
    assert_eq!(waiting.join().unwrap(), Err("broken".to_owned()));
    assert_eq!(waiting_for.join().unwrap(), Some(Err("broken".to_owned())));
}

#[test]
fn the_end_of_a_session_loses_no_wake_up() {
    prove(
        &[source!("crates/vfs/src/fuse/session_end.rs")],
        &[Model::under_many("the end of a session is noticed", the_end_of_a_session_is_noticed)],
    );
}
