//! A tree of the boxes of an array's fragments. Finds the boxes that intersect a box, newest first, without examining
//! all boxes.
//!
//! Nearby boxes are neighbours in the tree (sort-tile-recursive packing), and every node stores its newest fragment. A
//! search skips fragments that are elsewhere and fragments that newer ones hide, so it is fast both for many fragments
//! side by side and for many on top of each other.

use std::collections::BinaryHeap;

use super::grid::PositionBox;

/// The number of children of a node.
const FANOUT: usize = 16;

/// The boxes by the number of their fragment. Memory: 16 bytes per fragment and dimension, and 5 more per fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoxTree {
    rank: usize,
    /// By fragment: the low ends, then the high ends; low is above high for a fragment without cells.
    boxes: Vec<u64>,
    /// The fragments with cells; neighbours are adjacent.
    order: Vec<u32>,
    /// Groups of [`FANOUT`] fragments in `order`, groups of such groups, and so on, up to one group.
    levels: Vec<BoxLevel>,
}

/// The nodes of one height.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct BoxLevel {
    /// As [`BoxTree::boxes`].
    boxes: Vec<u64>,
    /// The newest fragment of each node.
    newest: Vec<u32>,
}

/// A result of a search: a fragment, or a group of fragments, with the bounding box of their intersections with the
/// searched box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intersection {
    /// `None` for a group.
    pub fragment: Option<usize>,
    pub positions: PositionBox,
}

impl BoxTree {
    /// Builds the tree of boxes that are not empty; `None` stands for a fragment without cells.
    ///
    /// # Errors
    /// The first error among the boxes.
    pub fn new<E>(rank: usize, boxes: impl IntoIterator<Item = Result<Option<PositionBox>, E>>) -> Result<Self, E> {
        let mut tree = BoxTree { rank, boxes: Vec::new(), order: Vec::new(), levels: Vec::new() };
        for (number, one) in (0u32..).zip(boxes) {
            match one? {
                Some(one) => {
                    tree.boxes.extend(one.low.iter().chain(&one.high));
                    tree.order.push(number);
                }
                None => {
                    tree.boxes.extend(std::iter::repeat_n(u64::MAX, rank));
                    tree.boxes.extend(std::iter::repeat_n(0, rank));
                }
            }
        }
        tree.boxes.shrink_to_fit();
        let mut order = std::mem::take(&mut tree.order);
        tree.arrange(&mut order, 0);
        tree.order = order;
        while tree.count(tree.levels.len()) > 1 {
            tree.levels.push(tree.level_above(tree.levels.len()));
        }
        Ok(tree)
    }

    /// Returns the box of a fragment; `None` if it has no cells or does not exist.
    pub fn get(&self, fragment: usize) -> Option<PositionBox> {
        let start = fragment.checked_mul(2 * self.rank)?;
        let bounds = self.boxes.get(start..start.checked_add(2 * self.rank)?)?;
        let (low, high) = bounds.split_at(self.rank);
        low.iter().zip(high).all(|(low, high)| low <= high).then(|| self.to_box(bounds))
    }

    /// Iterates over the boxes by number of the fragment, as they were given.
    pub fn boxes(&self) -> impl Iterator<Item = Option<PositionBox>> {
        (0..self.boxes.len() / (2 * self.rank).max(1)).map(|fragment| self.get(fragment))
    }

    /// Returns the smallest box that contains all boxes.
    pub fn union(&self) -> Option<PositionBox> {
        match (self.levels.last(), self.order.first()) {
            (Some(top), _) => Some(self.to_box(&top.boxes)),
            (None, Some(&only)) => Some(self.to_box(bounds(&self.boxes, self.rank, only as usize))),
            (None, None) => None,
        }
    }

