//! Data frames and matrices in memory, as JSON and chunks.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use tilefs_base::content::Content;
use tilefs_base::error::Error;
use tilefs_format::datatype::Datatype;

use super::*;
use crate::column::boxes::{BoxedRows, Boxes};
use crate::column::{Column, Field, Labels, Metadatum};
use crate::content::compose::Repeat;
use crate::testing::{assert_random_access, read_all};
use crate::zarr::ZarrArray;

fn bytes<const N: usize, T>(values: &[T], to: impl Fn(&T) -> [u8; N]) -> Arc<dyn Content> {
    Arc::new(values.iter().flat_map(to).collect::<Vec<u8>>())
}

fn longs(values: &[i64]) -> Arc<dyn Content> {
    bytes(values, |value| value.to_le_bytes())
}

fn texts(name: &str, values: &[&str]) -> FrameColumn {
    let mut ends = vec![0u64];
    values.iter().for_each(|value| ends.push(ends[ends.len() - 1] + value.len() as u64));
    let field = Field::new(name, Datatype::StringUtf8).with_values_per_cell(None);
    let offsets = bytes(&ends, |end| end.to_le_bytes());
    let values = Column::variable(field, vec![values.len() as u64], Arc::new(values.concat().into_bytes()), offsets);
    frame_column(values)
}

fn frame_column(column: Column) -> FrameColumn {
    let validity = column.validity.clone();
    FrameColumn { cells: Arc::new(BoxedRows::of(column, 2)) as Arc<dyn Boxes>, validity }
}

fn numbers(field: Field, values: Vec<u8>, validity: &[u8]) -> FrameColumn {
    let column = Column::fixed(field, vec![validity.len() as u64], Arc::new(values));
    frame_column(column.with_validity(Arc::new(validity.to_vec())))
}

fn group_of(column: FrameColumn) -> ZarrGroup {
    let index = texts("id", &["a", "b", "c"]);
    let metadata = vec![Metadatum { key: "k".into(), datatype: Datatype::StringUtf8, value: b"v".to_vec() }];
    DataFrame { index, index_is_named: false, columns: vec![column], metadata }.group().unwrap()
}

fn json_of(node: &ZarrNode) -> Value {
    serde_json::from_str(&node.text(METADATA)).unwrap()
}

fn member<'g>(group: &'g ZarrGroup, name: &str) -> &'g ZarrNode {
    &group.members.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("no {name}")).1
}

fn group<'g>(within: &'g ZarrGroup, name: &str) -> &'g ZarrGroup {
    match member(within, name) {
        ZarrNode::Group(group) => group,
        ZarrNode::Array(_) => panic!("{name} is an array"),
    }
}

fn array<'g>(within: &'g ZarrGroup, name: &str) -> &'g ZarrArray {
    match member(within, name) {
        ZarrNode::Array(array) => array,
        ZarrNode::Group(_) => panic!("{name} is a group"),
    }
}

/// Returns the bytes of all chunks of an array with one axis.
fn chunks(array: &ZarrArray) -> Vec<Vec<u8>> {
    (0..array.grid()[0]).map(|number| read_all(&*array.chunk(&[number]).unwrap().unwrap())).collect()
}

fn assert_encoding(node: &ZarrNode, encoding: &str) {
    assert_eq!(json_of(node)["attributes"]["encoding-type"], encoding);
}

#[test]
fn a_frame_has_an_index_and_its_columns_in_order() {
    let group = group_of(texts("note", &["x", "", "yz"]));
    assert_eq!((&group.attributes["_index"], &group.attributes["column-order"]), (&json!("_index"), &json!(["note"])));
    assert_eq!((&group.attributes["encoding-type"], &group.attributes["k"]), (&json!("dataframe"), &json!("v")));
    assert_encoding(member(&group, "note"), "string-array");
    assert_eq!(chunks(array(&group, "_index"))[1], b"\x02\0\0\0\x01\0\0\0c\0\0\0\0");
    let index = texts("zarr.json", &["a"]);
    let named = DataFrame { index, index_is_named: true, columns: vec![], metadata: vec![] }.group().unwrap();
    assert_eq!(named.attributes["_index"], "zarr.json_2");
    assert_eq!(named.members[0].0, "zarr.json_2");
}

