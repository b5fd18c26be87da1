//! Reads the files back with the arrow crates' own reader.

use std::io::Cursor;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Float32Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMillisecondType, UInt16Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::FileReader;
use proptest::prelude::*;
use tilefs_base::content::Content;
use tilefs_format::datatype::Datatype;

use super::*;
use crate::column::Labels;
use crate::content::compose::Repeat;
use crate::testing::{assert_random_access, assert_reads_ahead, elements_of_row, lists_of_nullable, read_all};

fn le<const N: usize>(values: impl IntoIterator<Item = [u8; N]>) -> Arc<dyn Content> {
    Arc::new(values.into_iter().flatten().collect::<Vec<u8>>())
}

fn read(content: &dyn Content) -> Vec<RecordBatch> {
    let reader = FileReader::try_new(Cursor::new(read_all(content)), None).expect("an Arrow file");
    reader.map(|batch| batch.expect("a record batch")).collect()
}

fn variable(name: &str, datatype: Datatype, cells: &[Vec<u8>]) -> Column {
    let field = Field::new(name, datatype).with_values_per_cell(None);
    let mut offsets = vec![0u64];
    cells.iter().for_each(|cell| offsets.push(offsets[offsets.len() - 1] + cell.len() as u64));
    let offsets = le(offsets.iter().map(|offset| offset.to_le_bytes()));
    Column::variable(field, vec![cells.len() as u64], Arc::new(cells.concat()), offsets)
}

/// Columns of many types; the values of row `i` are computed from `i`.
fn sample(rows: usize) -> Vec<Column> {
    let shape = vec![rows as u64];
    let labels = Labels {
        name: "kinds".into(),
        datatype: Datatype::StringUtf8,
        ordered: true,
        values: vec![b"T cell".to_vec(), "ß".as_bytes().to_vec(), b"".to_vec()],
    };
    let kind = Field::new("kind", Datatype::Int8).with_labels(Arc::new(labels));
    let fixed = |field: Field, values| Column::fixed(field, shape.clone(), values);
    let pair = Field::new("pair", Datatype::Int16).with_values_per_cell(Some(2));
    let word = Field::new("word", Datatype::StringAscii).with_values_per_cell(Some(3));
    vec![
        fixed(Field::new("float", Datatype::Float32), le((0..rows).map(|i| (i as f32 / 3.0).to_le_bytes())))
            .with_validity(Arc::new((0..rows).map(|i| (i % 3 != 1) as u8).collect::<Vec<u8>>())),
        fixed(Field::new("ms", Datatype::DateTimeMs), le((0..rows as i64).map(|i| (i * 997).to_le_bytes()))),
        fixed(
            Field::new("day", Datatype::DateTimeDay),
            le((0..rows as i64).map(|i| if i == 2 { i64::MIN } else { i }.to_le_bytes())),
        ),
        fixed(Field::new("bool", Datatype::Bool), Arc::new((0..rows).map(|i| (i % 2) as u8).collect::<Vec<u8>>())),
        // The codes 3 and -1 have no label.
        fixed(
            kind,
            Arc::new((0..rows).map(|i| (i % 5) as u8).map(|i| if i == 4 { 255 } else { i }).collect::<Vec<u8>>()),
        ),
        fixed(pair, le((0..2 * rows as i16).map(i16::to_le_bytes))),
        fixed(word, le((0..rows).map(|i| [b'a' + (i % 26) as u8, b'b', 0]))),
        variable("text", Datatype::StringUtf8, &(0..rows).map(|i| vec![b'x'; i % 7]).collect::<Vec<_>>()),
        variable("blob", Datatype::Blob, &(0..rows).map(|i| vec![0xff; i % 3]).collect::<Vec<_>>()),
        variable("list", Datatype::UInt16, &(0..rows).map(|i| vec![i as u8; 2 * (i % 4)]).collect::<Vec<_>>()),
        lists_of_nullable("numbers", rows, false),
        lists_of_nullable("texts", rows, true),
    ]
}

