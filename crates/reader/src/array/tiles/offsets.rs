//! The offsets of cells of variable size, which are in a file of their own.

use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};

use super::Tiles;

/// Bytes of one offset.
pub const OFFSET: u64 = 8;

/// The data about the file of offsets that is required to decode cells of variable size.
pub struct OffsetTiles {
    pub tiles: Arc<Tiles>,
    /// Bytes of one value; the size of a cell is a multiple of it.
    pub value_size: usize,
}

impl OffsetTiles {
    /// Checks that offsets begin at 0.
    pub fn check_first(&self, tile: u64, offsets: &[u64]) -> Result<()> {
        match offsets.first() {
            Some(first) if *first != 0 => Err(self.wrong_offset(tile, 0, "the first offset is not 0")),
            _ => Ok(()),
        }
    }

    /// Checks that offsets from that of cell `first` on neither decrease nor exceed the values, and lie between values.
    /// The values of the tile have `size` bytes.
    pub fn check(&self, tile: u64, first: u64, offsets: &[u64], size: u64) -> Result<()> {
        if let Some(at) = offsets.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(self.wrong_offset(tile, first + at as u64 + 1, "offsets go backwards"));
        }
        if offsets.last().is_some_and(|&last| last > size) {
            return Err(self.wrong_offset(tile, first, &format!("offsets past the {size} bytes of the tile")));
        }
        let value_size = self.value_size as u64;
        if value_size > 1
            && let Some(at) = offsets.iter().position(|offset| !offset.is_multiple_of(value_size))
        {
            return Err(self.wrong_offset(tile, first + at as u64, "an offset within a value"));
        }
        Ok(())
    }

    fn wrong_offset(&self, tile: u64, cell: u64, reason: &str) -> Error {
        let at = cell.saturating_mul(OFFSET);
        Error::damaged(format!("tile {tile}, cell {cell}: {reason}")).in_file(self.tiles.file.path()).at(at)
    }
}
