//! Scheduling of requests: one thread always stays free to take the next request, slow requests do not block others,
//! and abandoned requests are cancelled.
//!
//! If all threads were busy and one of them made a request to this very mount, nobody could reject it. So the last free
//! thread does no work: it puts the requests it takes into a queue for whichever thread finishes first.
//!
//! If a request has waited in the queue for a moment, the busy threads are slow. Most likely they wait for storage that
//! does not answer, while the queued request may need other storage. Then extra threads serve the queue, and exit after
//! some idle time.
//!
//! The kernel releases a killed reader only when its request is answered. It announces signals with FUSE_INTERRUPT,
//! which the FUSE library answers with ENOSYS instead of passing it on; the kernel then stops sending it. So a thread
//! checks, while requests take long, whether their readers still wait.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tilefs_threads::sync::{Arc, Condvar, Instant, Mutex, MutexGuard, PoisonError};
use tilefs_threads::{self as threads, cancellation::Token};

use crate::reports::reason_of_panic;

type Task = Box<dyn FnOnce() + Send>;

/// Interval for checking requests; younger requests are not checked.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum number of extra threads that serve the queue while the request threads are slow.
const MAX_QUEUE_THREADS: usize = 256;

/// Idle time after which an extra thread exits.
const IDLE: Duration = Duration::from_secs(5);

/// Active and queued requests. Memory: the queued requests, and the stacks of at most `MAX_QUEUE_THREADS` extra
/// threads.
pub struct Requests {
    /// Maximum number of active requests on request threads.
    most: usize,
    state: Mutex<SchedulerState>,
    /// Notified when there is a request to watch, and at the end.
    changed: Condvar,
    /// Notified when a request is queued while extra threads are idle, and at the end.
    queued: Condvar,
}

#[derive(Default)]
struct SchedulerState {
    /// Active requests by number.
    active: Vec<(u64, Origin)>,
    /// Number of active requests that run on extra threads.
    active_on_queue_threads: usize,
    /// Number of extra threads, and how many of them are idle.
    queue_threads: usize,
    idle: usize,
    waiting: VecDeque<(Origin, Task)>,
    /// The number of the next request.
    next: u64,
    /// Whether [`Requests::watch`] sleeps until there is a request. Waking it costs a system call.
    watch_sleeps: bool,
    has_ended: bool,
}

/// The origin of a request.
#[derive(Clone)]
struct Origin {
    /// Id of the thread that waits for the reply, as reported by the kernel.
    thread: u32,
    since: Instant,
    token: Token,
}

impl Requests {
    /// Creates a scheduler for `threads` request threads, at least two.
    pub fn new(threads: usize) -> Self {
        let most = threads.saturating_sub(1).max(1);
        Requests { most, state: Mutex::default(), changed: Condvar::new(), queued: Condvar::new() }
    }

