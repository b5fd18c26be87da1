//! Tests of fragment metadata, on bytes that these tests write as the format describes.

use proptest::prelude::*;
use tilefs_base::error::Error;

use super::rtree_tests::{mbr, write_rtree};
use super::*;
use crate::scalar::{Range, Scalar};
use crate::schema::{ArraySchema, FIRST_SCHEMA, fixture};

/// The content of a footer to write. All numbers in its lists differ: see [`Footer::number`].
#[derive(Clone)]
struct Footer {
    version: u32,
    dense: bool,
    /// 0 for a footer with a domain; without one, 1 if zeros are stored in place of the ranges, else 2.
    null_domain: u8,
    domain: Vec<Range>,
    tiles: u64,
    last_tile_cells: u64,
    timestamps: bool,
    deletes: bool,
}

impl Footer {
    fn new(version: u32) -> Self {
        let range = |low, high| Range { low: Scalar::Signed(low), high: Scalar::Signed(high) };
        Footer {
            version,
            dense: false,
            null_domain: 0,
            domain: vec![range(2, 6), range(0, 99)],
            tiles: 3,
            last_tile_cells: 50,
            timestamps: version >= 14,
            deletes: version >= 15,
        }
    }

    fn slots(&self, schema: &ArraySchema) -> usize {
        let fields = schema.attributes.len() + 1;
        if self.version < 5 {
            return fields;
        }
        fields + schema.dimensions.len() + usize::from(self.timestamps) + 2 * usize::from(self.deletes)
    }

    /// Returns the number that a list has in a slot: 1000 times the list, plus the slot.
    fn number(list: u64, slot: usize) -> u64 {
        list * 1000 + slot as u64
    }

    fn write(&self, schema: &ArraySchema) -> Vec<u8> {
        let mut bytes = self.version.to_le_bytes().to_vec();
        if self.version >= 10 {
            bytes.extend(6u64.to_le_bytes());
            bytes.extend(b"__1_1_");
        }
        bytes.extend([u8::from(self.dense), u8::from(self.null_domain > 0)]);
        match self.null_domain {
            0 => fixture::write_ranges(&mut bytes, &self.domain, schema),
            1 => bytes.extend([0; 16]),
            _ => {}
        }
        bytes.extend(self.tiles.to_le_bytes());
        bytes.extend(self.last_tile_cells.to_le_bytes());
        if self.version >= 14 {
            bytes.push(u8::from(self.timestamps));
        }
        if self.version >= 15 {
            bytes.push(u8::from(self.deletes));
        }
        let slots = self.slots(schema);
        let var = if self.version < 5 { slots - 1 } else { slots };
        let validity = if self.version < 7 { 0 } else { slots };
        let mut list = |number: u64, count: usize| {
            bytes.extend((0..count).flat_map(|slot| Self::number(number, slot).to_le_bytes()));
        };
        list(1, slots);
        list(2, var);
        list(3, validity);
        list(4, 1);
        list(5, slots);
        list(6, var);
        list(7, var);
        list(8, validity);
        if self.version >= 11 {
            (9..=12).for_each(|number| list(number, slots));
        }
        if self.version >= 12 {
            list(13, 1);
        }
        if self.version >= 16 {
            list(14, 1);
        }
        if self.version >= 23 {
            bytes.extend(2u32.to_le_bytes());
            for (identifier, size) in [(77u64, 5u32), (0, 16 * schema.dimensions.len() as u32)] {
                bytes.extend(identifier.to_le_bytes());
                bytes.extend(size.to_le_bytes());
                bytes.extend(vec![0; size as usize]);
            }
        }
        bytes
    }
}

fn parse(footer: &Footer, schema: &ArraySchema) -> tilefs_base::error::Result<FragmentFooter> {
    FragmentFooter::parse(&footer.write(schema), footer.version, schema)
}

