//! Matrix Market's coordinate form of a two-dimensional sparse array: a line `row column value` per cell.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_format::datatype::Kind;

use super::rows::{TextColumn, TextLines};
use crate::column::{Column, Field, FormatResult, Unrepresentable};

/// Returns the coordinate form of Matrix Market for two sparse dimensions and one numeric attribute.
///
/// Rows and columns are the integer coordinates, counted from 1 at the `first` of each dimension's domain; `lengths`
/// are the domain's.
pub fn matrix_market(
    rows: &Column,
    columns: &Column,
    values: &Column,
    domain: MatrixDomain,
) -> FormatResult<Arc<dyn Content>> {
    check(&rows.field, &columns.field, &values.field)?;
    let number_kind = match values.field.datatype.kind() {
        Kind::Float => "real",
        _ => "integer",
    };
    let cells = values.cells();
    let [height, width] = domain.lengths;
    let header = format!("%%MatrixMarket matrix coordinate {number_kind} general\n{height} {width} {cells}\n");
    let mut texts = Vec::new();
    for (column, first, length) in
        [(rows, domain.first[0], domain.lengths[0]), (columns, domain.first[1], domain.lengths[1])]
    {
        column.check()?;
        texts.push(TextColumn::counted_from(column, first, length)?);
    }
    values.check()?;
    texts.push(TextColumn::new(values, None)?);
    if [rows.cells(), columns.cells()] != [cells; 2] {
        return Err(Unrepresentable::new("coordinates and values differ in number"));
    }
    Ok(Arc::new(TextLines::new(header.into_bytes(), texts, cells, b' ', 1)?))
}

/// The domain of a sparse matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatrixDomain {
    /// The lowest coordinate of each dimension.
    pub first: [i128; 2],
    /// The number of coordinates of each dimension.
    pub lengths: [u64; 2],
}

/// Checks whether [`matrix_market`] can hold a field over two dimensions; returns the reason if not.
pub fn check(rows: &Field, columns: &Field, values: &Field) -> FormatResult<()> {
    for dimension in [rows, columns] {
        let integers = matches!(dimension.datatype.kind(), Kind::Signed | Kind::Unsigned);
        if !integers || dimension.values_per_cell != Some(1) {
            return Err(Unrepresentable::new(
                "Matrix Market counts rows and columns, and this dimension is not an integer",
            ));
        }
    }
    if values.datatype.kind() == Kind::Bytes || values.values_per_cell != Some(1) {
        return Err(Unrepresentable::new("Matrix Market has one number per cell"));
    }
    if values.datatype.time_unit().is_some() {
        return Err(Unrepresentable::times());
    }
    if values.nullable {
        return Err(Unrepresentable::nulls());
    }
    Ok(())
}
