//! How many requests are under way at a time: as many as the link carries, which shows in how long they take.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit};

/// Requests under way at first: what a link of half a megabyte a second answers within a minute.
const FIRST: usize = 16;

/// However slow the answers are.
const LEAST: usize = 4;

/// While whole answers are there so soon, more requests at a time bring more bytes.
const SOON: Duration = Duration::from_secs(1);

/// When answers take so long, the requests stand in each other's way.
const LATE: Duration = Duration::from_secs(4);

/// The window of requests that may be under way. It grows by one with each answer that comes soon while others wait,
/// which doubles it in the time of an answer, and shrinks by a quarter when answers come late or the store asks to be
/// spared.
pub struct Window {
    permits: Semaphore,
    state: Mutex<State>,
    most: usize,
}

struct State {
    /// How many requests may be under way.
    size: usize,
    /// How many permits there are; while these are more than `size`, each is taken away when it comes back.
    permits: usize,
    /// Bad news since it last shrank, which it does once for all requests that were under way together.
    bad: usize,
}

/// What a request holds while it is under way.
pub struct UnderWay<'a> {
    window: &'a Window,
    permit: Option<SemaphorePermit<'a>>,
    begin: Instant,
}

/// How a request went, as far as the window is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Answered,
    /// The store asked for fewer requests, or did not answer in time.
    Spare,
    /// It says nothing of the link.
    Other,
}

impl Window {
    /// One that never grows beyond `most`.
    pub fn new(most: usize) -> Self {
        let size = FIRST.min(most);
        // Before it has grown, the first bad news shrinks it.
        let state = State { size, permits: size, bad: size };
        Window { permits: Semaphore::new(size), state: Mutex::new(state), most }
    }

    /// Waits until another request may be made.
    pub async fn enter(&self) -> UnderWay<'_> {
        // It is never closed; without a permit a request would only not be counted.
        let permit = self.permits.acquire().await.ok();
        UnderWay { window: self, permit, begin: Instant::now() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnderWay<'_> {
    /// The request is over.
    pub fn end(self, outcome: Outcome) {
        let took = self.begin.elapsed();
        self.end_after(outcome, took);
    }

    fn end_after(mut self, outcome: Outcome, took: Duration) {
        let window = self.window;
        let is_full = window.permits.available_permits() == 0;
        let mut state = window.lock();
        match outcome {
            Outcome::Answered if took < SOON && is_full => state.size = (state.size + 1).min(window.most),
            Outcome::Answered if took < LATE => {}
            Outcome::Other => {}
            Outcome::Answered | Outcome::Spare => {
                state.bad += 1;
                if state.bad > state.size {
                    let fewer = state.size - state.size / 4;
                    state.size = fewer.max(LEAST.min(state.size));
                    state.bad = 0;
                }
            }
        }
        if state.permits > state.size {
            state.permits -= 1;
            if let Some(permit) = self.permit.take() {
                permit.forget();
            }
        } else if state.permits < state.size {
            state.permits += 1;
            window.permits.add_permits(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::runtime::IoThread;
    use super::*;

    /// All that may be under way at once end after a time.
    async fn round(window: &Window, outcome: Outcome, took: Duration) -> usize {
        let mut under_way = Vec::new();
        while window.permits.available_permits() > 0 {
            under_way.push(window.enter().await);
        }
        let count = under_way.len();
        under_way.into_iter().for_each(|one| one.end_after(outcome, took));
        count
    }

    #[test]
    fn it_grows_while_answers_come_soon_and_shrinks_when_they_are_late() {
        let (io, window) = (IoThread::start().unwrap(), Window::new(50));
        let mut sizes = Vec::new();
        let grown = io.wait(async {
            // Only the first of those that end finds it full.
            for _ in 0..100 {
                sizes.push(round(&window, Outcome::Answered, Duration::from_millis(20)).await);
            }
            assert!(sizes[0] == FIRST && sizes.is_sorted() && sizes[99] == 50, "{sizes:?}");
            round(&window, Outcome::Answered, SOON).await;
            assert_eq!(round(&window, Outcome::Other, LATE * 9).await, 50, "neither soon nor late");
            round(&window, Outcome::Spare, SOON).await;
            let once = round(&window, Outcome::Other, SOON).await;
            assert!((37..=38).contains(&once), "{once}");
            for _ in 0..100 {
                round(&window, Outcome::Answered, LATE).await;
            }
            assert_eq!(round(&window, Outcome::Other, SOON).await, LEAST);
            Ok(())
        });
        let small = Window::new(2);
        let kept = io.wait(async {
            for _ in 0..9 {
                assert_eq!(round(&small, Outcome::Spare, LATE).await, 2);
            }
            Ok(())
        });
        assert!(grown.is_ok() && kept.is_ok());
    }
}
