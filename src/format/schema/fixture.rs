//! Schemas for unit tests.

use super::*;
use crate::format::scalar::Scalar;

pub fn dimension(name: &str, low: i64, high: i64, extent: i64) -> Dimension {
    Dimension {
        name: name.to_owned(),
        datatype: Datatype::Int32,
        cell_count: CellValNum::Fixed(1),
        filters: Pipeline::default(),
        domain: Some(Range { low: Scalar::Signed(low), high: Scalar::Signed(high) }),
        extent: Some(Scalar::Signed(extent)),
    }
}

#[allow(dead_code)]
pub fn string_dimension(name: &str) -> Dimension {
    Dimension {
        name: name.to_owned(),
        datatype: Datatype::StringAscii,
        cell_count: CellValNum::Variable,
        filters: Pipeline::default(),
        domain: None,
        extent: None,
    }
}

pub fn attribute(name: &str, datatype: Datatype, cell_count: CellValNum) -> Attribute {
    let number = if let CellValNum::Fixed(number) = cell_count { number } else { 1 };
    Attribute {
        name: name.to_owned(),
        datatype,
        cell_count,
        filters: Pipeline::default(),
        fill: datatype.default_fill().repeat(number as usize),
        nullable: false,
        fill_validity: 0,
        order: DataOrder::Unordered,
        enumeration: None,
    }
}

/// Two `INT32` dimensions, rows 1 to 10 by 4 and columns 0 to 99 by 7, and the attributes `a` (`FLOAT64`) and
/// `b` (`STRING_UTF8`, variable); capacity 100.
pub fn sparse() -> ArraySchema {
    ArraySchema {
        version: 22,
        array_type: ArrayType::Sparse,
        allows_duplicates: false,
        tile_order: Layout::RowMajor,
        cell_order: Layout::RowMajor,
        capacity: 100,
        coords_filters: Pipeline::default(),
        offsets_filters: Pipeline::default(),
        validity_filters: Pipeline::default(),
        dimensions: vec![dimension("rows", 1, 10, 4), dimension("cols", 0, 99, 7)],
        attributes: vec![
            attribute("a", Datatype::Float64, CellValNum::Fixed(1)),
            attribute("b", Datatype::StringUtf8, CellValNum::Variable),
        ],
        labels: Vec::new(),
        enumerations: Vec::new(),
        current_domain: None,
    }
}

/// As [`sparse`], but dense.
#[allow(dead_code)]
pub fn dense() -> ArraySchema {
    ArraySchema { array_type: ArrayType::Dense, ..sparse() }
}
