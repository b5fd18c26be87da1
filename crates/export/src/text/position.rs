//! Positions within rows of text.

use std::cmp::Ordering;

/// A position within rows of text: before an element of a cell. Before the first element, the cell's opening quote is
/// still to be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    /// The row.
    pub row: u64,
    /// The column whose cell comes next.
    pub column: u32,
    /// The element of that cell that comes next.
    pub element: u64,
}

impl Position {
    /// Returns the position before a row.
    pub(crate) fn before_row(row: u64) -> Self {
        Position { row, ..Position::default() }
    }

    /// Returns the position at which a column continues, at or after this position: the row, and the number of elements
    /// of its cell before the position.
    pub(crate) fn in_column(self, number: u32) -> (u64, u64) {
        match number.cmp(&self.column) {
            Ordering::Less => (self.row + 1, 0),
            Ordering::Equal => (self.row, self.element),
            Ordering::Greater => (self.row, 0),
        }
    }
}
