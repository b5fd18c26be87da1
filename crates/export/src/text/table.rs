//! Rows of separated cells without padding: the length of a row depends on its values.
//!
//! No form of padding is ignored by all readers: blanks within fields make Polars, SQLite and pandas take numbers for
//! text; blank lines are rows to Polars and SQLite, and the end of the table to R's `fread`; an extra last column is a
//! column to all of them; and carriage returns break Polars and DuckDB. Therefore the positions of rows must be
//! measured, in one pass over all cells; see [`super::Measured::new`]. Sequential readers need not wait for that; see
//! [`super::forward`].

use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::inputs::{Recorded, Recorder};
use tilefs_base::output::Output;
use tilefs_threads::cancellation;

use super::cells::ColumnCells;
use super::geojson;
use super::json::{self, WideIntegers};
use super::position::Position;
use super::style::{LONG, NotShown, ShownResult, Style};
use super::value::Printer;
use crate::column::{Column, FormatResult};
use crate::content::refusal::refused_cell;
use crate::content::validity::RowValidity;

/// Maximum numbers of cells and of rows written together: enough for efficient reads of columns, and few enough for
/// their text to stay in the processor's cache.
const MAX_CELLS: u64 = 32 << 10;
const MAX_ROWS: u64 = 512;

/// Maximum size in bytes of a geometry, which is held in memory.
const MAX_GEOMETRY: u64 = 64 << 20;

/// Columns, and the conversion of their cells to rows of text.
pub struct Table {
    header: Vec<u8>,
    columns: Vec<TableColumn>,
    rows: u64,
    separator: u8,
    end_of_row: &'static [u8],
    /// Number of rows written together; 0 if a cell of fixed size is too long to be written as a whole.
    rows_of_batch: u64,
}

/// A column, and the conversion of its cells to text.
pub(super) struct TableColumn {
    cells: ColumnCells,
    printer: Printer,
    style: Style,
    /// Whether a cell may have several numbers.
    is_list: bool,
    /// The text before each cell: in JSON, its key.
    before: Vec<u8>,
    /// How JSON shows integers of 64 bits.
    integers: WideIntegers,
    /// Whether cells are geometries, which JSON shows as objects.
    is_geometry: bool,
}

/// The values of a few rows, in reusable buffers.
#[derive(Default)]
pub struct LoadedRows {
    columns: Vec<Loaded>,
}

/// The cells of one column.
#[derive(Default)]
struct Loaded {
    /// The number of the first element of each row, and the end of the last row.
    elements: Vec<u64>,
    values: Vec<u8>,
    validity: RowValidity,
}

impl Recorded for TableColumn {
    fn record(&self, recorder: &mut Recorder) {
        let Self { cells, printer, style, is_list, before, integers, is_geometry } = self;
        recorder.add::<Self>((printer, style, is_list, before, integers, is_geometry));
        cells.record(recorder);
    }
}

impl TableColumn {
    /// Creates the column in a style; `labels` are shown instead of codes, in the order of the codes.
    pub fn new(column: &Column, style: Style, labels: Option<Vec<Vec<u8>>>) -> FormatResult<Self> {
        let printer = Printer::new(&column.field, labels)?.in_table();
        let is_list = !printer.is_run() && column.field.values_per_cell != Some(1);
        let cells = ColumnCells::new(column)?;
        let (before, integers) = (Vec::new(), WideIntegers::Numbers);
        Ok(TableColumn { cells, printer, style, is_list, before, integers, is_geometry: false })
    }

    /// Sets the text before each cell: in JSON, its key.
    pub fn beginning_with(mut self, before: Vec<u8>) -> Self {
        self.before = before;
        self
    }

    /// Shows integers of 64 bits like this in JSON.
    pub fn showing_integers(mut self, integers: WideIntegers) -> Self {
        self.integers = integers;
        self
    }

    /// Shows cells, which are well-known binary, as geometries of GeoJSON.
    pub fn showing_geometries(mut self) -> Self {
        self.is_geometry = true;
        self
    }

