//! Checks that readers of the files cannot make: ranges, prefetching, sizes, positions, damage. The programs that read
//! the files are in tests/exports.

use tilefs_base::content::Content;
use tilefs_format::datatype::Datatype;
use tilefs_reader::array::ValueBounds;

use super::types::{Logical, PageLayout};
use super::*;
use crate::arrow::schema::ArrowTimeUnit;
use crate::column::{ColumnStatistics, Labels};
use crate::content::compose::Repeat;
use crate::testing::{assert_random_access, assert_reads_ahead_within, lists_of_nullable, read_all};

fn le<const N: usize>(values: impl IntoIterator<Item = [u8; N]>) -> Arc<dyn Content> {
    Arc::new(values.into_iter().flatten().collect::<Vec<u8>>())
}

fn texts(name: &str, cells: &[Vec<u8>]) -> Column {
    let field = Field::new(name, Datatype::StringUtf8).with_values_per_cell(None);
    let mut offsets = vec![0u64];
    cells.iter().for_each(|cell| offsets.push(offsets[offsets.len() - 1] + cell.len() as u64));
    let offsets = le(offsets.iter().map(|offset| offset.to_le_bytes()));
    Column::variable(field, vec![cells.len() as u64], Arc::new(cells.concat()), offsets)
}

/// Lists of zero to four 16-bit numbers.
fn lists(name: &str, rows: usize) -> Column {
    let field = Field::new(name, Datatype::Int16).with_values_per_cell(None);
    let lengths: Vec<usize> = (0..rows).map(|row| row * 3 % 5).collect();
    let ends = lengths.iter().scan(0, |end, length| {
        *end += 2 * *length as u64;
        Some(*end)
    });
    let offsets = le(std::iter::once(0).chain(ends).map(u64::to_le_bytes));
    let values = le((0..lengths.iter().sum::<usize>()).map(|i| (i as i16).to_le_bytes()));
    Column::variable(field, vec![rows as u64], values, offsets)
}

/// Columns of each layout.
fn sample(rows: usize) -> Vec<Column> {
    let shape = vec![rows as u64];
    let fixed = |field: Field, values| Column::fixed(field, shape.clone(), values);
    let marks = |every: usize| Arc::new((0..rows).map(|i| u8::from(i % every != 1)).collect::<Vec<u8>>());
    let labels = Labels {
        name: "kinds".into(),
        datatype: Datatype::StringUtf8,
        ordered: true,
        values: vec![b"T cell".to_vec(), "ß".as_bytes().to_vec(), b"".to_vec()],
    };
    let kind = Field::new("kind", Datatype::Int16).with_labels(Arc::new(labels));
    let words: Vec<Vec<u8>> = (0..rows).map(|i| vec![b'x'; i % 7]).collect();
    vec![
        fixed(Field::new("long", Datatype::Int64), le((0..rows as i64).map(i64::to_le_bytes))),
        fixed(Field::new("float", Datatype::Float32), le((0..rows).map(|i| (i as f32).to_le_bytes())))
            .with_validity(marks(3)),
        fixed(Field::new("day", Datatype::DateTimeDay), le((0..rows as i64).map(i64::to_le_bytes))),
        fixed(Field::new("flag", Datatype::Bool), marks(2)).with_validity(marks(5)),
        fixed(kind, le((0..rows).map(|i| (i as i16 % 5 - 1).to_le_bytes()))),
        fixed(
            Field::new("three", Datatype::Int16).with_values_per_cell(Some(3)),
            le((0..3 * rows as i16).map(i16::to_le_bytes)),
        ),
        texts("text", &words),
        texts("words", &words).with_validity(marks(4)),
        lists("lists", rows),
        lists("nullable lists", rows).with_validity(marks(3)),
        fixed(
            Field::new("pairs", Datatype::UInt8).with_values_per_cell(Some(2)),
            Arc::new((0..2 * rows).map(|i| i as u8).collect::<Vec<u8>>()),
        )
        .with_validity(marks(6)),
        lists_of_nullable("nullable numbers", rows, false),
        lists_of_nullable("nullable texts", rows, true),
    ]
}

