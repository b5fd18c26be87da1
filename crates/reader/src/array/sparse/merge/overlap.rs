//! Finds the tiles that must be merged: those whose key range overlaps with tiles of other fragments. All other tiles
//! are rows as they are stored.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// The key range of each tile of a fragment. No cell of the tile lies outside its two keys (both included), but there
/// need not be a cell at either of them. Memory: two keys per tile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRanges {
    words: usize,
    lows: Vec<u64>,
    highs: Vec<u64>,
}

impl KeyRanges {
    /// Returns an empty list of ranges for keys of `words` words, at least 1.
    pub fn new(words: usize) -> Self {
        KeyRanges { words: words.max(1), lows: Vec::new(), highs: Vec::new() }
    }

    /// Adds the next tile. Both keys have `words` words.
    pub fn push(&mut self, low: &[u64], high: &[u64]) {
        self.lows.extend_from_slice(low);
        self.highs.extend_from_slice(high);
    }

    /// Returns the lower key of the tile at a place; `None` past the end.
    pub fn low(&self, place: u64) -> Option<&[u64]> {
        key_of(&self.lows, self.words, place)
    }

    /// Returns the upper key of the tile at a place; `None` past the end.
    pub fn high(&self, place: u64) -> Option<&[u64]> {
        key_of(&self.highs, self.words, place)
    }

    /// Returns the number of leading tiles that surely end before a key, or a prefix of keys.
    pub fn ending_before(&self, key: &[u64]) -> u64 {
        count_where(&self.highs, self.words, |high| &high[..key.len().min(high.len())] < key)
    }

    /// Returns the number of leading tiles that may begin before a key, or a prefix of keys.
    pub fn beginning_before(&self, key: &[u64]) -> u64 {
        count_where(&self.lows, self.words, |low| &low[..key.len().min(low.len())] < key)
    }

    /// Returns the number of leading tiles that may begin before a key or at it.
    pub fn beginning_up_to(&self, key: &[u64]) -> u64 {
        count_where(&self.lows, self.words, |low| &low[..key.len().min(low.len())] <= key)
    }

    /// Narrows the ranges of a fragment whose cells are surely in order: no tile begins before the previous tile does,
    /// or ends after the next tile does.
    pub fn tighten(&mut self) {
        raise(&mut self.lows, self.words);
        lower(&mut self.highs, self.words);
    }

    /// Widens the ranges of a fragment whose cells may be out of order until both ends ascend: the upper key of a tile
    /// becomes at least the upper key of every tile before it, the lower key at most the lower key of every tile after
    /// it.
    pub fn loosen(&mut self) {
        raise(&mut self.highs, self.words);
        lower(&mut self.lows, self.words);
    }
}

fn key_of(keys: &[u64], words: usize, place: u64) -> Option<&[u64]> {
    let start = usize::try_from(place).ok()?.checked_mul(words)?;
    keys.get(start..start.checked_add(words)?)
}

/// Returns how many keys satisfy a condition that holds for a prefix of the ascending keys. Binary search.
fn count_where(keys: &[u64], words: usize, is_first: impl Fn(&[u64]) -> bool) -> u64 {
    let (mut low, mut high) = (0, (keys.len() / words) as u64);
    while low < high {
        let middle = low + (high - low) / 2;
        if key_of(keys, words, middle).is_some_and(&is_first) { low = middle + 1 } else { high = middle }
    }
    low
}

/// Raises each key to the previous one if that is higher.
fn raise(keys: &mut [u64], words: usize) {
    for start in (words..keys.len()).step_by(words) {
        if keys[start..start + words] < keys[start - words..start] {
            keys.copy_within(start - words..start, start);
        }
    }
}

/// Lowers each key to the next one if that is lower.
fn lower(keys: &mut [u64], words: usize) {
    for start in (words..keys.len()).step_by(words).rev() {
        if keys[start - words..start] > keys[start..start + words] {
            keys.copy_within(start..start + words, start - words);
        }
    }
}

/// Consecutive tiles of one fragment: the number of the fragment, and the places of the tiles.
pub type TilesOfFragment = (usize, Range<u64>);

