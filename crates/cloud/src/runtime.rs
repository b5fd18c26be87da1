//! The thread that drives all connections. Callers block on their own threads; nothing above knows about async code.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::Poll;

use tilefs_base::error::{Error, Result};
use tilefs_threads::{self as threads, cancellation};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::time::interval;

/// An async runtime on its own thread, which ends when this is dropped.
pub struct IoThread {
    handle: Handle,
    /// Ends the thread on drop.
    _stop: oneshot::Sender<()>,
}

impl IoThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`Error::Io`] if no thread can start, or descriptors run out.
    pub fn start() -> Result<Self> {
        let failed =
            |error: io::Error| Error::io(io::Error::new(error.kind(), format!("cannot start a thread: {error}")));
        // A single thread that we start ourselves: a multi-threaded runtime panics if it cannot start its threads.
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let serve = move || {
            // The result does not matter: in both cases it is time to stop.
            let _ = runtime.block_on(stopped);
            runtime.shutdown_background();
        };
        threads::start("tilefs-network", serve).map_err(failed)?;
        Ok(IoThread { handle, _stop: stop })
    }

    /// Blocks this thread on a future while the runtime's thread serves its connections. If this thread's request is
    /// cancelled, the future and its requests are dropped.
    ///
    /// # Errors
    /// The errors of the future; [`Error::Cancelled`].
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
        // No thread goes on before all have arrived.
        let barrier = Barrier::new(8);
        let wait = || io.wait(async { Ok(barrier.wait().await.is_leader()) }).unwrap();
        let leaders = thread::scope(|scope| {
            let waiting: Vec<_> = (0..8).map(|_| scope.spawn(wait)).collect();
            waiting.into_iter().map(|one| one.join().unwrap()).filter(|is_leader| *is_leader).count()
        });
        assert_eq!(leaders, 1);
    }

    #[test]
    fn waiting_for_a_hanging_store_can_be_cancelled() {
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
