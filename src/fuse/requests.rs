//! The requests under way: one thread always stays free to take the next, slow requests do not hold up the others, and
//! requests that nobody waits for any more are cancelled.
//!
//! Where all threads were at work and one of them asked something of this very mount, nobody would be left to refuse
//! it. So the last free thread does no work: it puts what it takes in a queue, for whoever is done first.
//!
//! Where a request has waited in the queue for a moment, the threads at work are slow: most likely they wait for a
//! storage that does not answer, while the request may be for one that does. Then further threads serve the queue. They
//! end when they have had nothing to do for a while.
//!
//! The kernel lets go of a killed reader only when its request is answered. It tells the server of signals with
//! FUSE_INTERRUPT, which the library answers with ENOSYS and does not pass on; then the kernel sends no more of them.
//! So a thread looks, while requests take long, whether their readers still wait.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tilefs_reader::threads::{self, cancellation::Token};

use super::error_log::reason_of_panic;

type Task = Box<dyn FnOnce() + Send>;

/// How often to look after the requests under way; those that are younger are left alone.
const LOOK: Duration = Duration::from_millis(100);

/// So many threads at most serve the queue while those that take requests are slow.
const MOST_SERVING: usize = 256;

/// How long a thread that serves the queue waits for something in it.
const IDLE: Duration = Duration::from_secs(5);

/// Who is at work, and what waits. Memory: what the kernel has asked for and nobody has begun, and the stacks of at most
/// [`MOST_SERVING`] threads.
pub struct Requests {
    /// How many may be at work at the same time.
    most: usize,
    state: Mutex<State>,
    /// Notified when there is something to look after again, and at the end.
    changed: Condvar,
    /// Notified when something is in the queue while threads serve it, and at the end.
    queued: Condvar,
}

#[derive(Default)]
struct State {
    /// Requests at work, by their numbers.
    at_work: Vec<(u64, Origin)>,
    /// How many of these are on threads that serve the queue.
    at_work_serving: usize,
    /// Threads that serve the queue, and how many of them wait for something in it.
    serving: usize,
    idle: usize,
    waiting: VecDeque<(Origin, Task)>,
    /// The number of the next request.
    next: u64,
    /// Whether [`Requests::watch`] sleeps until there is a request: waking it is a system call.
    watch_sleeps: bool,
    has_ended: bool,
}

/// Where a request comes from.
#[derive(Clone)]
struct Origin {
    /// The thread that waits for the answer, by the number that the kernel gives it.
    thread: u32,
    since: Instant,
    token: Token,
}

impl Requests {
    /// For so many threads that take requests, at least two.
    pub fn new(threads: usize) -> Self {
        let most = threads.saturating_sub(1).max(1);
        Requests { most, state: Mutex::default(), changed: Condvar::new(), queued: Condvar::new() }
    }

