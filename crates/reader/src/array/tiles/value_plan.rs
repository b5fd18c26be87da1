//! A plan to read values of variable-size cells: the units that contain them, and where their bytes are copied to.
//!
//! It is the second of two plans: the offsets, which the first plan reads, locate the values in their tiles.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::error::{Error, Result};

use super::spilled::SpilledTile;
use super::var_tiles::VarTiles;
use crate::array::tiles::reader::TileReader;
use crate::array::tiles::unit::{TileUnit, drop_untouched};
use crate::read::{Batches, Decoding, Fetcher};

/// A range of a tile's values, and its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueCopy {
    /// The first byte within the tile's values.
    pub from: u64,
    /// The position in the output.
    pub to: usize,
    pub length: usize,
}

/// Copies of values from tiles. Memory: 24 bytes per value, or per run of values that are consecutive in their tile and
/// in the output.
#[derive(Default)]
pub struct ValuePlan {
    units: Vec<TileUnit>,
    copies: Vec<ValueCopy>,
    tiles: Vec<TileCopies>,
}

/// The copies from one tile.
struct TileCopies {
    fragment: usize,
    source: ValueSource,
    /// A range of the plan's copies.
    copies: Range<usize>,
}

enum ValueSource {
    /// A range of the plan's units, in the order of the tile.
    Units(Range<usize>),
    /// A tile that is too large for memory.
    Spilled(Arc<SpilledTile>),
}

impl ValuePlan {
    /// Adds copies from one tile, which has `cells` cells, of a fragment. No copy may be empty.
    ///
    /// # Errors
    /// If the tile or the bytes do not exist; any damage in the index of the tile's chunks.
    pub fn add(
        &mut self,
        fragment: usize,
        tiles: &VarTiles,
        tile: u64,
        cells: u64,
        copies: impl IntoIterator<Item = ValueCopy>,
    ) -> Result<()> {
        let first = self.copies.len();
        for copy in copies {
            match self.copies.get_mut(first..).and_then(<[ValueCopy]>::last_mut) {
                // Consecutive in the tile and in the output.
                Some(last) if last.from + last.length as u64 == copy.from && last.to + last.length == copy.to => {
                    last.length += copy.length;
                }
                _ => self.copies.push(copy),
            }
        }
        let added = &self.copies[first..];
        let end = |copy: &ValueCopy| copy.from.saturating_add(copy.length as u64);
        let (first_byte, last_end) = (added.iter().map(|copy| copy.from).min(), added.iter().map(end).max());
        let Some((from, to)) = first_byte.zip(last_end) else { return Ok(()) };
        let source = match tiles.spilled_tile(tile, cells)? {
            Some(spilled) => ValueSource::Spilled(spilled),
            None => {
                let first = self.units.len();
                tiles.value_units(tile, cells, from..to, &mut self.units)?;
                // The first and the last unit are always needed.
                if self.units.len() - first > 2 {
                    drop_untouched(added.iter().map(|copy| copy.from..end(copy)), first, &mut self.units);
                }
                ValueSource::Units(first..self.units.len())
            }
        };
        self.tiles.push(TileCopies { fragment, source, copies: first..self.copies.len() });
        Ok(())
    }

    /// Fetches all planned units into the cache.
    ///
    /// # Errors
    /// Any damage in these units.
    pub fn fetch(&self, fetcher: &Fetcher) -> Result<()> {
        Batches::new(fetcher, &self.units, Decoding::OnThisThread).fetch_all()
    }

    /// Fetches the units and copies the values. `place` adds the location of a fragment's tile to a result.
    ///
    /// # Errors
    /// Any damage in the units; [`Error::Internal`] for a destination outside of `out`.
    pub fn read(
        &self,
        fetcher: &Fetcher,
        out: &mut [u8],
        place: impl Fn(usize, Result<()>) -> Result<()>,
    ) -> Result<()> {
        let mut batches = Batches::new(fetcher, &self.units, Decoding::OnManyThreads);
        self.tiles.iter().try_for_each(|tile| place(tile.fragment, self.read_tile(tile, &mut batches, out)))
    }

    fn read_tile(&self, tile: &TileCopies, batches: &mut Batches<'_, TileUnit>, out: &mut [u8]) -> Result<()> {
        let mut copies = self.copies[tile.copies.clone()].iter();
        match &tile.source {
            ValueSource::Units(units) => {
                let mut reader = TileReader::new(units.clone());
                copies.try_for_each(|copy| reader.copy(batches, copy.from, copy.place(out)?))
            }
            ValueSource::Spilled(spilled) => copies.try_for_each(|copy| spilled.copy(copy.from, copy.place(out)?)),
        }
    }
}

impl ValueCopy {
    /// Returns the destination in the output.
    fn place<'o>(&self, out: &'o mut [u8]) -> Result<&'o mut [u8]> {
        let place = self.to.checked_add(self.length).and_then(|end| out.get_mut(self.to..end));
        place.ok_or_else(|| Error::internal("a copy outside of the output"))
    }
}

/// Fills `out` with copies of `value`, one after the other, without the first `skipped` bytes of them.
pub fn repeat(value: &[u8], skipped: u64, out: &mut [u8]) {
    let within = (skipped % value.len().max(1) as u64) as usize;
    out.iter_mut().zip(value.iter().cycle().skip(within)).for_each(|(out, byte)| *out = *byte);
}
