//! Finds the item of a given rank in a merge of sorted lists, without merging the lists. The rank of an item is the
//! number of items before it in the merge.

use std::ops::Range;

use tilefs_base::error::{Error, Result};
use tilefs_base::search::partition_point;
use tilefs_threads::cancellation;

use super::overlap::KeyRanges;

/// Lists of items, each sorted by key. Several items may have the same key, even within one list.
pub trait SortedLists {
    /// Returns the number of lists.
    fn count(&self) -> usize;

    /// Returns all positions of a list.
    fn positions(&self, list: usize) -> Range<u64>;

    /// Returns the key ranges of consecutive items of a list, as far as they are known: one range for the whole list,
    /// or one per tile once the list is open. Reads nothing.
    fn ranges(&self, list: usize) -> &KeyRanges;

    /// Returns the position of the first item of a range; the end of the list for the range after the last.
    fn start_of(&self, list: usize, range: u64) -> u64;

    /// Returns the range that holds the item at a position.
    fn range_at(&self, list: usize, position: u64) -> u64;

    /// Opens some lists unless they are open already. Returns whether it opened any.
    ///
    /// # Errors
    /// Those of reading the key ranges.
    fn open(&self, lists: Vec<usize>) -> Result<bool>;

    /// Prefetches the keys of items within some bounds, before many of them are read.
    ///
    /// # Errors
    /// Those of the storage.
    fn prepare(&self, bounds: &RankBounds) -> Result<()>;

    /// Returns the key of an item, which may have to be read.
    ///
    /// # Errors
    /// Those of reading it.
    fn key_at(&self, list: usize, position: u64) -> Result<Vec<u64>>;
}

/// Two positions in each list, both included. Between them lie the list's first item that does not come before the
/// searched item, and its first item that comes after the searched item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankBounds {
    pub low: Vec<u64>,
    pub high: Vec<u64>,
}

/// Returns bounds of the item of this rank, or of the ends of the lists if there are at most `rank` items. Reads no
/// items, and opens only the lists in which the item may lie.
///
/// # Errors
/// Those of opening lists.
pub fn bounds_at(lists: &impl SortedLists, rank: u64) -> Result<RankBounds> {
    let low = (0..lists.count()).map(|list| lists.positions(list).start).collect();
    let high = (0..lists.count()).map(|list| lists.positions(list).end).collect();
    let mut bounds = RankBounds { low, high };
    let rank = start_sum(lists).saturating_add(rank.into());
    bounds.narrow(lists, rank);
    if lists.open(bounds.unsettled().collect())? {
        bounds.narrow(lists, rank);
    }
    Ok(bounds)
}

/// Returns for each list the position of the first item that does not come before the item of this rank. So items with
/// the same key are on one side of the cut. If there are at most `rank` items, returns the ends of the lists.
///
/// # Errors
/// Those of reading; [`Error::Damaged`] if the lists turn out not to be sorted.
pub fn place_at(lists: &impl SortedLists, rank: u64) -> Result<Vec<u64>> {
    let ends = (0..lists.count()).map(|list| lists.positions(list).end);
    let rank = start_sum(lists).saturating_add(rank.into());
    if rank >= ends.clone().map(u128::from).sum() {
        return Ok(ends.collect());
    }
    let known = bounds_at(lists, u64::try_from(rank - start_sum(lists)).unwrap_or(u64::MAX))?;
    lists.prepare(&known)?;
    let place = split_at(lists, rank, known.clone())?;
    // The searched item is the least item after the split. Items with its key may lie before the split.
    let mut first: Option<Vec<u64>> = None;
    for list in known.unsettled().filter(|&list| place[list] < known.high[list]) {
        let key = lists.key_at(list, place[list])?;
        first = first.into_iter().chain([key]).min();
    }
    let key = first.ok_or_else(out_of_order)?;
    let mut before = place;
    for list in known.unsettled() {
        let last = before[list];
        if last > known.low[list] && lists.key_at(list, last - 1)? >= key {
            before[list] = first_not_before(lists, list, (known.low[list], last - 1), &key)?;
        }
    }
    Ok(before)
}