#[test]
fn footers_of_every_version() {
    let schema = fixture::sparse();
    for version in 3..=23 {
        let footer = Footer::new(version);
        let parsed = parse(&footer, &schema).unwrap();
        let facts = &parsed.facts;
        assert_eq!(facts.version, version);
        assert_eq!(facts.non_empty_ranges().as_ref(), Some(&footer.domain));
        assert_eq!((facts.sparse_tiles, facts.last_tile_cells), (3, 50));
        assert_eq!((facts.has_timestamps, facts.has_delete_metadata), (version >= 14, version >= 15));
        assert_eq!(facts.rtree_offset(), Some(4000));
        assert_eq!(facts.processed_conditions_offset(), (version >= 16).then_some(14000));
        assert_eq!(parsed.records.len(), footer.slots(&schema));
        let slot = |field| facts.slot(field);
        assert_eq!((slot(FragmentField::Attribute(1)), slot(FragmentField::Attribute(2))), (Some(1), None));
        assert_eq!(slot(FragmentField::Coordinates), (version < 5).then_some(2));
        assert_eq!(slot(FragmentField::Dimension(1)), (version >= 5).then_some(4));
        assert_eq!(slot(FragmentField::Timestamps), (version >= 14).then_some(5));
        assert_eq!(slot(FragmentField::DeleteTimestamps), (version >= 15).then_some(6));
        assert_eq!(slot(FragmentField::DeleteConditionIndex), (version >= 15).then_some(7));
        for (slot, record) in parsed.records.iter().enumerate() {
            let has_var = version >= 5 || slot < 2;
            let number = |list, exists| if exists { Footer::number(list, slot) } else { 0 };
            let expected = FieldRecord {
                file_size: number(1, true),
                var_file_size: number(2, has_var),
                validity_file_size: number(3, version >= 7),
                tile_offsets: number(5, true),
                var_offsets: number(6, has_var),
                var_sizes: number(7, has_var),
                validity_offsets: number(8, version >= 7),
                tile_minima: number(9, version >= 11),
                tile_maxima: number(10, version >= 11),
                tile_sums: number(11, version >= 11),
                tile_null_counts: number(12, version >= 11),
            };
            assert_eq!(*record, expected, "version {version}, slot {slot}");
        }
    }
}

#[test]
fn extremes_are_those_of_each_tile() {
    let section = |fixed: &[u8], var: &[u8]| {
        [&(fixed.len() as u64).to_le_bytes()[..], &(var.len() as u64).to_le_bytes(), fixed, var].concat()
    };
    let numbers = sections::TileExtremes::parse(&section(&[1, 2, 3, 4], b""), 2, Some(2)).unwrap().unwrap();
    assert_eq!([0, 1, 2].map(|tile| numbers.get(tile)), [Some(&[1u8, 2][..]), Some(&[3, 4]), None]);
    let offsets: Vec<u8> = [0u64, 2, 2].iter().flat_map(|offset| offset.to_le_bytes()).collect();
    let texts = sections::TileExtremes::parse(&section(&offsets, b"abc"), 3, None).unwrap().unwrap();
    assert_eq!([0, 1, 2, 3].map(|tile| texts.get(tile)), [Some(&b"ab"[..]), Some(b""), Some(b"c"), None]);
    assert_eq!(sections::TileExtremes::parse(&section(b"", b""), 3, Some(4)).unwrap(), None);
    for (payload, tiles) in [(section(&[1, 2, 3], b""), 2), (section(&[1; 4], b""), 3), (vec![255; 40], 1)] {
        assert!(sections::TileExtremes::parse(&payload, tiles, Some(2)).is_err());
    }
    // Offsets outside the values.
    let wrong: Vec<u8> = [9u64, 2].iter().flat_map(|offset| offset.to_le_bytes()).collect();
    let wrong = sections::TileExtremes::parse(&section(&wrong, b"abc"), 2, None).unwrap().unwrap();
    assert_eq!((wrong.get(0), wrong.get(1)), (None, Some(&b"c"[..])));
}

#[test]
fn flags_move_the_slots() {
    let schema = fixture::sparse();
    for (timestamps, deletes) in [(false, false), (false, true), (true, false), (true, true)] {
        let footer = Footer { timestamps, deletes, ..Footer::new(20) };
        let facts = parse(&footer, &schema).unwrap().facts;
        assert_eq!(facts.slot(FragmentField::Timestamps), timestamps.then_some(5));
        assert_eq!(facts.slot(FragmentField::DeleteTimestamps), deletes.then_some(5 + usize::from(timestamps)));
        assert_eq!(facts.slot(FragmentField::DeleteConditionIndex), deletes.then_some(6 + usize::from(timestamps)));
    }
}

