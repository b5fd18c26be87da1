//! Reads of cells that are all cached. Pieces are copied as soon as some are known, without a plan: of a small read,
//! planning would take longer than copying.

use std::hint::black_box;
use std::sync::Arc;

use smallvec::SmallVec;
use tilefs_base::error::Result;

use super::column::DenseColumn;
use super::pieces::{Piece, PieceSource};
use crate::array::tiles::Tiles;
use crate::cache::Cache;
use crate::read::{Decoded, UnitKey};

/// Larger reads are planned: decoding what is not cached takes most of their time, and what was copied before it was
/// missed would be copied twice.
const MOST_BYTES: usize = 1 << 20;

/// The number of pieces whose units are found at once. Memory that no processor has cached takes most of the time of a
/// small read, and a processor can wait for many accesses at once.
const AT_ONCE: usize = 16;

/// Pieces of one fragment.
struct FragmentPieces {
    fragment: usize,
    tiles: Arc<Tiles>,
    pieces: SmallVec<[TilePiece; AT_ONCE]>,
}

/// A piece whose lines are consecutive cells of a tile.
struct TilePiece {
    piece: Piece,
    tile: u64,
    /// The decoded size of the tile in bytes.
    tile_size: u64,
    /// The first byte of the tile that the piece takes.
    first_byte: u64,
}

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
        let mut found: Option<FragmentPieces> = None;
        self.for_each_piece(first, (out.len() / self.cell_size().max(1)) as u64, |piece| {
            match piece.source {
                _ if !are_cached => {}
                PieceSource::Fill => self.fill_piece(&piece, out)?,
                PieceSource::Tile { fragment, tile } => {
                    are_cached = match self.tile_piece(piece, fragment, tile)? {
                        Some(piece) => self.add_piece(&mut found, fragment, piece, out)?,
                        None => false,
                    };
                }
            }
            Ok(())
        })?;
        Ok(are_cached && found.map_or(Ok(true), |last| self.copy_cached(&last, out))?)
    }

    fn cache(&self) -> &Cache<UnitKey, Decoded> {
        self.view.array().context().fetcher.cache()
    }

    /// Returns a piece of a tile; `None` if its lines are not consecutive cells of the tile. Reading by a plan reports
    /// cells past the end of the tile.
    fn tile_piece(&self, piece: Piece, fragment: usize, tile: u64) -> Result<Option<TilePiece>> {
        let (tile_size, bytes) = (self.tile_size(fragment, tile)?, self.bytes_of(&piece)?);
        let is_scattered = piece.axes.last().is_some_and(|axis| axis.tile_stride != 1 || axis.out_stride != 1);
        let is_consecutive = !is_scattered && !self.is_reordered(&piece, tile_size) && bytes.end <= tile_size;
        Ok(is_consecutive.then_some(TilePiece { piece, tile, tile_size, first_byte: bytes.start }))
    }

    /// Adds a piece to the pieces found. If these are enough, or of another fragment, copies their cells first, and
    /// returns whether all of them are cached.
    fn add_piece(
        &self,
        found: &mut Option<FragmentPieces>,
        fragment: usize,
        piece: TilePiece,
        out: &mut [u8],
    ) -> Result<bool> {
        if let Some(of) = found.as_mut().filter(|of| of.fragment == fragment && of.pieces.len() < AT_ONCE) {
            of.pieces.push(piece);
            return Ok(true);
        }
        let full = found.take();
        let are_cached = full.as_ref().map_or(Ok(true), |full| self.copy_cached(full, out))?;
        let tiles = match full {
            Some(full) if full.fragment == fragment => full.tiles,
            _ => self.tiles(fragment).map_err(|error| self.locate(error, fragment))?,
        };
        *found = Some(FragmentPieces { fragment, tiles, pieces: SmallVec::from_iter([piece]) });
        Ok(are_cached)
    }

    /// Copies the cells of pieces if all of them are cached. Returns whether this is so.
    fn copy_cached(&self, of: &FragmentPieces, out: &mut [u8]) -> Result<bool> {
        let keys = of.pieces.iter().map_while(|one| of.tiles.usual_key(one.tile, one.tile_size, one.first_byte));
        let keys: SmallVec<[_; AT_ONCE]> = keys.collect();
        let mut units: SmallVec<[Arc<Decoded>; AT_ONCE]> = SmallVec::new();
        self.cache().get_all(&keys, |unit| units.extend(unit));
        if units.len() < of.pieces.len() {
            return Ok(false);
        }
        let starts = of.pieces.iter().zip(&units).filter_map(|(one, unit)| unit.bytes_from(one.first_byte)?.first());
        black_box(starts.fold(0, |sum: u8, byte| sum.wrapping_add(*byte)));
        for (one, unit) in of.pieces.iter().zip(units) {
            if !self.copy_piece_of_units(one, &of.tiles, unit, out)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Copies the cells of a piece whose first line begins in `unit`, if all of them are cached.
    fn copy_piece_of_units(&self, one: &TilePiece, tiles: &Tiles, unit: Arc<Decoded>, out: &mut [u8]) -> Result<bool> {
        let (size, mut held) = (self.cell_size(), Some(unit));
        one.piece.for_each_line(|from, to, count, _, _| {
            let to = to as usize * size;
            let (mut start, mut out) = (from * size as u64, &mut out[to..to + count as usize * size]);
            while let Some(unit) = held.as_ref().filter(|_| !out.is_empty()) {
                let bytes = unit.bytes_from(start).unwrap_or_default();
                let length = bytes.len().min(out.len());
                let (now, later) = out.split_at_mut(length);
                now.copy_from_slice(&bytes[..length]);
                start += length as u64;
                out = later;
                if !out.is_empty() {
                    let key = tiles.usual_key(one.tile, one.tile_size, start);
                    held = key.and_then(|key| self.cache().get(&key)).filter(|unit| unit.bytes_from(start).is_some());
                }
            }
            Ok(())
        })?;
        Ok(held.is_some())
    }
}