#[test]
fn names_with_slashes_are_paths_unless_another_column_is_there() {
    let names = ["a", "a/b", "a_b", "T/x", "T/y/z", "U/", "V/w", "V/w/k", "zarr.json", "_index"];
    let columns = names.map(|name| texts(name, &["v"])).into_iter().collect();
    let index = texts("", &["i"]);
    let group = DataFrame { index, index_is_named: false, columns, metadata: vec![] }.group().unwrap();
    let given = ["a", "a_b_2", "a_b", "T/x", "T/y/z", "U_", "V/w", "V_w_k", "zarr.json_2", "_index_2"];
    assert_eq!(group.attributes["column-order"], json!(given));
    let left_out = group.attributes["left_out"].as_object().unwrap();
    let renamed = names.iter().zip(given).filter(|(name, given)| *name != given);
    assert_eq!(left_out.len(), renamed.clone().count());
    for (name, given) in renamed {
        assert!(left_out[*name].as_str().unwrap().ends_with(&format!(" {given}")), "{name}: {}", left_out[*name]);
    }
    let ZarrNode::Group(inner) = member(&group, "T") else { panic!("T is an array") };
    assert_encoding(member(inner, "x"), "string-array");
    let ZarrNode::Group(deep) = member(inner, "y") else { panic!("y is an array") };
    assert_encoding(member(deep, "z"), "string-array");
}

#[test]
fn too_many_rows_are_not_searched_for_nulls() {
    let mut column = numbers(Field::new("v", Datatype::Int16), vec![1, 0], &[1]);
    column.validity = Some(Arc::new(Repeat::new([1], 1 << 60)).into());
    assert_encoding(member(&group_of(column), "v"), "nullable-integer");
}

#[test]
fn nulls_have_pandas_representations() {
    let ints = |validity: &[u8]| {
        let field = Field::new("v", Datatype::Int16);
        group_of(numbers(field, vec![1, 0, 2, 0, 3, 0], validity))
    };
    assert_encoding(member(&ints(&[1, 1, 1]), "v"), "array");
    let with_null = ints(&[1, 0, 1]);
    assert_encoding(member(&with_null, "v"), "nullable-integer");
    let inner = group(&with_null, "v");
    assert_eq!(chunks(array(inner, "values")).concat(), [1, 0, 2, 0, 3, 0, 0, 0]);
    assert_eq!(chunks(array(inner, "mask")).concat(), [0, 1, 0, 0]);
    let booleans = group_of(numbers(Field::new("v", Datatype::Bool), vec![1, 0, 1], &[1, 0, 1]));
    assert_encoding(member(&booleans, "v"), "nullable-boolean");
    let floats: Vec<u8> = [1f32, 2.0, 3.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    let floats = group_of(numbers(Field::new("v", Datatype::Float32), floats, &[1, 0, 1]));
    assert_encoding(member(&floats, "v"), "array");
    assert_eq!(chunks(array(&floats, "v"))[0][4..], f32::NAN.to_le_bytes());
    let times: Vec<u8> = [1i64, 2, 3].iter().flat_map(|value| value.to_le_bytes()).collect();
    let times = group_of(numbers(Field::new("v", Datatype::DateTimeMs), times, &[0, 1, 1]));
    assert_eq!(json_of(member(&times, "v"))["data_type"]["configuration"]["unit"], "ms");
    assert_eq!(chunks(array(&times, "v"))[0][..8], i64::MIN.to_le_bytes());
    let text = texts("v", &["x", "", "yz"]);
    let cells = text.cells.column(&tilefs_reader::array::dense::IndexBox { first: vec![0], count: vec![3] }).unwrap();
    let text = group_of(frame_column(cells.with_validity(Arc::new(vec![1, 0, 1]))));
    assert_encoding(member(&text, "v"), "nullable-string-array");
}

#[test]
fn codes_of_labels_are_categories_and_null_is_minus_one() {
    let labels = Arc::new(Labels {
        name: "kinds".into(),
        datatype: Datatype::StringUtf8,
        ordered: true,
        values: vec![b"a b".to_vec(), b"c".to_vec()],
    });
    let of = |datatype: Datatype, values: Vec<u8>, validity: &[u8]| {
        group_of(numbers(Field::new("v", datatype).with_labels(labels.clone()), values, validity))
    };
    let whole = of(Datatype::UInt8, vec![1, 0, 200], &[1, 1, 1]);
    assert_encoding(member(&whole, "v"), "categorical");
    assert_eq!(group(&whole, "v").attributes["ordered"], true);
    // AnnData reads no code without a category, other than -1.
    assert_eq!(chunks(array(group(&whole, "v"), "codes")).concat(), [1, 0, 0, 0, 255, 255, 0, 0]);
    assert_eq!(chunks(array(group(&whole, "v"), "categories")), [b"\x02\0\0\0\x03\0\0\0a b\x01\0\0\0c"]);
    let with_null = of(Datatype::UInt8, vec![1, 0, 200], &[1, 0, 1]);
    let codes = array(group(&with_null, "v"), "codes");
    assert_eq!(chunks(codes).concat(), [1, 0, 255, 255, 255, 255, 0, 0]);
    assert_eq!(json_of(member(group(&with_null, "v"), "codes"))["data_type"], "int16");
    let signed = of(Datatype::Int8, vec![1, 0, 1], &[1, 0, 1]);
    assert_eq!(chunks(array(group(&signed, "v"), "codes")).concat(), [1, 255, 1, 0]);
}

#[test]
fn unsupported_columns_are_left_out() {
    for field in [
        Field::new("v", Datatype::Blob).with_values_per_cell(None),
        Field::new("v", Datatype::Int32).with_values_per_cell(None),
        Field::new("v", Datatype::Int32).with_values_per_cell(Some(2)),
        Field::new("v", Datatype::DateTimeDay),
        Field::new("v", Datatype::Char),
    ] {
        assert!(check(&field).is_err(), "{field:?}");
    }
    let group = group_of(numbers(Field::new("v", Datatype::DateTimeDay), vec![0; 24], &[1; 3]));
    assert_eq!((group.members.len(), &group.attributes["column-order"]), (1, &json!([])));
}

/// Returns the bytes of integers of 32 bits.
fn ints(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|value| (*value as i32).to_le_bytes()).collect()
}