    /// Returns whether a cell of this many elements is written as a whole.
    fn is_whole(&self, elements: u64) -> bool {
        let most = if self.is_geometry { MAX_GEOMETRY } else { LONG as u64 };
        elements.saturating_mul(self.cells.size) <= most
    }

    /// Reads the cells of `count` rows from `first` into the buffers; `loaded.elements` must be filled already.
    fn load(&self, first: u64, count: u64, loaded: &mut Loaded) -> Result<()> {
        let (from, to) = (loaded.elements[0], loaded.elements[count as usize]);
        let wanted = Output::Into(&mut []);
        self.cells.read_values(from..to, &wanted, &mut loaded.values)?;
        loaded.validity.read(self.cells.validity.as_ref(), first..first + count, &wanted)
    }

    /// Appends a loaded cell.
    fn append(&self, loaded: &Loaded, row: usize, out: &mut Vec<u8>) -> ShownResult<()> {
        out.extend_from_slice(&self.before);
        if loaded.validity.is_null(row) {
            out.extend_from_slice(self.style.null());
            return Ok(());
        }
        let size = self.cells.size as usize;
        let from = (loaded.elements[row] - loaded.elements[0]) as usize * size;
        let to = (loaded.elements[row + 1] - loaded.elements[0]) as usize * size;
        let values = &loaded.values[from..to];
        if self.style == Style::JsonLines {
            return self.append_json(values, out);
        }
        if self.printer.is_text() {
            self.style.append_text(self.text(values), out)?;
        } else if self.is_list || self.printer.is_hex() {
            self.append_quote(values.is_empty(), out);
            self.append_elements(values, true, out)?;
            self.append_quote(values.is_empty(), out);
        } else if self.printer.is_missing(values) {
            out.extend_from_slice(self.style.null());
        } else {
            self.printer.append(values, out);
        }
        Ok(())
    }

    /// Appends a whole cell as JSON.
    fn append_json(&self, values: &[u8], out: &mut Vec<u8>) -> ShownResult<()> {
        if self.is_geometry {
            return geojson::append(values, out);
        }
        if self.printer.is_text() {
            return json::append_string(self.text(values), out);
        }
        self.append_ends(false, out);
        self.append_json_elements(values, true, out);
        self.append_ends(true, out);
        Ok(())
    }

    /// Appends elements of a cell as JSON, or base64 of a blob; `from_first` tells whether they include the first.
    fn append_json_elements(&self, values: &[u8], from_first: bool, out: &mut Vec<u8>) {
        if self.printer.is_hex() {
            return json::append_base64(values, out);
        }
        for (number, value) in values.chunks_exact(self.cells.size as usize).enumerate() {
            if number > 0 || !from_first {
                out.push(b',');
            }
            self.printer.append_json(value, self.integers, out);
        }
    }

    /// Appends the quote or bracket that begins or ends a text, a blob or an array in JSON.
    fn append_ends(&self, is_end: bool, out: &mut Vec<u8>) {
        match (self.printer.is_run(), self.is_list, is_end) {
            (true, ..) => out.push(b'"'),
            (false, true, false) => out.push(b'['),
            (false, true, true) => out.push(b']'),
            (false, false, _) => {}
        }
    }

    /// Appends a part of a cell that is too long for memory, and returns the number of its elements.
    fn append_long(&self, values: &[u8], is_first: bool, is_last: bool, out: &mut Vec<u8>) -> ShownResult<u64> {
        if self.style != Style::JsonLines {
            if is_first {
                self.append_quote(false, out);
            }
            self.append_elements(if is_last { self.text(values) } else { values }, is_first, out)?;
            if is_last {
                self.append_quote(false, out);
            }
            return Ok(values.len() as u64 / self.cells.size);
        }
        if is_first {
            self.append_ends(false, out);
        }
        let mut length = values.len();
        if self.printer.is_text() {
            let text = if is_last { json::check(self.text(values))? } else { json::whole_characters(values)? };
            json::append_within_string(text, out);
            length = if is_last { length } else { text.len() };
        } else {
            if self.printer.is_hex() && !is_last {
                length -= length % json::GROUP;
            }
            self.append_json_elements(values.get(..length).unwrap_or(values), is_first, out);
        }
        if is_last {
            self.append_ends(true, out);
        }
        Ok(length as u64 / self.cells.size)
    }

