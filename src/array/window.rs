//! The window of time through which an array is seen.

use crate::format::name::TimestampedName;

/// Milliseconds since the Unix epoch, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimeWindow {
    pub start: u64,
    pub end: u64,
}

impl TimeWindow {
    /// Everything ever written, also what is dated in the future.
    pub const ALL: TimeWindow = TimeWindow { start: 0, end: u64::MAX };

    /// Everything up to `end`.
    pub fn until(end: u64) -> Self {
        TimeWindow { start: 0, end }
    }

    /// Whether a time range lies within the window.
    pub fn contains(&self, times: &TimestampedName) -> bool {
        self.start <= times.t1 && times.t2 <= self.end
    }

    /// Whether a time range shares a moment with the window.
    pub fn touches(&self, times: &TimestampedName) -> bool {
        times.t1 <= self.end && self.start <= times.t2
    }
}
