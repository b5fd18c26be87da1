//! Binary search among items that have to be read, and may not be readable.

use std::ops::Range;

use crate::error::Result;

/// Returns the first number of a range for which `is_before` is false, or the end of the range. It must be true for all
/// numbers before that one, and false from there on.
///
/// # Errors
/// Those of `is_before`.
pub fn partition_point(numbers: Range<u64>, mut is_before: impl FnMut(u64) -> Result<bool>) -> Result<u64> {
    let (mut low, mut high) = (numbers.start, numbers.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle)? { low = middle + 1 } else { high = middle }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_point_is_that_of_a_slice(mut items in prop::collection::vec(0u8..20, 0..40), item in 0u8..21, first in 0usize..40) {
            items.sort_unstable();
            let first = first.min(items.len());
            let due = first + items[first..].partition_point(|other| *other < item);
            let lost = || Error::internal("no such item");
            let is_before = |number: u64| items.get(number as usize).map(|other| *other < item).ok_or_else(lost);
            prop_assert_eq!(partition_point(first as u64..items.len() as u64, is_before).unwrap(), due as u64);
        }
    }

    #[test]
    fn an_error_ends_the_search() {
        let unreadable = |number| if number == 4 { Err(Error::damaged("4")) } else { Ok(false) };
        assert!(matches!(partition_point(0..9, unreadable), Err(Error::Damaged { .. })));
        let (first, end) = (5, 3);
        assert_eq!(partition_point(first..end, unreadable).unwrap(), 5);
    }
}
