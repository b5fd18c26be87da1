//! The result of a session, for threads that wait for its end.

use std::time::Duration;

use tilefs_threads::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Whether a session ended well, or why its connection broke.
type SessionResult = std::result::Result<(), String>;

/// The result of a session, set when its threads end.
#[derive(Default)]
pub struct SessionEnd {
    result: Mutex<Option<SessionResult>>,
    reached: Condvar,
}

impl SessionEnd {
    /// Sets the result, unless one is set already.
    pub fn set(&self, result: SessionResult) {
        self.lock().get_or_insert(result);
        self.reached.notify_all();
    }

    /// Returns the result, if the session has ended.
    pub fn result(&self) -> Option<SessionResult> {
        self.lock().clone()
    }

    /// Waits for the result.
    pub fn wait(&self) -> SessionResult {
        let mut result = self.lock();
        loop {
            if let Some(result) = &*result {
                return result.clone();
            }
            result = self.reached.wait(result).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for the result, for at most `timeout`.
    pub fn wait_for(&self, timeout: Duration) {
        drop(self.reached.wait_timeout_while(self.lock(), timeout, |result| result.is_none()));
    }

    fn lock(&self) -> MutexGuard<'_, Option<SessionResult>> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
