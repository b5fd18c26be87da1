//! Limits how many threads wait for one bucket. A silent bucket must not block all request threads, which other
//! storages need.

use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::{Either, select};
use tokio::time::sleep;

/// Number of threads that may wait for a bucket however long it is silent.
const MOST_WAITING: usize = 48;

/// A bucket is silent after this long without any answer.
const SILENCE: Duration = Duration::from_secs(3);

/// Interval at which further waiting threads check for silence.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Counts the threads that wait for one bucket.
#[derive(Debug, Default)]
pub struct Waiters(Mutex<WaitersState>);

#[derive(Debug, Default)]
struct WaitersState {
    waiting: usize,
    /// Time of the bucket's last answer, or when the first thread began to wait.
    last_answer: Option<Instant>,
}

/// The bucket has not answered for long, and many threads already wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silent;

impl Waiters {
    /// Records an answer of the bucket.
    pub fn note_answer(&self) {
        self.lock().last_answer = Some(Instant::now());
    }

    /// Waits for an operation on the bucket.
    ///
    /// # Errors
    /// [`Silent`] if the bucket is silent and the limit of waiting threads is reached.
    pub async fn unless_silent<T>(&self, operation: impl Future<Output = T>) -> Result<T, Silent> {
        let position = {
            let mut state = self.lock();
            if state.waiting == 0 {
                state.last_answer = Some(Instant::now());
            }
            state.waiting += 1;
            state.waiting
        };
        let _waiting = Waiting(self);
        if position <= MOST_WAITING {
            return Ok(operation.await);
        }
        let silent = async {
            while self.lock().last_answer.is_some_and(|last_answer| last_answer.elapsed() < SILENCE) {
                sleep(POLL_INTERVAL).await;
            }
        };
        match select(pin!(operation), pin!(silent)).await {
            Either::Left((outcome, _)) => Ok(outcome),
            Either::Right(_) => Err(Silent),
        }
    }

    fn lock(&self) -> MutexGuard<'_, WaitersState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts one waiting thread until dropped.
struct Waiting<'a>(&'a Waiters);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::join_all;
    use std::future::pending;
    use tokio::time::timeout;

    use crate::runtime::IoThread;

    #[test]
    fn few_threads_wait_for_a_silent_bucket() {
        let (io, waiters) = (IoThread::start().unwrap(), Waiters::default());
        let hang = || timeout(SILENCE + Duration::from_secs(2), waiters.unless_silent(pending::<()>()));
        let outcomes = io.wait(async { Ok(join_all((0..MOST_WAITING + 9).map(|_| hang())).await) }).unwrap();
        let given_up = outcomes.iter().filter(|outcome| **outcome == Ok(Err(Silent))).count();
        assert_eq!((given_up, outcomes.iter().filter(|outcome| outcome.is_err()).count()), (9, MOST_WAITING));
        assert_eq!(waiters.lock().waiting, 0);
    }

    #[test]
    fn many_threads_wait_for_an_answering_bucket() {
        let (io, waiters) = (IoThread::start().unwrap(), Waiters::default());
        let slow = async |number: u64| {
            // One answer after the other, with a delay between them.
            sleep(Duration::from_millis(60 * number)).await;
            waiters.note_answer();
            number
        };
        let all = (0..100).map(|number| waiters.unless_silent(slow(number)));
        let outcomes = io.wait(async { Ok(join_all(all).await) }).unwrap();
        assert_eq!(outcomes, (0..100).map(Ok).collect::<Vec<_>>());
    }
}
