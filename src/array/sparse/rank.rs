//! Finds the place in a merge of sorted lists that has so many items before it, without merging.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::threads::cancellation;

/// Sorted lists whose items have keys. Items of two lists never have the same key.
pub trait SortedLists {
    /// How many lists there are.
    fn count(&self) -> usize;

    /// All positions of a list.
    fn positions(&self, list: usize) -> Range<u64>;

    /// Between which positions of a list, both included, the first item that does not come before a key is, or the end
    /// of the list. Nothing is read for it.
    fn window(&self, list: usize, key: &[u64]) -> (u64, u64);

    /// A key that is known without reading, near the middle of some positions of a list; `None` where there is none.
    fn known_key(&self, list: usize, positions: Range<u64>) -> Option<&[u64]>;

    /// The key of an item, which may have to be read.
    ///
    /// # Errors
    /// Those of reading it.
    fn key_at(&self, list: usize, position: u64) -> Result<Vec<u64>>;
}

/// A place in a merge: between which positions of each list, both included, it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    pub low: Vec<u64>,
    pub high: Vec<u64>,
}

/// Lists that are searched by their known keys, the widest first. Others follow from these, as their items are mixed.
const MOST_SEARCHED: usize = 8;

/// Bounds of the place that has `rank` items of all lists before it, from what is known without reading.
pub fn bounds_at(lists: &impl SortedLists, rank: u64) -> Bounds {
    let whole = |list: usize| lists.positions(list);
    let low = (0..lists.count()).map(|list| whole(list).start).collect();
    let high = (0..lists.count()).map(|list| whole(list).end).collect();
    let mut bounds = Bounds { low, high };
    let starts = start_sum(lists);
    let rank = starts.saturating_add(u128::from(rank));
    for _ in 0..MOST_SEARCHED.min(lists.count()) {
        let Some(list) = bounds.widest() else { break };
        let before = bounds.clone();
        // The first known key that surely has more items before it, and the last one that surely has not.
        for is_upper in [true, false] {
            let (mut from, mut to) = (bounds.low[list], bounds.high[list]);
            while from < to {
                let Some(key) = lists.known_key(list, from..to) else { break };
                let windows: Vec<(u64, u64)> = (0..lists.count()).map(|list| lists.window(list, key)).collect();
                let (least, most) = windows.iter().fold((0u128, 0u128), |(least, most), window| {
                    (least + u128::from(window.0), most + u128::from(window.1))
                });
                let middle = from + (to - from) / 2;
                if least > rank {
                    bounds.lower(windows.iter().map(|window| window.1));
                    to = middle;
                } else if most <= rank {
                    bounds.raise(windows.iter().map(|window| window.0));
                    from = middle + 1;
                } else if is_upper {
                    from = middle + 1;
                } else {
                    to = middle;
                }
            }
        }
        if bounds == before {
            break;
        }
    }
    bounds
}

/// The positions of the place that has `rank` items of all lists before it: none of these comes after an item behind it.
///
/// # Errors
/// Those of reading keys; [`Error::Damaged`] where the lists turn out not to be sorted.
pub fn positions_at(lists: &impl SortedLists, rank: u64) -> Result<Vec<u64>> {
    let mut bounds = bounds_at(lists, rank);
    let rank = start_sum(lists).saturating_add(u128::from(rank));
    while let Some(list) = bounds.widest() {
        cancellation::check()?;
        let middle = bounds.low[list] + (bounds.high[list] - bounds.low[list]) / 2;
        let pivot = lists.key_at(list, middle)?;
        // How many items of each list come before the pivot, as far as that is within the bounds of the place.
        let mut windows: Vec<(u64, u64)> = (0..lists.count())
            .map(|other| {
                let window = if other == list { (middle, middle) } else { lists.window(other, &pivot) };
                let clamp = |position: u64| position.max(bounds.low[other]).min(bounds.high[other]);
                (clamp(window.0), clamp(window.1))
            })
            .collect();
        let sums = |windows: &[(u64, u64)]| {
            windows.iter().fold((0u128, 0u128), |(least, most), window| {
                (least + u128::from(window.0), most + u128::from(window.1))
            })
        };
        let (mut least, mut most) = sums(&windows);
        if least <= rank && rank <= most {
            for (other, window) in windows.iter_mut().enumerate() {
                let position = first_not_before(lists, other, *window, &pivot)?;
                *window = (position, position);
            }
            (least, most) = sums(&windows);
        }
        if least == rank && most == rank {
            return Ok(windows.into_iter().map(|window| window.0).collect());
        }
        if most < rank {
            // The pivot is before the place, too.
            bounds.raise(windows.iter().map(|window| window.0));
            bounds.low[list] = middle + 1;
        } else {
            bounds.lower(windows.iter().map(|window| window.1));
        }
    }
    let found: u128 = bounds.low.iter().copied().map(u128::from).sum();
    if found == rank { Ok(bounds.low) } else { Err(Error::damaged("coordinates out of order")) }
}