#[test]
fn cut_footers_are_damage_and_longer_ones_are_not() {
    let schema = fixture::sparse();
    for version in 3..=23 {
        let bytes = Footer::new(version).write(&schema);
        for cut in 0..bytes.len() {
            let parsed = FragmentFooter::parse(&bytes[..cut], version, &schema);
            assert!(matches!(parsed, Err(Error::Damaged { .. })), "version {version}, {cut} bytes");
        }
        let longer = [bytes, vec![0; 8]].concat();
        assert!(FragmentFooter::parse(&longer, version, &schema).is_ok());
    }
}

#[test]
fn null_domains_with_and_without_their_bytes() {
    let schema = fixture::sparse();
    for version in 3..=23 {
        for null_domain in 1..=2 {
            let footer = Footer { null_domain, tiles: 0, last_tile_cells: 0, ..Footer::new(version) };
            let parsed = parse(&footer, &schema).unwrap();
            assert_eq!(parsed.facts.non_empty_domain, None);
            assert_eq!(parsed.records[0].file_size, 1000, "version {version}, form {null_domain}");
            let mut bytes = footer.write(&schema);
            bytes.push(0);
            assert!(FragmentFooter::parse(&bytes, version, &schema).is_err(), "neither form is so long");
        }
    }
}

#[test]
fn contradictory_footers_are_refused() {
    let schema = fixture::sparse();
    let wrong = |footer: Footer| parse(&footer, &schema).expect_err("a wrong footer").to_string();
    assert!(wrong(Footer { last_tile_cells: 101, ..Footer::new(22) }).contains("101 cells in the last tile"));
    assert!(wrong(Footer { last_tile_cells: 0, ..Footer::new(22) }).contains("0 cells in the last tile"));
    assert!(wrong(Footer { dense: true, ..Footer::new(22) }).contains("dense fragment in a sparse array"));
    let mut outside = Footer::new(22);
    outside.domain[0].high = Scalar::Signed(11);
    assert!(wrong(outside.clone()).contains("(field rows)"));
    let mut backward = Footer::new(22);
    backward.domain[1].low = Scalar::Signed(99);
    backward.domain[1].high = Scalar::Signed(98);
    assert!(wrong(backward).contains("(field cols)"));
    let bytes = Footer::new(22).write(&schema);
    assert!(FragmentFooter::parse(&bytes, 21, &schema).unwrap_err().to_string().contains("name of version 21"));
    assert!(FragmentFooter::parse(&Footer::new(3).write(&schema), 4, &schema).is_ok());
    // The last tile of a dense array may end after the domain: here at row 12.
    outside.dense = true;
    assert!(parse(&outside, &fixture::dense()).is_ok());
    outside.domain[0].high = Scalar::Signed(13);
    assert!(parse(&outside, &fixture::dense()).is_err());
}

#[test]
fn tiles_and_cells() {
    let facts = parse(&Footer::new(22), &fixture::sparse()).unwrap().facts;
    let schema = fixture::sparse();
    assert_eq!(facts.tile_count(&schema).unwrap(), 3);
    assert_eq!([0, 1, 2, 3].map(|tile| facts.cells_in_tile(&schema, tile)), [Some(100), Some(100), Some(50), None]);
    let schema = fixture::dense();
    let facts = parse(&Footer { dense: true, tiles: 0, ..Footer::new(22) }, &schema).unwrap().facts;
    // Rows 2 to 6 touch the tiles of 1 to 4 and 5 to 8, columns 0 to 99 all 15.
    assert_eq!(facts.tile_count(&schema).unwrap(), 30);
    assert_eq!((facts.cells_in_tile(&schema, 29), facts.cells_in_tile(&schema, 30)), (Some(28), None));
}

#[test]
fn rows_of_tiles() {
    let sparse = parse(&Footer::new(22), &fixture::sparse()).unwrap().facts;
    assert_eq!(sparse.tiles_of_a_row(&fixture::sparse()), 1);
    let mut schema = fixture::dense();
    let facts = parse(&Footer { dense: true, tiles: 0, ..Footer::new(22) }, &schema).unwrap().facts;
    assert_eq!(facts.tiles_of_a_row(&schema), 15);
    // Tiles of one row are read one after the other.
    schema.dimensions[0].extent = Some(Scalar::Signed(1));
    assert_eq!(facts.tiles_of_a_row(&schema), 1);
}