    /// Runs the work of a request, or queues it if all worker slots are taken. The work runs under its own cancellation
    /// token.
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
        if state.active_on_request_threads() >= self.most {
            let served = Arc::clone(served);
            state.waiting.push_back((origin, Box::new(move || work(&served))));
            if state.idle > 0 {
                self.queued.notify_one();
            }
            return;
        }
        let active = self.begin(state, origin.clone(), false);
        run(&origin.token, || work(served));
        drop(active);
        while let Some((token, task, _active)) = self.next() {
            run(&token, task);
        }
    }

    /// Returns the age of the oldest active request, including its time in the queue.
    pub fn oldest(&self) -> Duration {
        let state = self.lock();
        state.active.iter().map(|(_, origin)| origin.since.elapsed()).max().unwrap_or_default()
    }

    /// Watches requests until the end: cancels requests whose readers gave up, and starts extra threads while requests
    /// are slow. Ends after [`Requests::end`], or when `is_connected` returns false because nobody can be answered.
    pub fn watch(self: &Arc<Self>, is_connected: impl Fn() -> bool, has_given_up: impl Fn(u32) -> bool) {
        loop {
            let mut state = self.lock();
            while !state.has_ended && state.active.is_empty() && state.waiting.is_empty() {
                state.watch_sleeps = true;
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.watch_sleeps = false;
            if !state.has_ended {
                state = self.changed.wait_timeout(state, WATCH_INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
            }
            if state.has_ended {
                return;
            }
            drop(state);
            if is_connected() {
                self.cancel_abandoned(&has_given_up);
                self.start_queue_threads();
            } else {
                self.end();
            }
        }
    }

    /// Cancels all current and future requests, because nobody can be answered any more.
    pub fn end(&self) {
        let mut state = self.lock();
        state.has_ended = true;
        state.origins().for_each(|origin| origin.token.cancel());
        self.changed.notify_all();
        self.queued.notify_all();
        drop(state);
        self.refuse_cancelled();
    }

    /// Starts extra threads for requests that have waited for long, unless idle extra threads suffice.
    fn start_queue_threads(self: &Arc<Self>) {
        let mut state = self.lock();
        let late = state.waiting.iter().filter(|(origin, _)| origin.since.elapsed() >= WATCH_INTERVAL).count();
        let wanted =
            late.saturating_sub(state.idle).min(MAX_QUEUE_THREADS - state.queue_threads.min(MAX_QUEUE_THREADS));
        for _ in 0..wanted {
            let this = Arc::clone(self);
            // Count it before it runs, so that the next check does not start another thread for the same request.
            state.queue_threads += 1;
            if let Err(error) = threads::start("tilefs-queue", move || this.serve()) {
                state.queue_threads -= 1;
                log::info!("requests wait behind slow ones, because no further thread can be started: {error}");
                return;
            }
        }
    }

    /// Runs queued requests until the queue was empty for a while.
    fn serve(&self) {
        loop {
            let mut state = self.lock();
            state.idle += 1;
            let has_nothing = |state: &mut SchedulerState| state.waiting.is_empty() && !state.has_ended;
            let waited = self.queued.wait_timeout_while(state, IDLE, has_nothing);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.idle -= 1;
            let Some((origin, task)) = state.waiting.pop_front() else {
                state.queue_threads -= 1;
                return;
            };
            let token = origin.token.clone();
            let _active = self.begin(state, origin, true);
            run(&token, task);
        }
    }

    fn cancel_abandoned(&self, has_given_up: &impl Fn(u32) -> bool) {
        let is_old = |origin: &&Origin| origin.since.elapsed() >= WATCH_INTERVAL && !origin.token.is_cancelled();
        let old: Vec<Origin> = self.lock().origins().filter(is_old).cloned().collect();
        // Without the lock, because each check is a system call.
        old.iter().filter(|origin| has_given_up(origin.thread)).for_each(|origin| origin.token.cancel());
        self.refuse_cancelled();
    }

    /// Runs queued requests that are cancelled; each returns an error at once.
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
        if state.active_on_request_threads() >= self.most {
            return None;
        }
        let (origin, task) = state.waiting.pop_front()?;
        Some((origin.token.clone(), task, self.begin(state, origin, false)))
    }

    fn begin(
        &self,
        mut state: MutexGuard<'_, SchedulerState>,
        origin: Origin,
        is_queue_thread: bool,
    ) -> ActiveRequest<'_> {
        let number = state.next;
        state.next += 1;
        state.active.push((number, origin));
        state.active_on_queue_threads += usize::from(is_queue_thread);
        ActiveRequest { requests: self, number, is_queue_thread }
    }

    fn lock(&self) -> MutexGuard<'_, SchedulerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SchedulerState {
    /// Returns the number of active request threads.
    fn active_on_request_threads(&self) -> usize {
        self.active.len() - self.active_on_queue_threads
    }

    fn origins(&self) -> impl Iterator<Item = &Origin> {
        self.active.iter().map(|(_, origin)| origin).chain(self.waiting.iter().map(|(origin, _)| origin))
    }
}

/// Runs the work of one request. A panic ends only that request: its reply, dropped during unwinding, returns an error
/// to the reader, and the thread continues.
fn run(token: &Token, work: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| token.cover(work))) {
        log::error!("internal error, please report it: {}", reason_of_panic(&*panic));
    }
}

/// An active request, until dropped.
struct ActiveRequest<'a> {
    requests: &'a Requests,
    number: u64,
    is_queue_thread: bool,
}

