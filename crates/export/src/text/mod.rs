//! Arrays as text: columns of fixed width and lines of texts, in which every byte is located by arithmetic, and tables
//! without padding, whose rows are measured first.

pub(crate) mod cells;
mod from_front;
mod geojson;
mod json;
pub mod matrix_market;
mod measured;
mod position;
mod row_writer;
mod rows;
mod style;
mod table;
mod value;

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_format::datatype::Kind;

use crate::column::{Column, Field, FormatResult, Labels, LeftOut, Unrepresentable, checked_rows};
pub use from_front::forward;
use json::WideIntegers;
pub use measured::Measured;
use rows::{TextColumn, TextLines};
pub use style::Style;
pub use table::Table;
use table::TableColumn;

/// Checks whether [`grid`] can hold a field; returns the reason if not.
pub fn check_grid(field: &Field) -> FormatResult<()> {
    if field.values_per_cell.is_none() {
        return Err(Unrepresentable::varying_cells());
    }
    TextColumn::check(field)
}

/// Returns the values of a column with one row of the array per line: the last axis across, the others down. A column
/// with one axis has one cell per line.
///
/// Cells are separated by a space. Each value has the width of its type's longest text and is padded on the left; it
/// parses back to the same value. Several values per cell are adjacent. Enumerations show labels, in quotes if they
/// contain blanks or quotes or are empty, as R's `read.table` reads them. Nulls and codes without a label are `NA`, for
/// floats `NaN`, blanks for text.
pub fn grid(column: &Column) -> FormatResult<Arc<dyn Content>> {
    column.check()?;
    check_grid(&column.field)?;
    let across = if column.shape.len() > 1 { column.shape.last().copied().unwrap_or(1) } else { 1 };
    let text = TextColumn::new(column, shown_labels(&column.field, |label| word(one_line(label))))?;
    Ok(Arc::new(TextLines::new(Vec::new(), vec![text], column.cells(), b' ', across)?))
}

/// Checks whether [`table`] and [`json_lines`] can hold a field; returns the reason if not.
pub fn check_table(field: &Field) -> FormatResult<()> {
    TextColumn::check(field)
}

/// Checks whether [`lines`] can hold a field; returns the reason if not.
pub fn check_lines(field: &Field) -> FormatResult<()> {
    if field.datatype.kind() != Kind::Bytes || field.values_per_cell.is_some() {
        return Err(Unrepresentable::new("lines are for texts of any length"));
    }
    if !field.datatype.is_string() && field.datatype != tilefs_format::datatype::Datatype::GeomWkt {
        return Err(Unrepresentable::new("blobs are not lines of text"));
    }
    TextColumn::check(field)
}

/// Returns the texts of a variable-length column, one per line. Each line break within a text becomes a space of the
/// same length, so that the size is known: all bytes and one per cell.
///
/// A null is a line of as many blanks as it has stored bytes, usually none.
pub fn lines(column: &Column) -> FormatResult<Arc<dyn Content>> {
    column.check()?;
    check_lines(&column.field)?;
    let text = TextColumn::new(column, None)?;
    Ok(Arc::new(TextLines::new(Vec::new(), vec![text], column.cells(), b'\n', 1)?))
}

/// Returns the labels of the codes of a column, one per line, in the form of [`lines`]. A null or a code without a
/// label is an empty line.
pub fn label_lines(column: &Column) -> FormatResult<Arc<Table>> {
    column.check()?;
    let labels = shown_labels(&column.field, one_line);
    let labels = labels.ok_or_else(|| Unrepresentable::new("its values are not codes of labels"))?;
    let text = TableColumn::new(column, Style::Tsv, Some(labels))?;
    Ok(Arc::new(Table::new(Vec::new(), vec![text], column.cells(), b'\n')))
}

/// A table of columns, and the columns that have no text form.
pub struct Tabulated {
    /// The table whose rows are the lines.
    pub table: Arc<Table>,
    /// The name of each omitted column, with the reason.
    pub left_out: LeftOut,
}

/// Returns a table of several columns with the same number of cells, one cell per row, under a row of names.
///
/// No value is padded or changed, except that the NUL that ends a `CHAR` is dropped. Texts and labels are quoted as the
/// [`Style`] requires; a null, a code without a label and "not a time" are empty, whereas an empty text is `""`.
/// Booleans are `true` and `false`, blobs hexadecimal. Several numbers per cell are separated by spaces; a cell without
/// numbers is `""`. Without quotes, an empty text and a cell without numbers are empty; a null is what the style says.
pub fn table(columns: &[Column], style: Style) -> FormatResult<Tabulated> {
    tabulated(columns, style, true)
}