/// A file with groups of this many rows.
fn file_of(columns: &[Column], rows_of_group: u64) -> ParquetFile {
    let stored: Vec<ParquetColumn> = columns.iter().map(|column| ParquetColumn::new(column).unwrap()).collect();
    ParquetFile::new(stored, RowGroups::new(columns[0].cells(), rows_of_group, None), Vec::new()).unwrap()
}

#[test]
fn any_part_can_be_read() {
    for rows in [0, 1, 100] {
        assert_random_access(&parquet(&sample(rows), None, Vec::new()).unwrap().content);
    }
    assert_random_access(&file_of(&sample(1800), 512));
}

#[test]
fn members_of_a_struct_are_columns_of_their_own() {
    let number = |name: &str| {
        Column::fixed(Field::new(name, Datatype::Float64), vec![9], le((0..9).map(|i| f64::from(i).to_le_bytes())))
    };
    let members = vec![number("low"), number("high")];
    let last = StructColumn { name: "ends".to_owned(), members, may_refuse: false };
    let (file, _) = parquet_file(&sample(9), Some(&last), None, Vec::new()).unwrap();
    assert_random_access(&file);
    let (without, _) = parquet_file(&sample(9), None, None, Vec::new()).unwrap();
    assert!(file.len() > without.len() + 2 * 72);
}

#[test]
fn columns_are_prefetched() {
    let columns = sample(4000);
    // Nulls, including codes without a label and "not a time", are counted before any part of a chunk can be read.
    assert_reads_ahead_within(u64::MAX / 2, |sources| {
        let watched: Vec<Column> = columns
            .iter()
            .map(|column| {
                let counts_values = column.field.labels.is_some() || column.field.datatype.time_unit().is_some();
                match counts_values {
                    true => Column { values: sources.index(column.values.clone()), ..column.clone() },
                    false => {
                        let validity = column.validity.clone().map(|validity| sources.index(validity.content()).into());
                        Column { validity, ..sources.column(Column { validity: None, ..column.clone() }) }
                    }
                }
            })
            .collect();
        Arc::new(file_of(&watched, 1024))
    });
}

#[test]
fn every_datatype_has_a_type_or_a_reason() {
    for number in 0..44 {
        let datatype = Datatype::from_number(number).unwrap();
        for values in [Some(1), Some(3), None] {
            let field = Field::new("a", datatype).with_values_per_cell(values);
            let column = match field.cell_size() {
                Some(size) => Column::fixed(field.clone(), vec![2], Arc::new(vec![0; 2 * size as usize])),
                None => Column { field: field.clone(), ..texts("a", &[vec![0; 8], vec![0; 16]]) },
            };
            assert_eq!(check(&field).is_ok(), ParquetColumn::new(&column).is_ok());
            assert!(check(&field).is_ok(), "{} {values:?}", datatype.name());
            for column in [column.clone(), column.with_validity(Arc::new(vec![0, 1]))] {
                let whole = read_all(&parquet(&[column], None, Vec::new()).unwrap().content);
                assert!(whole.starts_with(b"PAR1") && whole.ends_with(b"PAR1"));
            }
        }
    }
    assert!(check(&Field::new("a", Datatype::Int8).with_values_per_cell(Some(1 << 20))).is_err());
}

#[test]
fn the_length_depends_on_no_value() {
    let length = |marks: Vec<u8>| {
        let values = le((0..marks.len() as i64).map(i64::to_le_bytes));
        let column = Column::fixed(Field::new("a", Datatype::Int64), vec![marks.len() as u64], values);
        parquet(&[column.with_validity(Arc::new(marks))], None, Vec::new()).unwrap().content.len()
    };
    assert_eq!(length(vec![0; 3000]), length(vec![1; 3000]));
    let huge = Repeat::zeros(8 << 32);
    let column = Column::fixed(Field::new("a", Datatype::Int64), vec![1 << 32], Arc::new(huge));
    let content = parquet(&[column], None, Vec::new()).unwrap().content;
    assert!(content.len() > 8 << 32 && content.len() < (8 << 32) + (64 << 20));
    content.read_at(3 << 32, &mut [1; 64]).unwrap();
    let mut end = [0; 4];
    content.read_at(content.len() - 4, &mut end).unwrap();
    assert_eq!(&end, b"PAR1");
}