    /// Does what a request of a thread needs, or has it done by a thread of ours that is at work now. The work is
    /// done under a token of its own.
    pub fn handle<S: Send + Sync + 'static>(
        &self,
        served: &Arc<S>,
        thread: u32,
        work: impl FnOnce(&S) + Send + 'static,
    ) {
        let mut state = self.lock();
        let origin = Origin { thread, since: Instant::now(), token: Token::new() };
        if state.has_ended {
            origin.token.cancel();
        }
        if state.watch_sleeps {
            state.watch_sleeps = false;
            self.changed.notify_all();
        }
        if state.taken() >= self.most {
            let served = Arc::clone(served);
            state.waiting.push_back((origin, Box::new(move || work(&served))));
            if state.idle > 0 {
                self.queued.notify_one();
            }
            return;
        }
        let at_work = self.begin(state, origin.clone(), false);
        run(&origin.token, || work(served));
        drop(at_work);
        while let Some((token, task, _at_work)) = self.next() {
            run(&token, task);
        }
    }

    /// For how long the oldest of the requests at work has been at work or waited for it.
    pub fn oldest(&self) -> Duration {
        let state = self.lock();
        state.at_work.iter().map(|(_, origin)| origin.since.elapsed()).max().unwrap_or_default()
    }

    /// Looks after the requests until the end: cancels those of threads that have given up, and has the queue served
    /// while other requests are slow. The end comes with [`Requests::end`], or where `is_connected` says that nobody can
    /// be answered.
    pub fn watch(self: &Arc<Self>, is_connected: impl Fn() -> bool, has_given_up: impl Fn(u32) -> bool) {
        loop {
            let mut state = self.lock();
            while !state.has_ended && state.at_work.is_empty() && state.waiting.is_empty() {
                state.watch_sleeps = true;
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.watch_sleeps = false;
            if !state.has_ended {
                state = self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
            }
            if state.has_ended {
                return;
            }
            drop(state);
            if is_connected() {
                self.cancel_abandoned(&has_given_up);
                self.serve_the_queue();
            } else {
                self.end();
            }
        }
    }

    /// Cancels all requests, and those that are still to come: nobody can be answered any more.
    pub fn end(&self) {
        let mut state = self.lock();
        state.has_ended = true;
        state.origins().for_each(|origin| origin.token.cancel());
        self.changed.notify_all();
        self.queued.notify_all();
        drop(state);
        self.refuse_cancelled();
    }

    /// Starts threads for what has waited in the queue for long, as far as those that there are do not suffice.
    fn serve_the_queue(self: &Arc<Self>) {
        let mut state = self.lock();
        let late = state.waiting.iter().filter(|(origin, _)| origin.since.elapsed() >= LOOK).count();
        let wanted = late.saturating_sub(state.idle).min(MOST_SERVING - state.serving.min(MOST_SERVING));
        for _ in 0..wanted {
            let this = Arc::clone(self);
            // Counted before it is there, so that the next look does not start another one for the same request.
            state.serving += 1;
            if let Err(error) = threads::start("tilefs-queue", move || this.serve()) {
                state.serving -= 1;
                log::info!("requests wait for slow ones, as no further thread can be started: {error}");
                return;
            }
        }
    }

    /// Does what is in the queue, until nothing has come for a while.
    fn serve(&self) {
        loop {
            let mut state = self.lock();
            if state.waiting.is_empty() && !state.has_ended {
                state.idle += 1;
                state = self.queued.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner).0;
                state.idle -= 1;
            }
            let Some((origin, task)) = state.waiting.pop_front() else {
                state.serving -= 1;
                return;
            };
            let token = origin.token.clone();
            let _at_work = self.begin(state, origin, true);
            run(&token, task);
        }
    }

    fn cancel_abandoned(&self, has_given_up: &impl Fn(u32) -> bool) {
        let is_old = |origin: &&Origin| origin.since.elapsed() >= LOOK && !origin.token.is_cancelled();
        let old: Vec<Origin> = self.lock().origins().filter(is_old).cloned().collect();
        // Without the lock: this asks the system for each.
        old.iter().filter(|origin| has_given_up(origin.thread)).for_each(|origin| origin.token.cancel());
        self.refuse_cancelled();
    }

    /// Has requests that wait and are cancelled answered, which takes no time.
    fn refuse_cancelled(&self) {
        let mut state = self.lock();
        let waiting = std::mem::take(&mut state.waiting);
        let (cancelled, waiting): (VecDeque<_>, VecDeque<_>) =
            waiting.into_iter().partition(|(origin, _)| origin.token.is_cancelled());
        state.waiting = waiting;
        drop(state);
        cancelled.into_iter().for_each(|(origin, task)| run(&origin.token, task));
    }

    fn next(&self) -> Option<(Token, Task, ActiveRequest<'_>)> {
        let mut state = self.lock();
        if state.taken() >= self.most {
            return None;
        }
        let (origin, task) = state.waiting.pop_front()?;
        Some((origin.token.clone(), task, self.begin(state, origin, false)))
    }

    fn begin(&self, mut state: MutexGuard<'_, State>, origin: Origin, is_serving: bool) -> ActiveRequest<'_> {
        let number = state.next;
        state.next += 1;
        state.at_work.push((number, origin));
        state.at_work_serving += usize::from(is_serving);
        ActiveRequest { requests: self, number, is_serving }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// How many of the threads that take requests are at work.
    fn taken(&self) -> usize {
        self.at_work.len() - self.at_work_serving
    }

    fn origins(&self) -> impl Iterator<Item = &Origin> {
        self.at_work.iter().map(|(_, origin)| origin).chain(self.waiting.iter().map(|(origin, _)| origin))
    }
}

/// Does the work of one request. A panic ends that request alone: its reply, dropped on the way, tells the reader of an
/// error, and the thread goes on with the requests that wait.
fn run(token: &Token, work: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| token.cover(work))) {
        log::error!("internal error, please report it: {}", reason_of_panic(&*panic));
    }
}

