//! The one thread on which connections live. Whoever asks waits on its own thread; nothing above knows of any of this.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::Poll;

use tilefs_format::error::{Error, Result};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::time::interval;

use crate::threads::{self, cancellation};

/// A runtime that is driven by a thread of its own, which ends with this.
pub struct IoThread {
    handle: Handle,
    /// Dropped, it ends the thread.
    _stop: oneshot::Sender<()>,
}

impl IoThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`Error::Io`] where there can be no other thread, or no descriptor for it.
    pub fn start() -> Result<Self> {
        let failed =
            |error: io::Error| Error::io(io::Error::new(error.kind(), format!("cannot start a thread: {error}")));
        // All of it on one thread, which we start ourselves: a runtime of several panics where there can be none.
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let serve = move || {
            // Either way it is over.
            let _ = runtime.block_on(stopped);
            runtime.shutdown_background();
        };
        threads::start("tilefs-network", serve).map_err(failed)?;
        Ok(IoThread { handle, _stop: stop })
    }

    /// Waits on this thread for what a future gives; its connections are served by the other. Where the request of this
    /// thread is cancelled, the future is dropped, and with it what it asked for.
    ///
    /// # Errors
    /// Those of the future; [`Error::Cancelled`].
    pub fn wait<T>(&self, future: impl Future<Output = Result<T>>) -> Result<T> {
        self.handle.block_on(async {
            let mut future = pin!(future);
            if cancellation::current().is_none() {
                return future.await;
            }
            let mut look = interval(cancellation::POLL_INTERVAL);
            poll_fn(|context| {
                if let Poll::Ready(outcome) = future.as_mut().poll(context) {
                    return Poll::Ready(outcome);
                }
                while look.poll_tick(context).is_ready() {
                    if cancellation::is_cancelled() {
                        return Poll::Ready(Err(Error::Cancelled));
                    }
                }
                Poll::Pending
            })
            .await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use std::time::{Duration, Instant};

    use tokio::sync::Barrier;

    #[test]
    fn several_threads_wait_at_once() {
        let io = IoThread::start().unwrap();
        // None goes on before all are there.
        let barrier = Barrier::new(8);
        let wait = || io.wait(async { Ok(barrier.wait().await.is_leader()) }).unwrap();
        let leaders = thread::scope(|scope| {
            let waiting: Vec<_> = (0..8).map(|_| scope.spawn(wait)).collect();
            waiting.into_iter().map(|one| one.join().unwrap()).filter(|is_leader| *is_leader).count()
        });
        assert_eq!(leaders, 1);
    }

    #[test]
    fn a_cancelled_thread_does_not_wait_for_a_store_that_hangs() {
        let (io, token) = (IoThread::start().unwrap(), cancellation::Token::new());
        thread::scope(|scope| {
            let waiting = scope.spawn(|| token.cover(|| io.wait(std::future::pending::<Result<()>>())));
            thread::sleep(3 * cancellation::POLL_INTERVAL);
            assert!(!waiting.is_finished());
            let start = Instant::now();
            token.cancel();
            assert!(matches!(waiting.join().unwrap(), Err(Error::Cancelled)));
            assert!(start.elapsed() < Duration::from_millis(900), "{:?}", start.elapsed());
        });
        assert_eq!(token.cover(|| io.wait(async { Ok(7) })).unwrap(), 7, "what is there is given");
    }
}