#[test]
fn the_length_depends_on_no_list() {
    let length = |ends: [u64; 4], marks: [u8; 3]| {
        let field = Field::new("a", Datatype::Int32).with_values_per_cell(None);
        let offsets = le(ends.map(u64::to_le_bytes));
        let column = Column::variable(field, vec![3], Arc::new(vec![1; 48]), offsets);
        let content = parquet(&[column.with_validity(Arc::new(marks.to_vec()))], None, Vec::new()).unwrap().content;
        read_all(&content);
        content.len()
    };
    let lengths =
        [length([0, 0, 0, 48], [1, 1, 1]), length([0, 4, 40, 48], [0, 0, 0]), length([0, 8, 8, 48], [1, 0, 1])];
    assert_eq!(lengths[0], lengths[1]);
    assert_eq!(lengths[0], lengths[2]);
}

#[test]
fn offsets_within_a_value_are_errors() {
    for offsets in [[0u64, 6, 8], [0, 8, 4], [2, 4, 8]] {
        let field = Field::new("a", Datatype::Int32).with_values_per_cell(None);
        let column = Column::variable(field, vec![2], Arc::new(vec![0; 8]), le(offsets.map(u64::to_le_bytes)));
        for column in [column.clone(), column.with_validity(Arc::new(vec![1, 0]))] {
            let content = parquet(&[column], None, Vec::new()).unwrap().content;
            assert!(content.read_at(0, &mut vec![0; content.len() as usize]).is_err(), "{offsets:?}");
        }
    }
}

#[test]
fn wrong_offsets_are_errors() {
    for offsets in [[1u64, 2, 3, 6], [0, 3, 2, 6], [0, 1, 2, 5], [0, 1, 2, 7], [0, u64::MAX, 3, 6], [0, 0, 0, 0]] {
        for is_nullable in [false, true] {
            let field = Field::new("a", Datatype::StringUtf8).with_values_per_cell(None);
            let offsets = le(offsets.map(u64::to_le_bytes));
            let mut column = Column::variable(field, vec![3], Arc::new(b"abcdef".to_vec()), offsets);
            if is_nullable {
                column = column.with_validity(Arc::new(vec![1, 0, 1]));
            }
            let content = parquet(&[column], None, Vec::new()).unwrap().content;
            let mut all = vec![0; content.len() as usize];
            assert!(content.read_at(0, &mut all).is_err());
            for at in 0..all.len() {
                let _ = content.read_at(at as u64, &mut all[at..]);
            }
        }
    }
}

#[test]
fn a_value_that_does_not_fit_is_an_error_unless_it_is_null() {
    let days = le([1, i64::from(i32::MAX) + 1, i64::MIN].map(i64::to_le_bytes));
    let column = Column::fixed(Field::new("a", Datatype::DateTimeDay), vec![3], days);
    let read = |column: Column| {
        let content = parquet(&[column], None, Vec::new()).unwrap().content;
        content.read_at(0, &mut vec![0; content.len() as usize])
    };
    assert!(read(column.clone()).unwrap_err().to_string().contains("2147483648"));
    assert!(read(column.with_validity(Arc::new(vec![1, 0, 1]))).is_ok());
}

#[test]
fn text_that_is_not_utf8_is_an_error_unless_it_is_null() {
    let column = texts("words", &[b"abc".to_vec(), b"\xffx".to_vec(), b"".to_vec()]);
    let read = |column: Column| {
        let content = parquet(&[column], None, Vec::new()).unwrap().content;
        content.read_at(0, &mut vec![0; content.len() as usize])
    };
    let error = read(column.clone()).unwrap_err().to_string();
    assert!(error.contains("row 1,") && error.contains("words"), "{error}");
    read(column.with_validity(Arc::new(vec![1, 0, 1]))).unwrap();
}

