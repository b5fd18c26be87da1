//! Copies from the tiles of a file with a plan.

use std::ops::Range;
use std::sync::Arc;

use tilefs_format::error::{Error, Result};

use super::TileUnit;
use super::strided::Strided;
use crate::read::{Batches, Decoded, Piece};

/// Copies from the units of one tile, which are a range of a plan's units. Holds the most recent unit, from which a
/// copy needs no look-up.
#[derive(Debug, Clone)]
pub struct TileReader {
    /// A range of the plan's units.
    units: Range<usize>,
    held: Option<(Range<u64>, Arc<Decoded>)>,
}

impl TileReader {
    /// The units must be in the order of the tile.
    pub fn new(units: Range<usize>) -> Self {
        TileReader { units, held: None }
    }

    /// Copies decoded bytes from byte `start` of the tile.
    ///
    /// # Errors
    /// Any damage in the units that contain them.
    pub fn copy(&mut self, batches: &mut Batches<'_, TileUnit>, mut start: u64, mut out: &mut [u8]) -> Result<()> {
        while !out.is_empty() {
            if let Some((range, decoded)) = &self.held
                && range.contains(&start)
            {
                let within = (start - range.start) as usize;
                let length = ((range.end - start) as usize).min(out.len());
                let (now, later) = out.split_at_mut(length);
                now.copy_from_slice(decoded.bytes.get(within..within + length).ok_or_else(|| outside_of_units(start))?);
                start += length as u64;
                out = later;
            } else {
                self.held = Some(self.unit_of(batches, start)?);
            }
        }
        Ok(())
    }

    /// Copies `count` cells, the first at byte `start` of the tile, to positions `out_step` bytes apart.
    ///
    /// # Errors
    /// As [`TileReader::copy`].
    pub(crate) fn copy_strided(
        &mut self,
        batches: &mut Batches<'_, TileUnit>,
        mut start: u64,
        cells: Strided,
        mut count: usize,
        mut out: &mut [u8],
        out_step: usize,
    ) -> Result<()> {
        while count > 0 {
            let held = self.held.as_ref().filter(|(range, _)| range.contains(&start));
            let within = held.and_then(|(range, decoded)| decoded.bytes.get((start - range.start) as usize..));
            let mut copied = cells.cells_within(within.map_or(0, <[u8]>::len)).min(count);
            match within {
                Some(from) if copied > 0 => cells.copy(copied, from, out, out_step),
                // The next cell is in another unit, or across two.
                _ => {
                    copied = 1;
                    let first = out.get_mut(..cells.size).ok_or_else(|| outside_of_units(start))?;
                    self.copy(batches, start, first)?;
                }
            }
            start += (copied * cells.step) as u64;
            out = out.get_mut(copied * out_step..).unwrap_or_default();
            count -= copied;
        }
        Ok(())
    }

    /// Returns the unit that contains byte `start` of the tile, and the unit's range in the tile.
    #[cold]
    fn unit_of(&self, batches: &mut Batches<'_, TileUnit>, start: u64) -> Result<(Range<u64>, Arc<Decoded>)> {
        let own = batches.units().get(self.units.clone()).unwrap_or_default();
        let number = own.partition_point(|unit| unit.start <= start).saturating_sub(1);
        let range = own.get(number).map(TileUnit::range).filter(|range| range.contains(&start));
        let range = range.ok_or_else(|| outside_of_units(start))?;
        Ok((range, batches.get(self.units.start + number)?.clone()))
    }
}

/// Divides a copy of decoded bytes, from byte `start` of a tile on, into the parts of the units that hold them. The units
/// must be in the order of the tile.
///
/// # Errors
/// [`Error::Internal`] for bytes that are in none of the units.
pub(crate) fn add_pieces<'u, 'o>(
    units: &'u [TileUnit],
    mut start: u64,
    mut out: &'o mut [u8],
    pieces: &mut Vec<Piece<'u, 'o, TileUnit>>,
) -> Result<()> {
    for unit in units {
        let range = unit.range();
        if out.is_empty() || range.end <= start {
            continue;
        }
        let within = start.checked_sub(range.start).ok_or_else(|| outside_of_units(start))?;
        let length = (range.end - start).min(out.len() as u64) as usize;
        let (now, later) = out.split_at_mut(length);
        pieces.push(Piece { unit, start: within as usize, out: now });
        (start, out) = (start + length as u64, later);
    }
    if out.is_empty() { Ok(()) } else { Err(outside_of_units(start)) }
}

fn outside_of_units(start: u64) -> Error {
    Error::internal(format!("byte {start} of a tile is in none of its units"))
}