/// As [`place_at`], for lists in which no two items have the same key. Reads no items if the item of this rank can lie
/// in one list only.
///
/// # Errors
/// As [`place_at`].
pub fn place_among_distinct(lists: &impl SortedLists, rank: u64) -> Result<Vec<u64>> {
    let known = bounds_at(lists, rank)?;
    match known.only_place(start_sum(lists).saturating_add(rank.into())) {
        Some(place) => Ok(place),
        None => place_at(lists, rank),
    }
}

/// Splits the lists at one position each. No item before the split comes after an item behind it, and the least item
/// behind it has the searched item's key. `rank` includes the positions before the lists' starts.
fn split_at(lists: &impl SortedLists, rank: u128, mut bounds: RankBounds) -> Result<Vec<u64>> {
    while let Some(list) = bounds.widest() {
        cancellation::check()?;
        let middle = bounds.low[list] + (bounds.high[list] - bounds.low[list]) / 2;
        let pivot = lists.key_at(list, middle)?;
        let mut windows = Windows::new(lists, &bounds, &pivot);
        // Usually no other item of the list has the pivot's key.
        let is_first = middle == bounds.low[list] || lists.key_at(list, middle - 1)? < pivot;
        let first = match is_first {
            true => middle,
            false => first_not_before(lists, list, (bounds.low[list], middle - 1), &pivot)?,
        };
        windows.settle(list, first);
        let ties = u128::from(middle + 1 - first);
        if windows.least <= rank && windows.most + ties > rank {
            windows.search(lists, &pivot)?;
        }
        if windows.least > rank {
            windows.lower(&mut bounds);
            bounds.high[list] = bounds.high[list].min(middle);
        } else {
            windows.raise(&mut bounds);
            if windows.most + ties > rank {
                return Ok(bounds.low);
            }
            bounds.low[list] = middle + 1;
        }
    }
    if bounds.low.iter().copied().map(u128::from).sum::<u128>() == rank { Ok(bounds.low) } else { Err(out_of_order()) }
}

fn out_of_order() -> Error {
    Error::damaged("coordinates out of order")
}

/// Returns two positions of a list, both included. Between them lies the first item that does not come before `key`, or
/// the end of the list.
pub fn window(lists: &impl SortedLists, list: usize, key: &[u64]) -> (u64, u64) {
    let ranges = lists.ranges(list);
    let first = lists.start_of(list, ranges.ending_before(key));
    (first, lists.start_of(list, ranges.beginning_before(key)).max(first))
}

/// Returns the position of the first item in a window of a list that does not come before a key or prefix of keys.
///
/// # Errors
/// Those of reading keys.
pub fn first_not_before(lists: &impl SortedLists, list: usize, window: (u64, u64), key: &[u64]) -> Result<u64> {
    partition_point(window.0..window.1, |item| Ok(&lists.key_at(list, item)?[..key.len()] < key))
}

fn start_sum(lists: &impl SortedLists) -> u128 {
    (0..lists.count()).map(|list| u128::from(lists.positions(list).start)).sum()
}

