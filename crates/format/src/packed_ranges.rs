//! A few ranges in little memory.

use super::scalar::{Range, Scalar};

/// Ranges, one per dimension, as bytes. An array may have a million fragments, each with a non-empty domain. Memory: 18
/// bytes for each range of numbers (a [`Range`] takes 48); for text, also its length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PackedRanges(Box<[u8]>);

impl PackedRanges {
    /// Packs ranges.
    pub(crate) fn new(ranges: &[Range]) -> Self {
        let mut bytes = Vec::new();
        for range in ranges {
            range.low.append_identity(&mut bytes);
            range.high.append_identity(&mut bytes);
        }
        PackedRanges(bytes.into())
    }

    /// Decodes the ranges in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Range> + '_ {
        let mut rest = &*self.0;
        std::iter::from_fn(move || {
            Some(Range { low: Scalar::read_identity(&mut rest)?, high: Scalar::read_identity(&mut rest)? })
        })
    }

    /// Returns the ranges as a list.
    pub(crate) fn to_vec(&self) -> Vec<Range> {
        self.iter().collect()
    }

    /// Returns the bytes, which are self-delimiting for a known number of ranges.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scalar() -> impl Strategy<Value = Scalar> {
        prop_oneof![
            any::<i64>().prop_map(Scalar::Signed),
            any::<u64>().prop_map(Scalar::Unsigned),
            any::<f32>().prop_map(Scalar::Float32),
            any::<f64>().prop_map(Scalar::Float64),
            prop::collection::vec(any::<u8>(), 0..20).prop_map(Scalar::Text),
        ]
    }

    proptest! {
        #[test]
        fn packed_ranges_are_the_same_ranges(ends in prop::collection::vec((scalar(), scalar()), 0..5)) {
            let ranges: Vec<Range> = ends.into_iter().map(|(low, high)| Range { low, high }).collect();
            let packed = PackedRanges::new(&ranges);
            prop_assert_eq!(packed.iter().count(), ranges.len());
            // Compares bits, since NaN differs from itself.
            prop_assert_eq!(&PackedRanges::new(&packed.to_vec()), &packed);
            for (number, range) in ranges.iter().enumerate() {
                let found = packed.iter().nth(number).unwrap();
                prop_assert!(found.low.compare(&range.low).is_eq() && found.high.compare(&range.high).is_eq());
            }
        }
    }
}
