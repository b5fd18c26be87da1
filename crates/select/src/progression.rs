//! Evenly spaced integers, selected by one range of a counted dimension.

/// `count` integers from `first`, at intervals of `step`. At least one, all within ±2^101.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progression {
    pub first: i128,
    /// Not 0; 1 if there is only one integer.
    pub step: i128,
    pub count: u128,
}

impl Progression {
    /// Creates the progression from `first` up to `last`; `None` if it is empty. All arguments lie within ±2^101.
    pub fn between(first: i128, last: i128, step: i128) -> Option<Self> {
        let steps = (last - first).checked_div(step)?;
        let away = (last > first) != (step > 0) && last != first;
        match steps {
            _ if away => None,
            0 => Some(Progression { first, step: 1, count: 1 }),
            _ => Some(Progression { first, step, count: steps.unsigned_abs() + 1 }),
        }
    }

    /// Returns the elements that lie in `low..=high`; the phase of the steps is unchanged.
    pub fn clipped(self, low: i128, high: i128) -> Option<Self> {
        let last = self.last();
        if self.step > 0 {
            let skipped = (low - self.first).max(0).unsigned_abs().div_ceil(self.step.unsigned_abs());
            Self::between(self.first.checked_add(self.step.checked_mul(skipped as i128)?)?, last.min(high), self.step)
        } else {
            let skipped = (self.first - high).max(0).unsigned_abs().div_ceil(self.step.unsigned_abs());
            Self::between(self.first.checked_add(self.step.checked_mul(skipped as i128)?)?, last.max(low), self.step)
        }
    }

    pub fn last(self) -> i128 {
        self.first + self.step * (self.count as i128 - 1)
    }

    /// Returns the same integers in ascending order.
    pub fn ascending(self) -> Self {
        if self.step > 0 { self } else { Progression { first: self.last(), step: -self.step, count: self.count } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(progression: Option<Progression>) -> Vec<i128> {
        progression.map_or(Vec::new(), |p| (0..p.count as i128).map(|n| p.first + n * p.step).collect())
    }

    proptest! {
        #[test]
        fn clipping_is_filtering(
            first in -30i128..30, last in -30i128..30, step in (-9i128..9).prop_filter("not 0", |step| *step != 0),
            low in -30i128..30, length in 0i128..40,
        ) {
            let mut naive = Vec::new();
            let mut next = first;
            while if step > 0 { next <= last } else { next >= last } {
                naive.push(next);
                next += step;
            }
            let whole = Progression::between(first, last, step);
            prop_assert_eq!(&all(whole), &naive);
            let high = low + length;
            naive.retain(|value| (low..=high).contains(value));
            prop_assert_eq!(&all(whole.and_then(|whole| whole.clipped(low, high))), &naive);
            naive.sort_unstable();
            prop_assert_eq!(all(whole.and_then(|whole| whole.clipped(low, high)).map(Progression::ascending)), naive);
        }

        #[test]
        fn the_far_ends_do_not_overflow(ends in prop::collection::vec(prop::sample::select(vec![
            -(1i128 << 100), 1 << 100, i128::from(i64::MIN), i128::from(u64::MAX), 0, 1]), 4), step in prop::sample::select(vec![
            -(1i128 << 100), 1 << 100, 1, -1, i128::from(u64::MAX)])) {
            if let Some(whole) = Progression::between(ends[0], ends[1], step)
                && let Some(clipped) = whole.clipped(ends[2].min(ends[3]), ends[2].max(ends[3])) {
                prop_assert!(clipped.first.min(clipped.last()) >= ends[2].min(ends[3]));
                prop_assert!(clipped.first.max(clipped.last()) <= ends[2].max(ends[3]));
            }
        }
    }
}