    /// Visits the fragments whose boxes intersect `wanted`, newest first, and each group before its fragments. For a
    /// group, `visit` returns whether to search it; for a fragment, the returned value is ignored.
    pub fn newest_first<E>(
        &self,
        wanted: &PositionBox,
        mut visit: impl FnMut(&Intersection) -> Result<bool, E>,
    ) -> Result<(), E> {
        // Newest first. Nodes of height 0 are fragments, by their index in `order`.
        let mut waiting: BinaryHeap<(u32, usize, usize)> = BinaryHeap::new();
        waiting.extend(match (self.levels.last(), self.order.first()) {
            (Some(top), _) => top.newest.first().map(|&newest| (newest, self.levels.len(), 0)),
            (None, only) => only.map(|&only| (only, 0, 0)),
        });
        while let Some((newest, height, place)) = waiting.pop() {
            let Some(positions) = self.share(height, place, wanted) else { continue };
            let fragment = (height == 0).then_some(newest as usize);
            if !visit(&Intersection { fragment, positions })? || height == 0 {
                continue;
            }
            let below = height - 1;
            let count = self.count(below);
            let children = place * FANOUT..count.min((place + 1) * FANOUT);
            waiting.extend(
                children
                    .filter(|&child| self.meets(below, child, wanted))
                    .map(|child| (self.newest(below, child), below, child)),
            );
        }
        Ok(())
    }

    /// Sorts fragments so that neighbours are adjacent: into slabs along the first axis, each slab along the next one,
    /// and so on.
    fn arrange(&self, fragments: &mut [u32], axis: usize) {
        let left = self.rank.saturating_sub(axis);
        if left == 0 || fragments.len() <= FANOUT {
            return;
        }
        fragments.sort_by_key(|&fragment| {
            let bounds = bounds(&self.boxes, self.rank, fragment as usize);
            let (low, high) = (bounds[axis], bounds[self.rank + axis]);
            low + (high - low) / 2
        });
        let groups = fragments.len().div_ceil(FANOUT);
        let slabs = (groups as f64).powf(1.0 / left as f64).ceil().max(1.0) as usize;
        for slab in fragments.chunks_mut(groups.div_ceil(slabs) * FANOUT) {
            self.arrange(slab, axis + 1);
        }
    }

    /// Groups the nodes of height `below`.
    fn level_above(&self, below: usize) -> BoxLevel {
        let mut level = BoxLevel::default();
        let count = self.count(below);
        for first in (0..count).step_by(FANOUT) {
            let mut union = self.bounds(below, first).to_vec();
            let mut newest = 0;
            for child in first..count.min(first + FANOUT) {
                newest = newest.max(self.newest(below, child));
                for (axis, &bound) in self.bounds(below, child).iter().enumerate() {
                    let one = &mut union[axis];
                    *one = if axis < self.rank { bound.min(*one) } else { bound.max(*one) };
                }
            }
            level.boxes.extend(union);
            level.newest.push(newest);
        }
        level
    }

    /// Returns the number of nodes of a height.
    fn count(&self, height: usize) -> usize {
        height.checked_sub(1).map_or(self.order.len(), |level| self.levels[level].newest.len())
    }

    fn newest(&self, height: usize, place: usize) -> u32 {
        height.checked_sub(1).map_or_else(|| self.order[place], |level| self.levels[level].newest[place])
    }

    fn bounds(&self, height: usize, place: usize) -> &[u64] {
        match height.checked_sub(1) {
            None => bounds(&self.boxes, self.rank, self.order[place] as usize),
            Some(level) => bounds(&self.levels[level].boxes, self.rank, place),
        }
    }

    fn meets(&self, height: usize, place: usize, wanted: &PositionBox) -> bool {
        let (low, high) = self.bounds(height, place).split_at(self.rank);
        low.iter().zip(&wanted.high).all(|(low, high)| low <= high)
            && high.iter().zip(&wanted.low).all(|(high, low)| low <= high)
    }

    /// Returns the intersection of a node with a box.
    fn share(&self, height: usize, place: usize, wanted: &PositionBox) -> Option<PositionBox> {
        self.to_box(self.bounds(height, place)).intersection(wanted)
    }

    fn to_box(&self, bounds: &[u64]) -> PositionBox {
        let (low, high) = bounds.split_at(self.rank);
        PositionBox { low: low.to_vec(), high: high.to_vec() }
    }
}

