//! Compares the lines of records with the records that cells were made of, in every layout, with and without a region.

use std::ops::RangeInclusive;
use std::sync::Arc;

use proptest::prelude::*;
use tilefs_format::datatype::Datatype;

use super::fields::testing::{Stored, stored};
use super::*;
use crate::column::{Column, Field};
use crate::content::{Content, Forward};
use crate::testing::{assert_random_access, read_all};
use crate::text::{Measured, Position, TextRows, forward};

/// The first and the last position of a record.
type Extent = (u32, u32);

/// A cell: its coordinate, and its record by its number.
type Cell = (u32, usize);

const HEADER: &[u8] = b"##fileformat=VCFv4.2\n##contig=<ID=1>\n";

/// Returns the cells of records as TileDB-VCF writes them, sorted by coordinate.
fn cells_of(version: u32, gap: u32, records: &[Extent]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (number, &(start, end)) in records.iter().enumerate() {
        let mut at = start;
        if version == 2 {
            while end > start && end - at > gap {
                at += gap;
                cells.push((at, number));
            }
            cells.push((end, number));
            continue;
        }
        cells.push((start, number));
        while end - at > gap {
            at += gap;
            cells.push((at, number));
        }
    }
    cells.sort();
    cells
}

fn numbers(name: &str, datatype: Datatype, numbers: impl Iterator<Item = u32>) -> Column {
    let bytes: Vec<u8> = numbers.flat_map(u32::to_le_bytes).collect();
    Column::fixed(Field::new(name, datatype), vec![bytes.len() as u64 / 4], Arc::new(bytes))
}

fn variable(name: &str, datatype: Datatype, values: Vec<Vec<u8>>) -> Column {
    let mut end = 0;
    let ends = values.iter().map(|value| {
        end += value.len() as u64;
        end
    });
    let offsets: Vec<u8> = [0].into_iter().chain(ends).flat_map(u64::to_le_bytes).collect();
    let field = Field::new(name, datatype).with_values_per_cell(None);
    Column::variable(field, vec![values.len() as u64], Arc::new(values.concat()), Arc::new(offsets))
}

fn columns(cells: &[Cell], records: &[Extent]) -> Columns {
    let all = |of: &dyn Fn(usize) -> Vec<u8>| cells.iter().map(|&(_, record)| of(record)).collect::<Vec<_>>();
    Columns {
        array: "array".to_owned(),
        coordinate: numbers("start_pos", Datatype::UInt32, cells.iter().map(|cell| cell.0)),
        start: numbers("real_start_pos", Datatype::UInt32, cells.iter().map(|cell| records[cell.1].0)),
        end: numbers("end_pos", Datatype::UInt32, cells.iter().map(|cell| records[cell.1].1)),
        quality: numbers("qual", Datatype::Float32, cells.iter().map(|_| 1.5f32.to_bits())),
        alleles: variable("alleles", Datatype::Char, all(&|_| b"A,<NON_REF>\0".to_vec())),
        id: variable("id", Datatype::Char, all(&|record| format!("{record}\0").into_bytes())),
        filters: variable("filter_ids", Datatype::Int32, all(&|_| vec![0; 4])),
        info: variable("info", Datatype::UInt8, all(&|record| stored(&[("N", Stored::Integers(vec![record as i32]))]))),
        format: variable("fmt", Datatype::UInt8, all(&|_| vec![0; 4])),
        extracted: vec![Extracted {
            kind: ExtractedKind::Format,
            name: b"GT".to_vec(),
            column: variable("fmt_GT", Datatype::UInt8, all(&|_| Stored::Integers(vec![2, 4]).bytes())),
        }],
        contig: ContigOf::One(b"1".to_vec()),
    }
}

/// Returns the lines of the records that overlap some positions, made of their cells.
fn rows(version: u32, gap: u32, records: &[Extent], positions: Option<RangeInclusive<u32>>) -> Arc<VariantRows> {
    let layout = Layout::new(version, gap).unwrap();
    let mut cells = cells_of(version, gap, records);
    if let Some(positions) = &positions {
        let coordinates = layout.coordinates_of(positions);
        cells.retain(|cell| coordinates.contains(&cell.0));
    }
    let header = Arc::new(Header::parse(HEADER).unwrap());
    Arc::new(VariantRows::new(columns(&cells, records), layout, header, true, positions).unwrap().unwrap())
}

/// Returns the starts and the numbers of the records in a text, and checks the rest of each line.
fn records_in(text: &[u8]) -> Vec<(u32, usize)> {
    let lines = str::from_utf8(text).unwrap().lines().map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [contig, start, number, rest @ ..] = fields.as_slice() else { panic!("{line}") };
        let info = format!("N={number}");
        assert_eq!((*contig, rest), ("1", &["A", "<NON_REF>", "1.5", ".", info.as_str(), "GT", "0/1"][..]));
        (start.parse::<u32>().unwrap() - 1, number.parse().unwrap())
    });
    lines.collect()
}

