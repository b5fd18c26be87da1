//! The plan of a read of a dense column: the units to fetch, and the copies to make from them.

use std::ops::Range;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use tilefs_base::error::Result;

use super::column::DenseColumn;
use super::pieces::{Piece, PieceSource, for_each_piece};
use super::selection::boxes_of_run;
use crate::array::tiles::Tiles;
use crate::array::tiles::unit::{TileUnit, keep_marked};

/// The plan of a read: units to fetch, and copies from them.
pub struct ColumnPlan {
    /// The units to read.
    pub units: Vec<TileUnit>,
    pub(super) copies: Vec<PieceCopy>,
}

/// A box of cells that is copied from a range of the units, or filled.
pub(super) struct PieceCopy {
    pub piece: Piece,
    /// The range of the plan's units that contain the cells.
    pub units: Range<usize>,
    /// Whether the units are in row-major order although the piece numbers cells in column-major order.
    pub is_reordered: bool,
}

/// A range of bytes of a tile, and the range of a plan's units that contain them.
type PlannedRange = (Range<u64>, Range<usize>);

impl DenseColumn {
    /// Plans a read of `count` cells from cell `first`. Reads only indexes from storage.
    ///
    /// # Errors
    /// Any damage in these indexes.
    pub fn plan(&self, first: u64, count: u64) -> Result<ColumnPlan> {
        let mut plan = ColumnPlan { units: Vec::new(), copies: Vec::new() };
        let boxes = boxes_of_run(&self.selection.shape(), first, count);
        // Only several boxes of one read may be in the same tile.
        let has_many_boxes = boxes.len() > 1;
        let mut planned: HashMap<(usize, u64, bool), PlannedRange> = HashMap::new();
        let mut latest: Option<(usize, Arc<Tiles>)> = None;
        for_each_piece(
            self.view.grid(),
            &self.selection,
            &boxes,
            |tile| self.owners(tile),
            |piece| {
                let PieceSource::Tile { fragment, tile } = piece.source else {
                    plan.copies.push(PieceCopy { piece, units: 0..0, is_reordered: false });
                    return Ok(());
                };
                let size = self.tile_size(fragment, tile)?;
                let is_reordered = self.is_reordered(&piece, size);
                let bytes = if is_reordered { 0..size } else { self.bytes_of(&piece)? };
                let known = planned
                    .get(&(fragment, tile, is_reordered))
                    .filter(|(known, _)| known.start <= bytes.start && bytes.end <= known.end);
                let units = match known {
                    Some((_, units)) => units.clone(),
                    None => {
                        let start = plan.units.len();
                        let tiles = match latest.take() {
                            Some((of, tiles)) if of == fragment => tiles,
                            _ => self.tiles(fragment).map_err(|error| self.locate(error, fragment))?,
                        };
                        if is_reordered {
                            plan.units.push(tiles.row_major_unit(tile, size, &self.extents, self.cell_size));
                        } else {
                            let added = tiles.units(tile, size, bytes.clone(), &mut plan.units);
                            added.map_err(|error| self.locate(error, fragment))?;
                        }
                        latest = Some((fragment, tiles));
                        let all = plan.units.len();
                        if !is_reordered && all > start + 1 {
                            self.drop_untouched(&piece, self.cell_size as u64, start, &mut plan.units)?;
                        }
                        if has_many_boxes && plan.units.len() == all {
                            planned.insert((fragment, tile, is_reordered), (bytes, start..all));
                        }
                        start..plan.units.len()
                    }
                };
                plan.copies.push(PieceCopy { piece, units, is_reordered });
                Ok(())
            },
        )?;
        Ok(plan)
    }

    /// Removes those units from index `first` on that lie between the lines of a piece. `wanted` is the number of bytes
    /// to read from the start of each cell.
    pub(super) fn drop_untouched(
        &self,
        piece: &Piece,
        wanted: u64,
        first: usize,
        units: &mut Vec<TileUnit>,
    ) -> Result<()> {
        let ranges: Vec<Range<u64>> = units[first..].iter().map(TileUnit::range).collect();
        keep_marked(units, first, touched(piece, self.cell_size as u64, wanted, &ranges)?);
        Ok(())
    }
}

/// Returns for each of `ranges`, which are bytes of a tile in ascending order, whether the range contains any wanted
/// byte of a piece. The first `wanted` bytes from the start of each cell are wanted.
fn touched(piece: &Piece, cell_size: u64, wanted: u64, ranges: &[Range<u64>]) -> Result<Vec<bool>> {
    let mut is_touched = vec![false; ranges.len()];
    piece.for_each_line(|from, _, count, stride, _| {
        let last = from.wrapping_add((stride as u64).wrapping_mul(count - 1));
        let (start, end) = (from.min(last) * cell_size, from.max(last) * cell_size + wanted);
        let step = (stride.unsigned_abs() * cell_size).max(1);
        let number = ranges.partition_point(|range| range.end <= start);
        for (range, is_touched) in ranges.iter().zip(&mut is_touched).skip(number) {
            if range.start >= end {
                break;
            }
            // The first cell of the line whose wanted bytes do not end before the range begins.
            let cell = (range.start + 1).saturating_sub(start + wanted).div_ceil(step);
            *is_touched |= cell < count && start + cell * step < range.end;
        }
        Ok(())
    })?;
    Ok(is_touched)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::array::dense::pieces::PieceAxis;

    proptest! {
        /// A cell of offsets ends with the offset of the next cell, which may be in the next unit.
        #[test]
        fn units_between_lines_are_not_read(
            axes in prop::collection::vec((1u64..5, -40i64..40), 0..4), first in 500u64..600, cell_size in 1u64..9,
            wanted in 1u64..20, unit in 1u64..200
        ) {
            let axes = axes.into_iter().map(|(count, tile_stride)| PieceAxis { count, tile_stride, out_stride: 1 });
            let piece = Piece { source: PieceSource::Fill, tile_first: first, out_first: 0, axes: axes.collect() };
            let ranges: Vec<_> = (0..10_000u64.div_ceil(unit)).map(|number| number * unit..(number + 1) * unit).collect();
            let mut expected = vec![false; ranges.len()];
            piece.for_each_line(|from, _, count, stride, _| {
                for number in 0..count as i64 {
                    let start = from.wrapping_add_signed(stride * number) * cell_size;
                    (start..start + wanted).for_each(|byte| expected[(byte / unit) as usize] = true);
                }
                Ok(())
            }).unwrap();
            prop_assert_eq!(touched(&piece, cell_size, wanted, &ranges).unwrap(), expected);
        }
    }
}