#[test]
fn labels_that_are_not_utf8_are_bytes() {
    let values = vec![b"a".to_vec(), b"\xff".to_vec(), b"\xfe".to_vec()];
    let labels = Labels { name: "l".into(), datatype: Datatype::StringUtf8, ordered: false, values };
    let field = Field::new("a", Datatype::UInt8).with_labels(Arc::new(labels));
    let stored = ParquetColumn::new(&Column::fixed(field, vec![2], Arc::new(vec![1, 2]))).unwrap();
    assert_eq!(stored.leaf.logical, None);
    assert_eq!(**stored.dictionary.unwrap().plain, *b"\x01\0\0\0a\x01\0\0\0\xff\x01\0\0\0\xfe");
}

#[test]
fn labels_that_are_booleans_are_no_dictionary() {
    let labels = Labels { name: "l".into(), datatype: Datatype::Bool, ordered: false, values: vec![vec![1], vec![0]] };
    let field = Field::new("a", Datatype::Int16).with_labels(Arc::new(labels));
    let codes = le([0i16, 1, 2, -1, 0].map(i16::to_le_bytes));
    let stored = ParquetColumn::new(&Column::fixed(field, vec![5], codes)).unwrap();
    assert_eq!((stored.layout, stored.size, stored.dictionary.is_some()), (PageLayout::Bits, 1, false));
    assert_eq!(read_all(&*stored.values), [1, 0, 0, 0, 1]);
    assert_eq!(read_all(&*stored.validity.unwrap().content()), [1, 1, 0, 0, 1]);
}

#[test]
fn labels_that_are_dates_are_dates() {
    let labels = |datatype, values: [i64; 2]| {
        let values = values.map(|value| value.to_le_bytes().to_vec()).to_vec();
        let labels = Labels { name: "l".into(), datatype, ordered: false, values };
        let field = Field::new("a", Datatype::UInt8).with_labels(Arc::new(labels));
        let stored = ParquetColumn::new(&Column::fixed(field, vec![2], Arc::new(vec![0, 1]))).unwrap();
        (stored.leaf.logical, stored.dictionary.unwrap().plain.to_vec())
    };
    let (logical, days) = labels(Datatype::DateTimeWeek, [1, -1]);
    assert_eq!((logical, days), (Some(Logical::Date), [7i32, -7].map(i32::to_le_bytes).concat()));
    let (logical, times) = labels(Datatype::DateTimeHr, [1, -1]);
    let milliseconds = Some(Logical::Timestamp(ArrowTimeUnit::Millisecond));
    assert_eq!((logical, times), (milliseconds, [3_600_000i64, -3_600_000].map(i64::to_le_bytes).concat()));
    let (logical, counts) = labels(Datatype::DateTimeDay, [1, i64::MIN]);
    assert_eq!((logical, counts), (None, [1, i64::MIN].map(i64::to_le_bytes).concat()));
}

/// A value that is "not a time" is null, in every unit: no value is stored for it.
#[test]
fn not_a_time_is_null_in_every_unit() {
    for datatype in (0..44).map(|number| Datatype::from_number(number).unwrap()) {
        if datatype.time_unit().is_none() {
            continue;
        }
        let times = le([7, i64::MIN, 9].map(i64::to_le_bytes));
        let column = Column::fixed(Field::new("a", datatype), vec![3], times);
        let stored = ParquetColumn::new(&column).unwrap();
        assert!(stored.field.is_nullable, "{}", datatype.name());
        assert_eq!(read_all(&**stored.validity.as_ref().unwrap()), [1, 0, 1], "{}", datatype.name());
        read_all(&parquet(std::slice::from_ref(&column), None, Vec::new()).unwrap().content);
        // Coordinates that are known to be times are never null.
        assert!(!ParquetColumn::new(&column.with_bounds(0, 9)).unwrap().field.is_nullable);
        // In a list nothing can be null.
        let field = Field::new("a", datatype).with_values_per_cell(Some(2));
        let list = Column::fixed(field, vec![1], le([7, i64::MIN].map(i64::to_le_bytes)));
        let whole = read_all(&parquet(&[list], None, Vec::new()).unwrap().content);
        assert!(whole.windows(16).any(|part| part == [7i64.to_le_bytes(), i64::MIN.to_le_bytes()].concat()));
    }
}