impl Drop for ActiveRequest<'_> {
    fn drop(&mut self) {
        let mut state = self.requests.lock();
        if let Some(at) = state.active.iter().position(|(number, _)| *number == self.number) {
            state.active.swap_remove(at);
            state.active_on_queue_threads -= usize::from(self.is_queue_thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use tilefs_threads::cancellation;

    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::sync::mpsc;
    use std::thread;

    /// Some thread that makes requests.
    const READER: u32 = 7;

    /// Waits, up to a limit, until a condition holds.
    fn until(is_so: impl Fn() -> bool) {
        let start = Instant::now();
        while !is_so() {
            assert!(start.elapsed() < Duration::from_secs(10), "it does not come");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn the_last_free_thread_only_queues() {
        let requests = Arc::new(Requests::new(2));
        let (release, gate) = mpsc::channel::<()>();
        let (sender, done) = mpsc::channel();
        thread::scope(|scope| {
            let busy = requests.clone();
            scope.spawn(move || busy.handle(&Arc::new(()), READER, move |()| gate.recv().unwrap()));
            until(|| !requests.lock().active.is_empty());
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
        assert_eq!((state.active.len(), state.waiting.len()), (0, 0));
    }

    #[test]
    fn the_age_of_a_stuck_request_is_reported() {
        let requests = Requests::new(4);
        assert_eq!(requests.oldest(), Duration::ZERO);
        let origin = Origin { thread: READER, since: Instant::now(), token: Token::new() };
        let stuck = requests.begin(requests.lock(), origin, false);
        thread::sleep(Duration::from_millis(2));
        // Other requests come and go.
        requests.handle(&Arc::new(()), READER, |()| {});
        assert!(requests.oldest() >= Duration::from_millis(2));
        drop(stuck);
        assert_eq!(requests.oldest(), Duration::ZERO);
    }

    /// Requests whose thread gave up end, whether they run (until they are cancelled) or are queued.
    #[test]
    fn abandoned_requests_end_and_queued_ones_proceed() {
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
            until(|| requests.lock().active.len() == 1);
            [2, READER, 3].into_iter().for_each(ask);
            assert_eq!(done.recv_timeout(Duration::from_secs(2)), Ok((READER, false)), "it is behind slow ones");
            gone.store(2, Ordering::Relaxed);
            assert_eq!(done.recv_timeout(Duration::from_secs(2)), Ok((2, true)));
            gone.store(1, Ordering::Relaxed);
            assert_eq!(done.recv_timeout(Duration::from_secs(2)), Ok((1, true)));
            // One is left, which only `end` cancels.
            assert!(done.recv_timeout(Duration::from_millis(300)).is_err());
            requests.end();
            assert_eq!(done.recv_timeout(Duration::from_secs(2)), Ok((3, true)));
        });
        requests.handle(&Arc::new(()), READER, |()| assert!(cancellation::is_cancelled(), "nobody can be answered"));
    }

    #[test]
    fn a_broken_connection_cancels_all_requests() {
        let (requests, is_connected) = (Arc::new(Requests::new(2)), AtomicBool::new(true));
        thread::scope(|scope| {
            let watch = scope.spawn(|| requests.watch(|| is_connected.load(Ordering::Relaxed), |_| false));
            let request =
                scope.spawn(|| requests.handle(&Arc::new(()), READER, |()| until(cancellation::is_cancelled)));
            thread::sleep(2 * WATCH_INTERVAL);
            assert!(!request.is_finished());
            is_connected.store(false, Ordering::Relaxed);
            request.join().unwrap();
            watch.join().unwrap();
        });
    }

    /// However many requests hang, requests of other threads are answered soon, and the extra threads exit.
    #[test]
    fn hanging_requests_do_not_block_others() {
        let requests = Arc::new(Requests::new(3));
        let (sender, done) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| requests.watch(|| true, |_| false));
            for _ in 0..20 {
                let requests = requests.clone();
                scope.spawn(move || requests.handle(&Arc::new(()), 1, |()| until(cancellation::is_cancelled)));
            }
            until(|| requests.lock().active.len() == 20);
            // The extra threads exist by now.
            for number in 0..50 {
                let sender = sender.clone();
                let start = Instant::now();
                requests.handle(&Arc::new(()), READER, move |()| sender.send(number).unwrap());
                assert_eq!(done.recv_timeout(Duration::from_secs(2)), Ok(number));
                assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
            }
            assert!(requests.lock().queue_threads <= 22, "{}", requests.lock().queue_threads);
            requests.end();
        });
        until(|| requests.lock().queue_threads == 0);
        let state = requests.lock();
        assert_eq!((state.active.len(), state.active_on_queue_threads, state.waiting.len(), state.idle), (0, 0, 0, 0));
    }

    /// A panic, of an active or a queued request, loses no thread and blocks no request.
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
            until(|| !requests.lock().active.is_empty());
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
        assert!(requests.lock().active.is_empty());
    }
}
