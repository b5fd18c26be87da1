//! The requests under way: one thread always stays free to take the next.
//!
//! Where all threads were at work and one of them asked something of this very mount, nobody would be left to refuse
//! it. So the last free thread does no work: it puts what it takes in a queue, for whoever is done first.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

type Task = Box<dyn FnOnce() + Send>;

/// Who is at work, and what waits. Memory: what the kernel has asked for and nobody has begun.
pub struct Requests {
    /// How many may be at work at the same time.
    most: usize,
    state: Mutex<State>,
}

struct State {
    /// Requests at work: those begun before `since`, and those begun later.
    before: usize,
    after: usize,
    /// Counts the changes of `since`.
    turn: u64,
    since: Instant,
    waiting: VecDeque<Task>,
}

impl Requests {
    /// For so many threads that take requests, at least two.
    pub fn new(threads: usize) -> Self {
        let state = State { before: 0, after: 0, turn: 0, since: Instant::now(), waiting: VecDeque::new() };
        Requests { most: threads.saturating_sub(1).max(1), state: Mutex::new(state) }
    }

    /// Does what a request needs, or has it done by a thread that is at work now.
    pub fn handle<S: Send + Sync + 'static>(&self, served: &Arc<S>, work: impl FnOnce(&S) + Send + 'static) {
        let mut state = self.lock();
        if state.before + state.after >= self.most {
            let served = Arc::clone(served);
            state.waiting.push_back(Box::new(move || work(&served)));
            return;
        }
        let at_work = self.begin(state);
        work(served);
        drop(at_work);
        while let Some((task, _at_work)) = self.next() {
            task();
        }
    }

    /// For how long, at least, one of the requests under way has been under way. Looked at again and again: what is
    /// found the first time is zero.
    pub fn oldest(&self) -> Duration {
        let mut state = self.lock();
        if state.before > 0 {
            return state.since.elapsed();
        }
        state.before = state.after;
        state.after = 0;
        state.turn += 1;
        state.since = Instant::now();
        Duration::ZERO
    }

    fn next(&self) -> Option<(Task, ActiveRequest<'_>)> {
        let mut state = self.lock();
        if state.before + state.after >= self.most {
            return None;
        }
        let task = state.waiting.pop_front()?;
        Some((task, self.begin(state)))
    }

    fn begin(&self, mut state: MutexGuard<'_, State>) -> ActiveRequest<'_> {
        state.after += 1;
        ActiveRequest { requests: self, turn: state.turn }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is at work until this is dropped, by a panic too.
struct ActiveRequest<'a> {
    requests: &'a Requests,
    turn: u64,
}

impl Drop for ActiveRequest<'_> {
    fn drop(&mut self) {
        let mut state = self.requests.lock();
        let counted = if state.turn == self.turn { &mut state.after } else { &mut state.before };
        *counted = counted.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn the_last_free_thread_leaves_the_work_to_others() {
        let requests = Arc::new(Requests::new(2));
        let (release, gate) = mpsc::channel::<()>();
        let (sender, done) = mpsc::channel();
        thread::scope(|scope| {
            let busy = requests.clone();
            scope.spawn(move || busy.handle(&Arc::new(()), move |()| gate.recv().unwrap()));
            while requests.lock().after == 0 {
                thread::yield_now();
            }
            for number in 0..3 {
                let sender = sender.clone();
                requests.handle(&Arc::new(()), move |()| sender.send((number, thread::current().id())).unwrap());
            }
            assert!(done.try_recv().is_err());
            release.send(()).unwrap();
        });
        let numbers: Vec<_> = done.try_iter().map(|(number, id)| (number, id == thread::current().id())).collect();
        assert_eq!(numbers, [(0, false), (1, false), (2, false)]);
        let state = requests.lock();
        assert_eq!((state.before, state.after, state.waiting.len()), (0, 0, 0));
    }

    #[test]
    fn a_request_that_does_not_end_is_seen() {
        let requests = Requests::new(4);
        assert_eq!(requests.oldest(), Duration::ZERO);
        let stuck = requests.begin(requests.lock());
        assert_eq!(requests.oldest(), Duration::ZERO);
        thread::sleep(Duration::from_millis(2));
        // Others come and go.
        requests.handle(&Arc::new(()), |()| {});
        assert!(requests.oldest() >= Duration::from_millis(2));
        drop(stuck);
        assert_eq!(requests.oldest(), Duration::ZERO);
    }
}