fn all_of(mut forward: impl Forward) -> Vec<u8> {
    let (mut all, mut part) = (Vec::new(), Vec::new());
    while forward.next(&mut part).unwrap() {
        all.extend(&part);
    }
    all
}

/// Checks that a text has these records, sorted by their first positions, each once.
fn check(text: &[u8], records: &[Extent], is_wanted: impl Fn(Extent) -> bool) {
    let found = records_in(text);
    assert!(found.is_sorted_by_key(|record| record.0), "{found:?}");
    let mut sorted = found.clone();
    sorted.sort();
    let numbered = records.iter().enumerate().filter(|(_, record)| is_wanted(**record));
    let mut wanted: Vec<(u32, usize)> = numbered.map(|(number, record)| (record.0, number)).collect();
    wanted.sort();
    assert_eq!(sorted, wanted);
}

fn extents(most: usize, last: u32, longest: u32) -> impl Strategy<Value = Vec<Extent>> {
    let extent = (0..last, prop_oneof![Just(1), 1..=20u32, 1..=longest]);
    proptest::collection::vec(extent.prop_map(|(start, length)| (start, start + length - 1)), 0..most)
}

proptest! {
    #[test]
    fn all_records_are_lines_in_order(version in 2u32..=4, gap in 1u32..200, records in extents(40, 1000, 500)) {
        let rows = rows(version, gap, &records, None);
        let content = Measured::new(rows.clone()).unwrap();
        let text = read_all(&content);
        check(&text, &records, |_| true);
        prop_assert!(all_of(forward(rows.clone())) == text);
        assert_random_access(&content);
        if !text.is_empty() {
            let again = Measured::of_saved(rows, &content.to_bytes()).unwrap();
            prop_assert!(read_all(&again) == text);
        }
    }

    #[test]
    fn records_that_overlap_a_region_are_selected(
        version in 2u32..=4, gap in 1u32..200, records in extents(60, 1000, 600), low in 0u32..1200, length in 0u32..300,
    ) {
        let positions = low..=low + length;
        let rows = rows(version, gap, &records, Some(positions.clone()));
        let content = Measured::new(rows.clone()).unwrap();
        let text = read_all(&content);
        check(&text, &records, |(start, end)| start <= *positions.end() && end >= *positions.start());
        prop_assert!(all_of(forward(rows)) == text);
        assert_random_access(&content);
    }

    /// The text between two rows does not depend on the steps in which it is made.
    #[test]
    fn rows_are_made_in_any_steps(
        version in 2u32..=4, gap in 1u32..60, records in extents(60, 300, 200), region: bool, step in 1u64..9,
    ) {
        let rows = rows(version, gap, &records, region.then_some(100..=200));
        let whole = all_of(forward(rows.clone()));
        let (mut at, mut text, mut scratch) = (Position::default(), Vec::new(), Default::default());
        while at.row < rows.rows() {
            at = rows.advance(at, (at.row + step).min(rows.rows()), &mut scratch, &mut text).unwrap();
        }
        prop_assert!(text == whole);
    }
}

#[test]
fn many_records_are_lines_in_order() {
    // More than are read together, and measured together.
    let records: Vec<Extent> = (0..140_000u32).map(|number| (number / 3, number / 3 + number * 7 % 50)).collect();
    for version in 2..=4 {
        let content = Measured::new(rows(version, 20, &records, None)).unwrap();
        let text = read_all(&content);
        check(&text, &records, |_| true);
        let mut middle = vec![0; 1000];
        content.read_at(content.len() / 2, &mut middle).unwrap();
        assert_eq!(middle, text[text.len() / 2..][..1000]);
    }
}

#[test]
fn cells_where_their_record_has_none_are_damage() {
    for version in 2..=4 {
        let records = [(100, 900)];
        let header = Arc::new(Header::parse(HEADER).unwrap());
        let layout = Layout::new(version, 50).unwrap();
        let wrong = columns(&[(151, 0)], &records);
        let rows = Arc::new(VariantRows::new(wrong, layout, header, true, None).unwrap().unwrap());
        let error = Measured::new(rows).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("151") && error.contains("array"), "{error}");
    }
}

#[test]
fn columns_of_other_types_are_refused() {
    let header = Arc::new(Header::parse(HEADER).unwrap());
    let refused = |change: fn(&mut Columns)| {
        let mut columns = columns(&[(5, 0)], &[(5, 5)]);
        change(&mut columns);
        VariantRows::new(columns, Layout::new(4, 10).unwrap(), header.clone(), true, None).unwrap().is_err()
    };
    assert!(!refused(|_| {}));
    assert!(refused(|columns| columns.start.field.values_per_cell = None));
    assert!(refused(|columns| columns.filters = columns.info.clone()));
    assert!(refused(|columns| columns.info = columns.filters.clone()));
    assert!(refused(|columns| columns.end = columns.id.clone()));
    assert!(refused(|columns| columns.extracted[0].column = numbers("x", Datatype::UInt8, [].into_iter())));
}
