//! Schemas for unit tests, and a writer of their stored bytes.

#![allow(clippy::panic, clippy::unwrap_used)]

use super::*;
use crate::datatype::Datatype;
use crate::pipeline::Filter;
use crate::scalar::Scalar;

/// Returns an `INT32` dimension with a domain and an extent.
pub fn dimension(name: &str, low: i64, high: i64, extent: i64) -> Dimension {
    Dimension {
        name: name.to_owned(),
        datatype: Datatype::Int32,
        cell_count: CellValNum::Fixed(1),
        filters: no_filters(),
        domain: Some(Range { low: Scalar::Signed(low), high: Scalar::Signed(high) }),
        extent: Some(Scalar::Signed(extent)),
    }
}

/// Returns a dimension of strings.
pub fn string_dimension(name: &str) -> Dimension {
    Dimension {
        name: name.to_owned(),
        datatype: Datatype::StringAscii,
        cell_count: CellValNum::Variable,
        filters: no_filters(),
        domain: None,
        extent: None,
    }
}

/// Returns an attribute without filters.
pub fn attribute(name: &str, datatype: Datatype, cell_count: CellValNum) -> Attribute {
    let number = if let CellValNum::Fixed(number) = cell_count { number } else { 1 };
    Attribute {
        name: name.to_owned(),
        datatype,
        cell_count,
        filters: no_filters(),
        fill: datatype.default_fill().repeat(number as usize),
        nullable: false,
        fill_validity: 0,
        order: DataOrder::Unordered,
        enumeration: None,
    }
}

/// Returns a sparse schema with two `INT32` dimensions, rows 1 to 10 in tiles of 4 and columns 0 to 99 in tiles of 7,
/// the attributes `a` (`FLOAT64`) and `b` (`STRING_UTF8`, variable), and capacity 100.
pub fn sparse() -> ArraySchema {
    ArraySchema {
        version: 22,
        array_type: ArrayType::Sparse,
        allows_duplicates: false,
        tile_order: Layout::RowMajor,
        cell_order: Layout::RowMajor,
        capacity: 100,
        coords_filters: no_filters(),
        offsets_filters: no_filters(),
        validity_filters: no_filters(),
        dimensions: vec![dimension("rows", 1, 10, 4), dimension("cols", 0, 99, 7)],
        attributes: vec![
            attribute("a", Datatype::Float64, CellValNum::Fixed(1)),
            attribute("b", Datatype::StringUtf8, CellValNum::Variable),
        ],
        labels: Vec::new(),
        enumerations: Vec::new(),
        current_domain: None,
        names: Names::default(),
    }
}

/// Returns the schema of [`sparse`] as a dense one.
pub fn dense() -> ArraySchema {
    ArraySchema { array_type: ArrayType::Dense, ..sparse() }
}

/// Writes a schema in the format of its version, to test the parser.
pub fn write(schema: &ArraySchema) -> Vec<u8> {
    let version = schema.version;
    let mut bytes = version.to_le_bytes().to_vec();
    if version >= 5 {
        bytes.push(u8::from(schema.allows_duplicates));
    }
    bytes.push(u8::from(schema.is_sparse()));
    for order in [schema.tile_order, schema.cell_order] {
        bytes.push(match order {
            Layout::RowMajor => 0,
            Layout::ColMajor => 1,
            Layout::Hilbert => 4,
        });
    }
    bytes.extend(schema.capacity.to_le_bytes());
    write_pipeline(&mut bytes, &schema.coords_filters);
    write_pipeline(&mut bytes, &schema.offsets_filters);
    if version >= 7 {
        write_pipeline(&mut bytes, &schema.validity_filters);
    }
    if version < 5 {
        bytes.push(schema.dimensions[0].datatype as u8);
    }
    bytes.extend((schema.dimensions.len() as u32).to_le_bytes());
    for dimension in &schema.dimensions {
        write_dimension(&mut bytes, dimension, version);
    }
    bytes.extend((schema.attributes.len() as u32).to_le_bytes());
    for attribute in &schema.attributes {
        write_attribute(&mut bytes, attribute, version);
    }
    if version >= 18 {
        bytes.extend((schema.labels.len() as u32).to_le_bytes());
        schema.labels.iter().for_each(|label| write_label(&mut bytes, label));
    }
    if version >= 20 {
        bytes.extend((schema.enumerations.len() as u32).to_le_bytes());
        for (name, file) in &schema.enumerations {
            write_text(&mut bytes, name);
            write_text(&mut bytes, file);
        }
    }
    if version >= 22 {
        bytes.extend([0, 0, 0, 0, u8::from(schema.current_domain.is_none())]);
        if let Some(ranges) = &schema.current_domain {
            bytes.push(0);
            write_ranges(&mut bytes, ranges, schema);
        }
    }
    bytes
}