/// Tiles that share a part of the array's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TileGroup {
    /// Tiles of one fragment, with no cells of other fragments between theirs.
    Alone(TilesOfFragment),
    /// Tiles of several fragments whose key ranges overlap.
    Together(Vec<TilesOfFragment>),
}

/// Groups tiles along the array's order. A fragment has one key range for each tile, in stored order, and both
/// ends ascend: see [`KeyRanges::tighten`] and [`KeyRanges::loosen`].
pub fn groups(fragments: &[(usize, &KeyRanges)]) -> Vec<TileGroup> {
    let mut parts = GroupsFound::new(fragments.len());
    // The next tile of each fragment; the heap's top may begin first.
    let mut next = BinaryHeap::new();
    let mut places = vec![0; fragments.len()];
    for (number, (_, key_ranges)) in fragments.iter().enumerate() {
        next.extend(key_ranges.low(0).map(|low| Reverse((low, number))));
    }
    let mut taken = Farthest::default();
    while let Some(Reverse((low, number))) = next.pop() {
        let (fragment, key_ranges) = &fragments[number];
        let place = places[number];
        let high = key_ranges.high(place).unwrap_or(low);
        let after_others = taken.of_others(number).is_none_or(|end| end < low);
        // Later tiles of a fragment begin no earlier than its next one.
        let before_others = next.peek().is_none_or(|Reverse((next_low, _))| high < *next_low);
        if after_others && before_others {
            parts.take_alone(*fragment, place);
        } else {
            let is_new = taken.of_all().is_none_or(|end| end < low);
            parts.take_together(number, *fragment, place, is_new);
        }
        taken.add(number, high);
        places[number] += 1;
        next.extend(key_ranges.low(place + 1).map(|low| Reverse((low, number))));
    }
    parts.groups
}

/// The groups found so far.
struct GroupsFound {
    groups: Vec<TileGroup>,
    /// For each fragment, its last group shared with others, and the index of its tiles in that group.
    own: Vec<Option<(usize, usize)>>,
}

impl GroupsFound {
    fn new(fragments: usize) -> Self {
        GroupsFound { groups: Vec::new(), own: vec![None; fragments] }
    }

    fn take_alone(&mut self, fragment: usize, place: u64) {
        match self.groups.last_mut() {
            Some(TileGroup::Alone((last, places))) if *last == fragment && places.end == place => places.end += 1,
            _ => self.groups.push(TileGroup::Alone((fragment, place..place + 1))),
        }
    }

    fn take_together(&mut self, number: usize, fragment: usize, place: u64, is_new: bool) {
        if is_new || !matches!(self.groups.last(), Some(TileGroup::Together(_))) {
            self.groups.push(TileGroup::Together(Vec::new()));
        }
        let part = self.groups.len() - 1;
        let Some(TileGroup::Together(tiles)) = self.groups.last_mut() else { return };
        match self.own[number].filter(|own| own.0 == part).and_then(|own| tiles.get_mut(own.1)) {
            Some((_, places)) => places.end = place + 1,
            None => {
                self.own[number] = Some((part, tiles.len()));
                tiles.push((fragment, place..place + 1));
            }
        }
    }
}

/// How far the tiles taken so far reach.
#[derive(Default)]
struct Farthest<'a> {
    /// The farthest end, and its fragment.
    first: Option<(&'a [u64], usize)>,
    /// The farthest end of any other fragment.
    second: Option<&'a [u64]>,
}

