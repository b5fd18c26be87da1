//! Arrays as text whose every byte is reached by arithmetic: columns of fixed width, and texts whose places
//! the offsets give.

mod batch;
pub mod matrix_market;
mod rows;
pub mod time;
mod value;

use std::sync::Arc;

use super::column::{Column, Exported, Field, Fit, Labels, Misfit};
use super::content::Content;
use crate::format::datatype::Kind;
use rows::{Rows, TextColumn};
pub use value::Style;

/// Whether [`grid`] can hold a field, and if not why.
pub fn check_grid(field: &Field) -> Fit<()> {
    if field.values_per_cell.is_none() {
        return Err(Misfit::new("a grid has cells of one width, and here each cell has its own"));
    }
    TextColumn::check(field, Style::Lines)
}

/// The values of a column, one row of the array a line: the last axis across, the others down. A column
/// with one axis is one cell a line.
///
/// Cells are separated by a space. Each value has the width of its type's longest text and is padded on the
/// left; it reads back to the same value. Several values a cell are one after the other. Codes of an
/// enumeration stay codes. Nulls are `NA`, for floats `NaN`, blanks for text.
pub fn grid(column: &Column) -> Fit<Arc<dyn Content>> {
    column.check()?;
    check_grid(&column.field)?;
    let across = if column.shape.len() > 1 { column.shape.last().copied().unwrap_or(1) } else { 1 };
    let text = TextColumn::new(column, Style::Lines, false)?;
    Ok(Arc::new(Rows::new(Vec::new(), vec![text], column.cells(), b' ', across)?))
}

/// Whether [`lines`] can hold a field, and if not why.
pub fn check_lines(field: &Field) -> Fit<()> {
    if field.datatype.kind() != Kind::Bytes || field.values_per_cell.is_some() {
        return Err(Misfit::new("lines are for texts of any length"));
    }
    if !field.datatype.is_string() && field.datatype != crate::format::datatype::Datatype::GeomWkt {
        return Err(Misfit::new("blobs are no lines of text"));
    }
    TextColumn::check(field, Style::Lines)
}

/// The texts of a variable-length column, one a line. A line break within a text becomes a space, byte for
/// byte, so that the size is known: all bytes and one a cell.
///
/// A null is a line of as many blanks as it has stored bytes, which are usually none.
pub fn lines(column: &Column) -> Fit<Arc<dyn Content>> {
    column.check()?;
    check_lines(&column.field)?;
    let text = TextColumn::new(column, Style::Lines, false)?;
    Ok(Arc::new(Rows::new(Vec::new(), vec![text], column.cells(), b'\n', 1)?))
}

/// A table of several columns with the same number of cells, one cell a line, under a line of names.
///
/// Numbers, dates and labels are as wide as the longest of their type or enumeration and padded on the left,
/// so that a reader that skips blanks reads numbers (pandas: `skipinitialspace=True`). Texts of any length
/// are as long as they are; characters that would break the table become spaces, and in CSV, where texts are
/// in quotes, `"` becomes `'`. Blobs are hexadecimal. Several values a cell are separated by spaces.
/// Enumerations show labels, and `NA` for a code that has none. Nulls are `NA`, for floats `NaN`, and
/// blanks for text.
pub fn table(columns: &[Column], style: Style) -> Fit<Exported> {
    let separator = if style == Style::Csv { b',' } else { b'\t' };
    let rows = columns.first().map_or(0, Column::cells);
    let (mut names, mut texts, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for column in columns {
        column.check()?;
        if column.cells() != rows {
            return Err(Misfit::new(format!("{}: not as many rows as the others", column.field.name)));
        }
        match TextColumn::new(column, style, true) {
            Ok(text) => {
                names.push(style.word(&column.field.name));
                texts.push(text);
            }
            Err(reason) => left_out.push((column.field.name.clone(), reason)),
        }
    }
    if texts.is_empty() {
        return Err(Misfit::new("no column can be text"));
    }
    let mut header = names.join(&separator);
    header.push(b'\n');
    Ok(Exported { content: Arc::new(Rows::new(header, texts, rows, separator, 1)?), left_out })
}

/// The labels of an enumeration, one a line: line k + 1 is the label of code k.
pub fn labels(labels: &Labels) -> Vec<u8> {
    let mut text = Vec::new();
    for label in value::texts(labels, Style::Lines) {
        text.extend(label);
        text.push(b'\n');
    }
    text
}

#[cfg(test)]
mod tests;
