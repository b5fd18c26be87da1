//! Reads of cells that are all cached. Each piece is copied as soon as it is known, without a plan: of a small read,
//! planning would take longer than copying.

use std::sync::Arc;

use tilefs_format::error::Result;

use super::column::DenseColumn;
use super::pieces::{Piece, PieceSource};
use crate::array::tiles::Tiles;

/// Larger reads are planned: decoding what is not cached takes most of their time, and what was copied before it was
/// missed would be copied twice.
const MOST_BYTES: usize = 1 << 20;

impl DenseColumn {
    /// Reads whole cells from cell `first` on if all of them are cached. Returns whether they are; if not, the content
    /// of `out` is arbitrary.
    ///
    /// # Errors
    /// Any damage in the indexes that locate the cells.
    pub(super) fn read_cached(&self, first: u64, out: &mut [u8]) -> Result<bool> {
        if out.len() > MOST_BYTES {
            return Ok(false);
        }
        let mut are_cached = true;
        let mut latest: Option<(usize, Arc<Tiles>)> = None;
        self.for_each_piece(first, (out.len() / self.cell_size().max(1)) as u64, |piece| {
            match piece.source {
                _ if !are_cached => {}
                PieceSource::Fill => self.fill_piece(&piece, out)?,
                PieceSource::Tile { fragment, tile } => {
                    let tiles = match latest.take() {
                        Some((of, tiles)) if of == fragment => tiles,
                        _ => self.tiles(fragment).map_err(|error| self.locate(error, fragment))?,
                    };
                    are_cached = self.copy_cached(&piece, &tiles, tile, self.tile_size(fragment, tile)?, out)?;
                    latest = Some((fragment, tiles));
                }
            }
            Ok(())
        })?;
        Ok(are_cached)
    }

    /// Copies the cells of a piece from a tile of `tile_size` bytes if they are cached and its lines are consecutive
    /// cells. Returns whether this is so; reading by a plan reports cells past the end of the tile.
    fn copy_cached(&self, piece: &Piece, tiles: &Tiles, tile: u64, tile_size: u64, out: &mut [u8]) -> Result<bool> {
        let is_scattered = piece.axes.last().is_some_and(|axis| axis.tile_stride != 1 || axis.out_stride != 1);
        if is_scattered || self.is_reordered(piece, tile_size) || self.bytes_of(piece)?.end > tile_size {
            return Ok(false);
        }
        let cache = self.view.array().context().fetcher.cache();
        let (size, mut are_cached, mut held) = (self.cell_size(), true, None);
        piece.for_each_line(|from, to, count, _, _| {
            let to = to as usize * size;
            let (mut start, mut out) = (from * size as u64, &mut out[to..to + count as usize * size]);
            while are_cached && !out.is_empty() {
                if held.is_none() {
                    held = tiles.cached(cache, tile, tile_size, start);
                }
                let Some(decoded) = &held else {
                    are_cached = false;
                    break;
                };
                let bytes = start.checked_sub(decoded.start).and_then(|within| decoded.bytes.get(within as usize..));
                let bytes = bytes.unwrap_or_default();
                let length = bytes.len().min(out.len());
                let (now, later) = out.split_at_mut(length);
                now.copy_from_slice(&bytes[..length]);
                start += length as u64;
                out = later;
                if !out.is_empty() {
                    held = None;
                }
            }
            Ok(())
        })?;
        Ok(are_cached)
    }
}
