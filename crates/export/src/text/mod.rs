//! Arrays as text: columns of fixed width and lines of texts, every byte of which is reached by arithmetic, and
//! tables without padding, whose rows are measured first.

mod cells;
pub mod matrix_market;
mod measured;
mod row_writer;
mod rows;
mod style;
mod table;
pub mod time;
mod value;

use std::sync::Arc;

use tilefs_format::datatype::Kind;

use super::column::{Column, Field, FormatResult, Labels, LeftOut, Unrepresentable};
use super::content::Content;
pub use measured::Measured;
use rows::{Rows, TextColumn};
pub use style::Style;
pub use table::Table;
use table::TableColumn;

/// Whether [`grid`] can hold a field, and if not why.
pub fn check_grid(field: &Field) -> FormatResult<()> {
    if field.values_per_cell.is_none() {
        return Err(Unrepresentable::new("a grid has cells of one width, and here each cell has its own"));
    }
    TextColumn::check(field)
}

/// The values of a column, one row of the array a line: the last axis across, the others down. A column
/// with one axis is one cell a line.
///
/// ColumnCells are separated by a space. Each value has the width of its type's longest text and is padded on the
/// left; it reads back to the same value. Several values a cell are one after the other. Enumerations show
/// labels, in quotes where they have blanks or quotes or nothing in them, as R's `read.table` reads them. Nulls
/// and codes without label are `NA`, for floats `NaN`, blanks for text.
pub fn grid(column: &Column) -> FormatResult<Arc<dyn Content>> {
    column.check()?;
    check_grid(&column.field)?;
    let across = if column.shape.len() > 1 { column.shape.last().copied().unwrap_or(1) } else { 1 };
    let text = TextColumn::new(column, shown_labels(&column.field, |label| word(one_line(label))))?;
    Ok(Arc::new(Rows::new(Vec::new(), vec![text], column.cells(), b' ', across)?))
}

/// Whether [`lines`] can hold a field, and if not why.
pub fn check_lines(field: &Field) -> FormatResult<()> {
    if field.datatype.kind() != Kind::Bytes || field.values_per_cell.is_some() {
        return Err(Unrepresentable::new("lines are for texts of any length"));
    }
    if !field.datatype.is_string() && field.datatype != tilefs_format::datatype::Datatype::GeomWkt {
        return Err(Unrepresentable::new("blobs are no lines of text"));
    }
    TextColumn::check(field)
}

/// The texts of a variable-length column, one a line. A line break within a text becomes a space, byte for
/// byte, so that the size is known: all bytes and one a cell.
///
/// A null is a line of as many blanks as it has stored bytes, which are usually none.
pub fn lines(column: &Column) -> FormatResult<Arc<dyn Content>> {
    column.check()?;
    check_lines(&column.field)?;
    let text = TextColumn::new(column, None)?;
    Ok(Arc::new(Rows::new(Vec::new(), vec![text], column.cells(), b'\n', 1)?))
}

/// The labels that the codes of a column stand for, one a line, as [`lines`] shows texts. A null or a code without
/// label is an empty line.
pub fn label_lines(column: &Column) -> FormatResult<Arc<Table>> {
    column.check()?;
    let labels = shown_labels(&column.field, one_line);
    let labels = labels.ok_or_else(|| Unrepresentable::new("its values are no codes of labels"))?;
    let text = TableColumn::new(column, Style::Tsv, Some(labels))?;
    Ok(Arc::new(Table::new(Vec::new(), vec![text], column.cells(), b'\n')))
}

/// A table of columns, and those that have no form as text.
pub struct Tabulated {
    pub table: Arc<Table>,
    /// The name of each column left out, and why.
    pub left_out: LeftOut,
}

/// A table of several columns with the same number of cells, one cell a row, under a row of names.
///
/// No value is padded or changed, but that a `CHAR` stands without the NUL that ends it. Texts and labels stand in quotes as the [`Style`] says; a null, a code without label
/// and a time that is none has no character at all, where an empty text is `""`. Booleans are `true` and `false`, blobs
/// hexadecimal. Several numbers a cell are separated by spaces, and none at all are `""`.
pub fn table(columns: &[Column], style: Style) -> FormatResult<Tabulated> {
    tabulated(columns, style, true)
}

/// As [`table`], without the row of names.
pub fn table_without_header(columns: &[Column], style: Style) -> FormatResult<Tabulated> {
    tabulated(columns, style, false)
}

fn tabulated(columns: &[Column], style: Style, has_header: bool) -> FormatResult<Tabulated> {
    let rows = columns.first().map_or(0, Column::cells);
    let (mut header, mut texts, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for column in columns {
        column.check()?;
        let field = &column.field;
        if column.cells() != rows {
            return Err(Unrepresentable::new(format!("{}: not as many rows as the others", field.name)));
        }
        let is_text = field.labels.as_ref().is_some_and(|labels| labels.datatype.kind() == Kind::Bytes);
        let labels = shown_labels(field, |label| {
            let mut text = Vec::new();
            if is_text {
                style.append_text(label, &mut text)
            } else {
                text.extend(label)
            }
            text
        });
        match TableColumn::new(column, style, labels) {
            Ok(text) => {
                style.append_name(field.name.as_bytes(), &mut header);
                header.push(style.separator());
                texts.push(text);
            }
            Err(reason) => left_out.push((field.name.clone(), reason)),
        }
    }
    match header.last_mut() {
        Some(last) => *last = b'\n',
        None => return Err(Unrepresentable::new("no column can be text")),
    }
    if !has_header {
        header.clear();
    }
    Ok(Tabulated { table: Arc::new(Table::new(header, texts, rows, style.separator())), left_out })
}

/// The labels of an enumeration, one a line: line k + 1 is the label of code k.
pub fn labels(labels: &Labels) -> Vec<u8> {
    let mut text = Vec::new();
    for label in labels.shown() {
        text.extend(one_line(&label));
        text.push(b'\n');
    }
    text
}

/// What is shown for each code, where a cell is one.
fn shown_labels(field: &Field, show: impl Fn(&[u8]) -> Vec<u8>) -> Option<Vec<Vec<u8>>> {
    let labels = field.labels.as_ref().filter(|_| field.values_per_cell == Some(1))?;
    Some(labels.shown().iter().map(|label| show(label)).collect())
}

fn one_line(text: &[u8]) -> Vec<u8> {
    text.iter().copied().map(value::without_line_break).collect()
}

/// A label that stands among others which are separated by blanks.
fn word(label: Vec<u8>) -> Vec<u8> {
    let is_plain = |byte: &u8| !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'\'' | b'#');
    if !label.is_empty() && label.iter().all(is_plain) {
        return label;
    }
    // Within quotes R takes a backslash for an escape.
    let escaped = label.into_iter().flat_map(|byte| match byte {
        b'"' | b'\\' => vec![b'\\', byte],
        _ => vec![byte],
    });
    std::iter::once(b'"').chain(escaped).chain(std::iter::once(b'"')).collect()
}

#[cfg(test)]
mod tests;