/// Returns the matrix of cells with these coordinates along the compressed axis.
fn matrix_of(major: &[i64], shape: [u64; 2], compressed: Compressed) -> ZarrGroup {
    let count = major.len() as u64;
    let column =
        |name: &str, values: &[i64]| Column::fixed(Field::new(name, Datatype::Int64), vec![count], longs(values));
    let numbers: Vec<i64> = (0..count as i64).collect();
    let values = column("soma_data", &numbers.iter().map(|number| number * 3).collect::<Vec<_>>());
    let lengths = shape[usize::from(compressed == Compressed::Columns)];
    let starts = starts_of(longs(major), lengths);
    CompressedMatrix { compressed, shape, starts, minor: column("j", &numbers), values, banded: None }.group().unwrap()
}

#[test]
fn matrices_with_all_cells_are_read_as_their_values() {
    let matrix = |columns: &[i64], shape| {
        let fixed = |values: Arc<dyn Content>| {
            Column::fixed(Field::new("j", Datatype::Int64), vec![columns.len() as u64], values)
        };
        let (starts, values) = (longs(&[]), longs(&(0..columns.len() as i64).collect::<Vec<_>>()));
        let (compressed, banded) = (Compressed::Rows, None);
        CompressedMatrix { compressed, shape, starts, minor: fixed(longs(columns)), values: fixed(values), banded }
    };
    let read = |matrix: &CompressedMatrix| {
        let mut values = vec![0; 8 * matrix.values.cells() as usize];
        matrix.read_full(&mut values).map(|()| values)
    };
    let full = matrix(&[0, 1, 2, 0, 1, 2], [2, 3]);
    assert!(full.is_full());
    assert_eq!(read(&full).unwrap(), read_all(&*longs(&[0, 1, 2, 3, 4, 5])));
    assert!(!matrix(&[0, 1, 2, 0, 1], [2, 3]).is_full());
    assert!(matches!(read(&matrix(&[0, 1, 1, 0, 1, 2], [2, 3])), Err(Error::Damaged { .. })));
}