/// Fields of all types, and their equivalents in the arrow crates.
fn fields() -> Vec<(ArrowField, arrow_schema::Field)> {
    use arrow_schema::{DataType as Theirs, TimeUnit as TheirUnit};
    use schema::{ArrowTimeUnit, DataType as Ours};
    let theirs = |data_type| Arc::new(arrow_schema::Field::new("item", data_type, false));
    let types = [
        (Ours::Boolean, Theirs::Boolean),
        (Ours::Int8, Theirs::Int8),
        (Ours::Int16, Theirs::Int16),
        (Ours::Int32, Theirs::Int32),
        (Ours::Int64, Theirs::Int64),
        (Ours::UInt8, Theirs::UInt8),
        (Ours::UInt16, Theirs::UInt16),
        (Ours::UInt32, Theirs::UInt32),
        (Ours::UInt64, Theirs::UInt64),
        (Ours::Float32, Theirs::Float32),
        (Ours::Float64, Theirs::Float64),
        (Ours::Date32, Theirs::Date32),
        (Ours::Timestamp(ArrowTimeUnit::Second), Theirs::Timestamp(TheirUnit::Second, None)),
        (Ours::Timestamp(ArrowTimeUnit::Millisecond), Theirs::Timestamp(TheirUnit::Millisecond, None)),
        (Ours::Timestamp(ArrowTimeUnit::Microsecond), Theirs::Timestamp(TheirUnit::Microsecond, None)),
        (Ours::Timestamp(ArrowTimeUnit::Nanosecond), Theirs::Timestamp(TheirUnit::Nanosecond, None)),
        (Ours::Duration(ArrowTimeUnit::Second), Theirs::Duration(TheirUnit::Second)),
        (Ours::Duration(ArrowTimeUnit::Nanosecond), Theirs::Duration(TheirUnit::Nanosecond)),
        (Ours::FixedSizeBinary(7), Theirs::FixedSizeBinary(7)),
        (Ours::LargeBinary, Theirs::LargeBinary),
        (Ours::LargeUtf8, Theirs::LargeUtf8),
        (
            Ours::FixedSizeList(ArrowField::of_items("item", Ours::Int16), 3),
            Theirs::FixedSizeList(theirs(Theirs::Int16), 3),
        ),
        (Ours::LargeList(ArrowField::of_items("item", Ours::Float32)), Theirs::LargeList(theirs(Theirs::Float32))),
        (
            Ours::Dictionary(Box::new(Ours::UInt8), Box::new(Ours::LargeUtf8)),
            Theirs::Dictionary(Box::new(Theirs::UInt8), Box::new(Theirs::LargeUtf8)),
        ),
        (
            Ours::Dictionary(Box::new(Ours::Int32), Box::new(Ours::Float64)),
            Theirs::Dictionary(Box::new(Theirs::Int32), Box::new(Theirs::Float64)),
        ),
    ];
    let named = types.into_iter().enumerate().map(|(i, (ours, theirs))| {
        let (name, is_nullable) = (format!("field {i} ß"), i % 2 == 0);
        let is_ordered = i % 2 == 0 && matches!(ours, Ours::Dictionary(..));
        let datatype = (i % 3 > 0).then_some(Datatype::Blob);
        let metadata = datatype.map(|_| ("tiledb.datatype".to_owned(), "BLOB".to_owned()));
        let theirs = arrow_schema::Field::new(&name, theirs, is_nullable)
            .with_dict_is_ordered(is_ordered)
            .with_metadata(metadata.into_iter().collect::<std::collections::HashMap<_, _>>());
        (ArrowField { name, data_type: ours, is_nullable, is_ordered, datatype }, theirs)
    });
    named.collect()
}

#[test]
fn schema_matches_the_arrow_crates() {
    let (ours, theirs): (Vec<_>, Vec<_>) = fields().into_iter().unzip();
    let metadata = vec![("pandas".to_owned(), "{}".to_owned()), ("ß".to_owned(), "x".repeat(1000))];
    let read = arrow_ipc::convert::try_schema_from_ipc_buffer(&schema_message(ours, metadata.clone())).unwrap();
    assert_eq!(
        read,
        arrow_schema::Schema::new(theirs)
            .with_metadata(metadata.into_iter().collect::<std::collections::HashMap<_, _>>())
    );
}

