//! Implements the sources of the formats for views of arrays.

use std::ops::Range;

use tilefs_format::error::Result;
use tilefs_reader::array::ValueBounds;
use tilefs_reader::array::dense::CellStatistics;
use tilefs_reader::array::sparse::{RowStatistics, SparseView, VarColumn};
use tilefs_reader::read::Output;

use crate::column::ColumnStatistics;
use crate::parquet::TileRows;
use crate::var::VarCells;

impl TileRows for SparseView {
    fn last_start(&self, rows: Range<u64>) -> Option<u64> {
        // Reading the rows will report the error.
        self.last_tile_start(rows).ok().flatten()
    }
}

impl ColumnStatistics for RowStatistics {
    fn bounds(&self, rows: Range<u64>) -> Result<Option<ValueBounds>> {
        self.bounds(rows)
    }
}

impl ColumnStatistics for CellStatistics {
    fn bounds(&self, rows: Range<u64>) -> Result<Option<ValueBounds>> {
        self.bounds(rows)
    }
}

impl VarCells for VarColumn {
    fn count(&self) -> Result<u64> {
        self.row_count()
    }

    fn byte_count(&self) -> Result<u64> {
        VarColumn::byte_count(self)
    }

    fn read_offsets(&self, first: u64, out: Output<'_, u64>) -> Result<()> {
        VarColumn::read_offsets(self, first, out)
    }

    fn read_values(&self, start: u64, out: Output<'_>) -> Result<()> {
        VarColumn::read_values(self, start, out)
    }
}
