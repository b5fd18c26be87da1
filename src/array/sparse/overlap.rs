//! Which tiles of which fragments have to be merged: those whose places in the order of the array overlap with
//! tiles of other fragments. All others are rows as they are stored.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Where the cells of one tile lie in the order: between two keys, both included. Cells outside are impossible,
/// but there need not be one at either end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    pub low: Box<[u64]>,
    pub high: Box<[u64]>,
}

/// Consecutive tiles of one fragment: its number, and places among its tiles.
pub type TilesOfFragment = (usize, Range<u64>);

/// Tiles that share a part of the order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TileGroup {
    /// Tiles whose cells follow each other as they are stored, with none of other fragments between.
    Alone(TilesOfFragment),
    /// Tiles of several fragments that lie across each other.
    Together(Vec<TilesOfFragment>),
}

/// Makes the most of what is known of a fragment's tiles when its cells are surely in order: a tile does not
/// begin before the one in front of it does, nor end behind the end of the next one.
pub fn tighten(key_ranges: &mut [KeyRange]) {
    for at in 1..key_ranges.len() {
        if key_ranges[at].low < key_ranges[at - 1].low {
            key_ranges[at].low = key_ranges[at - 1].low.clone();
        }
    }
    for at in (1..key_ranges.len()).rev() {
        if key_ranges[at - 1].high > key_ranges[at].high {
            key_ranges[at - 1].high = key_ranges[at].high.clone();
        }
    }
}

/// Makes ranges of keys ascend where cells may be out of order: then what a tile may begin with must not come before what
/// the tiles in front of it may end with.
pub fn loosen(key_ranges: &mut [KeyRange]) {
    for at in 1..key_ranges.len() {
        if key_ranges[at].high < key_ranges[at - 1].high {
            key_ranges[at].high = key_ranges[at - 1].high.clone();
        }
    }
    for at in (1..key_ranges.len()).rev() {
        if key_ranges[at - 1].low > key_ranges[at].low {
            key_ranges[at - 1].low = key_ranges[at].low.clone();
        }
    }
}

/// Cuts the order of an array into parts. Each fragment's key ranges are those of its tiles in stored order, and ascend at
/// both ends: see [`tighten`] and [`loosen`].
pub fn groups(fragments: &[(usize, Vec<KeyRange>)]) -> Vec<TileGroup> {
    let mut parts = Vec::new();
    // The next tile of every fragment, the one that may begin first in front.
    let mut next = BinaryHeap::new();
    let mut places = vec![0; fragments.len()];
    for (number, (_, key_ranges)) in fragments.iter().enumerate() {
        next.extend(key_ranges.first().map(|key_range| Reverse((&*key_range.low, number))));
    }
    let mut taken = Farthest::default();
    while let Some(Reverse((low, number))) = next.pop() {
        let (fragment, key_ranges) = &fragments[number];
        let place = places[number];
        let high = &*key_ranges[place].high;
        let after_others = taken.of_others(number).is_none_or(|end| end < low);
        // Tiles further down begin no earlier than those that are next.
        let before_others = next.peek().is_none_or(|Reverse((next_low, _))| high < *next_low);
        if after_others && before_others {
            take_alone(&mut parts, *fragment, place as u64);
        } else {
            let is_new = taken.of_all().is_none_or(|end| end < low);
            take_together(&mut parts, *fragment, place as u64, is_new);
        }
        taken.add(number, high);
        places[number] += 1;
        next.extend(key_ranges.get(place + 1).map(|key_range| Reverse((&*key_range.low, number))));
    }
    parts
}

fn take_alone(parts: &mut Vec<TileGroup>, fragment: usize, place: u64) {
    match parts.last_mut() {
        Some(TileGroup::Alone((last, places))) if *last == fragment && places.end == place => places.end += 1,
        _ => parts.push(TileGroup::Alone((fragment, place..place + 1))),
    }
}

fn take_together(parts: &mut Vec<TileGroup>, fragment: usize, place: u64, is_new: bool) {
    let tiles = match parts.last_mut() {
        Some(TileGroup::Together(tiles)) if !is_new => tiles,
        _ => {
            parts.push(TileGroup::Together(vec![(fragment, place..place + 1)]));
            return;
        }
    };
    match tiles.iter_mut().find(|tiles| tiles.0 == fragment) {
        Some((_, places)) => places.end = place + 1,
        None => tiles.push((fragment, place..place + 1)),
    }
}

/// How far the tiles reach that have been taken.
#[derive(Default)]
struct Farthest<'a> {
    /// The farthest end, and the fragment it is of.
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

    fn key_ranges(ends: &[(u64, u64)]) -> Vec<KeyRange> {
        let key_range = |&(a, b): &(u64, u64)| KeyRange { low: [a.min(b)].into(), high: [a.max(b)].into() };
        ends.iter().map(key_range).collect()
    }

    fn ascend(key_ranges: &[KeyRange]) -> bool {
        key_ranges.windows(2).all(|pair| pair[0].low <= pair[1].low && pair[0].high <= pair[1].high)
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
        assert_eq!(groups(&fragments), expected);
    }

    proptest! {
        #[test]
        fn tiles_that_overlap_are_together_and_others_apart(
            ends in prop::collection::vec(prop::collection::vec((0u64..60, 0u64..12), 0..8), 0..5),
            is_sure in any::<bool>(),
        ) {
            let mut fragments: Vec<(usize, Vec<KeyRange>)> = ends
                .iter()
                .map(|ends| key_ranges(&ends.iter().map(|(low, length)| (*low, low + length)).collect::<Vec<_>>()))
                .enumerate()
                .collect();
            for (_, key_ranges) in &mut fragments {
                if is_sure {
                    // Spans of cells that ascend.
                    key_ranges.sort_by_key(|key_range| key_range.low.clone());
                    tighten(key_ranges);
                } else {
                    loosen(key_ranges);
                }
                prop_assert!(ascend(key_ranges));
            }
            let parts = groups(&fragments);
            // Every tile once, in order, with the number of its part.
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
                prop_assert_eq!(seen[*a].len(), a_spans.len());
                for (place, key_range) in a_spans.iter().enumerate() {
                    let part = seen[*a][place];
                    let others = fragments.iter().filter(|(b, _)| a != b);
                    let others: Vec<(usize, &KeyRange)> = others
                        .flat_map(|(b, b_spans)| b_spans.iter().enumerate().map(|(at, other)| (seen[*b][at], other)))
                        .collect();
                    for (other_part, other) in &others {
                        if *other_part > part {
                            prop_assert!(key_range.high < other.low);
                        } else if *other_part < part {
                            prop_assert!(other.high < key_range.low);
                        }
                    }
                    let overlaps = |other: &KeyRange| other.low <= key_range.high && key_range.low <= other.high;
                    prop_assert_eq!(alone[part], !others.iter().any(|(_, other)| overlaps(other)));
                }
            }
        }
    }
}