fn check_sample(batches: &[RecordBatch], rows: usize) {
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), rows);
    let mut i = 0;
    for batch in batches {
        let column = |name: &str| batch.column_by_name(name).unwrap().clone();
        let (float, day) = (column("float"), column("day"));
        let kind = column("kind");
        let kind = kind.as_dictionary::<Int8Type>();
        assert_eq!(kind.values().as_string::<i64>().iter().flatten().collect::<Vec<_>>(), ["T cell", "ß", ""]);
        let (pair, list, word) = (column("pair"), column("list"), column("word"));
        let nulls = (i..i + batch.num_rows()).filter(|i| i % 3 == 1).count();
        assert_eq!(float.null_count(), nulls);
        for row in 0..batch.num_rows() {
            assert_eq!(float.is_null(row), i % 3 == 1);
            assert_eq!(float.as_primitive::<Float32Type>().value(row), i as f32 / 3.0);
            assert_eq!(column("ms").as_primitive::<TimestampMillisecondType>().value(row), i as i64 * 997);
            // The value under a null is a valid time as well.
            let days = if i == 2 { 0 } else { i as i32 };
            assert_eq!(day.as_primitive::<Date32Type>().value(row), days);
            assert_eq!(column("bool").as_boolean().value(row), i % 2 == 1);
            assert_eq!(kind.is_null(row), i % 5 > 2);
            if i % 5 <= 2 {
                assert_eq!(kind.keys().value(row), (i % 5) as i8);
            }
            let two = pair.as_fixed_size_list().value(row);
            assert_eq!(two.as_primitive::<Int16Type>().values()[..], [2 * i as i16, 2 * i as i16 + 1]);
            assert_eq!(word.as_fixed_size_binary().value(row), [b'a' + (i % 26) as u8, b'b', 0]);
            assert_eq!(column("text").as_string::<i64>().value(row), "x".repeat(i % 7));
            assert_eq!(column("blob").as_binary::<i64>().value(row), vec![0xff; i % 3]);
            let values = list.as_list::<i64>().value(row);
            assert_eq!(values.as_primitive::<UInt16Type>().values().to_vec(), vec![(i % 256 * 257) as u16; i % 4]);
            let (numbers, texts) = (column("numbers"), column("texts"));
            let wanted = elements_of_row(i);
            assert_eq!((numbers.is_null(row), texts.is_null(row)), (wanted.is_none(), wanted.is_none()));
            let found = numbers.as_list::<i64>().value(row);
            let found: Vec<_> = found.as_primitive::<Int32Type>().iter().collect();
            let wanted = wanted.unwrap_or_default();
            assert_eq!(found, wanted.iter().map(|number| number.map(|number| number as i32)).collect::<Vec<_>>());
            let found = texts.as_list::<i64>().value(row);
            let found: Vec<_> = found.as_string::<i64>().iter().map(|text| text.map(str::to_owned)).collect();
            assert_eq!(found, wanted.iter().map(|n| n.map(|number| format!("ß{number}"))).collect::<Vec<_>>());
            i += 1;
        }
    }
}

#[test]
fn the_reader_finds_every_value() {
    for rows in [0, 1, 100] {
        let made = arrow(&sample(rows), Vec::new()).unwrap();
        assert!(made.left_out.is_empty());
        check_sample(&read(&made.content), rows);
    }
    assert_random_access(&arrow(&sample(100), Vec::new()).unwrap().content);
}

#[test]
fn several_batches_are_one_table() {
    let columns = sample(1800);
    for rows_of_batch in [512, 1024] {
        let stored = columns.iter().map(|column| ArrowColumn::new(column).unwrap()).collect();
        let file = IpcFile::new(RecordBatches::of(stored, 1800, rows_of_batch), Vec::new()).unwrap();
        let batches = read(&file);
        assert_eq!(batches.len() as u64, 1800u64.div_ceil(rows_of_batch));
        check_sample(&batches, 1800);
        assert_random_access(&file);
    }
}

#[test]
fn columns_are_prefetched() {
    let columns = sample(1800);
    assert_reads_ahead(|sources| {
        // Nulls, including codes without a label and "not a time", are counted before any part of a batch can be read.
        let counts_values = |field: &Field| field.labels.is_some() || field.datatype.time_unit().is_some();
        let mut watch = |column: &Column| match counts_values(&column.field) {
            true => Column { values: sources.index(column.values.clone()), ..column.clone() },
            false => {
                let validity = column.validity.clone().map(|validity| sources.index(validity.content()).into());
                Column { validity, ..sources.column(Column { validity: None, ..column.clone() }) }
            }
        };
        let stored = columns.iter().map(|column| ArrowColumn::new(&watch(column)).unwrap()).collect();
        Arc::new(IpcFile::new(RecordBatches::of(stored, 1800, 512), Vec::new()).unwrap())
    });
}

#[test]
fn every_datatype_has_a_type() {
    for number in 0..44 {
        let datatype = Datatype::from_number(number).unwrap();
        for values in [Some(1), Some(3), None] {
            let field = Field::new("a", datatype).with_values_per_cell(values);
            let cells = vec![vec![0; 3 * datatype.size()]; 2];
            let column = match field.cell_size() {
                Some(size) => Column::fixed(field, vec![2], Arc::new(vec![0; 2 * size as usize])),
                None => variable("a", datatype, &cells),
            };
            let batches = read(&arrow(&[column], Vec::new()).unwrap().content);
            let schema = batches[0].schema();
            assert_eq!(schema.field(0).metadata().get("tiledb.datatype").map(|v| v.as_str()), Some(datatype.name()));
        }
    }
    let long = Field::new("a", Datatype::Blob).with_values_per_cell(Some(u32::MAX));
    assert!(check(&long).is_err());
}

