//! Bounds of the values of rows, for formats that store such statistics.

use std::ops::Range;

use tilefs_format::error::Result;
use tilefs_reader::array::dense::CellSummary;
use tilefs_reader::array::sparse::RowSummary;

/// Bounds of the values of consecutive rows, known without reading them.
pub trait Summaries: Send + Sync {
    /// Returns the bounds of the values in a range of rows; `None` if they are not known.
    ///
    /// # Errors
    /// Fails if the metadata that contain them cannot be read.
    fn summary(&self, rows: Range<u64>) -> Result<Option<Summary>>;
}

/// Bounds of the values in a range of rows that are not null. The bounds need not be values themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The bytes of a value, little-endian.
    pub least: Vec<u8>,
    /// The bytes of the greatest value.
    pub greatest: Vec<u8>,
}

impl Summaries for RowSummary {
    fn summary(&self, rows: Range<u64>) -> Result<Option<Summary>> {
        Ok(self.bounds(rows)?.map(|(least, greatest)| Summary { least, greatest }))
    }
}

impl Summaries for CellSummary {
    fn summary(&self, rows: Range<u64>) -> Result<Option<Summary>> {
        Ok(self.bounds(rows)?.map(|(least, greatest)| Summary { least, greatest }))
    }
}
