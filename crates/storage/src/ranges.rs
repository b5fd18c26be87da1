//! Coalescing of read ranges.

/// A range of an object, from `offset` over the length of `into`, and the buffer for it.
#[derive(Debug)]
pub struct ReadRange<'a> {
    /// The offset of the range in the file.
    pub offset: u64,
    /// Receives the bytes; its length is that of the range.
    pub into: &'a mut [u8],
}

impl ReadRange<'_> {
    /// Returns the end offset, saturating because no object is that long.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.into.len() as u64)
    }
}

/// Limits for coalescing ranges into one request.
#[derive(Debug, Clone, Copy)]
pub struct Coalescing {
    /// Ranges at most this many bytes apart are coalesced: reading the gap is cheaper than another request.
    pub gap: u64,
    /// Ranges at most this many bytes apart are coalesced as long as the request skips no more bytes than it uses,
    /// because wasted bandwidth slows all readers.
    pub wide_gap: u64,
    /// Coalescing never makes a request larger than this.
    pub most: u64,
    /// Maximum number of ranges per request.
    pub most_ranges: usize,
}

/// Sorts ranges by offset and splits them into runs, each of which is one request. Ranges in a run do not overlap.
/// Empty ranges are in no run.
pub fn coalesce<'r, 'a>(ranges: &'r mut [ReadRange<'a>], bounds: Coalescing) -> Vec<&'r mut [ReadRange<'a>]> {
    ranges.sort_unstable_by_key(|range| (!range.into.is_empty(), range.offset));
    let empty = ranges.partition_point(|range| range.into.is_empty());
    let (_, mut rest) = ranges.split_at_mut(empty);
    let mut runs = Vec::new();
    while let Some(first) = rest.first() {
        let (start, mut wanted, mut in_vain) = (first.offset, first.into.len() as u64, 0u64);
        let joins = |pair: &&[ReadRange<'_>]| {
            let (before, next) = (&pair[0], &pair[1]);
            let Some(gap) = next.offset.checked_sub(before.end()) else { return false };
            (wanted, in_vain) = (wanted + next.into.len() as u64, in_vain.saturating_add(gap));
            let is_near = gap <= bounds.gap || gap <= bounds.wide_gap && in_vain <= wanted;
            is_near && next.end() - start <= bounds.most
        };
        let length = 1 + rest.windows(2).take(bounds.most_ranges.saturating_sub(1)).take_while(joins).count();
        let (run, behind) = rest.split_at_mut(length);
        runs.push(run);
        rest = behind;
    }
    runs
}

/// Splits ranges into parts of at most `most` bytes.
pub fn split<'r>(ranges: &'r mut [ReadRange<'_>], most: u64) -> Vec<ReadRange<'r>> {
    let most = usize::try_from(most).unwrap_or(usize::MAX).max(1);
    let parts = ranges.iter_mut().flat_map(|range| {
        let offset = range.offset;
        let parts = range.into.chunks_mut(most).enumerate();
        parts.map(move |(number, into)| ReadRange { offset: offset.saturating_add((number * most) as u64), into })
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(ranges: &[(u64, usize)], bounds: Coalescing) -> Vec<Vec<(u64, usize)>> {
        let mut room = vec![0; ranges.iter().map(|range| range.1).sum()];
        let mut rest = &mut room[..];
        let mut wanted = Vec::new();
        for &(offset, length) in ranges {
            let (into, behind) = rest.split_at_mut(length);
            wanted.push(ReadRange { offset, into });
            rest = behind;
        }
        let runs = coalesce(&mut wanted, bounds);
        runs.iter().map(|run| run.iter().map(|range| (range.offset, range.into.len())).collect()).collect()
    }

    #[test]
    fn near_ranges_are_one_request() {
        let bounds = Coalescing { gap: 10, wide_gap: 10, most: 100, most_ranges: 3 };
        assert_eq!(runs(&[(50, 5), (0, 40), (200, 0)], bounds), [[(0, 40), (50, 5)]]);
        assert_eq!(runs(&[(0, 40), (51, 5)], bounds).len(), 2);
        // A request exceeds neither limit; a single range over the limit stays as it is.
        assert_eq!(runs(&[(0, 90), (90, 20)], bounds).len(), 2);
        assert_eq!(runs(&[(0, 500)], bounds), [[(0, 500)]]);
        assert_eq!(runs(&[(0, 1), (1, 1), (2, 1), (3, 1)], bounds).len(), 2);
        // Overlapping bytes are read twice.
        assert_eq!(runs(&[(0, 10), (5, 10)], bounds).len(), 2);
        assert_eq!(runs(&[(u64::MAX, 5), (u64::MAX - 3, 2)], bounds).len(), 1);
        assert!(runs(&[(7, 0)], bounds).is_empty());
    }

    #[test]
    fn wide_gaps_waste_at_most_half_of_a_request() {
        let bounds = Coalescing { gap: 10, wide_gap: 50, most: 1000, most_ranges: 9 };
        assert_eq!(runs(&[(0, 20), (60, 20)], bounds), [[(0, 20), (60, 20)]]);
        assert_eq!(runs(&[(0, 20), (61, 20)], bounds).len(), 2);
        assert_eq!(runs(&[(0, 30), (60, 20), (100, 10)], bounds).len(), 1, "all of the request counts, before");
        assert_eq!(runs(&[(0, 20), (60, 20), (100, 10)], bounds).len(), 2, "and in vain");
        assert_eq!(runs(&[(0, 90), (141, 90)], bounds).len(), 2, "no gap is wider");
        assert_eq!(runs(&[(0, 1), (11, 1), (22, 1)], bounds).len(), 1);
    }
}