/// Bounds that do not occur elsewhere in the file; the lower one is exact.
struct Bounds(Vec<u8>, Vec<u8>);

impl ColumnStatistics for Bounds {
    fn bounds(&self, rows: std::ops::Range<u64>) -> tilefs_base::error::Result<Option<ValueBounds>> {
        let (least, greatest) = (self.0.clone(), self.1.clone());
        let bounds = ValueBounds { least, greatest, is_least_exact: true, is_greatest_exact: false };
        Ok((rows.start == 0).then_some(bounds))
    }

    fn nulls(&self, _rows: std::ops::Range<u64>) -> tilefs_base::error::Result<Option<u64>> {
        Ok(None)
    }
}

#[test]
fn bounds_match_stored_values() {
    let footer = |datatype: Datatype, least: &[u8], greatest: &[u8]| {
        let size = datatype.size();
        let column = Column::fixed(Field::new("a", datatype), vec![8], Arc::new(vec![0; 8 * size]));
        let statistics: Option<Arc<dyn ColumnStatistics>> = Some(Arc::new(Bounds(least.to_vec(), greatest.to_vec())));
        let whole = read_all(&parquet(&[Column { statistics, ..column }], None, Vec::new()).unwrap().content);
        let length = u32::from_le_bytes(whole[whole.len() - 8..][..4].try_into().unwrap()) as usize;
        whole[whole.len() - 8 - length..].to_vec()
    };
    // Fields 5 and 6 of a struct, binary, greatest first, then a field that is "false" and one that is "true". Field 3,
    // the number of nulls, may precede them.
    let has = |footer: &[u8], least: &[u8], greatest: &[u8]| {
        let length = |value: &[u8]| value.len() as u8;
        let rest = [&[length(greatest)][..], greatest, &[0x18, length(least)], least, &[0x12, 0x11]].concat();
        let heads: [&[u8]; 2] = [&[0x58], &[0x36, 0, 0x28]];
        heads
            .iter()
            .map(|head| [head, &rest[..]].concat())
            .any(|wanted| footer.windows(wanted.len()).any(|part| part == wanted))
    };
    let small = footer(Datatype::Int8, &[0xfb], &[7]);
    assert!(has(&small, &[0xfb, 0xff, 0xff, 0xff], &[7, 0, 0, 0]));
    let days = footer(Datatype::DateTimeDay, &(-3i64).to_le_bytes(), &300i64.to_le_bytes());
    assert!(has(&days, &(-3i32).to_le_bytes(), &300i32.to_le_bytes()));
    // A zero bounds zeros of both signs.
    let zeros = footer(Datatype::Float64, &0f64.to_le_bytes(), &(-0f64).to_le_bytes());
    assert!(has(&zeros, &(-0f64).to_le_bytes(), &0f64.to_le_bytes()));
    let not_a_time = footer(Datatype::DateTimeMs, &i64::MIN.to_le_bytes(), &5i64.to_le_bytes());
    let nan = footer(Datatype::Float32, &f32::NAN.to_le_bytes(), &1f32.to_le_bytes());
    let too_large = footer(Datatype::DateTimeDay, &0i64.to_le_bytes(), &i64::MAX.to_le_bytes());
    for without in [not_a_time, nan, too_large] {
        assert!(!without.windows(2).any(|part| part == [0x12, 0x11]));
    }
}