/// "Not a time" is null in every unit, also in columns that are not nullable. In a list, where nothing can be null, it
/// is a number.
#[test]
fn not_a_time_is_null_in_every_unit() {
    for datatype in (0..44).map(|number| Datatype::from_number(number).unwrap()) {
        if datatype.time_unit().is_none() {
            continue;
        }
        let times = le([7, i64::MIN, 9].map(i64::to_le_bytes));
        let column = Column::fixed(Field::new("a", datatype), vec![3], times);
        let batches = read(&arrow(std::slice::from_ref(&column), Vec::new()).unwrap().content);
        assert!(batches[0].schema().field(0).is_nullable(), "{}", datatype.name());
        let found: Vec<bool> = (0..3).map(|row| batches[0].column(0).is_null(row)).collect();
        assert_eq!(found, [false, true, false], "{}", datatype.name());
        let batches = read(&arrow(&[column.with_bounds(0, 9)], Vec::new()).unwrap().content);
        assert!(!batches[0].schema().field(0).is_nullable(), "{}", datatype.name());
        let list = [7, i64::MIN].map(i64::to_le_bytes).concat();
        let pair = Field::new("pair", datatype).with_values_per_cell(Some(2));
        let pair = Column::fixed(pair, vec![1], Arc::new(list.clone()));
        let batches = read(&arrow(&[pair, variable("list", datatype, &[list])], Vec::new()).unwrap().content);
        for values in
            [batches[0].column(0).as_fixed_size_list().value(0), batches[0].column(1).as_list::<i64>().value(0)]
        {
            assert_eq!(values.as_primitive::<Int64Type>().values()[..], [7, i64::MIN], "{}", datatype.name());
        }
    }
}

/// An array may hold any number at a null.
#[test]
fn a_time_under_a_null_need_not_fit() {
    for datatype in (0..44).map(|number| Datatype::from_number(number).unwrap()) {
        if datatype.time_unit().is_none() {
            continue;
        }
        let times = le([7, i64::MAX, 9].map(i64::to_le_bytes));
        let column = Column::fixed(Field::new("a", datatype), vec![3], times).with_validity(Arc::new(vec![1, 0, 1]));
        let batches = read(&arrow(&[column], Vec::new()).unwrap().content);
        let found: Vec<bool> = (0..3).map(|row| batches[0].column(0).is_null(row)).collect();
        assert_eq!(found, [false, true, false], "{}", datatype.name());
    }
}

#[test]
fn text_that_is_not_utf8_is_an_error_and_such_labels_are_bytes() {
    let column = variable("words", Datatype::StringAscii, &[b"abc".to_vec(), b"\xffx".to_vec()]);
    let content = arrow(&[column], Vec::new()).unwrap().content;
    let error = content.read_at(0, &mut vec![0; content.len() as usize]).unwrap_err().to_string();
    assert!(error.contains("row 1,") && error.contains("words"), "{error}");
    let values = vec![b"a".to_vec(), b"\xff".to_vec(), b"\xfe".to_vec()];
    let labels = Labels { name: "l".into(), datatype: Datatype::StringUtf8, ordered: false, values };
    let field = Field::new("a", Datatype::UInt16).with_labels(Arc::new(labels));
    let batches = read(&arrow(&[Column::fixed(field, vec![1], Arc::new(vec![2, 0]))], Vec::new()).unwrap().content);
    let labels = batches[0].column(0).as_dictionary::<UInt16Type>().values().clone();
    assert_eq!(labels.as_binary::<i64>().iter().flatten().collect::<Vec<_>>(), [&b"a"[..], b"\xff", b"\xfe"]);
}

#[test]
fn numeric_labels_are_numbers() {
    let labels = Labels {
        name: "l".into(),
        datatype: Datatype::Int64,
        ordered: false,
        values: vec![7i64.to_le_bytes().to_vec()],
    };
    let field = Field::new("a", Datatype::UInt16).with_labels(Arc::new(labels));
    let batches =
        read(&arrow(&[Column::fixed(field, vec![2], Arc::new(vec![0, 0, 1, 0]))], Vec::new()).unwrap().content);
    let column = batches[0].column(0).as_dictionary::<UInt16Type>().clone();
    assert_eq!(column.values().as_primitive::<Int64Type>().values()[..], [7]);
    assert!(column.is_valid(0) && column.is_null(1));
}

