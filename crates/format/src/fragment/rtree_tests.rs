//! Tests of R-trees, on bytes that these tests write as the format describes.

use proptest::prelude::*;

use super::*;
use crate::fragment::facts::covering_texts;
use crate::scalar::{Range, Scalar};
use crate::schema::{ArraySchema, fixture};

/// Writes an R-tree of the given levels of MBRs.
pub(super) fn write_rtree(levels: &[Vec<Vec<Range>>], version: u32, schema: &ArraySchema) -> Vec<u8> {
    let mut bytes = Vec::new();
    if version < 5 {
        bytes.extend((schema.dimensions.len() as u32).to_le_bytes());
    }
    bytes.extend(10u32.to_le_bytes());
    if version < 5 {
        bytes.push(schema.dimensions[0].datatype as u8);
    }
    bytes.extend((levels.len() as u32).to_le_bytes());
    for level in levels {
        bytes.extend((level.len() as u64).to_le_bytes());
        level.iter().for_each(|mbr| fixture::write_ranges(&mut bytes, mbr, schema));
    }
    bytes
}

pub(super) fn mbr(number: i64, variable: bool) -> Vec<Range> {
    let range = |low, high| Range { low: Scalar::Signed(low), high: Scalar::Signed(high) };
    let text = |text: String| Scalar::Text(text.into_bytes());
    let second = if variable {
        Range { low: text("a".repeat(number as usize + 1)), high: text(format!("b{number}")) }
    } else {
        range(number, number * 2)
    };
    vec![range(-number, number), second]
}

/// Returns the levels of an R-tree of fanout 10 over these boxes, root first.
fn levels_over(leaves: &[Vec<Range>]) -> Vec<Vec<Vec<Range>>> {
    let join = |boxes: &[Vec<Range>]| -> Vec<Range> {
        (0..boxes[0].len())
            .map(|dimension| {
                let ranges = boxes.iter().map(|one| &one[dimension]);
                let low = ranges.clone().map(|range| &range.low).min_by(|a, b| a.compare(b)).unwrap();
                let high = ranges.map(|range| &range.high).max_by(|a, b| a.compare(b)).unwrap();
                Range { low: low.clone(), high: high.clone() }
            })
            .collect()
    };
    let mut levels = vec![leaves.to_vec()];
    while levels[0].len() > 1 {
        let above = levels[0].chunks(10).map(join).collect();
        levels.insert(0, above);
    }
    levels
}

#[test]
fn leaves_of_rtrees() {
    for variable in [false, true] {
        let mut schema = fixture::sparse();
        if variable {
            schema.dimensions[1] = fixture::string_dimension("cols");
        }
        for version in if variable { 5..=23 } else { 3..=23 } {
            let leaves: Vec<_> = (0..25).map(|number| mbr(number, variable)).collect();
            let levels = levels_over(&leaves);
            let bytes = write_rtree(&levels, version, &schema);
            let list = RTree::parse(bytes.clone(), version, &schema).unwrap();
            assert_eq!(list.tiles(), 25);
            for (tile, leaf) in leaves.iter().enumerate() {
                let ranges: Vec<_> = (0..2).map(|dimension| list.range(tile as u64, dimension).unwrap()).collect();
                assert_eq!(ranges, *leaf);
            }
            assert!(list.range(25, 0).is_err() && list.range(0, 2).is_err() && list.range(u64::MAX, 0).is_err());
            for cut in 0..bytes.len() {
                assert!(RTree::parse(bytes[..cut].to_vec(), version, &schema).is_err(), "{cut}");
            }
            assert!(RTree::parse([bytes, vec![0]].concat(), version, &schema).is_err());
        }
    }
}