    /// Returns the error of a value that the text cannot hold.
    fn refused(&self, row: u64, reason: NotShown) -> Error {
        refused_cell(row, reason.what()).in_field(self.cells.name())
    }

    /// Returns the text of a value, or of the end of a long value, without the NUL that ends it.
    fn text<'a>(&self, value: &'a [u8]) -> &'a [u8] {
        if self.printer.is_terminated() { value.strip_suffix(&[0]).unwrap_or(value) } else { value }
    }

    /// Appends elements of a cell; `from_first` says whether they include the cell's first.
    fn append_elements(&self, values: &[u8], from_first: bool, out: &mut Vec<u8>) -> ShownResult<()> {
        if self.printer.is_text() {
            return self.style.append_part(values, out);
        }
        for (number, value) in values.chunks_exact(self.cells.size as usize).enumerate() {
            if self.is_list && (number > 0 || !from_first) {
                out.push(b' ');
            }
            let before = out.len();
            self.printer.append(value, out);
            if self.is_list && out.len() == before {
                // "Not a time" must not vanish among the other values.
                out.extend_from_slice(b"NaT");
            }
        }
        Ok(())
    }

    /// Appends the quote at either end of a list, a blob, or a text that is too long to scan.
    fn append_quote(&self, is_empty: bool, out: &mut Vec<u8>) {
        let is_quoted = is_empty || self.printer.is_text() || (self.printer.is_hex() && self.style == Style::Csv);
        if is_quoted && self.style.has_quotes() {
            out.push(b'"');
        }
    }
}

impl Recorded for Table {
    fn record(&self, recorder: &mut Recorder) {
        let Self { header, columns, rows, separator, end_of_row, rows_of_batch } = self;
        recorder.add::<Self>((header, columns.len(), rows, separator, end_of_row, rows_of_batch));
        columns.iter().for_each(|column| column.record(recorder));
    }
}

impl Table {
    /// Creates the table. All columns have `rows` cells.
    pub(super) fn new(header: Vec<u8>, columns: Vec<TableColumn>, rows: u64, separator: u8) -> Self {
        let end_of_row = columns.first().map_or(Style::Tsv, |column| column.style).end_of_row();
        let widest = columns.iter().map(|column| column.cells.each().unwrap_or(0).saturating_mul(column.cells.size));
        let that_fit = LONG as u64 / widest.max().unwrap_or(0).max(1);
        let rows_of_batch = (MAX_CELLS / columns.len().max(1) as u64).clamp(1, MAX_ROWS).min(that_fit);
        Table { header, columns, rows, separator, end_of_row, rows_of_batch }
    }

    /// Ends rows like this.
    pub(super) fn with_end_of_row(mut self, end: &'static [u8]) -> Self {
        self.end_of_row = end;
        self
    }

    /// Reads as many rows as fit in memory, at most `most`, and returns their number; 0 if one cell does not fit.
    fn load(&self, first: u64, most: u64, scratch: &mut LoadedRows) -> Result<u64> {
        let mut count = self.rows_of_batch.min(most);
        if count == 0 {
            return Ok(0);
        }
        for (column, loaded) in self.columns.iter().zip(&mut scratch.columns) {
            column.cells.elements(first, count, &mut loaded.elements)?;
            let start = loaded.elements[0];
            let ends = loaded.elements.partition_point(|end| (end - start) * column.cells.size <= LONG as u64);
            count = count.min(ends as u64 - 1);
        }
        if count > 0 {
            for (column, loaded) in self.columns.iter().zip(&mut scratch.columns) {
                column.load(first, count, loaded)?;
            }
        }
        Ok(count)
    }

