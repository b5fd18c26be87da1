//! Congestion window: adapts the number of concurrent requests to the link, judged by latencies.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit};

/// Initial window: a link of half a megabyte per second answers this many requests within a minute.
const FIRST: usize = 16;

/// Minimum window, however slow the answers are.
const LEAST: usize = 4;

/// If whole answers arrive within this time, more concurrency brings more throughput.
const EARLY: Duration = Duration::from_secs(1);

/// If answers take this long, the requests compete with each other.
const LATE: Duration = Duration::from_secs(4);

/// The window of concurrent requests. It grows by one with each early answer while it is full, which doubles it per
/// round trip, and shrinks by a quarter when answers are late or the store asks for fewer requests.
pub struct RequestWindow {
    permits: Semaphore,
    state: Mutex<WindowState>,
    most: usize,
}

struct WindowState {
    /// Number of requests that may be in flight.
    size: usize,
    /// Number of existing permits; while they exceed `size`, returned permits are destroyed.
    permits: usize,
    /// Number of late or rejected requests since the last shrink. The window shrinks only once for requests that were
    /// in flight together.
    setbacks: usize,
}

/// The place of a request in flight.
pub struct InFlight<'a> {
    window: &'a RequestWindow,
    permit: Option<SemaphorePermit<'a>>,
    begin: Instant,
}

/// The outcome of a request as far as the window is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestOutcome {
    Answered,
    /// The store asked for fewer requests, or did not answer in time.
    Throttled,
    /// Says nothing about the link.
    Other,
}

impl RequestWindow {
    /// Creates a window that never exceeds `most`.
    pub fn new(most: usize) -> Self {
        let size = FIRST.min(most);
        // Before any growth, the first late answer shrinks the window.
        let state = WindowState { size, permits: size, setbacks: size };
        RequestWindow { permits: Semaphore::new(size), state: Mutex::new(state), most }
    }

    /// Waits until another request may be made.
    pub async fn enter(&self) -> InFlight<'_> {
        // The semaphore is never closed; without a permit, a request would merely not be counted.
        let permit = self.permits.acquire().await.ok();
        InFlight { window: self, permit, begin: Instant::now() }
    }

    fn lock(&self) -> MutexGuard<'_, WindowState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InFlight<'_> {
    /// Ends the request and adapts the window.
    pub fn end(self, outcome: RequestOutcome) {
        let took = self.begin.elapsed();
        self.end_after(outcome, took);
    }

    fn end_after(mut self, outcome: RequestOutcome, took: Duration) {
        let window = self.window;
        let is_full = window.permits.available_permits() == 0;
        let mut state = window.lock();
        match outcome {
            RequestOutcome::Answered if took < EARLY && is_full => state.size = (state.size + 1).min(window.most),
            RequestOutcome::Answered if took < LATE => {}
            RequestOutcome::Other => {}
            RequestOutcome::Answered | RequestOutcome::Throttled => {
                state.setbacks += 1;
                if state.setbacks > state.size {
                    let fewer = state.size - state.size / 4;
                    state.size = fewer.max(LEAST.min(state.size));
                    state.setbacks = 0;
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
    use super::*;
    use crate::runtime::IoThread;

    /// All that may be under way at once end after a time.
    async fn round(window: &RequestWindow, outcome: RequestOutcome, took: Duration) -> usize {
        let mut in_flight = Vec::new();
        while window.permits.available_permits() > 0 {
            in_flight.push(window.enter().await);
        }
        let count = in_flight.len();
        in_flight.into_iter().for_each(|one| one.end_after(outcome, took));
        count
    }

    #[test]
    fn the_window_grows_with_early_answers_and_shrinks_with_late_ones() {
        let (io, window) = (IoThread::start().unwrap(), RequestWindow::new(50));
        let mut sizes = Vec::new();
        let grown = io.wait(async {
            // Only the first of those that end finds it full.
            for _ in 0..100 {
                sizes.push(round(&window, RequestOutcome::Answered, Duration::from_millis(20)).await);
            }
            assert!(sizes[0] == FIRST && sizes.is_sorted() && sizes[99] == 50, "{sizes:?}");
            round(&window, RequestOutcome::Answered, EARLY).await;
            assert_eq!(round(&window, RequestOutcome::Other, LATE * 9).await, 50, "neither soon nor late");
            round(&window, RequestOutcome::Throttled, EARLY).await;
            let once = round(&window, RequestOutcome::Other, EARLY).await;
            assert!((37..=38).contains(&once), "{once}");
            for _ in 0..100 {
                round(&window, RequestOutcome::Answered, LATE).await;
            }
            assert_eq!(round(&window, RequestOutcome::Other, EARLY).await, LEAST);
            Ok(())
        });
        let small = RequestWindow::new(2);
        let kept = io.wait(async {
            for _ in 0..9 {
                assert_eq!(round(&small, RequestOutcome::Throttled, LATE).await, 2);
            }
            Ok(())
        });
        assert!(grown.is_ok() && kept.is_ok());
    }
}
