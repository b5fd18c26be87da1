//! What was read ahead of a reader and has not been read yet, to tell what was of use from what was not.

use std::ops::Range;

/// So many ranges are remembered; of strides, in whose bands much is never read, the oldest are given up.
const MOST_RANGES: usize = 64;

/// Ranges of a file, oldest first, none of which overlap in what is still unread.
#[derive(Debug, Default)]
pub struct Unread {
    ranges: Vec<Range<u64>>,
}

impl Unread {
    /// Adds what is being read ahead; gives how many bytes are given up for it.
    pub fn add(&mut self, range: Range<u64>) -> u64 {
        // Read ahead once more after it had left the cache: it is the same bytes that will be of use.
        let mut given_up = self.take(&range);
        self.ranges.push(range);
        if self.ranges.len() > MOST_RANGES {
            given_up += length(&self.ranges.remove(0));
        }
        given_up
    }

    /// Takes out what is read now; gives how many of its bytes were read ahead.
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
            // What lies before it, else what lies behind it.
            *range = if range.start < from { range.start..from } else { to..range.end };
            length(range) > 0
        });
        self.ranges.append(&mut left);
        used
    }

    /// Gives all up; gives how many bytes that are.
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
    fn each_byte_is_of_use_once() {
        let mut unread = Unread::default();
        assert_eq!(unread.add(0..100) + unread.add(100..200), 0);
        assert_eq!(unread.take(&(250..300)), 0);
        // Out of the middle, over both, and what is left.
        assert_eq!(unread.take(&(40..60)), 20);
        assert_eq!(unread.take(&(50..120)), 60);
        assert_eq!(unread.take(&(50..120)), 0);
        assert_eq!(unread.clear(), 120);
        assert_eq!(unread.take(&(0..200)) + unread.clear(), 0);
        // What is read ahead again was of no use the first time.
        assert_eq!(unread.add(0..10) + unread.add(5..15), 5);
        assert_eq!(unread.clear(), 15);
    }

    #[test]
    fn few_ranges_are_remembered() {
        let mut unread = Unread::default();
        let given_up: u64 = (0..1000).map(|number| unread.add(number * 10..number * 10 + 3)).sum();
        assert_eq!(given_up, (1000 - MOST_RANGES as u64) * 3);
        assert_eq!(unread.ranges.len(), MOST_RANGES);
    }
}
