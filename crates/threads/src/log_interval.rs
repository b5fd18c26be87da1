//! Rate limit for progress lines in the log.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Interval between progress lines.
const INTERVAL: Duration = Duration::from_secs(5);

/// Tells when the next progress line is due: one every five seconds across all threads.
#[derive(Debug)]
pub struct LogInterval(Mutex<Instant>);

impl LogInterval {
    /// Starts the interval now.
    pub fn new() -> Self {
        LogInterval(Mutex::new(Instant::now() + INTERVAL))
    }

    /// Returns whether a line is due; the caller must then write it.
    pub fn is_due(&self) -> bool {
        match self.0.try_lock() {
            Ok(mut due) if Instant::now() >= *due => {
                *due += INTERVAL;
                true
            }
            _ => false,
        }
    }
}

impl Default for LogInterval {
    fn default() -> Self {
        Self::new()
    }
}
