//! How many threads wait for one bucket. Those of a bucket that is silent are kept few, so that they do not take up all
//! threads that serve requests, which other storages need.

use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::{Either, select};
use tokio::time::sleep;

/// So many may wait for a bucket however long it is silent.
const MOST_WAITING: usize = 48;

/// Without any answer for so long, a bucket that many wait for is silent.
const SILENCE: Duration = Duration::from_secs(3);

/// How often the others look whether it is.
const LOOK: Duration = Duration::from_millis(250);

/// Counts who waits for one bucket.
#[derive(Debug, Default)]
pub struct Waiters(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    waiting: usize,
    /// When the bucket answered last, or when the first of those who wait began.
    heard: Option<Instant>,
}

/// A bucket has not answered for long, and many wait for it already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silent;

impl Waiters {
    /// Notes that the bucket answers.
    pub fn note_answer(&self) {
        self.lock().heard = Some(Instant::now());
    }

    /// Waits for an operation on the bucket.
    ///
    /// # Errors
    /// [`Silent`] where this is one too many for a bucket that does not answer.
    pub async fn unless_silent<T>(&self, operation: impl Future<Output = T>) -> Result<T, Silent> {
        let place = {
            let mut state = self.lock();
            if state.waiting == 0 {
                state.heard = Some(Instant::now());
            }
            state.waiting += 1;
            state.waiting
        };
        let _waiting = Waiting(self);
        if place <= MOST_WAITING {
            return Ok(operation.await);
        }
        let silent = async {
            while self.lock().heard.is_some_and(|heard| heard.elapsed() < SILENCE) {
                sleep(LOOK).await;
            }
        };
        match select(pin!(operation), pin!(silent)).await {
            Either::Left((outcome, _)) => Ok(outcome),
            Either::Right(_) => Err(Silent),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One that waits, until this is dropped.
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

    use crate::storage::cloud::runtime::IoThread;

    #[test]
    fn few_wait_for_a_bucket_that_is_silent() {
        let (io, waiters) = (IoThread::start().unwrap(), Waiters::default());
        let hang = || timeout(SILENCE + Duration::from_secs(2), waiters.unless_silent(pending::<()>()));
        let outcomes = io.wait(async { Ok(join_all((0..MOST_WAITING + 9).map(|_| hang())).await) }).unwrap();
        let given_up = outcomes.iter().filter(|outcome| **outcome == Ok(Err(Silent))).count();
        assert_eq!((given_up, outcomes.iter().filter(|outcome| outcome.is_err()).count()), (9, MOST_WAITING));
        assert_eq!(waiters.lock().waiting, 0);
    }

    #[test]
    fn many_wait_for_a_bucket_that_answers() {
        let (io, waiters) = (IoThread::start().unwrap(), Waiters::default());
        let slow = async |number: u64| {
            // One answer after the other, each a while after the one before.
            sleep(Duration::from_millis(60 * number)).await;
            waiters.note_answer();
            number
        };
        let all = (0..100).map(|number| waiters.unless_silent(slow(number)));
        let outcomes = io.wait(async { Ok(join_all(all).await) }).unwrap();
        assert_eq!(outcomes, (0..100).map(Ok).collect::<Vec<_>>());
    }
}
