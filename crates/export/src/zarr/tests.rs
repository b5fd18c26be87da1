//! Groups of columns in memory, as JSON and chunks.

use std::sync::Arc;

use serde_json::{Value, json};
use tilefs_base::error::Result;
use tilefs_format::datatype::Datatype;
use tilefs_reader::array::dense::IndexBox;

use super::{METADATA, ZarrArray, ZarrGroup, ZarrNode, check, zarr};
use crate::column::boxes::{BoxedColumns, BoxedRows, Boxes};
use crate::column::{AuxiliaryCoordinates, Column, Field, Labels, Metadatum};
use crate::content::refusal::TOO_FAR;
use crate::testing::{assert_random_access, read_all};

/// An array of bytes with two axes in tiles of 2 by 2.
struct Grid {
    field: Field,
    shape: [u64; 2],
    values: Vec<u8>,
    validity: Vec<u8>,
}

impl Boxes for Grid {
    fn field(&self) -> &Field {
        &self.field
    }

    fn shape(&self) -> &[u64] {
        &self.shape
    }

    fn extents(&self) -> Vec<u64> {
        vec![2, 2]
    }

    fn column(&self, cells: &IndexBox) -> Result<Column> {
        let size = self.field.cell_size().unwrap() as usize;
        let rows = cells.first[0]..cells.first[0] + cells.count[0];
        let numbers: Vec<usize> = rows
            .flat_map(|row| (0..cells.count[1]).map(move |column| (row, column)))
            .map(|(row, column)| (row * self.shape[1] + cells.first[1] + column) as usize)
            .collect();
        let values: Vec<u8> = numbers.iter().flat_map(|&cell| self.values[cell * size..][..size].to_vec()).collect();
        let column = Column::fixed(self.field.clone(), cells.count.clone(), Arc::new(values));
        if !self.field.nullable {
            return Ok(column);
        }
        let validity: Vec<u8> = numbers.iter().map(|&cell| self.validity[cell]).collect();
        Ok(column.with_validity(Arc::new(validity)))
    }
}

fn axis(name: &str, length: u8) -> Arc<dyn Boxes> {
    let values = Arc::new((0..length).collect::<Vec<u8>>());
    Arc::new(BoxedRows::of(Column::fixed(Field::new(name, Datatype::UInt8), vec![length.into()], values), 100))
}

fn group_of(field: Field) -> ZarrGroup {
    let grid = Grid { field, shape: [3, 3], values: (1..=9).collect(), validity: vec![1, 1, 0, 1, 1, 1, 1, 1, 2] };
    let metadata = vec![Metadatum { key: "title".into(), datatype: Datatype::StringUtf8, value: b"t".to_vec() }];
    zarr(&BoxedColumns {
        sparse: false,
        dimensions: vec![axis("y", 3), axis("x", 3)],
        attributes: vec![Arc::new(grid)],
        metadata,
        auxiliary: Vec::new(),
        georeference: None,
    })
}

fn array<'g>(group: &'g ZarrGroup, name: &str) -> &'g Arc<ZarrArray> {
    match group.members.iter().find(|(known, _)| known == name) {
        Some((_, ZarrNode::Array(array))) => array,
        _ => panic!("no array {name}"),
    }
}

fn metadata(array: &Arc<ZarrArray>) -> Value {
    serde_json::from_str(&ZarrNode::Array(array.clone()).text(METADATA)).unwrap()
}

fn chunk(array: &ZarrArray, numbers: &[u64]) -> Vec<u8> {
    let chunk = array.chunk(numbers).unwrap().expect("there is such a chunk");
    assert_random_access(&*chunk);
    assert!(array.chunk_bytes().is_none_or(|bytes| bytes == chunk.len()));
    read_all(&*chunk)
}

#[test]
fn chunks_are_tiles_and_edges_are_padded() {
    let group = group_of(Field::new("v", Datatype::UInt8).with_fill([200]));
    let v = array(&group, "v");
    assert_eq!(v.grid(), [2, 2]);
    assert_eq!(chunk(v, &[0, 0]), [1, 2, 4, 5]);
    assert_eq!(chunk(v, &[0, 1]), [3, 200, 6, 200]);
    assert_eq!(chunk(v, &[1, 1]), [9, 200, 200, 200]);
    for outside in [&[2, 0][..], &[0, 2], &[0], &[0, 0, 0]] {
        assert!(v.chunk(outside).unwrap().is_none());
    }
    assert_eq!(chunk(array(&group, "x"), &[0]), [0, 1, 2]);
    let found = metadata(v);
    assert_eq!(found["shape"], json!([3, 3]));
    assert_eq!(found["chunk_grid"]["configuration"]["chunk_shape"], json!([2, 2]));
    assert_eq!((&found["data_type"], &found["fill_value"]), (&json!("uint8"), &json!(200)));
    assert_eq!(found["dimension_names"], json!(["y", "x"]));
}

#[test]
fn a_date_beyond_all_days_is_an_error_of_its_chunk() {
    let weeks = [1, i64::MIN, -1, i64::MAX];
    let values = Arc::new(weeks.map(i64::to_le_bytes).concat());
    let when = Column::fixed(Field::new("when", Datatype::DateTimeWeek), vec![4], values);
    let columns = BoxedColumns {
        sparse: true,
        dimensions: vec![axis("x", 4)],
        attributes: vec![Arc::new(BoxedRows::of(when, 2))],
        metadata: Vec::new(),
        auxiliary: Vec::new(),
        georeference: None,
    };
    let group = zarr(&columns);
    let when = array(&group, "when");
    assert_eq!(chunk(when, &[0]), [7, i64::MIN].map(i64::to_le_bytes).concat());
    let second = when.chunk(&[1]).unwrap().unwrap();
    second.read_at(0, &mut [0; 8]).unwrap();
    let error = second.read_at(0, &mut [0; 16]).unwrap_err().to_string();
    assert_eq!(error, format!("not supported: the value {} of row 3, which is {TOO_FAR} (field when)", i64::MAX));
}