/// Like [`table`], without the row of names.
pub fn table_without_header(columns: &[Column], style: Style) -> FormatResult<Tabulated> {
    tabulated(columns, style, false)
}

/// Returns an object in JSON for each cell of several columns with the same number of cells, one per line, under the names
/// of the columns. `is_within_doubles` tells of a column of integers of 64 bits, by its number, whether all of them are
/// known to be within 2^53: then they are numbers, otherwise strings.
pub fn json_lines(columns: &[Column], is_within_doubles: impl Fn(usize) -> bool) -> FormatResult<Tabulated> {
    let integers = |number| if is_within_doubles(number) { WideIntegers::Numbers } else { WideIntegers::Strings };
    let (texts, left_out) = json_columns(columns, "{", integers)?;
    let rows = columns.first().map_or(0, Column::cells);
    Ok(Tabulated { table: Arc::new(Table::new(Vec::new(), texts, rows, Style::JsonLines.separator())), left_out })
}

/// Returns a feature in GeoJSON for each cell of several columns with the same number of cells, one per line. The geometries
/// are in well-known binary, the identifiers are integers without nulls; the other columns are the properties, as in
/// [`json_lines`], with a number for each integer that is exact as a double.
pub fn geojson_lines(geometries: &Column, identifiers: Option<&Column>, columns: &[Column]) -> FormatResult<Tabulated> {
    let mut texts = Vec::new();
    for (column, member) in identifiers.map(|column| (column, "id")).into_iter().chain([(geometries, "geometry")]) {
        let start = if texts.is_empty() { "{\"type\":\"Feature\"," } else { "" };
        let shown = json_columns(std::slice::from_ref(column), "", |_| WideIntegers::ExactNumbers)?.0;
        texts.extend(shown.into_iter().map(|text| {
            let text = text.beginning_with(format!("{start}\"{member}\":").into_bytes());
            if member == "geometry" { text.showing_geometries() } else { text }
        }));
    }
    let (properties, left_out) = json_columns(columns, "\"properties\":{", |_| WideIntegers::ExactNumbers)?;
    texts.extend(properties);
    let table = Table::new(Vec::new(), texts, geometries.cells(), Style::JsonLines.separator());
    Ok(Tabulated { table: Arc::new(table.with_end_of_row(b"}}\n")), left_out })
}

/// Returns columns as members of an object in JSON; `start` precedes the first one.
fn json_columns(
    columns: &[Column],
    start: &str,
    integers: impl Fn(usize) -> WideIntegers,
) -> FormatResult<(Vec<TableColumn>, LeftOut)> {
    checked_rows(columns)?;
    let (mut texts, mut left_out) = (Vec::new(), Vec::new());
    for (number, column) in columns.iter().enumerate() {
        let (field, integers) = (&column.field, integers(number));
        match TableColumn::new(column, Style::JsonLines, json_labels(field, integers)?) {
            Ok(text) => {
                let mut key = if texts.is_empty() { start.as_bytes().to_vec() } else { Vec::new() };
                json::append_string(field.name.as_bytes(), &mut key).map_err(|_| not_utf8(&field.name))?;
                key.push(b':');
                texts.push(text.beginning_with(key).showing_integers(integers));
            }
            Err(reason) => left_out.push((field.name.clone(), reason)),
        }
    }
    if texts.is_empty() {
        return Err(Unrepresentable::new("no column has a text form"));
    }
    Ok((texts, left_out))
}

