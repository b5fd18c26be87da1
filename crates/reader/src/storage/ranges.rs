//! Ranges of an object that are read together.

/// Bytes of an object from `offset` on, as many as there is room `into`.
#[derive(Debug)]
pub struct ReadRange<'a> {
    pub offset: u64,
    pub into: &'a mut [u8],
}

impl ReadRange<'_> {
    /// Where it ends; saturated, as no object is so long.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.into.len() as u64)
    }
}

/// What bounds a run of ranges that are read as one.
#[derive(Debug, Clone, Copy)]
pub struct Coalescing {
    /// Ranges at most so many bytes apart are one request: reading the bytes between costs less than another.
    pub gap: u64,
    /// So are ranges at most so many bytes apart, as long as no more of the request is read in vain than is wanted: what
    /// many readers get in vain slows all of them.
    pub wide_gap: u64,
    /// No request is made larger than this by joining ranges.
    pub most: u64,
    /// No request has more ranges.
    pub most_ranges: usize,
}

/// Sorts ranges by their offset and divides them into runs, each of which is one request. Ranges in a run do not
/// overlap; those of no bytes are in no run.
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

/// The same ranges in parts of at most `most` bytes.
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
        // Neither larger nor of more ranges than it may be; one that is larger by itself stays as it is.
        assert_eq!(runs(&[(0, 90), (90, 20)], bounds).len(), 2);
        assert_eq!(runs(&[(0, 500)], bounds), [[(0, 500)]]);
        assert_eq!(runs(&[(0, 1), (1, 1), (2, 1), (3, 1)], bounds).len(), 2);
        // What overlaps is read twice.
        assert_eq!(runs(&[(0, 10), (5, 10)], bounds).len(), 2);
        assert_eq!(runs(&[(u64::MAX, 5), (u64::MAX - 3, 2)], bounds).len(), 1);
        assert!(runs(&[(7, 0)], bounds).is_empty());
    }

    #[test]
    fn no_more_is_read_in_vain_than_is_wanted() {
        let bounds = Coalescing { gap: 10, wide_gap: 50, most: 1000, most_ranges: 9 };
        assert_eq!(runs(&[(0, 20), (60, 20)], bounds), [[(0, 20), (60, 20)]]);
        assert_eq!(runs(&[(0, 20), (61, 20)], bounds).len(), 2);
        assert_eq!(runs(&[(0, 30), (60, 20), (100, 10)], bounds).len(), 1, "all of the request counts, before");
        assert_eq!(runs(&[(0, 20), (60, 20), (100, 10)], bounds).len(), 2, "and in vain");
        assert_eq!(runs(&[(0, 90), (141, 90)], bounds).len(), 2, "no gap is wider");
        assert_eq!(runs(&[(0, 1), (11, 1), (22, 1)], bounds).len(), 1);
    }
}