impl RankBounds {
    /// Returns the lists that have several positions between their bounds.
    pub fn unsettled(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.low.len()).filter(|&list| self.low[list] < self.high[list])
    }

    /// Returns the positions of a rank, if the bounds leave only one way to add up to it: they are those of all lists but
    /// at most one. `rank` includes the positions before the lists' starts.
    fn only_place(&self, rank: u128) -> Option<Vec<u64>> {
        let mut place = self.low.clone();
        let mut unsettled = self.unsettled();
        if let Some(list) = unsettled.next() {
            let missing = rank.checked_sub(self.low.iter().copied().map(u128::from).sum())?;
            let position = u64::try_from(missing).ok()?.checked_add(self.low[list])?;
            place[list] = Some(position).filter(|position| *position <= self.high[list])?;
        }
        unsettled.next().is_none().then_some(place)
    }

    /// Returns the list with the most positions between its bounds; `None` if every list has one position.
    fn widest(&self) -> Option<usize> {
        self.unsettled().max_by_key(|&list| self.high[list] - self.low[list])
    }

    fn clamp(&self, list: usize, position: u64) -> u64 {
        position.max(self.low[list]).min(self.high[list])
    }

    /// Narrows the bounds of the item of a rank, by a search among the first keys of ranges that repeatedly splits at
    /// the median.
    fn narrow(&mut self, lists: &impl SortedLists, rank: u128) {
        // Find the least first key that surely comes after the item, then the greatest first key that surely does not.
        for finds_later in [true, false] {
            let ranges_of = |list: usize| {
                let (low, high) = (self.low[list], self.high[list]);
                (list, lists.range_at(list, low)..lists.range_at(list, high - 1) + 1)
            };
            let mut candidates: Vec<(usize, Range<u64>)> = self.unsettled().map(ranges_of).collect();
            while let Some(pivot) = median(lists, &candidates) {
                let windows = Windows::new(lists, self, pivot);
                let (is_later, is_earlier) = (windows.least > rank, windows.most <= rank);
                if is_later {
                    windows.lower(self);
                } else if is_earlier {
                    windows.raise(self);
                }
                let goes_back = if finds_later { is_later } else { !is_earlier };
                candidates.retain_mut(|(list, ranges)| {
                    let own = lists.ranges(*list);
                    if goes_back {
                        ranges.end = ranges.end.min(own.beginning_before(pivot));
                    } else {
                        ranges.start = ranges.start.max(own.beginning_up_to(pivot));
                    }
                    !ranges.is_empty() && self.low[*list] < self.high[*list]
                });
            }
        }
    }
}

/// Returns the first key of a range that splits the candidate ranges about in half.
fn median<'a>(lists: &'a impl SortedLists, candidates: &[(usize, Range<u64>)]) -> Option<&'a [u64]> {
    let middle = |(list, ranges): &(usize, Range<u64>)| {
        let key = lists.ranges(*list).low(ranges.start + (ranges.end - ranges.start) / 2)?;
        Some((key, ranges.end - ranges.start))
    };
    let mut middles: Vec<(&[u64], u64)> = candidates.iter().filter_map(middle).collect();
    middles.sort_unstable();
    let half = middles.iter().map(|(_, count)| u128::from(*count)).sum::<u128>() / 2;
    let mut before = 0;
    let reaches_half = |(_, count): &&(&[u64], u64)| {
        before += u128::from(*count);
        before > half
    };
    middles.iter().find(reaches_half).map(|(key, _)| *key)
}

/// For each list, the positions within its bounds where the first item that does not come before a key may be.
struct Windows {
    lists: Vec<SearchWindow>,
    /// The sum of the positions of those lists whose bounds leave only one position.
    settled: u128,
    /// The least and the greatest possible sum of the positions of all lists.
    least: u128,
    most: u128,
}

struct SearchWindow {
    list: usize,
    first: u64,
    last: u64,
}

impl Windows {
    fn new(lists: &impl SortedLists, bounds: &RankBounds, key: &[u64]) -> Self {
        let mut windows = Windows { lists: Vec::new(), settled: 0, least: 0, most: 0 };
        for list in 0..bounds.low.len() {
            if bounds.low[list] >= bounds.high[list] {
                windows.settled += u128::from(bounds.low[list]);
                continue;
            }
            let (first, last) = window(lists, list, key);
            let (first, last) = (bounds.clamp(list, first), bounds.clamp(list, last));
            windows.least += u128::from(first);
            windows.most += u128::from(last);
            windows.lists.push(SearchWindow { list, first, last });
        }
        windows.least += windows.settled;
        windows.most += windows.settled;
        windows
    }