fn write_label(bytes: &mut Vec<u8>, label: &DimensionLabel) {
    bytes.extend(label.dimension.to_le_bytes());
    write_text(bytes, &label.name);
    bytes.push(u8::from(label.relative));
    bytes.extend((label.uri.len() as u64).to_le_bytes());
    bytes.extend(label.uri.as_bytes());
    write_text(bytes, &label.attribute);
    bytes.extend([label.order as u8, label.datatype as u8]);
    write_cell_count(bytes, label.cell_count);
    bytes.push(u8::from(label.external));
}

/// Writes one range per dimension, as in current domains, footers and R-trees.
pub fn write_ranges(bytes: &mut Vec<u8>, ranges: &[Range], schema: &ArraySchema) {
    for (range, dimension) in ranges.iter().zip(&schema.dimensions) {
        let low = range.low.to_bytes(dimension.datatype).unwrap();
        let high = range.high.to_bytes(dimension.datatype).unwrap();
        if dimension.is_variable() {
            bytes.extend(((low.len() + high.len()) as u64).to_le_bytes());
            bytes.extend((low.len() as u64).to_le_bytes());
        }
        bytes.extend(low);
        bytes.extend(high);
    }
}

fn write_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text.as_bytes());
}

fn write_cell_count(bytes: &mut Vec<u8>, cell_count: CellValNum) {
    let number = if let CellValNum::Fixed(number) = cell_count { number } else { u32::MAX };
    bytes.extend(number.to_le_bytes());
}

/// Writes a pipeline of the filters that these tests use.
fn write_pipeline(bytes: &mut Vec<u8>, pipeline: &Pipeline) {
    bytes.extend(pipeline.max_chunk_size.to_le_bytes());
    bytes.extend((pipeline.filters.len() as u32).to_le_bytes());
    for filter in &pipeline.filters {
        match filter {
            Filter::Byteshuffle => bytes.extend([9, 0, 0, 0, 0]),
            Filter::Zstd { level } => {
                bytes.extend([2, 5, 0, 0, 0, 2]);
                bytes.extend(level.to_le_bytes());
            }
            other => panic!("no test writes {other:?}"),
        }
    }
}

fn write_dimension(bytes: &mut Vec<u8>, dimension: &Dimension, version: u32) {
    write_text(bytes, &dimension.name);
    let domain: Vec<u8> = match &dimension.domain {
        Some(range) => [&range.low, &range.high].map(|bound| bound.to_bytes(dimension.datatype).unwrap()).concat(),
        None => Vec::new(),
    };
    if version >= 5 {
        bytes.push(dimension.datatype as u8);
        write_cell_count(bytes, dimension.cell_count);
        write_pipeline(bytes, &dimension.filters);
        bytes.extend((domain.len() as u64).to_le_bytes());
    }
    bytes.extend(domain);
    bytes.push(u8::from(dimension.extent.is_none()));
    if let Some(extent) = &dimension.extent {
        bytes.extend(extent.to_bytes(dimension.datatype).unwrap());
    }
}

fn write_attribute(bytes: &mut Vec<u8>, attribute: &Attribute, version: u32) {
    write_text(bytes, &attribute.name);
    bytes.push(attribute.datatype as u8);
    write_cell_count(bytes, attribute.cell_count);
    write_pipeline(bytes, &attribute.filters);
    if version >= 6 {
        bytes.extend((attribute.fill.len() as u64).to_le_bytes());
        bytes.extend(&attribute.fill);
    }
    if version >= 7 {
        bytes.extend([u8::from(attribute.nullable), attribute.fill_validity]);
    }
    if version >= 17 {
        bytes.push(attribute.order as u8);
    }
    if version >= 20 {
        write_text(bytes, attribute.enumeration.as_deref().unwrap_or(""));
    }
}