/// The first item in a window of a list that does not come before a key.
///
/// # Errors
/// Those of reading keys.
pub fn first_not_before(lists: &impl SortedLists, list: usize, window: (u64, u64), key: &[u64]) -> Result<u64> {
    let (mut low, mut high) = window;
    while low < high {
        let middle = low + (high - low) / 2;
        if &lists.key_at(list, middle)?[..key.len()] < key {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

fn start_sum(lists: &impl SortedLists) -> u128 {
    (0..lists.count()).map(|list| u128::from(lists.positions(list).start)).sum()
}

impl Bounds {
    /// The list with the most positions between its bounds; `None` where each has one.
    fn widest(&self) -> Option<usize> {
        let widths = self.low.iter().zip(&self.high).map(|(low, high)| high.saturating_sub(*low));
        let (width, list) = widths.zip(0..).max()?;
        (width > 0).then_some(list)
    }

    fn raise(&mut self, lows: impl Iterator<Item = u64>) {
        self.low.iter_mut().zip(lows).for_each(|(low, other)| *low = other.max(*low));
    }

    fn lower(&mut self, highs: impl Iterator<Item = u64>) {
        self.high.iter_mut().zip(highs).for_each(|(high, other)| *high = other.min(*high));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    /// Lists whose items lie in tiles of `tile` items, of which the first and the last possible key are known.
    struct Listed {
        lists: Vec<Vec<u64>>,
        lows: Vec<Vec<[u64; 1]>>,
        highs: Vec<Vec<[u64; 1]>>,
        tile: u64,
        start: u64,
        reads: Cell<u64>,
    }

    impl Listed {
        fn new(lists: Vec<Vec<u64>>, tile: u64, slack: u64) -> Self {
            let ends = |end: fn(&[u64], u64) -> u64| {
                lists.iter().map(|list| list.chunks(tile as usize).map(|items| [end(items, slack)]).collect()).collect()
            };
            let lows = ends(|items, slack| items[0].saturating_sub(slack));
            let highs = ends(|items, slack| items[items.len() - 1] + slack);
            Listed { lists, lows, highs, tile, start: 7, reads: Cell::new(0) }
        }
    }

    impl SortedLists for Listed {
        fn count(&self) -> usize {
            self.lists.len()
        }

        fn positions(&self, list: usize) -> Range<u64> {
            self.start..self.start + self.lists[list].len() as u64
        }

        fn window(&self, list: usize, key: &[u64]) -> (u64, u64) {
            let ending = self.highs[list].partition_point(|high| high[..] < *key) as u64;
            let beginning = self.lows[list].partition_point(|low| low[..] < *key) as u64;
            let end = self.lists[list].len() as u64;
            (self.start + (ending * self.tile).min(end), self.start + (beginning * self.tile).min(end))
        }

        fn known_key(&self, list: usize, positions: Range<u64>) -> Option<&[u64]> {
            let middle = positions.start + (positions.end - positions.start) / 2;
            Some(&self.lows[list][((middle - self.start) / self.tile) as usize])
        }

        fn key_at(&self, list: usize, position: u64) -> Result<Vec<u64>> {
            self.reads.set(self.reads.get() + 1);
            Ok(vec![self.lists[list][(position - self.start) as usize]])
        }
    }

    /// Lists of different keys, in all.
    fn lists() -> impl Strategy<Value = Vec<Vec<u64>>> {
        (1usize..6, prop::collection::btree_map(0u64..100_000, 0usize..6, 0..400)).prop_map(|(count, items)| {
            let mut lists = vec![Vec::new(); count];
            items.into_iter().for_each(|(key, list)| lists[list % count].push(key));
            lists
        })
    }

    proptest! {
        #[test]
        fn the_place_is_that_of_the_sorted_items(lists in lists(), tile in 1u64..40, slack in 0u64..2000, asked in any::<u64>()) {
            let mut sorted: Vec<u64> = lists.concat();
            sorted.sort_unstable();
            let rank = asked % (sorted.len() as u64 + 1);
            let end = sorted.get(rank as usize).copied().unwrap_or(u64::MAX);
            let expected: Vec<u64> =
                lists.iter().map(|list| 7 + list.partition_point(|key| *key < end) as u64).collect();
            let listed = Listed::new(lists, tile, slack);
            let bounds = bounds_at(&listed, rank);
            for (list, position) in expected.iter().enumerate() {
                prop_assert!(bounds.low[list] <= *position && *position <= bounds.high[list]);
            }
            prop_assert_eq!(listed.reads.get(), 0);
            prop_assert_eq!(positions_at(&listed, rank).unwrap(), expected);
        }

        #[test]
        fn lists_that_are_not_sorted_come_to_an_end(lists in prop::collection::vec(prop::collection::vec(0u64..50, 0..30), 1..4), tile in 1u64..9, rank in 0u64..80) {
            let all: u64 = lists.iter().map(|list| list.len() as u64).sum();
            let listed = Listed::new(lists, tile, 3);
            if let Ok(positions) = positions_at(&listed, rank.min(all)) {
                let before: u64 = positions.iter().map(|position| position - 7).sum();
                prop_assert_eq!(before, rank.min(all));
            }
        }
    }

    #[test]
    fn what_is_known_spares_reading() {
        let lists: Vec<Vec<u64>> = (0..8).map(|list| (0..100_000).map(|item| item * 8 + list).collect()).collect();
        let listed = Listed::new(lists, 100, 0);
        let bounds = bounds_at(&listed, 400_000);
        assert!(bounds.low.iter().zip(&bounds.high).all(|(low, high)| high - low <= 400), "{bounds:?}");
        assert_eq!(positions_at(&listed, 400_004).unwrap(), [[50_008; 4], [50_007; 4]].concat());
        assert!(listed.reads.get() < 200, "{} keys were read", listed.reads.get());
    }
}