#[test]
fn labels_and_the_only_dimension_of_cells_are_coordinates() {
    let value = |length: usize| -> Arc<dyn Boxes> {
        let column = Column::fixed(Field::new("v", Datatype::UInt8), vec![length as u64], Arc::new(vec![0; length]));
        Arc::new(BoxedRows::of(column, 100))
    };
    let columns = |sparse, dimensions, auxiliary| BoxedColumns {
        sparse,
        dimensions,
        attributes: vec![value(3)],
        metadata: Vec::new(),
        auxiliary,
        georeference: None,
    };
    let found = |columns: &BoxedColumns| metadata(array(&zarr(columns), "v"));
    let label = AuxiliaryCoordinates { axis: 0, column: axis("height", 3) };
    let labelled = found(&columns(false, vec![axis("lat", 3)], vec![label]));
    assert_eq!(
        (&labelled["dimension_names"], &labelled["attributes"]["coordinates"]),
        (&json!(["lat"]), &json!("height"))
    );
    let series = columns(true, vec![axis("date", 3)], Vec::new());
    assert_eq!(found(&series)["dimension_names"], json!(["date"]));
    assert_eq!(metadata(array(&zarr(&series), "date"))["dimension_names"], json!(["date"]));
    assert_eq!(found(&series)["attributes"], json!({}));
    let cells = found(&columns(true, vec![axis("y", 3), axis("x", 3)], Vec::new()));
    assert_eq!((&cells["dimension_names"], &cells["attributes"]["coordinates"]), (&json!(["cells"]), &json!("y x")));
}

#[test]
fn the_group_has_all_metadata() {
    let group = Arc::new(group_of(Field::new("v", Datatype::UInt8)));
    let found: Value = serde_json::from_str(&ZarrNode::Group(group.clone()).text(METADATA)).unwrap();
    assert_eq!(found["attributes"]["title"], "t");
    let all = found["consolidated_metadata"]["metadata"].as_object().unwrap();
    assert_eq!(all.keys().collect::<Vec<_>>(), ["y", "x", "v"]);
    assert_eq!(all["v"], metadata(array(&group, "v")));
}

#[test]
fn nulls_have_a_mask_and_a_free_value() {
    let mut field = Field::new("v", Datatype::UInt8).with_nullable(true);
    let group = group_of(field.clone());
    assert_eq!(chunk(array(&group, "v"), &[0, 1]), [3, 0, 6, 0]);
    assert_eq!(chunk(array(&group, "v_valid"), &[0, 1]), [0, 0, 1, 0]);
    assert_eq!(chunk(array(&group, "v_valid"), &[1, 1]), [1, 0, 0, 0]);
    field.null = Some(vec![77]);
    let group = group_of(field);
    assert_eq!(chunk(array(&group, "v"), &[0, 1]), [77, 0, 6, 0]);
    assert_eq!(metadata(array(&group, "v"))["attributes"]["_FillValue"], 77);
}

#[test]
fn labels_are_an_array_of_texts() {
    let labels = Labels {
        name: "kinds".into(),
        datatype: Datatype::StringUtf8,
        ordered: false,
        values: vec![b"a b".to_vec(), b"c".to_vec()],
    };
    let group = group_of(Field::new("v", Datatype::UInt8).with_labels(Arc::new(labels)));
    let attributes = &metadata(array(&group, "v"))["attributes"];
    assert_eq!((&attributes["flag_meanings"], &attributes["flag_values"]), (&json!("a_b c"), &json!([0, 1])));
    assert_eq!(chunk(array(&group, "v_labels"), &[0]), b"\x02\0\0\0\x03\0\0\0a b\x01\0\0\0c");
}

#[test]
fn types_have_zarr_s_names() {
    let of = |field: Field| {
        let kind = super::types::ZarrType::of(&field).unwrap();
        (kind.data_type, kind.fill_value, kind.values)
    };
    let field = |datatype| Field::new("a", datatype);
    assert_eq!(of(field(Datatype::Bool).with_fill([1])), (json!("bool"), json!(true), None));
    assert_eq!(of(field(Datatype::Float32).with_fill(f32::NAN.to_le_bytes())), (json!("float32"), json!("NaN"), None));
    assert_eq!(of(field(Datatype::DateTimeYear).with_fill(1i64.to_le_bytes())), (json!("int64"), json!(365), None));
    assert_eq!(of(field(Datatype::DateTimeMs).with_fill(i64::MIN.to_le_bytes())).1, json!(i64::MIN));
    assert_eq!(of(field(Datatype::Int16).with_values_per_cell(Some(3))), (json!("int16"), json!(0), Some(3)));
    assert_eq!(of(field(Datatype::Char).with_values_per_cell(Some(3))).0["configuration"]["length_bytes"], 3);
    assert_eq!(of(field(Datatype::StringUtf8).with_values_per_cell(None)).0, "string");
    assert_eq!(of(field(Datatype::Blob).with_values_per_cell(None)).0, "variable_length_bytes");
    assert!(check(&field(Datatype::Int32).with_values_per_cell(None)).is_err());
    assert!(check(&field(Datatype::StringUtf16).with_values_per_cell(None)).is_err());
}
