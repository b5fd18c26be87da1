//! Bounds of the values of rows, for formats that store such statistics.

use std::ops::Range;

use tilefs_base::error::Result;
use tilefs_reader::array::ValueBounds;
use tilefs_reader::array::dense::CellStatistics;
use tilefs_reader::array::sparse::RowStatistics;

/// The statistics of a column: bounds of the values of consecutive rows, known without reading the values.
pub trait ColumnStatistics: Send + Sync {
    /// Returns the bounds of the values in a range of rows that are not null; `None` if they are not known.
    ///
    /// # Errors
    /// Fails if the metadata that contain them cannot be read.
    fn bounds(&self, rows: Range<u64>) -> Result<Option<ValueBounds>>;

    /// Returns the number of nulls in a range of rows; `None` if it is not known.
    ///
    /// # Errors
    /// As for `bounds`.
    fn nulls(&self, rows: Range<u64>) -> Result<Option<u64>>;
}

impl ColumnStatistics for RowStatistics {
    fn bounds(&self, rows: Range<u64>) -> Result<Option<ValueBounds>> {
        RowStatistics::bounds(self, rows)
    }

    fn nulls(&self, rows: Range<u64>) -> Result<Option<u64>> {
        RowStatistics::nulls(self, rows)
    }
}

impl ColumnStatistics for CellStatistics {
    fn bounds(&self, rows: Range<u64>) -> Result<Option<ValueBounds>> {
        CellStatistics::bounds(self, rows)
    }

    fn nulls(&self, rows: Range<u64>) -> Result<Option<u64>> {
        CellStatistics::nulls(self, rows)
    }
}
