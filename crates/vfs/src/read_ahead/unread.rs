//! Tracks prefetched ranges that were not read yet, to measure how much prefetching was useful.

use std::ops::Range;

/// Maximum number of tracked ranges, more than the largest window has; the oldest are counted as wasted. The bands of
/// strides are often never read in full.
const MOST_RANGES: usize = 256;

/// Ranges of a file, oldest first, with disjoint unread bytes.
#[derive(Debug, Default)]
pub struct Unread {
    ranges: Vec<Range<u64>>,
}

impl Unread {
    /// Adds a prefetched range; returns how many bytes are counted as wasted in exchange.
    pub fn add(&mut self, range: Range<u64>) -> u64 {
        // Prefetched again after eviction: the same bytes may still be used.
        let mut given_up = self.take(&range);
        self.ranges.push(range);
        if self.ranges.len() > MOST_RANGES {
            given_up += length(&self.ranges.remove(0));
        }
        given_up
    }

    /// Removes a range that is now read; returns how many of its bytes were prefetched.
    pub fn take(&mut self, read: &Range<u64>) -> u64 {
        let mut used = 0;
        let mut left = Vec::new();
        self.ranges.retain_mut(|range| {
            let (from, to) = (range.start.max(read.start), range.end.min(read.end));
            if from >= to {
                return true;
            }
            used += to - from;
            if range.start < from && to < range.end {
                left.push(to..range.end);
            }
            // Keep the part before the read, or else the part after it.
            *range = if range.start < from { range.start..from } else { to..range.end };
            length(range) > 0
        });
        self.ranges.append(&mut left);
        used
    }

    /// Removes all ranges; returns their number of bytes.
    pub fn clear(&mut self) -> u64 {
        self.ranges.drain(..).map(|range| length(&range)).sum()
    }
}

fn length(range: &Range<u64>) -> u64 {
    range.end - range.start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_counts_as_used_once() {
        let mut unread = Unread::default();
        assert_eq!(unread.add(0..100) + unread.add(100..200), 0);
        assert_eq!(unread.take(&(250..300)), 0);
        // A range in the middle, one across both, and the rest.
        assert_eq!(unread.take(&(40..60)), 20);
        assert_eq!(unread.take(&(50..120)), 60);
        assert_eq!(unread.take(&(50..120)), 0);
        assert_eq!(unread.clear(), 120);
        assert_eq!(unread.take(&(0..200)) + unread.clear(), 0);
        // A range that is prefetched again was wasted the first time.
        assert_eq!(unread.add(0..10) + unread.add(5..15), 5);
        assert_eq!(unread.clear(), 15);
    }

    #[test]
    fn the_number_of_ranges_is_bounded() {
        let mut unread = Unread::default();
        let given_up: u64 = (0..1000).map(|number| unread.add(number * 10..number * 10 + 3)).sum();
        assert_eq!(given_up, (1000 - MOST_RANGES as u64) * 3);
        assert_eq!(unread.ranges.len(), MOST_RANGES);
    }
}
