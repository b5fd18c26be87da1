//! Lines of the log that tell how far lasting work is.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How often work that lasts is told about.
const INTERVAL: Duration = Duration::from_secs(5);

/// Says when the next line about some work is due: one every five seconds, whichever threads ask.
#[derive(Debug)]
pub struct LogInterval(Mutex<Instant>);

impl LogInterval {
    /// Of work that begins now.
    pub fn new() -> Self {
        LogInterval(Mutex::new(Instant::now() + INTERVAL))
    }

    /// Whether a line is due; whoever is told so writes it.
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