/// The values of labels in a dictionary.
fn dictionary_of(datatype: Datatype, labels: &[i64]) -> arrow_array::ArrayRef {
    let values = labels.iter().map(|label| label.to_le_bytes()[..datatype.size()].to_vec()).collect();
    let labels = Labels { name: "l".into(), datatype, ordered: false, values };
    let field = Field::new("a", Datatype::Int8).with_labels(Arc::new(labels));
    let file = arrow(&[Column::fixed(field, vec![2], Arc::new(vec![0, 1]))], Vec::new()).unwrap().content;
    read(&file)[0].column(0).as_dictionary::<Int8Type>().values().clone()
}

#[test]
fn labels_have_the_type_of_columns() {
    let booleans = dictionary_of(Datatype::Bool, &[0, 1, 1]);
    assert_eq!(booleans.as_boolean().iter().collect::<Vec<_>>(), [Some(false), Some(true), Some(true)]);
    let days = dictionary_of(Datatype::DateTimeWeek, &[0, -1]);
    assert_eq!(days.as_primitive::<Date32Type>().values()[..], [0, -7]);
    let times = dictionary_of(Datatype::DateTimeMs, &[5, -5]);
    assert_eq!(times.as_primitive::<TimestampMillisecondType>().values()[..], [5, -5]);
    // Counts, where one label is no date that the type holds: a dictionary has no nulls.
    for label in [i64::MIN, i64::MAX] {
        let counts = dictionary_of(Datatype::DateTimeYear, &[0, label]);
        assert_eq!(counts.as_primitive::<Int64Type>().values()[..], [0, label]);
    }
}

#[test]
fn bytes_below_nulls_need_not_be_text() {
    let column = variable("a", Datatype::StringUtf8, &[b"a".to_vec(), b"\xff\0".to_vec(), "ß".into()]);
    assert!(arrow(std::slice::from_ref(&column), Vec::new()).unwrap().content.read_at(0, &mut [0; 2000]).is_err());
    let column = column.with_validity(le([[1], [0], [1]]));
    let batches = read(&arrow(&[column], Vec::new()).unwrap().content);
    let texts = batches[0].column(0).as_string::<i64>();
    assert_eq!(texts.iter().collect::<Vec<_>>(), [Some("a"), None, Some("ß")]);
}

#[test]
fn wrong_offsets_are_errors() {
    for offsets in [[1u64, 2, 3, 6], [0, 3, 2, 6], [0, 1, 2, 5], [0, 1, 2, 7], [0, u64::MAX, 3, 6], [0, 0, 0, 0]] {
        let field = Field::new("a", Datatype::StringUtf8).with_values_per_cell(None);
        let column = Column::variable(field, vec![3], Arc::new(b"abcdef".to_vec()), le(offsets.map(u64::to_le_bytes)));
        let content = arrow(&[column], Vec::new()).unwrap().content;
        let mut all = vec![0; content.len() as usize];
        assert!(content.read_at(0, &mut all).is_err(), "{offsets:?}");
        for at in (0..all.len()).step_by(7) {
            let _ = content.read_at(at as u64, &mut all[at..]);
        }
    }
}

#[test]
fn huge_tables_take_no_memory() {
    let rows = 1u64 << 40;
    let column = Column::fixed(Field::new("a", Datatype::Int64), vec![rows], Arc::new(Repeat::zeros(8 * rows)));
    let content = arrow(&[column], Vec::new()).unwrap().content;
    assert!(content.len() > 8 * rows && content.len() < 8 * rows + (64 << 20));
    let mut buf = [1; 64];
    content.read_at(rows, &mut buf).unwrap();
    let mut end = [0; 6];
    content.read_at(content.len() - 6, &mut end).unwrap();
    assert_eq!(&end, b"ARROW1");
}

proptest! {
    #[test]
    fn texts_of_any_length_read_back(texts in proptest::collection::vec(".{0,20}", 0..1600), batch in 1u64..3) {
        let cells: Vec<Vec<u8>> = texts.iter().map(|text| text.clone().into_bytes()).collect();
        let stored = vec![ArrowColumn::new(&variable("a", Datatype::StringUtf8, &cells)).unwrap()];
        let file = IpcFile::new(RecordBatches::of(stored, texts.len() as u64, 512 * batch), Vec::new()).unwrap();
        let found: Vec<String> = read(&file)
            .iter()
            .flat_map(|batch| batch.column(0).as_string::<i64>().iter().map(|t| t.unwrap().to_owned()).collect::<Vec<_>>())
            .collect();
        prop_assert_eq!(found, texts);
    }
}
