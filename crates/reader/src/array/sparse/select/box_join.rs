//! Finds which of many boxes intersect. Cells of two boxes can have the same coordinates only if the boxes intersect
//! along every dimension.

/// Boxes of coordinates: a range of positions (both ends included) for each dimension. Memory: 16 bytes for each box
/// and dimension.
#[derive(Debug, Clone, Default)]
pub struct BoxList {
    dimensions: usize,
    ends: Vec<(u64, u64)>,
}

impl BoxList {
    /// Returns an empty set of boxes with this many dimensions.
    pub fn new(dimensions: usize) -> Self {
        BoxList { dimensions, ends: Vec::new() }
    }

    /// Reserves room for exactly this many more boxes.
    pub fn reserve(&mut self, count: usize) {
        self.ends.reserve_exact(count.saturating_mul(self.dimensions));
    }

    /// Adds a box, given by its ends along each dimension.
    pub fn push(&mut self, ends: impl Iterator<Item = (u64, u64)>) {
        let start = self.ends.len();
        self.ends.extend(ends.take(self.dimensions));
        // If a dimension's ends are missing, the box covers the whole dimension.
        self.ends.resize(start + self.dimensions, (0, u64::MAX));
    }

    /// Returns the ends of a box along each dimension.
    pub fn ends(&self, number: usize) -> &[(u64, u64)] {
        &self.ends[number * self.dimensions..(number + 1) * self.dimensions]
    }

    /// Returns the number of boxes; 0 if there are no dimensions.
    pub fn count(&self) -> usize {
        self.ends.len().checked_div(self.dimensions).unwrap_or(0)
    }
}

/// Returns whether two boxes intersect.
pub fn intersect(a: &[(u64, u64)], b: &[(u64, u64)]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.0 <= b.1 && b.0 <= a.1)
}

/// Visits each pair of boxes that intersect once, in no particular order. `budget` limits the pairs that may be
/// compared, and is lowered by the number of compared pairs. Returns `false`, with not all pairs visited, if the budget does not
/// suffice or there are more than 2^32 boxes.
///
/// Time: sorting the boxes along each dimension, and comparing the pairs that intersect along the dimension along
/// which the fewest do.
pub fn for_each_pair(boxes: &BoxList, budget: &mut u64, mut visit: impl FnMut(usize, usize)) -> bool {
    let count = boxes.count();
    if count < 2 {
        // Boxes without dimensions are not counted, and show nothing.
        return boxes.dimensions > 0;
    }
    let fewest = (0..boxes.dimensions).map(|dimension| (pairs_along(boxes, dimension), dimension)).min();
    let Some((pairs, dimension)) = fewest else { return false };
    let Some(left) = budget.checked_sub(pairs) else { return false };
    *budget = left;
    let Ok(number_of_boxes) = u32::try_from(count) else { return false };
    let mut order: Vec<u32> = (0..number_of_boxes).collect();
    order.sort_unstable_by_key(|number| boxes.ends(*number as usize)[dimension].0);
    let mut open: Vec<usize> = Vec::new();
    for number in order {
        let number = number as usize;
        let own = boxes.ends(number);
        open.retain(|other| boxes.ends(*other)[dimension].1 >= own[dimension].0);
        open.iter().filter(|other| intersect(own, boxes.ends(**other))).for_each(|other| visit(*other, number));
        open.push(number);
    }
    true
}

/// Returns the number of pairs of boxes that intersect along one dimension: the number of all pairs, minus the number of
/// pairs in which one box ends before the other begins.
fn pairs_along(boxes: &BoxList, dimension: usize) -> u64 {
    let own = || (0..boxes.count()).map(|number| boxes.ends(number)[dimension]);
    let mut highs: Vec<u64> = own().map(|ends| ends.1).collect();
    highs.sort_unstable();
    let count = boxes.count() as u64;
    let apart: u64 = own().map(|ends| highs.partition_point(|high| *high < ends.0) as u64).sum();
    (count * (count - 1) / 2).saturating_sub(apart)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_pairs_are_those_of_comparing_all(
            dimensions in 1usize..4,
            ends in prop::collection::vec((0u64..30, 0u64..6, 0u64..30, 0u64..30, 0u64..30, 0u64..3), 0..40),
        ) {
            let mut boxes = BoxList::new(dimensions);
            for (a, b, c, d, e, f) in &ends {
                boxes.push([(*a, a + b), (*c, c + d), (*e, e + f)].into_iter());
            }
            let mut expected = BTreeSet::new();
            for a in 0..ends.len() {
                expected.extend((0..a).filter(|b| intersect(boxes.ends(a), boxes.ends(*b))).map(|b| (b, a)));
            }
            let mut found = Vec::new();
            let mut budget = 1000;
            prop_assert!(for_each_pair(&boxes, &mut budget, |a, b| found.push((a.min(b), a.max(b)))));
            let compared = 1000 - budget;
            prop_assert_eq!(found.len(), expected.len());
            prop_assert!(compared >= found.len() as u64);
            prop_assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
            if compared > 0 {
                prop_assert!(!for_each_pair(&boxes, &mut (compared - 1), |_, _| ()));
            }
        }
    }

    #[test]
    fn boxes_of_no_dimensions_say_nothing() {
        let mut boxes = BoxList::new(0);
        boxes.push([].into_iter());
        boxes.push([].into_iter());
        assert!(!for_each_pair(&boxes, &mut 100, |_, _| ()));
    }
}