#[test]
fn more_dense_tiles_than_64_bits_are_damage() {
    let mut schema = fixture::dense();
    let everything = Range { low: Scalar::Signed(i64::MIN), high: Scalar::Signed(i64::MAX) };
    for dimension in &mut schema.dimensions {
        dimension.datatype = crate::datatype::Datatype::Int64;
        dimension.domain = Some(everything.clone());
        dimension.extent = Some(Scalar::Signed(1));
    }
    let footer = Footer { dense: true, domain: vec![everything.clone(), everything], ..Footer::new(22) };
    assert!(parse(&footer, &schema).unwrap_err().to_string().contains("more tiles than 64 bits"));
}

#[test]
fn footers_are_found() {
    let mut schema = fixture::sparse();
    for version in 3..=9 {
        let size = Footer::new(version).write(&schema).len() as u64;
        assert_eq!(
            footer_range(version, Some(&schema), 5000, [0xff; 8]).unwrap(),
            5000 - size..5000,
            "version {version}"
        );
        assert!(footer_range(version, Some(&schema), size - 1, [0; 8]).is_err());
        assert!(footer_range(version, None, 5000, [0; 8]).is_err());
    }
    // Footers that store their length.
    schema.dimensions[1] = fixture::string_dimension("cols");
    for (version, schema) in [(5, Some(&schema)), (9, Some(&schema)), (10, None), (23, None)] {
        assert_eq!(footer_range(version, schema, 500, 100u64.to_le_bytes()).unwrap(), 392..492);
        for (size, length) in [(500, 493), (500, 0), (500, u64::MAX), (7, 1), (0, 0)] {
            assert!(footer_range(version, schema, size, u64::to_le_bytes(length)).is_err(), "{length} in {size}");
        }
        assert!(footer_range(version, schema, u64::MAX, u64::to_le_bytes(1 << 40)).is_err());
    }
    assert!(footer_range(2, Some(&schema), 500, [0; 8]).is_err());
    assert!(matches!(footer_range(24, None, 500, [0; 8]), Err(Error::Unsupported { .. })));
}

#[test]
fn schema_names() {
    let schema = fixture::sparse();
    assert_eq!(schema_name(&Footer::new(9).write(&schema)).unwrap(), FIRST_SCHEMA);
    let mut bytes = Footer::new(10).write(&schema);
    assert_eq!(schema_name(&bytes).unwrap(), "__1_1_");
    bytes[12] = b'/';
    assert!(schema_name(&bytes).is_err());
    bytes[4] = 0;
    assert!(schema_name(&bytes).is_err());
}

#[test]
fn facts_are_small() {
    let facts = parse(&Footer::new(22), &fixture::sparse()).unwrap().facts;
    let ranges = facts.non_empty_domain.as_ref().unwrap().bytes().len();
    assert!(size_of::<FragmentFacts>() + ranges <= 128, "{} + {ranges}", size_of::<FragmentFacts>());
}

#[test]
fn unreliable_bounds_of_unsigned_times_become_the_domain() {
    let mut schema = fixture::sparse();
    for dimension in &mut schema.dimensions {
        dimension.datatype = crate::datatype::Datatype::DateTimeDay;
        dimension.domain = Some(Range { low: Scalar::Signed(-100), high: Scalar::Signed(100) });
    }
    let range = |low, high| Range { low: Scalar::Signed(low), high: Scalar::Signed(high) };
    let leaves = vec![vec![range(3, -7), range(-9, 8)], vec![range(-4, -2), range(0, -1)]];
    let bytes = write_rtree(std::slice::from_ref(&leaves), 4, &schema);
    let list = RTree::parse(bytes.clone(), 4, &schema).unwrap();
    let found = |tile, dimension| list.range(tile, dimension).unwrap();
    assert_eq!([found(0, 0), found(0, 1)], [range(-100, 100), range(-9, 8)]);
    assert_eq!([found(1, 0), found(1, 1)], [range(-4, -2), range(-100, 100)]);

    let parse = |leaf: Range, version| {
        let leaves = vec![vec![leaf, range(0, 1)]];
        RTree::parse(write_rtree(&[leaves], version, &schema), version, &schema)
    };
    assert!(parse(range(3, -7), 5).is_err(), "later libraries compare signed numbers");
    for wrong in [range(3, 2), range(-2, -3), range(3, -101), range(101, -7)] {
        assert!(parse(wrong, 4).is_err());
    }
}