    /// Records the first item of a list that does not come before the key.
    fn settle(&mut self, list: usize, first: u64) {
        if let Some(window) = self.lists.iter_mut().find(|window| window.list == list) {
            self.least = self.least - u128::from(window.first) + u128::from(first);
            self.most = self.most - u128::from(window.last) + u128::from(first);
            (window.first, window.last) = (first, first);
        }
    }

    /// Searches each list for the first item that does not come before the key, by reading keys.
    fn search(&mut self, lists: &impl SortedLists, key: &[u64]) -> Result<()> {
        self.least = self.settled;
        for window in &mut self.lists {
            window.first = first_not_before(lists, window.list, (window.first, window.last), key)?;
            window.last = window.first;
            self.least += u128::from(window.first);
        }
        self.most = self.least;
        Ok(())
    }

    /// Lowers the upper bounds: the searched item comes before the key.
    fn lower(&self, bounds: &mut RankBounds) {
        self.lists.iter().for_each(|window| bounds.high[window.list] = window.last);
    }

    /// Raises the lower bounds: the searched item does not come before the key.
    fn raise(&self, bounds: &mut RankBounds) {
        self.lists.iter().for_each(|window| bounds.low[window.list] = window.first);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    /// Lists whose items lie in tiles of `tile` items.
    struct Listed {
        lists: Vec<Vec<u64>>,
        whole: Vec<KeyRanges>,
        tiles: Vec<KeyRanges>,
        is_open: Vec<Cell<bool>>,
        tile: u64,
        start: u64,
        reads: Cell<u64>,
    }

    impl Listed {
        /// By how much the reported key ranges are wider than the actual ones.
        fn new(lists: Vec<Vec<u64>>, tile: u64, slack: u64) -> Self {
            let ranges = |list: &Vec<u64>, tile: usize| {
                let mut ranges = KeyRanges::new(1);
                for items in list.chunks(tile.max(1)) {
                    ranges.push(&[items[0].saturating_sub(slack)], &[items[items.len() - 1] + slack]);
                }
                ranges.loosen();
                ranges
            };
            let whole = lists.iter().map(|list| ranges(list, list.len())).collect();
            let tiles = lists.iter().map(|list| ranges(list, tile as usize)).collect();
            let is_open = vec![Cell::new(false); lists.len()];
            Listed { lists, whole, tiles, is_open, tile, start: 7, reads: Cell::new(0) }
        }

        fn opened(&self) -> usize {
            self.is_open.iter().filter(|is_open| is_open.get()).count()
        }
    }

    impl SortedLists for Listed {
        fn count(&self) -> usize {
            self.lists.len()
        }

        fn positions(&self, list: usize) -> Range<u64> {
            self.start..self.start + self.lists[list].len() as u64
        }

        fn ranges(&self, list: usize) -> &KeyRanges {
            if self.is_open[list].get() { &self.tiles[list] } else { &self.whole[list] }
        }

        fn start_of(&self, list: usize, range: u64) -> u64 {
            let length = self.lists[list].len() as u64;
            self.start + range.saturating_mul(if self.is_open[list].get() { self.tile } else { length }).min(length)
        }

        fn range_at(&self, list: usize, position: u64) -> u64 {
            if self.is_open[list].get() { (position - self.start) / self.tile } else { 0 }
        }

        fn open(&self, lists: Vec<usize>) -> Result<bool> {
            Ok(lists.into_iter().filter(|list| !self.is_open[*list].replace(true)).count() > 0)
        }

        fn prepare(&self, _bounds: &RankBounds) -> Result<()> {
            Ok(())
        }

        fn key_at(&self, list: usize, position: u64) -> Result<Vec<u64>> {
            self.reads.set(self.reads.get() + 1);
            Ok(vec![self.lists[list][(position - self.start) as usize]])
        }
    }

    /// Sorted lists of keys, some of which repeat.
    fn lists() -> impl Strategy<Value = Vec<Vec<u64>>> {
        let items = prop::collection::vec((0u64..50_000, 0usize..6, 1u64..30), 0..400);
        (1usize..6, 1u64..500, items).prop_map(|(count, coarse, items)| {
            let mut lists = vec![Vec::new(); count];
            items.into_iter().for_each(|(key, list, _)| lists[list % count].push(key / coarse));
            lists.iter_mut().for_each(|list| list.sort_unstable());
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
            let first_where = |is_last: &dyn Fn(u64) -> bool| -> Vec<u64> {
                lists.iter().map(|list| 7 + list.partition_point(|key| !is_last(*key)) as u64).collect()
            };
            let (before, after) = (first_where(&|key| key >= end), first_where(&|key| key > end));
            let listed = Listed::new(lists, tile, slack);
            let bounds = bounds_at(&listed, rank).unwrap();
            for list in 0..before.len() {
                prop_assert!(bounds.low[list] <= before[list] && after[list] <= bounds.high[list]);
            }
            prop_assert_eq!(listed.reads.get(), 0);
            prop_assert_eq!(place_at(&listed, rank).unwrap(), before);
        }

        #[test]
        fn the_place_among_distinct_items_is_found_without_reading_where_one_list_has_it(lists in lists(), tile in 1u64..40, slack in 0u64..2000, asked in any::<u64>()) {
            let mut seen = std::collections::BTreeSet::new();
            let lists: Vec<Vec<u64>> =
                lists.into_iter().map(|list| list.into_iter().filter(|key| seen.insert(*key)).collect()).collect();
            let rank = asked % (seen.len() as u64 + 1);
            let listed = Listed::new(lists.clone(), tile, slack);
            let expected = place_at(&listed, rank).unwrap();
            let listed = Listed::new(lists, tile, slack);
            let in_one_list = bounds_at(&listed, rank).unwrap().unsettled().count() <= 1;
            prop_assert_eq!(place_among_distinct(&listed, rank).unwrap(), expected);
            prop_assert!(!in_one_list || listed.reads.get() == 0);
        }

        #[test]
        fn lists_that_are_not_sorted_come_to_an_end(lists in prop::collection::vec(prop::collection::vec(0u64..50, 0..30), 1..4), tile in 1u64..9, rank in 0u64..80) {
            let listed = Listed::new(lists, tile, 3);
            if let Ok(positions) = place_at(&listed, rank) {
                for (list, position) in positions.into_iter().enumerate() {
                    prop_assert!(listed.positions(list).contains(&position) || position == listed.positions(list).end);
                }
            }
        }
    }

    #[test]
    fn what_is_known_spares_reading() {
        let lists: Vec<Vec<u64>> = (0..8).map(|list| (0..100_000).map(|item| item * 8 + list).collect()).collect();
        let listed = Listed::new(lists, 100, 0);
        let bounds = bounds_at(&listed, 400_000).unwrap();
        assert!(bounds.low.iter().zip(&bounds.high).all(|(low, high)| high - low <= 200), "{bounds:?}");
        assert_eq!(place_at(&listed, 400_004).unwrap(), [[50_008; 4], [50_007; 4]].concat());
        assert!(listed.reads.get() < 220, "{} keys were read", listed.reads.get());
    }

    #[test]
    fn only_lists_that_lie_across_the_place_are_opened() {
        // Each list reaches a little beyond the beginning of the next.
        let lists: Vec<Vec<u64>> =
            (0..1000).map(|list| (0..1100).map(|item| 2000 * list + 2 * item).collect()).collect();
        let listed = Listed::new(lists, 10, 0);
        place_at(&listed, 0).unwrap();
        assert!(listed.opened() <= 2, "{}", listed.opened());
        place_at(&listed, 500_000).unwrap();
        assert!(listed.opened() <= 6, "{}", listed.opened());
    }
}
