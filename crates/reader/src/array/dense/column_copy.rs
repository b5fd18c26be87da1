//! The copies of a read of a dense column: from the fetched units, line by line, to where the reader wants the cells.

use tilefs_base::error::{Error, Result};

use super::column::DenseColumn;
use super::column_plan::{ColumnPlan, PieceCopy};
use super::pieces::{Piece, PieceSource};
use crate::array::tiles::reader::TileReader;
use crate::array::tiles::strided::Strided;
use crate::array::tiles::unit::TileUnit;
use crate::read::Batches;

impl DenseColumn {
    /// Copies the cells of a plan to `out`.
    ///
    /// # Errors
    /// Any damage in the units that hold them.
    pub(super) fn copy(&self, plan: &ColumnPlan, batches: &mut Batches<'_, TileUnit>, out: &mut [u8]) -> Result<()> {
        for copy in &plan.copies {
            match copy.piece.source {
                PieceSource::Fill => self.fill_piece(&copy.piece, out)?,
                PieceSource::Tile { fragment, .. } => {
                    self.copy_piece(copy, batches, out).map_err(|error| self.locate(error, fragment))?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn fill_piece(&self, piece: &Piece, out: &mut [u8]) -> Result<()> {
        let size = self.cell_size;
        piece.for_each_line(|_, to, count, _, out_stride| {
            for step in 0..count {
                let at = (to + step * out_stride) as usize * size;
                out[at..at + size].copy_from_slice(&self.fill);
            }
            Ok(())
        })
    }

    fn copy_piece(&self, copy: &PieceCopy, batches: &mut Batches<'_, TileUnit>, out: &mut [u8]) -> Result<()> {
        if copy.is_reordered {
            return self.copy_reordered(&copy.piece, &batches.get(copy.units.start)?.bytes, out);
        }
        let size = self.cell_size;
        let mut reader = TileReader::new(copy.units.clone());
        copy.piece.for_each_line(|from, to, count, stride, out_stride| {
            if stride == 1 && out_stride == 1 {
                let to = to as usize * size;
                return reader.copy(batches, from * size as u64, &mut out[to..to + count as usize * size]);
            }
            // A line that runs backwards is copied cell by cell.
            let cells = usize::try_from(stride).ok().and_then(|stride| Strided::new(size, stride.checked_mul(size)?));
            if let Some(cells) = cells.filter(|_| out_stride > 0) {
                let (start, out_step) = (from * size as u64, out_stride as usize * size);
                let out = &mut out[to as usize * size..];
                return reader.copy_strided(batches, start, cells, count as usize, out, out_step);
            }
            for step in 0..count {
                let from = from.wrapping_add((stride as u64).wrapping_mul(step));
                let to = (to + step * out_stride) as usize * size;
                reader.copy(batches, from * size as u64, &mut out[to..to + size])?;
            }
            Ok(())
        })
    }

    /// Copies a piece that numbers tile cells in column-major order from the tile in row-major order.
    fn copy_reordered(&self, piece: &Piece, tile: &[u8], out: &mut [u8]) -> Result<()> {
        let size = self.cell_size;
        let grid = self.view.grid();
        let past = || Error::damaged("a cell past the end of its tile");
        piece.for_each_line(|from, to, count, stride, out_stride| {
            let first = grid.to_row_major_cell(from);
            let step = if count > 1 {
                grid.to_row_major_cell(from.wrapping_add(stride as u64)).wrapping_sub(first)
            } else {
                1
            };
            if step == 1 && out_stride == 1 {
                let (from, to, length) = (first as usize * size, to as usize * size, count as usize * size);
                out[to..to + length].copy_from_slice(tile.get(from..from + length).ok_or_else(past)?);
                return Ok(());
            }
            for number in 0..count {
                let from = first.wrapping_add(step.wrapping_mul(number)) as usize * size;
                let to = (to + number * out_stride) as usize * size;
                out[to..to + size].copy_from_slice(tile.get(from..from + size).ok_or_else(past)?);
            }
            Ok(())
        })
    }
}
