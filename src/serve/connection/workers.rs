//! Threads that make replies: reading an array blocks, and the threads of connections must not.
//!
//! Replies are made in pieces, and each piece is a job of its own, so a slow client occupies no thread. A thread is
//! started if there are more unfinished jobs than threads: then jobs that wait for a storage delay no others. How many
//! threads decode at once is limited elsewhere.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tilefs_threads::{self as threads, cancellation::Token};
use tilefs_vfs::reports::reason_of_panic;
use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// Idle time after which a thread ends.
const IDLE: Duration = Duration::from_secs(5);

/// The threads and their jobs. Memory: the stacks of at most `most` threads, and the waiting jobs, of which each
/// connection has at most one.
pub struct Workers {
    jobs: Sender<Job>,
    shared: Arc<JobQueue>,
}

struct JobQueue {
    /// Maximum number of threads. Further jobs wait.
    most: usize,
    jobs: Mutex<Receiver<Job>>,
    state: Mutex<WorkersState>,
}

#[derive(Default)]
struct WorkersState {
    threads: usize,
    /// Jobs that wait or run.
    unfinished: usize,
}

impl Workers {
    /// Creates the queue for at most `most` threads. They start with the first jobs.
    pub fn new(most: usize) -> Self {
        let (jobs, receiver) = mpsc::channel();
        Workers { jobs, shared: Arc::new(JobQueue { most, jobs: Mutex::new(receiver), state: Mutex::default() }) }
    }

    /// Runs `work` on a thread, under a token. The receiver gets the result; it gets an error if the work panicked or
    /// no thread can be started. Work whose token is cancelled or whose receiver is gone before it begins is dropped.
    pub fn run<T: Send + 'static>(
        &self,
        token: Token,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> oneshot::Receiver<T> {
        let (sender, receiver) = oneshot::channel();
        let unfinished = Unfinished::new(&self.shared);
        let job = move || {
            if !token.is_cancelled() && !sender.is_closed() {
                let result = token.cover(work);
                // Drop it before the receiver can submit another job, because this thread is free for that job.
                drop(unfinished);
                // Fails if nobody waits any more.
                let _ = sender.send(result);
            }
        };
        if self.shared.has_thread() {
            // Cannot fail, because we hold the receiver, too.
            let _ = self.jobs.send(Box::new(job));
        }
        // Without any thread, dropping the job tells the receiver.
        receiver
    }
}

/// A job that waits or runs, until dropped.
struct Unfinished(Arc<JobQueue>);

impl Unfinished {
    fn new(shared: &Arc<JobQueue>) -> Self {
        shared.lock().unfinished += 1;
        Unfinished(Arc::clone(shared))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.0.lock().unfinished -= 1;
    }
}

impl JobQueue {
    /// Starts another thread if all are busy. Returns whether there is any.
    fn has_thread(self: &Arc<Self>) -> bool {
        let mut state = self.lock();
        if state.unfinished > state.threads && state.threads < self.most {
            let shared = Arc::clone(self);
            match threads::start("tilefs-serve", move || shared.work()) {
                Ok(_) => state.threads += 1,
                Err(error) => log::warn!("cannot start another thread for requests: {error}"),
            }
        }
        state.threads > 0
    }

    fn lock(&self) -> MutexGuard<'_, WorkersState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs jobs until none has come for a while, or the queue is gone.
    fn work(&self) {
        loop {
            let start = Instant::now();
            let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
            // One thread at a time waits for a job. The others are idle meanwhile, so their wait for the lock counts as
            // idle time.
            let next = jobs.recv_timeout(IDLE.saturating_sub(start.elapsed()));
            drop(jobs);
            match next {
                Ok(job) => {
                    if let Err(panic) = catch_unwind(AssertUnwindSafe(job)) {
                        log::error!("internal error, please report it: {}", reason_of_panic(&*panic));
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    let mut state = self.lock();
                    // If there are as many jobs as threads, one of them is for this thread.
                    if state.unfinished < state.threads {
                        state.threads -= 1;
                        return;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.lock().threads -= 1;
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn jobs_that_block_delay_no_others() {
        let (workers, gate) = (Workers::new(256), Arc::new(Barrier::new(9)));
        let blocked: Vec<_> = (0..8)
            .map(|number| {
                let gate = gate.clone();
                workers.run(Token::new(), move || {
                    gate.wait();
                    number
                })
            })
            .collect();
        for number in 0..100 {
            assert_eq!(workers.run(Token::new(), move || number).blocking_recv(), Ok(number));
        }
        gate.wait();
        let numbers: Vec<_> = blocked.into_iter().map(|receiver| receiver.blocking_recv().unwrap()).collect();
        assert_eq!(numbers, (0..8).collect::<Vec<_>>());
        assert_eq!(workers.shared.lock().threads, 9, "one for all short jobs");
    }

    #[test]
    fn a_panic_and_a_cancelled_job_are_told_and_cost_no_thread() {
        let workers = Workers::new(256);
        for _ in 0..10 {
            assert!(workers.run(Token::new(), || panic!("on purpose")).blocking_recv().is_err());
            let token = Token::new();
            token.cancel();
            assert!(workers.run(token, || 1).blocking_recv().is_err());
        }
        assert_eq!(workers.run(Token::new(), || 7).blocking_recv(), Ok(7));
        let start = Instant::now();
        while workers.shared.lock().unfinished > 0 {
            assert!(start.elapsed() < Duration::from_secs(10), "a job is counted that has ended");
        }
    }

    /// Idle threads end at about the same time, not one after the other.
    #[test]
    fn idle_threads_end() {
        let (workers, gate) = (Workers::new(256), Arc::new(Barrier::new(41)));
        let wait = |gate: Arc<Barrier>| {
            move || {
                gate.wait();
            }
        };
        let busy: Vec<_> = (0..40).map(|_| workers.run(Token::new(), wait(gate.clone()))).collect();
        gate.wait();
        busy.into_iter().for_each(|receiver| receiver.blocking_recv().unwrap());
        assert_eq!(workers.shared.lock().threads, 40);
        let start = Instant::now();
        while workers.shared.lock().threads > 0 {
            assert!(start.elapsed() < 4 * IDLE, "{} threads stay", workers.shared.lock().threads);
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(workers.run(Token::new(), || 7).blocking_recv(), Ok(7));
    }

    #[test]
    fn threads_end_with_their_queue() {
        let workers = Workers::new(256);
        workers.run(Token::new(), || ()).blocking_recv().unwrap();
        let shared = workers.shared.clone();
        drop(workers);
        let start = Instant::now();
        while shared.lock().threads > 0 {
            assert!(start.elapsed() < Duration::from_secs(10), "a thread stays");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
