//! Tests the bytes as a content. `tests/exports/hdf5.rs` reads the files with HDF5 libraries.

use tilefs_format::datatype::Datatype;

use super::*;
use crate::column::{Column, Field, Metadatum};
use crate::testing::{assert_random_access, assert_reads_ahead, read_all};

fn little_endian<const N: usize>(values: impl IntoIterator<Item = [u8; N]>) -> Arc<dyn Content> {
    Arc::new(values.into_iter().flatten().collect::<Vec<u8>>())
}

/// A table of numbers, texts and booleans.
fn table(texts: &[Vec<u8>]) -> Columns {
    let rows = texts.len() as u64;
    let mut end = 0;
    let ends = texts.iter().map(|text| {
        end += text.len() as u64;
        end
    });
    let offsets = little_endian([0].into_iter().chain(ends).map(u64::to_le_bytes));
    let name = Field::new("name", Datatype::StringUtf8).with_values_per_cell(None);
    let flag = Column::fixed(Field::new("flag", Datatype::Bool), vec![rows], Arc::new(vec![1; texts.len()]));
    Columns {
        sparse: true,
        dimensions: vec![Column::fixed(
            Field::new("id", Datatype::Int64),
            vec![rows],
            little_endian((0..rows).map(u64::to_le_bytes)),
        )],
        auxiliary: Vec::new(),
        attributes: vec![Column::variable(name, vec![rows], Arc::new(texts.concat()), offsets), flag],
        metadata: vec![Metadatum { key: "NAME".into(), datatype: Datatype::StringUtf8, value: b"a table".to_vec() }],
        georeference: None,
    }
}

fn texts() -> Vec<Vec<u8>> {
    let mut texts: Vec<Vec<u8>> = (0..900).map(|number: usize| vec![b'a'; number * 37 % 300]).collect();
    texts[300] = vec![b'b'; 200_000];
    texts
}

#[test]
fn any_range_is_a_part_of_the_whole() {
    for form in [Form::NetCdf4, Form::Plain] {
        assert_random_access(&*hdf5(&table(&texts()), form).unwrap());
        assert_random_access(&*hdf5(&table(&[]), form).unwrap());
    }
}

#[test]
fn prefetching_requests_what_reading_does() {
    assert_reads_ahead(|sources| {
        let Columns { dimensions, attributes, .. } = table(&texts());
        let watched = |columns: Vec<Column>, sources: &mut _| -> Vec<Column> {
            let watch = |column| crate::testing::Sources::column(sources, column);
            columns.into_iter().map(watch).collect()
        };
        let dimensions = watched(dimensions, sources);
        let attributes = watched(attributes, sources);
        hdf5(&Columns { dimensions, attributes, ..table(&[]) }, Form::NetCdf4).unwrap()
    });
}

#[test]
fn texts_that_go_on_behind_a_nul_are_refused() {
    let read = |text: &[u8]| {
        let content = hdf5(&table(&[b"before".to_vec(), text.to_vec()]), Form::Plain).unwrap();
        let mut bytes = vec![0; content.len() as usize];
        content.read_at(0, &mut bytes)
    };
    let long = |last: u8| [&[b'a'; 100_000][..], &[0; 100_000], &[last]].concat();
    for right in [&b""[..], b"\0", b"abc\0\0", &long(0)] {
        read(right).unwrap();
    }
    for wrong in [&b"\0a"[..], b"ab\0c", &long(b'a')] {
        let error = read(wrong).unwrap_err().to_string();
        assert!(error.contains("behind a NUL"), "{error}");
    }
    // Reading the last byte of the text fails as well, because the read looks ahead as far as the NUL.
    let content = hdf5(&table(&[long(b'a')]), Form::Plain).unwrap();
    let whole = content.len();
    let nul = whole - 8 - 100_000;
    assert!(content.read_at(nul, &mut [0; 16]).is_err());
}

#[test]
fn offsets_that_go_backwards_are_damage() {
    let mut columns = table(&[b"ab".to_vec(), b"c".to_vec()]);
    columns.attributes[0].offsets = Some(little_endian([0_u64, 3, 2].map(u64::to_le_bytes)).into());
    assert!(hdf5(&columns, Form::Plain).is_err());
}

#[test]
fn numbers_have_the_bytes_of_the_column() {
    let content = hdf5(&table(&texts()), Form::Plain).unwrap();
    let bytes = read_all(&*content);
    let ids: Vec<u8> = (0..900_u64).flat_map(u64::to_le_bytes).collect();
    let start = bytes.windows(ids.len()).position(|window| window == ids).unwrap() as u64;
    let band = content.band(start + 80);
    assert!(band.start >= start && band.end <= start + ids.len() as u64, "{band:?}");
}
