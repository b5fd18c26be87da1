//! Implements the sources of the formats for views of arrays.

use std::ops::Range;

use tilefs_format::error::Result;
use tilefs_reader::array::dense::CellSummary;
use tilefs_reader::array::sparse::{RowSummary, SparseView, VarColumn};
use tilefs_reader::read::Output;

use crate::column::{Summaries, Summary};
use crate::content::var::VarCells;
use crate::parquet::TileRows;

impl TileRows for SparseView {
    fn last_start(&self, rows: Range<u64>) -> Option<u64> {
        // Reading the rows will report the error.
        self.last_tile_start(rows).ok().flatten()
    }
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

impl VarCells for VarColumn {
    fn count(&self) -> Result<u64> {
        self.row_count()
    }

    fn total(&self) -> Result<u64> {
        self.byte_count()
    }

    fn read_offsets(&self, first: u64, out: Output<'_, u64>) -> Result<()> {
        self.offsets(first, out)
    }

    fn read_values(&self, start: u64, out: Output<'_>) -> Result<()> {
        VarColumn::read(self, start, out)
    }
}