#[test]
fn rtrees_without_levels_and_wrong_ones() {
    let schema = fixture::sparse();
    for version in [3, 22] {
        assert!(RTree::parse(write_rtree(&[], version, &schema), version, &schema).unwrap().tiles() == 0);
    }
    let mut backward = mbr(1, false);
    backward[0].low = Scalar::Signed(2);
    let bytes = write_rtree(&[vec![backward]], 22, &schema);
    assert!(RTree::parse(bytes.clone(), 22, &schema).unwrap_err().to_string().contains("out of order"));
    let mut bytes = write_rtree(&[vec![mbr(1, false)]], 22, &schema);
    bytes[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(RTree::parse(bytes.clone(), 22, &schema).is_err());
    let mut bytes = write_rtree(&[vec![mbr(1, false)]], 4, &schema);
    bytes[0] = 3;
    assert!(RTree::parse(bytes.clone(), 4, &schema).unwrap_err().to_string().contains("3 dimensions"));
}

/// Returns the decision for a box of a tree if only the tiles that overlap the box `wanted` are wanted.
fn descent(wanted: &[Range], ranges: &[Range]) -> Descent {
    let inside = |(wanted, own): (&Range, &Range)| wanted.contains(&own.low) && wanted.contains(&own.high);
    if !wanted.iter().zip(ranges).all(|(wanted, own)| wanted.overlaps(own)) {
        Descent::Skip
    } else if wanted.iter().zip(ranges).all(inside) {
        Descent::Take
    } else {
        Descent::Enter
    }
}

proptest! {
    #[test]
    fn a_descent_finds_what_a_scan_finds(
        corners in prop::collection::vec((0i64..200, 0i64..6, 0i64..50, 0i64..6), 0..350),
        wanted in (0i64..200, 0i64..40, 0i64..50, 0i64..20),
        (variable, bloat) in (any::<bool>(), 0i64..3),
    ) {
        let mut schema = fixture::sparse();
        if variable {
            schema.dimensions[1] = fixture::string_dimension("cols");
        }
        let range = |low: i64, length: i64| Range { low: Scalar::Signed(low), high: Scalar::Signed(low + length) };
        let text = |low: i64, length: i64| {
            let text = |number: i64| Scalar::Text(format!("{number:02}{}", "x".repeat((number % 9) as usize)).into_bytes());
            Range { low: text(low), high: text(low + length) }
        };
        let second = |low, length| if variable { text(low, length) } else { range(low, length) };
        let whole = |(a, b, c, d): (i64, i64, i64, i64)| vec![range(a, b), second(c, d)];
        let leaves: Vec<_> = corners.into_iter().map(whole).collect();
        let mut levels = if leaves.is_empty() { Vec::new() } else { levels_over(&leaves) };
        // Boxes above the leaves may be larger than necessary.
        if let Some(root) = levels.first_mut().filter(|level| level.len() == 1 && leaves.len() > 1) {
            let Range { low: Scalar::Signed(low), high: Scalar::Signed(high) } = root[0][0] else { unreachable!() };
            root[0][0] = range(low - bloat, high - low + 2 * bloat);
        }
        let tree = RTree::parse(write_rtree(&levels, 22, &schema), 22, &schema).unwrap();
        let wanted = whole(wanted);
        let (mut found, mut visited) = (Vec::new(), 0);
        tree.descend(
            |ranges| {
                visited += 1;
                Ok(descent(&wanted, ranges))
            },
            |tiles| found.extend(tiles),
        )
        .unwrap();
        let scanned = (0..leaves.len()).filter(|tile| descent(&wanted, &leaves[*tile]) != Descent::Skip);
        prop_assert_eq!(&found, &scanned.map(|tile| tile as u64).collect::<Vec<_>>());
        let boxes: usize = levels.iter().map(Vec::len).sum();
        prop_assert!(visited <= boxes);
        // Boxes can be read in any order.
        let mut cursor = tree.boxes();
        let mut ranges = Vec::new();
        for tile in (0..leaves.len()).step_by(7).chain((0..leaves.len()).rev()) {
            cursor.read(tile as u64, &mut ranges).unwrap();
            prop_assert_eq!(&ranges, &leaves[tile]);
        }
        // One point of a line is found along one path through the levels.
        if !leaves.is_empty() {
            let line: Vec<_> = (0..300).map(|tile| vec![range(tile, 0), second(0, 1)]).collect();
            let tree = RTree::parse(write_rtree(&levels_over(&line), 22, &schema), 22, &schema).unwrap();
            let mut visited = 0;
            let point = [range(123, 0), second(0, 40)];
            tree.descend(|ranges| { visited += 1; Ok(descent(&point, ranges)) }, |tiles| assert_eq!(tiles, 123..124)).unwrap();
            prop_assert_eq!(visited, 1 + 3 + 10 + 10);
        }
    }

    #[test]
    fn a_box_that_does_not_contain_its_children_is_damage(
        (node, dimension, at_low) in (any::<prop::sample::Index>(), 0usize..2, any::<bool>()),
        inner in any::<bool>(),
    ) {
        let schema = fixture::sparse();
        let leaves: Vec<_> = (0..250).map(|number| mbr(number, false)).collect();
        let mut levels = levels_over(&leaves);
        let level = if inner { 1 } else { 0 };
        let node = node.index(levels[level].len());
        let range = &mut levels[level][node][dimension];
        let by = |value: &Scalar, by| if let Scalar::Signed(value) = value { Scalar::Signed(value + by) } else { unreachable!() };
        if at_low { range.low = by(&range.low, 1) } else { range.high = by(&range.high, -1) }
        let error = RTree::parse(write_rtree(&levels, 22, &schema), 22, &schema).unwrap_err().to_string();
        prop_assert!(error.contains("leaves the one above it"), "{}", error);
    }
}

/// Extends a range by another as libraries before format version 10 did: the high end of a range that begins with the
/// empty text is empty to them.
fn extend_as_old_libraries(range: &mut Range, by: &Range) {
    let high = |range: &Range| match &range.low {
        Scalar::Text(low) if low.is_empty() => Scalar::Text(Vec::new()),
        _ => range.high.clone(),
    };
    let (own, other) = (high(range), high(by));
    range.high = if other.compare(&own).is_gt() { other } else { own };
    if by.low.compare(&range.low).is_lt() {
        range.low = by.low.clone();
    }
}

proptest! {
    #[test]
    fn cells_are_found_in_boxes_that_begin_with_the_empty_text(
        tiles in prop::collection::vec(prop::collection::vec("[a-c]{0,2}", 1..4), 1..120),
        version in 5u32..10,
    ) {
        let mut schema = fixture::sparse();
        schema.dimensions[1] = fixture::string_dimension("cols");
        let numbers = || Range { low: Scalar::Signed(0), high: Scalar::Signed(1) };
        let only = |text: &String| {
            let text = Scalar::Text(text.clone().into_bytes());
            Range { low: text.clone(), high: text }
        };
        let join = |ranges: &mut dyn Iterator<Item = Range>| {
            let mut whole = ranges.next().unwrap();
            ranges.for_each(|range| extend_as_old_libraries(&mut whole, &range));
            vec![numbers(), whole]
        };
        let leaves: Vec<_> = tiles.iter().map(|texts| join(&mut texts.iter().map(only))).collect();
        let mut levels = vec![leaves];
        while levels[0].len() > 1 {
            let above = levels[0].chunks(10).map(|boxes| join(&mut boxes.iter().map(|one| one[1].clone()))).collect();
            levels.insert(0, above);
        }
        let tree = RTree::parse(write_rtree(&levels, version, &schema), version, &schema).unwrap();
        // The non-empty domain is extended by the boxes of tiles, one after the other.
        let domain = join(&mut levels[levels.len() - 1].iter().map(|one| one[1].clone()));
        let domain = covering_texts(version, domain[1].clone());
        for (tile, texts) in tiles.iter().enumerate() {
            for text in texts {
                let wanted = [numbers(), only(text)];
                let mut found = Vec::new();
                tree.descend(|ranges| Ok(descent(&wanted, ranges)), |tiles| found.extend(tiles)).unwrap();
                prop_assert!(found.contains(&(tile as u64)), "{text:?} of tile {tile}");
                prop_assert!(domain.contains(&wanted[1].low), "{text:?}");
            }
        }
        // Boxes without the empty text are those that are stored.
        for (tile, leaf) in levels[levels.len() - 1].iter().enumerate() {
            let range = tree.range(tile as u64, 1).unwrap();
            let begins_empty = leaf[1].low == Scalar::Text(Vec::new());
            prop_assert_eq!(range.is_open(), begins_empty);
            prop_assert!(begins_empty || range == leaf[1]);
        }
    }
}

#[test]
fn newer_boxes_that_begin_with_the_empty_text_must_contain_their_children() {
    let mut schema = fixture::sparse();
    schema.dimensions[1] = fixture::string_dimension("cols");
    let leaf = |low: &str, high: &str| {
        let text = |text: &str| Scalar::Text(text.as_bytes().to_vec());
        vec![Range { low: Scalar::Signed(0), high: Scalar::Signed(1) }, Range { low: text(low), high: text(high) }]
    };
    let levels = [vec![leaf("", "y")], vec![leaf("", "z"), leaf("y", "y")]];
    let error = RTree::parse(write_rtree(&levels, 10, &schema), 10, &schema).unwrap_err().to_string();
    assert!(error.contains("leaves the one above it"), "{error}");
    assert!(RTree::parse(write_rtree(&levels, 9, &schema), 9, &schema).is_ok());
    // A box without the empty text is believed, whatever its version.
    let levels = [vec![leaf("a", "y")], vec![leaf("a", "z"), leaf("y", "y")]];
    assert!(RTree::parse(write_rtree(&levels, 9, &schema), 9, &schema).is_err());
}

#[test]
fn levels_must_match_the_fanout() {
    let schema = fixture::sparse();
    let leaves: Vec<_> = (0..25).map(|number| mbr(number, false)).collect();
    let mut levels = levels_over(&leaves);
    let last = levels[1].pop().unwrap();
    let error = RTree::parse(write_rtree(&levels, 22, &schema), 22, &schema).unwrap_err().to_string();
    assert!(error.contains("2 boxes over 25 at a fanout of 10"), "{error}");
    levels[1].extend([last.clone(), last]);
    assert!(RTree::parse(write_rtree(&levels, 22, &schema), 22, &schema).is_err());
}

#[test]
fn texts_beyond_ascii_are_found_without_the_upper_levels() {
    let mut schema = fixture::sparse();
    schema.dimensions[1] = fixture::string_dimension("cols");
    let leaf = |low: &str, high: &str| {
        let text = |text: &str| Scalar::Text(text.as_bytes().to_vec());
        vec![Range { low: Scalar::Signed(0), high: Scalar::Signed(1) }, Range { low: text(low), high: text(high) }]
    };
    // The root is as written by a library that compares bytes as signed numbers.
    let levels = [vec![leaf("\u{e9}", "z")], vec![leaf("a", "z"), leaf("\u{e9}", "\u{ea}")]];
    let tree = RTree::parse(write_rtree(&levels, 22, &schema), 22, &schema).unwrap();
    let (mut seen, mut found) = (0, Vec::new());
    tree.descend(
        |_| {
            seen += 1;
            Ok(Descent::Enter)
        },
        |tiles| found.extend(tiles),
    )
    .unwrap();
    assert_eq!((seen, found), (2, vec![0, 1]));
}