/// Returns the label of each code as JSON, if a cell is one code.
fn json_labels(field: &Field, integers: WideIntegers) -> FormatResult<Option<Vec<Vec<u8>>>> {
    let Some(labels) = field.labels.as_ref().filter(|_| field.values_per_cell == Some(1)) else { return Ok(None) };
    let mut shown = Vec::with_capacity(labels.values.len());
    let is_text = labels.datatype.kind() == Kind::Bytes;
    // As for blobs: the labels of one column have one type, and distinct ones stay distinct.
    let are_bytes = is_text && !labels.are_text();
    let printer = value::Printer::new(&Field::new(&field.name, labels.datatype), None).map(value::Printer::in_table);
    for (label, text) in labels.values.iter().zip(labels.shown()) {
        let mut out = Vec::new();
        match &printer {
            Ok(printer) if !is_text => printer.append_json(label, integers, &mut out),
            _ if are_bytes => {
                out.push(b'"');
                json::append_base64(label, &mut out);
                out.push(b'"');
            }
            _ => json::append_string(&text, &mut out).map_err(|_| not_utf8(&field.name))?,
        }
        shown.push(out);
    }
    Ok(Some(shown))
}

fn not_utf8(name: &str) -> Unrepresentable {
    Unrepresentable::new(format!("{name}: a label or a name that is not UTF-8"))
}

fn tabulated(columns: &[Column], style: Style, has_header: bool) -> FormatResult<Tabulated> {
    let rows = checked_rows(columns)?;
    let (mut header, mut texts, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for column in columns {
        let field = &column.field;
        let labels = styled_labels(field, style)?;
        match TableColumn::new(column, style, labels) {
            Ok(text) => {
                if has_header {
                    let name = style.append_name(field.name.as_bytes(), &mut header);
                    name.map_err(|reason| Unrepresentable::new(format!("a name that is {}", reason.what())))?;
                    header.push(style.separator());
                }
                texts.push(text);
            }
            Err(reason) => left_out.push((field.name.clone(), reason)),
        }
    }
    if texts.is_empty() {
        return Err(Unrepresentable::new("no column has a text form"));
    }
    if let Some(last) = header.last_mut() {
        *last = b'\n';
    }
    Ok(Tabulated { table: Arc::new(Table::new(header, texts, rows, style.separator())), left_out })
}

/// Returns the label of each code in a style, if a cell is one code.
fn styled_labels(field: &Field, style: Style) -> FormatResult<Option<Vec<Vec<u8>>>> {
    let Some(labels) = field.labels.as_ref().filter(|_| field.values_per_cell == Some(1)) else { return Ok(None) };
    let is_text = labels.datatype.kind() == Kind::Bytes;
    let printer = value::Printer::new(&Field::new(&field.name, labels.datatype), None);
    let is_missing = |label: &[u8]| !is_text && printer.as_ref().is_ok_and(|printer| printer.is_missing(label));
    let styled = labels.values.iter().zip(labels.shown()).map(|(stored, label)| {
        let mut text = Vec::new();
        match is_text {
            _ if is_missing(stored) => text.extend_from_slice(style.null()),
            true => style.append_text(&label, &mut text).map_err(|reason| {
                let shown = String::from_utf8_lossy(&label);
                Unrepresentable::new(format!("{}: the label {shown:?}, which is {}", field.name, reason.what()))
            })?,
            false => text.extend_from_slice(&label),
        }
        Ok(text)
    });
    styled.collect::<FormatResult<_>>().map(Some)
}

/// Returns the labels of an enumeration, one per line: line k + 1 is the label of code k.
pub fn labels(labels: &Labels) -> Vec<u8> {
    let mut text = Vec::new();
    for label in labels.shown() {
        text.extend(one_line(&label));
        text.push(b'\n');
    }
    text
}

/// Returns the label shown for each code, if a cell is one code.
fn shown_labels(field: &Field, show: impl Fn(&[u8]) -> Vec<u8>) -> Option<Vec<Vec<u8>>> {
    let labels = field.labels.as_ref().filter(|_| field.values_per_cell == Some(1))?;
    Some(labels.shown().iter().map(|label| show(label)).collect())
}

fn one_line(text: &[u8]) -> Vec<u8> {
    text.iter().copied().map(value::without_line_break).collect()
}

/// Quotes a label, if necessary, for a list separated by blanks.
fn word(label: Vec<u8>) -> Vec<u8> {
    let is_plain = |byte: &u8| !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'\'' | b'#');
    if !label.is_empty() && label.iter().all(is_plain) {
        return label;
    }
    // R treats a backslash within quotes as an escape.
    let escaped = label.into_iter().flat_map(|byte| match byte {
        b'"' | b'\\' => vec![b'\\', byte],
        _ => vec![byte],
    });
    std::iter::once(b'"').chain(escaped).chain(std::iter::once(b'"')).collect()
}

#[cfg(test)]
mod tests;