#[test]
fn matrix_has_its_shape_and_compressed_axis() {
    let rows = matrix_of(&[0, 0, 2], [4, 9], Compressed::Rows);
    assert_eq!((&rows.attributes["encoding-type"], &rows.attributes["shape"]), (&json!("csr_matrix"), &json!([4, 9])));
    assert_eq!(chunks(array(&rows, "indices"))[0], ints(&[0, 1, 2]));
    assert_eq!(chunks(array(&rows, "data"))[0], read_all(&*longs(&[0, 3, 6])));
    assert_eq!(chunks(array(&rows, "indptr"))[0], ints(&[0, 2, 2, 3, 3]));
    let columns = matrix_of(&[0, 0, 2], [9, 3], Compressed::Columns);
    assert_eq!(columns.attributes["encoding-type"], "csc_matrix");
    assert_eq!(chunks(array(&columns, "indptr"))[0], ints(&[0, 2, 2, 3]));
    assert_eq!(chunks(array(&matrix_of(&[], [2, 3], Compressed::Rows), "indptr"))[0], ints(&[0, 0, 0]));
}

#[test]
fn coordinates_have_32_bits_where_these_suffice() {
    let most = u64::from(i32::MAX.cast_unsigned());
    for (columns, size) in [(9, 4), (most, 4), (most + 1, 8)] {
        let matrix = matrix_of(&[0, 0, 2], [4, columns], Compressed::Rows);
        let lengths = ["indices", "indptr"].map(|name| chunks(array(&matrix, name))[0].len());
        assert_eq!(lengths, [3 * size, 5 * size], "{columns} columns");
    }
    let column = Column::fixed(Field::new("j", Datatype::Int64), vec![1], longs(&[1 << 31]));
    let matrix = CompressedMatrix {
        compressed: Compressed::Rows,
        shape: [1, 9],
        starts: longs(&[0, 1]),
        minor: column.clone(),
        values: column,
        banded: None,
    };
    let chunk = array(&matrix.group().unwrap(), "indices").chunk(&[0]).unwrap().unwrap();
    assert!(chunk.read_at(0, &mut [0; 4]).is_err());
}

#[test]
fn unordered_cells_are_damage() {
    for major in [&[2, 1, 3][..], &[0, -1, 3]] {
        let matrix = matrix_of(major, [4, 9], Compressed::Rows);
        let chunk = array(&matrix, "indptr").chunk(&[0]).unwrap().unwrap();
        assert!(chunk.read_at(0, &mut [0; 20]).is_err(), "{major:?}");
    }
}

proptest! {
    #[test]
    fn starts_count_the_cells_before(counts in proptest::collection::vec(0usize..5, 1..60)) {
        let major: Vec<i64> = counts.iter().enumerate().flat_map(|(row, &count)| vec![row as i64; count]).collect();
        let mut expected = vec![0i64];
        counts.iter().for_each(|&count| expected.push(expected[expected.len() - 1] + count as i64));
        let matrix = matrix_of(&major, [counts.len() as u64, 400], Compressed::Rows);
        let starts = array(&matrix, "indptr").chunk(&[0]).unwrap().unwrap();
        prop_assert_eq!(read_all(&*starts), ints(&expected));
        assert_random_access(&*starts);
    }
}

#[test]
fn a_full_matrix_is_an_array_of_rows() {
    let values: Vec<i64> = (0..12).collect();
    let column = Column::fixed(Field::new("soma_data", Datatype::Int64), vec![12], longs(&values));
    let node = full(&column, [4, 3]).unwrap();
    let json = json_of(&node);
    assert_eq!((&json["shape"], &json["attributes"]["encoding-type"]), (&json!([4, 3]), &json!("array")));
    let ZarrNode::Array(array) = node else { panic!("a group") };
    assert_eq!(read_all(&*array.chunk(&[0, 0]).unwrap().unwrap()), read_all(&*longs(&values)));
}

#[test]
fn left_out_members_are_listed() {
    let group = annotated_data(vec![], vec![("uns".to_owned(), "no place".to_owned())]);
    assert_eq!(
        json!(group.attributes),
        json!({"encoding-type": "anndata", "encoding-version": "0.1.0", "left_out": {"uns": "no place"}})
    );
}

#[test]
fn elements_have_names_that_zarr_allows() {
    let node = || ZarrNode::Group(Arc::new(ZarrGroup::default()));
    let elements = ["a", "zarr.json", "__a"].map(|name| (name.to_owned(), node()));
    let group = mapping(elements.into());
    let names: Vec<&str> = group.members.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a", "zarr.json_2", "_a"]);
}