/// A request that is at work until this is dropped.
struct ActiveRequest<'a> {
    requests: &'a Requests,
    number: u64,
    is_serving: bool,
}

impl Drop for ActiveRequest<'_> {
    fn drop(&mut self) {
        let mut state = self.requests.lock();
        if let Some(at) = state.at_work.iter().position(|(number, _)| *number == self.number) {
            state.at_work.swap_remove(at);
            state.at_work_serving -= usize::from(self.is_serving);
        }
    }
}

#[cfg(test)]
mod tests {
    use tilefs_reader::threads::cancellation;

    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::sync::mpsc;
    use std::thread;

    /// Some thread that asks.
    const READER: u32 = 7;

    /// Waits, for a while at most, until something is so.
    fn until(is_so: impl Fn() -> bool) {
        let start = Instant::now();
        while !is_so() {
            assert!(start.elapsed() < Duration::from_secs(10), "it does not come");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn the_last_free_thread_leaves_the_work_to_others() {
        let requests = Arc::new(Requests::new(2));
        let (release, gate) = mpsc::channel::<()>();
        let (sender, done) = mpsc::channel();
        thread::scope(|scope| {
            let busy = requests.clone();
            scope.spawn(move || busy.handle(&Arc::new(()), READER, move |()| gate.recv().unwrap()));
            until(|| !requests.lock().at_work.is_empty());
            for number in 0..3 {
                let sender = sender.clone();
                let work = move |(): &()| sender.send((number, thread::current().id())).unwrap();
                requests.handle(&Arc::new(()), READER, work);
            }
            assert!(done.try_recv().is_err());
            release.send(()).unwrap();
        });
        let numbers: Vec<_> = done.try_iter().map(|(number, id)| (number, id == thread::current().id())).collect();
        assert_eq!(numbers, [(0, false), (1, false), (2, false)]);
        let state = requests.lock();
        assert_eq!((state.at_work.len(), state.waiting.len()), (0, 0));
    }

    #[test]
    fn a_request_that_does_not_end_is_seen() {
        let requests = Requests::new(4);
        assert_eq!(requests.oldest(), Duration::ZERO);
        let origin = Origin { thread: READER, since: Instant::now(), token: Token::new() };
        let stuck = requests.begin(requests.lock(), origin, false);
        thread::sleep(Duration::from_millis(2));
        // Others come and go.
        requests.handle(&Arc::new(()), READER, |()| {});
        assert!(requests.oldest() >= Duration::from_millis(2));
        drop(stuck);
        assert_eq!(requests.oldest(), Duration::ZERO);
    }

    /// Of requests that work until they are cancelled, and others behind them, those whose thread gives up end.
    #[test]
    fn requests_of_who_has_given_up_end_and_those_behind_them_go_on() {
        let (requests, gone) = (Arc::new(Requests::new(2)), AtomicU32::new(0));
        let (sender, done) = mpsc::channel();
        let ask = |thread: u32| {
            let sender = sender.clone();
            requests.handle(&Arc::new(()), thread, move |()| {
                until(|| cancellation::is_cancelled() || thread == READER);
                sender.send((thread, cancellation::is_cancelled())).unwrap();
            });
        };
        thread::scope(|scope| {
            scope.spawn(|| requests.watch(|| true, |thread| thread == gone.load(Ordering::Relaxed)));
            scope.spawn(|| ask(1));
            until(|| requests.lock().at_work.len() == 1);
            [2, READER, 3].into_iter().for_each(ask);
            assert_eq!(done.recv_timeout(Duration::from_secs(2)), Ok((READER, false)), "it is behind slow ones");
            gone.store(2, Ordering::Relaxed);
            assert_eq!(done.recv_timeout(Duration::from_secs(2)), Ok((2, true)));
            gone.store(1, Ordering::Relaxed);
            assert_eq!(done.recv_timeout(Duration::from_secs(2)), Ok((1, true)));
            // One is left, which only the end of all ends.
            assert!(done.recv_timeout(Duration::from_millis(300)).is_err());
            requests.end();
            assert_eq!(done.recv_timeout(Duration::from_secs(2)), Ok((3, true)));
        });
        requests.handle(&Arc::new(()), READER, |()| assert!(cancellation::is_cancelled(), "nobody can be answered"));
    }

    #[test]
    fn a_broken_connection_ends_all() {
        let (requests, is_connected) = (Arc::new(Requests::new(2)), AtomicBool::new(true));
        thread::scope(|scope| {
            let watch = scope.spawn(|| requests.watch(|| is_connected.load(Ordering::Relaxed), |_| false));
            let request =
                scope.spawn(|| requests.handle(&Arc::new(()), READER, |()| until(cancellation::is_cancelled)));
            thread::sleep(2 * LOOK);
            assert!(!request.is_finished());
            is_connected.store(false, Ordering::Relaxed);
            request.join().unwrap();
            watch.join().unwrap();
        });
    }

    /// However many requests hang, those of others are answered soon, and the threads for them end.
    #[test]
    fn requests_that_hang_hold_up_no_others() {
        let requests = Arc::new(Requests::new(3));
        let (sender, done) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| requests.watch(|| true, |_| false));
            for _ in 0..20 {
                let requests = requests.clone();
                scope.spawn(move || requests.handle(&Arc::new(()), 1, |()| until(cancellation::is_cancelled)));
            }
            until(|| requests.lock().at_work.len() == 20);
            // The threads that serve the queue are there by now.
            for number in 0..50 {
                let sender = sender.clone();
                let start = Instant::now();
                requests.handle(&Arc::new(()), READER, move |()| sender.send(number).unwrap());
                assert_eq!(done.recv_timeout(Duration::from_secs(2)), Ok(number));
                assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
            }
            assert!(requests.lock().serving <= 22, "{}", requests.lock().serving);
            requests.end();
        });
        until(|| requests.lock().serving == 0);
        let state = requests.lock();
        assert_eq!((state.at_work.len(), state.at_work_serving, state.waiting.len(), state.idle), (0, 0, 0, 0));
    }

    /// A panic, of a request at work or of one that waited, costs no thread and leaves nothing waiting.
    #[test]
    fn a_panic_ends_one_request_alone() {
        let requests = Arc::new(Requests::new(2));
        let (release, gate) = mpsc::channel::<()>();
        let (sender, done) = mpsc::channel();
        thread::scope(|scope| {
            let busy = requests.clone();
            let panics = scope.spawn(move || {
                busy.handle(&Arc::new(()), READER, move |()| {
                    gate.recv().unwrap();
                    panic!("on purpose")
                });
            });
            until(|| !requests.lock().at_work.is_empty());
            for number in 0..4 {
                let sender = sender.clone();
                requests.handle(&Arc::new(()), READER, move |()| {
                    assert!(number != 1, "on purpose");
                    sender.send(number).unwrap();
                });
            }
            release.send(()).unwrap();
            assert!(panics.join().is_ok(), "the thread goes on");
        });
        assert_eq!(done.try_iter().collect::<Vec<_>>(), [0, 2, 3]);
        assert!(requests.lock().at_work.is_empty());
    }
}
