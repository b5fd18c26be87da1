//! The one thread on which connections live. Whoever asks waits on its own thread; nothing above knows of any of this.

use std::io;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::error::{Error, Result};
use crate::threads;

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

    /// Waits on this thread for what a future gives; its connections are served by the other.
    pub fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.handle.block_on(future)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    use tokio::sync::Barrier;

    #[test]
    fn several_threads_wait_at_once() {
        let io = IoThread::start().unwrap();
        // None goes on before all are there.
        let barrier = Barrier::new(8);
        let wait = || io.wait(async { barrier.wait().await.is_leader() });
        let leaders = thread::scope(|scope| {
            let waiting: Vec<_> = (0..8).map(|_| scope.spawn(wait)).collect();
            waiting.into_iter().map(|one| one.join().unwrap()).filter(|is_leader| *is_leader).count()
        });
        assert_eq!(leaders, 1);
    }
}
