//! Rows of fixed width: the position of every row is computed from its number and the offsets of its texts, so any byte
//! is located without a scan.
//!
//! A column writes each element of a cell (a number, or a byte of text) in a fixed number of characters. The position
//! of a row is therefore linear in its number and in the offsets of the variable-length columns, and the row at a
//! position is found by binary search.

use std::sync::{Arc, Mutex};

use tilefs_base::error::{Error, Result};
use tilefs_base::search::partition_point;
use tilefs_format::datatype::Datatype;

use super::cells::ColumnCells;
use super::value::Printer;
use crate::column::{Column, Field, FormatResult, Unrepresentable};
use crate::content::element::Converted;
use crate::number;

/// A column, and the conversion of its cells to text.
pub struct TextColumn {
    pub(super) cells: ColumnCells,
    pub(super) printer: Printer,
    /// Characters of an element's text, including a leading space.
    pub(super) width: u64,
    /// Whether a space precedes each element: if there may be several numbers.
    pub(super) spaced: bool,
}

impl TextColumn {
    /// Checks whether a field has a text form; returns the reason if not.
    pub fn check(field: &Field) -> FormatResult<()> {
        Printer::new(field, None).map(drop)
    }

    /// Creates the column; `labels` are shown instead of codes, in the order of the codes.
    pub fn new(column: &Column, labels: Option<Vec<Vec<u8>>>) -> FormatResult<Self> {
        let printer = Printer::new(&column.field, labels)?;
        let spaced = !printer.is_run() && column.field.values_per_cell != Some(1);
        let width = printer.width() as u64 + u64::from(spaced);
        Ok(TextColumn { cells: ColumnCells::new(column)?, printer, width, spaced })
    }

    /// Shows integer coordinates as positions, counted from 1 at `first`, as wide as `length` requires. Reading a
    /// coordinate outside the range is an error.
    pub fn counted_from(column: &Column, first: i128, length: u64) -> FormatResult<Self> {
        let datatype = column.field.datatype;
        let size = datatype.size();
        let positions = Converted::new(column.values.clone(), size, 8, move |from, to| {
            for (from, to) in from.chunks_exact(size).zip(to.as_chunks_mut().0) {
                let position = number::integer(datatype, from).map(|value| value - first + 1);
                let position = position.and_then(|position| u64::try_from(position).ok());
                let inside = position.filter(|position| (1..=length).contains(position));
                *to = inside.ok_or_else(|| Error::damaged("a coordinate outside the domain"))?.to_le_bytes();
            }
            Ok(())
        });
        let field = Field::new(column.field.name.clone(), Datatype::UInt64);
        TextColumn::new(&Column::fixed(field, column.shape.clone(), Arc::new(positions)), None)
    }

    /// Returns the number of characters of all cells, without separators.
    fn total(&self, rows: u64) -> Option<u64> {
        self.cells.total(rows)?.checked_mul(self.width)
    }

    /// Returns whether the position of a row depends on offsets.
    pub(super) fn varies(&self) -> bool {
        self.cells.each().is_none()
    }
}

/// Lines of text made of columns.
pub struct TextLines {
    pub(super) header: Vec<u8>,
    pub(super) columns: Vec<TextColumn>,
    pub(super) rows: u64,
    pub(super) separator: u8,
    /// Number of rows per line; rows within a line end with the separator.
    pub(super) rows_of_line: u64,
    /// Number of characters of each row that do not depend on offsets.
    pub(super) fixed: u64,
    pub(super) length: u64,
    /// A row and its position, where the last read ended: the next usually begins there. The second is for prefetching.
    pub(super) last: [Mutex<(u64, u64)>; 2],
}

impl TextLines {
    /// Creates the text. All columns have `rows` cells, and `rows` is a multiple of `rows_of_line`.
    pub fn new(
        header: Vec<u8>,
        columns: Vec<TextColumn>,
        rows: u64,
        separator: u8,
        rows_of_line: u64,
    ) -> FormatResult<Self> {
        let too_long = || Unrepresentable::new("the text would be longer than 2^63 bytes");
        let total = columns.iter().try_fold(header.len() as u64, |total, column| {
            // One more for the separator or line break after each cell.
            total.checked_add(column.total(rows)?)?.checked_add(rows)
        });
        let length = total.filter(|&length| length <= i64::MAX as u64).ok_or_else(too_long)?;
        let fixed = columns.iter().map(|column| column.cells.each().unwrap_or(0) * column.width + 1).sum();
        let last = [0, 1].map(|_| Mutex::new((0, header.len() as u64)));
        Ok(TextLines { header, columns, rows, separator, rows_of_line: rows_of_line.max(1), fixed, length, last })
    }

    /// Returns the position of a row's first character.
    fn place(&self, row: u64) -> Result<u64> {
        let mut place = self.header.len() as u64 + row * self.fixed;
        for column in self.columns.iter().filter(|column| column.varies()) {
            place += column.cells.element(row)? * column.width;
        }
        Ok(place)
    }

    /// Returns whether the position of any row depends on offsets.
    pub(super) fn varies(&self) -> bool {
        self.columns.iter().any(TextColumn::varies)
    }

    /// Returns the row that contains the character at `place`, and that row's position; `last` is a hint: any row and
    /// its position.
    pub(super) fn row_at(&self, place: u64, last: (u64, u64)) -> Result<(u64, u64)> {
        let header = self.header.len() as u64;
        if !self.varies() {
            let row = (place - header) / self.fixed;
            return Ok((row, header + row * self.fixed));
        }
        let (mut low, mut low_place) = last;
        let mut high = self.rows;
        if place < low_place {
            (low, low_place, high) = (0, header, low);
        } else {
            // Usually it is near: try increasing steps.
            let mut step = 1;
            while low + step < high {
                let tried = self.place(low + step)?;
                if tried > place {
                    high = low + step;
                    break;
                }
                (low, low_place) = (low + step, tried);
                step *= 2;
            }
        }
        // The row is in low..high.
        let behind = partition_point(low + 1..high, |row| {
            let row_place = self.place(row)?;
            low_place = if row_place > place { low_place } else { row_place };
            Ok(row_place <= place)
        })?;
        Ok((behind - 1, low_place))
    }
}