/// Tiles with the bounds [3, -7] and [8, 9] give the non-empty domain [3, 9].
#[test]
fn the_unreliable_non_empty_domain_of_unsigned_times_becomes_the_domain() {
    let range = |low, high| Range { low: Scalar::Signed(low), high: Scalar::Signed(high) };
    for (low, version, is_kept) in [(-100, 4, false), (0, 4, true), (-100, 5, true)] {
        let mut schema = fixture::sparse();
        for dimension in &mut schema.dimensions {
            dimension.datatype = crate::datatype::Datatype::DateTimeDay;
            dimension.domain = Some(range(low, 100));
        }
        let mut footer = Footer::new(version);
        footer.domain = vec![range(3, 9), range(8, 9)];
        let facts = parse(&footer, &schema).unwrap().facts;
        let due = if is_kept { footer.domain.clone() } else { vec![range(low, 100); 2] };
        assert_eq!(facts.non_empty_ranges(), Some(due));
        footer.domain[0].high = Scalar::Signed(101);
        assert!(parse(&footer, &schema).is_err(), "outside the domain");
    }
}

#[test]
fn mbrs_take_little_memory() {
    let schema = fixture::sparse();
    let leaves: Vec<_> = (0..10_000).map(|number| mbr(number, false)).collect();
    let list = RTree::parse(write_rtree(&[leaves], 22, &schema), 22, &schema).unwrap();
    assert_eq!(list.bytes.len(), 16 + 10_000 * 16);
    assert!(list.layout.memory() <= 1024, "{}", list.layout.memory());
}

/// Writes the metadata of an early fragment, with one list of each kind per attribute.
fn write_early(domain: &[Range], mbrs: &[Vec<Range>], schema: &ArraySchema) -> Vec<u8> {
    let mut bytes = 2u32.to_le_bytes().to_vec();
    let mut ranges = Vec::new();
    fixture::write_ranges(&mut ranges, domain, schema);
    bytes.extend((ranges.len() as u64).to_le_bytes());
    bytes.extend(ranges);
    for _ in ["MBRs", "bounding coordinates"] {
        bytes.extend((mbrs.len() as u64).to_le_bytes());
        mbrs.iter().for_each(|mbr| fixture::write_ranges(&mut bytes, mbr, schema));
    }
    let fields = schema.attributes.len() + 1;
    for (list, count) in [(1, fields), (2, fields - 1), (3, fields - 1)] {
        for slot in 0..count {
            bytes.extend((slot as u64).to_le_bytes());
            bytes.extend((0..slot).flat_map(|_| Footer::number(list, slot).to_le_bytes()));
        }
    }
    bytes.extend(50u64.to_le_bytes());
    for (list, count) in [(4, fields), (5, fields - 1)] {
        bytes.extend((0..count).flat_map(|slot| Footer::number(list, slot).to_le_bytes()));
    }
    bytes
}

#[test]
fn early_fragments() {
    let schema = ArraySchema { version: 2, ..fixture::sparse() };
    let domain = Footer::new(3).domain;
    let mbrs = [mbr(1, false), mbr(2, false)];
    let bytes = write_early(&domain, &mbrs, &schema);
    let fragment = EarlyFragment::parse(&bytes, true, &schema).unwrap();
    assert_eq!(fragment.facts.non_empty_ranges().as_deref(), Some(domain.as_slice()));
    assert_eq!((fragment.facts.sparse_tiles, fragment.mbrs.tiles()), (2, 2));
    assert_eq!(fragment.mbrs.range(1, 1).ok(), mbrs[1].get(1).cloned());
    let expected = EarlyField {
        file_size: 4001,
        var_file_size: 5001,
        tile_offsets: vec![1001],
        var_offsets: vec![2001],
        var_sizes: vec![3001],
    };
    assert_eq!(fragment.field(FragmentField::Attribute(1)), Some(&expected));
    let coordinates = fragment.field(FragmentField::Coordinates).unwrap();
    assert_eq!((coordinates.file_size, coordinates.tile_offsets.as_slice()), (4002, &[1002, 1002][..]));
    assert_eq!(fragment.field(FragmentField::Dimension(0)), None);
    for cut in 0..bytes.len() {
        assert!(EarlyFragment::parse(&bytes[..cut], true, &schema).is_err());
    }
    assert!(EarlyFragment::parse(&[bytes.clone(), vec![0]].concat(), true, &schema).is_err());
    assert!(EarlyFragment::parse(&bytes, false, &schema).is_err(), "no coordinates in a sparse array");
    let none = EarlyFragment::parse(&write_early(&[], &[], &schema), true, &schema).unwrap();
    assert_eq!(none.facts.non_empty_domain, None);
}