impl<'a> Farthest<'a> {
    fn of_all(&self) -> Option<&'a [u64]> {
        self.first.map(|(end, _)| end)
    }

    fn of_others(&self, fragment: usize) -> Option<&'a [u64]> {
        match self.first {
            Some((_, owner)) if owner == fragment => self.second,
            _ => self.of_all(),
        }
    }

    fn add(&mut self, fragment: usize, end: &'a [u64]) {
        match self.first {
            Some((first, owner)) if owner == fragment => self.first = Some((first.max(end), fragment)),
            Some((first, _)) if first < end => {
                self.second = Some(first);
                self.first = Some((end, fragment));
            }
            Some(_) => self.second = Some(self.second.map_or(end, |second| second.max(end))),
            None => self.first = Some((end, fragment)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key_ranges(ends: &[(u64, u64)]) -> KeyRanges {
        let mut key_ranges = KeyRanges::new(1);
        ends.iter().for_each(|&(a, b)| key_ranges.push(&[a.min(b)], &[a.max(b)]));
        key_ranges
    }

    fn ends(key_ranges: &KeyRanges) -> Vec<(u64, u64)> {
        key_ranges.lows.iter().copied().zip(key_ranges.highs.iter().copied()).collect()
    }

    #[test]
    fn what_lies_apart_is_left_alone() {
        let fragments = [
            (3, key_ranges(&[(0, 4), (5, 9), (10, 14), (30, 40)])),
            (8, key_ranges(&[(6, 8)])),
            (9, key_ranges(&[(20, 21), (22, 22)])),
        ];
        let expected = [
            TileGroup::Alone((3, 0..1)),
            TileGroup::Together(vec![(3, 1..2), (8, 0..1)]),
            TileGroup::Alone((3, 2..3)),
            TileGroup::Alone((9, 0..2)),
            TileGroup::Alone((3, 3..4)),
        ];
        let fragments = fragments.each_ref().map(|(number, own)| (*number, own));
        assert_eq!(groups(&fragments), expected);
    }

    proptest! {
        #[test]
        fn tiles_that_overlap_are_together_and_others_apart(
            of_fragments in prop::collection::vec(prop::collection::vec((0u64..60, 0u64..12), 0..8), 0..5),
            is_sure in any::<bool>(),
        ) {
            let mut fragments = Vec::new();
            for (number, spans) in of_fragments.iter().enumerate() {
                let mut spans: Vec<(u64, u64)> = spans.iter().map(|(low, length)| (*low, low + length)).collect();
                if is_sure {
                    // Key ranges of ascending cells.
                    spans.sort_by_key(|span| span.0);
                }
                let mut own = key_ranges(&spans);
                if is_sure { own.tighten() } else { own.loosen() }
                prop_assert!(own.lows.is_sorted() && own.highs.is_sorted());
                for key in 0..75 {
                    prop_assert_eq!(own.beginning_up_to(&[key]), own.lows.iter().filter(|low| **low <= key).count() as u64);
                    prop_assert_eq!(own.beginning_before(&[key]), own.lows.iter().filter(|low| **low < key).count() as u64);
                    prop_assert_eq!(own.ending_before(&[key]), own.highs.iter().filter(|high| **high < key).count() as u64);
                }
                fragments.push((number, own));
            }
            let parts = groups(&fragments.iter().map(|(number, own)| (*number, own)).collect::<Vec<_>>());
            // Every tile once, in order, with the index of its group.
            let mut seen: Vec<Vec<usize>> = vec![Vec::new(); fragments.len()];
            let mut alone = Vec::new();
            for (number, part) in parts.iter().enumerate() {
                let tiles = match part {
                    TileGroup::Alone(tiles) => std::slice::from_ref(tiles),
                    TileGroup::Together(tiles) => tiles,
                };
                alone.push(matches!(part, TileGroup::Alone(_)));
                for (fragment, places) in tiles {
                    prop_assert_eq!(places.start, seen[*fragment].len() as u64);
                    seen[*fragment].extend(places.clone().map(|_| number));
                }
            }
            for (a, a_spans) in &fragments {
                prop_assert_eq!(seen[*a].len(), a_spans.lows.len());
                for (place, (low, high)) in ends(a_spans).into_iter().enumerate() {
                    let part = seen[*a][place];
                    let others = fragments.iter().filter(|(b, _)| a != b);
                    let others: Vec<(usize, (u64, u64))> = others
                        .flat_map(|(b, b_spans)| ends(b_spans).into_iter().enumerate().map(|(at, other)| (seen[*b][at], other)))
                        .collect();
                    for (other_part, other) in &others {
                        if *other_part > part {
                            prop_assert!(high < other.0);
                        } else if *other_part < part {
                            prop_assert!(other.1 < low);
                        }
                    }
                    let overlaps = |other: &(u64, u64)| other.0 <= high && low <= other.1;
                    prop_assert_eq!(alone[part], !others.iter().any(|(_, other)| overlaps(other)));
                }
            }
        }
    }
}