/// Returns the low and the high ends of one of many boxes.
fn bounds(boxes: &[u64], rank: usize, number: usize) -> &[u64] {
    &boxes[number * 2 * rank..(number + 1) * 2 * rank]
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    fn a_box(rank: usize) -> impl Strategy<Value = PositionBox> {
        prop::collection::vec((0u64..40, 0u64..9), rank).prop_map(|axes| PositionBox {
            low: axes.iter().map(|(low, _)| *low).collect(),
            high: axes.iter().map(|(low, length)| low + length).collect(),
        })
    }

    fn boxes() -> impl Strategy<Value = (usize, Vec<Option<PositionBox>>, PositionBox)> {
        (1usize..4).prop_flat_map(|rank| {
            (Just(rank), prop::collection::vec(prop::option::weighted(0.9, a_box(rank)), 0..400), a_box(rank))
        })
    }

    fn tree_of(rank: usize, boxes: impl IntoIterator<Item = Option<PositionBox>>) -> BoxTree {
        match BoxTree::new(rank, boxes.into_iter().map(Ok::<_, Infallible>)) {
            Ok(tree) => tree,
        }
    }

    fn found(tree: &BoxTree, wanted: &PositionBox) -> Vec<(usize, PositionBox)> {
        let mut found = Vec::new();
        let searched: Result<(), Infallible> = tree.newest_first(wanted, |met| {
            found.extend(met.fragment.map(|fragment| (fragment, met.positions.clone())));
            Ok(true)
        });
        assert!(searched.is_ok());
        found
    }

    proptest! {
        #[test]
        fn a_search_equals_an_examination_of_every_box((rank, boxes, wanted) in boxes()) {
            let tree = tree_of(rank, boxes.clone());
            let one_by_one: Vec<_> = boxes.iter().enumerate().rev()
                .filter_map(|(number, one)| Some((number, one.as_ref()?.intersection(&wanted)?)))
                .collect();
            prop_assert_eq!(found(&tree, &wanted), one_by_one);
            prop_assert_eq!(tree.boxes().collect::<Vec<_>>(), boxes.clone());
            let union = boxes.iter().flatten().cloned().reduce(|union, one| union.union(&one));
            prop_assert_eq!(tree.union(), union);
            for (number, one) in boxes.iter().enumerate() {
                prop_assert_eq!(&tree.get(number), one);
            }
        }

        /// Every group contains the fragments that are found in it.
        #[test]
        fn skipped_groups_contain_all_fragments_that_they_hide((rank, boxes, wanted) in boxes(), hidden in 0u64..40) {
            let hides = |positions: &PositionBox| positions.high.iter().all(|&high| high <= hidden);
            let tree = tree_of(rank, boxes);
            let mut seen = Vec::new();
            let searched: Result<(), Infallible> = tree.newest_first(&wanted, |met| {
                seen.extend(met.fragment.filter(|_| !hides(&met.positions)));
                Ok(!hides(&met.positions))
            });
            prop_assert!(searched.is_ok());
            let all = found(&tree, &wanted).into_iter().filter(|(_, positions)| !hides(positions));
            prop_assert_eq!(seen, all.map(|(fragment, _)| fragment).collect::<Vec<_>>());
        }
    }

    /// Returns how many fragments and groups a search for one cell visits if it stops at the first fragment.
    fn visited(tree: &BoxTree, position: Vec<u64>) -> usize {
        let (mut visited, mut is_found) = (0, false);
        let wanted = PositionBox { low: position.clone(), high: position };
        let searched: Result<(), Infallible> = tree.newest_first(&wanted, |met| {
            visited += 1;
            is_found |= met.fragment.is_some();
            Ok(!is_found)
        });
        assert!(searched.is_ok() && is_found);
        visited
    }

    #[test]
    fn one_of_ten_thousand_is_found_in_a_few_steps() {
        // Side by side, in shuffled order; then all on top of each other.
        let side = (0..10_000u64).map(|number| number * 7919 % 10_000).map(|at| (at / 100 * 5, at % 100 * 5));
        let tree = tree_of(2, side.map(|(y, x)| Some(PositionBox { low: vec![y, x], high: vec![y + 4, x + 4] })));
        let whole = PositionBox { low: vec![0, 0], high: vec![499, 499] };
        let pile = tree_of(2, (0..10_000).map(|_| Some(whole.clone())));
        for position in [[0, 0], [499, 499], [250, 3], [77, 401]] {
            assert!(visited(&tree, position.to_vec()) < 40);
            assert!(visited(&pile, position.to_vec()) < 80);
        }
    }
}
