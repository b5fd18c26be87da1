//! Rows of text that are made one after another, and positions within them.

use tilefs_format::error::Result;

/// A header and rows of text, each made of the cells of some columns.
///
/// The text between two rows depends only on their numbers, not on the number of steps that produce it.
pub trait TextRows: Send + Sync {
    /// Buffers that are reused from one step to the next.
    type Scratch: Default;

    /// Returns the text before the first row.
    fn header(&self) -> &[u8];

    /// Returns the number of rows. A row may have no text.
    fn rows(&self) -> u64;

    /// Returns the number of columns at which a position may lie.
    fn column_count(&self) -> usize;

    /// Appends the text of some rows from a position, or a part of a row that is too long for memory; `end` is the row
    /// after the last requested one. Returns the position after the text.
    ///
    /// # Errors
    /// Fails if a cell cannot be read or shown.
    fn advance(&self, at: Position, end: u64, scratch: &mut Self::Scratch, out: &mut Vec<u8>) -> Result<Position>;

    /// Prefetches the cells of the text between two positions.
    ///
    /// # Errors
    /// Fails if they cannot be read.
    fn read_ahead(&self, from: Position, to: Position) -> Result<()>;
}

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
}