#[test]
fn lists() {
    let write = |numbers: &[u64]| -> Vec<u8> {
        [numbers.len() as u64].iter().chain(numbers).flat_map(|number| number.to_le_bytes()).collect()
    };
    assert_eq!(sections::parse_u64_list(&write(&[7, 3])).unwrap(), [7, 3]);
    assert!(sections::parse_u64_list(&write(&[7, 3])[..23]).is_err());
    assert!(sections::parse_u64_list(&[write(&[7]), vec![0]].concat()).is_err());
    assert!(sections::parse_u64_list(&[0xff; 16]).is_err());
    assert_eq!(sections::parse_tile_offsets(&write(&[0, 0, 9]), 3, 9).unwrap(), [0, 0, 9]);
    assert!(sections::parse_tile_offsets(&write(&[0, 0, 9]), 3, 8).is_err());
    assert!(sections::parse_tile_offsets(&write(&[0, 9, 8]), 3, 9).is_err());
    assert!(sections::parse_tile_offsets(&write(&[0, 0, 9]), 2, 9).is_err());
    assert!(sections::parse_tile_sizes(&write(&[5, 0]), 2).is_ok());
    assert!(sections::parse_tile_sizes(&write(&[5, 0]), 3).is_err());
}

#[test]
fn entries_without_tiles_are_known_by_their_offset() {
    let entries = |offsets: &[u64], tiles| sections::entries_of_tiles(offsets, tiles).ok();
    assert_eq!(entries(&[0, 36, 0, 0, 72, 0], 3), Some(vec![0, 1, 4]));
    assert_eq!(entries(&[0, 0, 0], 1), Some(vec![0]));
    assert_eq!(entries(&[0, 36, 0, 0, 72, 0], 2), None);
    assert_eq!(entries(&[0, 36, 0, 0, 72, 0], 4), None);
    assert_eq!(entries(&[], 1), None);
}

#[test]
fn processed_conditions() {
    let mut bytes = 2u64.to_le_bytes().to_vec();
    for name in ["__commits/a.del", "x"] {
        bytes.extend((name.len() as u64).to_le_bytes());
        bytes.extend(name.as_bytes());
    }
    assert_eq!(sections::parse_processed_conditions(&bytes).unwrap(), ["__commits/a.del", "x"]);
    for cut in 0..bytes.len() {
        assert!(sections::parse_processed_conditions(&bytes[..cut]).is_err());
    }
    assert!(sections::parse_processed_conditions(&[bytes, vec![0]].concat()).is_err());
}

proptest! {
    #[test]
    fn flipped_bytes_never_panic(
        version in 3u32..=23,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        variable in any::<bool>(),
    ) {
        let mut schema = fixture::sparse();
        if variable && version >= 5 {
            schema.dimensions[1] = fixture::string_dimension("cols");
        }
        let mut footer = Footer::new(version);
        footer.domain = mbr(2, variable && version >= 5);
        let mut bytes = footer.write(&schema);
        let mut tree = write_rtree(&[vec![mbr(3, variable && version >= 5)]], version, &schema);
        for (at, value) in flips {
            let (in_bytes, in_tree) = (at.index(bytes.len()), at.index(tree.len()));
            bytes[in_bytes] = value;
            tree[in_tree] = value;
        }
        if let Ok(parsed) = FragmentFooter::parse(&bytes, version, &schema) {
            let _ = parsed.facts.tile_count(&schema);
            let _ = parsed.facts.cells_in_tile(&schema, 0);
        }
        let _ = RTree::parse(tree, version, &schema);
    }
}
