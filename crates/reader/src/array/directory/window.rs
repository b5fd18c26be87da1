//! The time window of an array.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use tilefs_format::name::TimestampedName;

/// The present time, for windows.
static CLOCK: MonotonicClock = MonotonicClock(AtomicU64::new(0));

/// Milliseconds since the Unix epoch; includes both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimeWindow {
    /// The first visible time, in milliseconds since 1970.
    pub start: u64,
    /// The last visible time, in milliseconds since 1970.
    pub end: u64,
}

/// The latest time that the clock has shown. If the clock is set back, commits that were already visible stay visible.
struct MonotonicClock(AtomicU64);

impl MonotonicClock {
    fn at(&self, time: u64) -> u64 {
        self.0.fetch_max(time, Ordering::Relaxed).max(time)
    }
}

/// Returns the present time in milliseconds since 1970. It never decreases in this process.
pub fn now() -> u64 {
    CLOCK.at(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64))
}

impl TimeWindow {
    /// Includes everything ever written, even if dated in the future.
    pub const ALL: TimeWindow = TimeWindow { start: 0, end: u64::MAX };

    /// Includes everything up to `end`.
    pub fn until(end: u64) -> Self {
        TimeWindow { start: 0, end }
    }

    /// Returns whether the window contains a whole time range.
    pub fn contains(&self, times: &TimestampedName) -> bool {
        self.start <= times.t1 && times.t2 <= self.end
    }

    /// Returns whether the window overlaps a time range.
    pub fn touches(&self, times: &TimestampedName) -> bool {
        times.t1 <= self.end && self.start <= times.t2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_hides_nothing() {
        let clock = MonotonicClock(AtomicU64::new(0));
        assert_eq!([5, 9, 3, 0, 9, 12].map(|time| clock.at(time)), [5, 9, 9, 9, 9, 12]);
    }
}