    fn append_rows(&self, first: u64, count: usize, scratch: &LoadedRows, out: &mut Vec<u8>) -> Result<()> {
        for row in 0..count {
            for (column, loaded) in self.columns.iter().zip(&scratch.columns) {
                column.append(loaded, row, out).map_err(|reason| column.refused(first + row as u64, reason))?;
                out.push(self.separator);
            }
            out.pop();
            out.extend_from_slice(self.end_of_row);
        }
        Ok(())
    }

    /// Appends one cell, or the part of it that is read at a time.
    fn append_part(&self, at: Position, scratch: &mut LoadedRows, out: &mut Vec<u8>) -> Result<Position> {
        let number = at.column as usize;
        let (column, loaded) = (&self.columns[number], &mut scratch.columns[number]);
        let size = column.cells.size;
        column.cells.elements(at.row, 1, &mut loaded.elements)?;
        let (start, end) = (loaded.elements[0], loaded.elements[1]);
        if at.element > end - start {
            return Err(Error::damaged("a place behind the end of its cell"));
        }
        if column.is_whole(end - start) {
            column.load(at.row, 1, loaded)?;
            column.append(loaded, 0, out).map_err(|reason| column.refused(at.row, reason))?;
        } else if column.is_geometry {
            return Err(column.refused(at.row, NotShown::Geometry("a geometry of more than 64 MiB")));
        } else {
            // Treat a part of at least one element as a cell of its own.
            let from = start + at.element;
            let to = end.min(from + (LONG as u64 / size).max(1));
            loaded.elements.clear();
            loaded.elements.extend([from, to]);
            column.load(at.row, 1, loaded)?;
            if at.element == 0 {
                out.extend_from_slice(&column.before);
            }
            if !loaded.validity.is_null(0) {
                let written = column.append_long(&loaded.values, at.element == 0, to == end, out);
                let written = written.map_err(|reason| column.refused(at.row, reason))?;
                if to < end {
                    return Ok(Position { element: at.element + written, ..at });
                }
            } else {
                out.extend_from_slice(column.style.null());
            }
        }
        let is_last = number + 1 == self.columns.len();
        match is_last {
            true => out.extend_from_slice(self.end_of_row),
            false => out.push(self.separator),
        }
        Ok(match is_last {
            true => Position { row: at.row + 1, ..Position::default() },
            false => Position { column: at.column + 1, element: 0, ..at },
        })
    }
}

/// The text between two rows depends only on their numbers, not on the number of steps that produce it.
impl Table {
    /// Returns the text before the first row.
    pub fn header(&self) -> &[u8] {
        &self.header
    }

    /// Returns the number of rows. A row may have no text.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the number of columns at which a position may lie.
    pub(super) fn column_count(&self) -> usize {
        self.columns.len()
    }

    /// Appends the text of some rows from a position, or a part of a row that is too long for memory; `end` is the row
    /// after the last requested one. Returns the position after the text.
    ///
    /// # Errors
    /// Fails if a cell cannot be read or shown.
    pub(super) fn advance(
        &self,
        at: Position,
        end: u64,
        scratch: &mut LoadedRows,
        out: &mut Vec<u8>,
    ) -> Result<Position> {
        cancellation::check()?;
        scratch.columns.resize_with(self.columns.len(), Loaded::default);
        if at.column == 0 && at.element == 0 {
            let count = self.load(at.row, end - at.row, scratch)?;
            if count > 0 {
                self.append_rows(at.row, count as usize, scratch, out)?;
                return Ok(Position { row: at.row + count, ..Position::default() });
            }
        }
        self.append_part(at, scratch, out)
    }

    /// Prefetches the cells of the text between two positions.
    ///
    /// # Errors
    /// Fails if they cannot be read.
    pub(super) fn read_ahead(&self, from: Position, to: Position) -> Result<()> {
        let mut columns = (0..).zip(&self.columns);
        columns.try_for_each(|(number, column)| column.cells.read_ahead(from.in_column(number), to.in_column(number)))
    }
}
