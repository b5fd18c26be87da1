//! Running sums of lengths: where each of many items begins, and which item a place is in.

use std::ops::Range;

/// The positions at which items begin: for each, the sum of the lengths before it. Memory: 8 bytes for each item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningSums {
    /// The first is 0, none is less than the one before, and the last is the sum of all lengths.
    sums: Vec<u64>,
}

impl Default for RunningSums {
    fn default() -> Self {
        RunningSums { sums: vec![0] }
    }
}

impl RunningSums {
    /// Sums lengths; `None` if the sum exceeds 64 bits.
    pub fn of_lengths(lengths: impl IntoIterator<Item = u64>) -> Option<Self> {
        let mut sums = Self::default();
        lengths.into_iter().try_for_each(|length| sums.push(length))?;
        sums.sums.shrink_to_fit();
        Some(sums)
    }

    /// Sums counts in place: element `i + 1` has the length of item `i`, and the first is 0. `None` for other lists,
    /// and if the sum exceeds 64 bits.
    pub fn of_counts(mut counts: Vec<u64>) -> Option<Self> {
        let mut sum = 0u64;
        for count in &mut counts {
            sum = sum.checked_add(*count)?;
            *count = sum;
        }
        (counts.first() == Some(&0)).then_some(RunningSums { sums: counts })
    }

    /// Adds an item after all others; `None`, and no item, if the sum would exceed 64 bits.
    #[must_use]
    pub fn push(&mut self, length: u64) -> Option<()> {
        self.sums.push(self.total().checked_add(length)?);
        Some(())
    }

    /// Returns the number of items.
    pub fn items(&self) -> usize {
        self.sums.len().saturating_sub(1)
    }

    /// Returns the sum of all lengths.
    pub fn total(&self) -> u64 {
        self.sums.last().copied().unwrap_or(0)
    }

    /// Returns where an item begins, or where the last one ends if `item` is the number of items.
    pub fn start(&self, item: usize) -> Option<u64> {
        self.sums.get(item).copied()
    }

    /// Returns where an item begins and ends.
    pub fn range(&self, item: usize) -> Option<Range<u64>> {
        Some(self.start(item)?..self.start(item.checked_add(1)?)?)
    }

    /// Returns the last item that begins at or before a place; the number of items for a place at or after the end.
    pub fn item_at(&self, place: u64) -> usize {
        self.sums.partition_point(|start| *start <= place).saturating_sub(1)
    }

    /// Returns where each item begins, and where the last one ends.
    pub fn as_slice(&self) -> &[u64] {
        &self.sums
    }

    /// Returns the approximate memory use in bytes.
    pub fn memory(&self) -> usize {
        self.sums.capacity() * size_of::<u64>()
    }

    /// Returns the bytes that [`RunningSums::decode`] accepts.
    pub fn encode(&self) -> Vec<u8> {
        self.sums.iter().flat_map(|sum| sum.to_le_bytes()).collect()
    }

    /// Decodes the sums of this many items; `None` for other bytes.
    pub fn decode(bytes: &[u8], items: usize) -> Option<Self> {
        let (sums, []) = bytes.as_chunks() else { return None };
        let sums: Vec<u64> = sums.iter().map(|sum| u64::from_le_bytes(*sum)).collect();
        let is_sound = sums.len() == items.checked_add(1)? && sums.first() == Some(&0) && sums.is_sorted();
        is_sound.then_some(RunningSums { sums })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn items_follow_each_other_and_places_are_found(lengths in prop::collection::vec(0u64..4, 0..40), place in 0u64..90) {
            let sums = RunningSums::of_lengths(lengths.iter().copied()).unwrap();
            prop_assert_eq!(sums.items(), lengths.len());
            prop_assert_eq!(sums.total(), lengths.iter().sum::<u64>());
            let counts = [0].into_iter().chain(lengths.iter().copied()).collect();
            prop_assert_eq!(RunningSums::of_counts(counts), Some(sums.clone()));
            let mut end = 0;
            for (item, length) in lengths.iter().enumerate() {
                prop_assert_eq!(sums.range(item), Some(end..end + length));
                end += length;
            }
            prop_assert_eq!(sums.range(lengths.len()), None);
            let expected = (0..lengths.len()).rfind(|&item| sums.range(item).unwrap().contains(&place));
            prop_assert_eq!(sums.item_at(place), expected.unwrap_or(lengths.len()));
        }

        #[test]
        fn saved_sums_are_read_and_no_others(lengths in prop::collection::vec(any::<u32>(), 0..9), at in any::<prop::sample::Index>(), byte: u8) {
            let sums = RunningSums::of_lengths(lengths.iter().map(|length| u64::from(*length))).unwrap();
            let mut bytes = sums.encode();
            prop_assert_eq!(RunningSums::decode(&bytes, lengths.len()), Some(sums));
            prop_assert_eq!(RunningSums::decode(&bytes, lengths.len() + 1), None);
            prop_assert_eq!(RunningSums::decode(&bytes[1..], lengths.len()), None);
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Some(read) = RunningSums::decode(&bytes, lengths.len()) {
                prop_assert!(read.as_slice().is_sorted() && read.start(0) == Some(0));
            }
        }
    }

    #[test]
    fn sums_of_more_than_64_bits_are_refused() {
        let mut sums = RunningSums::of_lengths([u64::MAX]).unwrap();
        assert_eq!((sums.push(1), sums.items()), (None, 1));
        assert_eq!(RunningSums::of_lengths([u64::MAX, 1]), None);
    }
}
