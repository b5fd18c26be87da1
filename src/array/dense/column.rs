//! The cells of one attribute of a dense array, in file order: fixed-size values, validity bytes, and
//! the offsets of variable-length values.

use std::sync::Arc;

use super::pieces::{Cover, Piece, Source, for_each_piece};
use super::reorder::to_row_major;
use super::selection::Selection;
use super::view::DenseView;
use crate::array::fragment::FieldFile;
use crate::array::tiles::{Block, TileReader, Tiles};
use crate::cache::Key;
use crate::error::{Error, Locate, Result};
use crate::format::schema::Layout;
use crate::read::Output;

/// Tiles of at most this part of the cache's budget are turned whole from column-major to row-major
/// order and kept so. Larger ones are read cell by cell.
const TURNED_TILE_SHARE: u64 = 8;

/// One file of a dense attribute as a row of cells of one size. Reads are independent of each other
/// and may run at once.
pub struct DenseColumn {
    view: Arc<DenseView>,
    selection: Arc<Selection>,
    attribute: usize,
    file: FieldFile,
    cell_size: usize,
    /// The bytes of a cell that no fragment has.
    fill: Vec<u8>,
    /// For each fragment whether it has the attribute; `None` when all have.
    missing: Option<Vec<bool>>,
    /// Of tiles turned to row-major order.
    turned_source: u64,
}

impl DenseColumn {
    /// The column of a file of `attribute` (by its number in the array's schema) over a selection.
    /// `fill` is one cell as it reads where nothing was written; its length is the size of a cell.
    ///
    /// # Errors
    /// When a fragment's schema cannot be read.
    pub fn new(
        view: Arc<DenseView>,
        selection: Arc<Selection>,
        attribute: usize,
        file: FieldFile,
        fill: Vec<u8>,
    ) -> Result<Self> {
        let array = view.array();
        let present: Vec<bool> = (0..array.fragment_count())
            .map(|fragment| array.has_attribute(fragment, attribute))
            .collect::<Result<_>>()?;
        let missing = if present.iter().all(|present| *present) { None } else { Some(present) };
        let turned_source = array.context().cache.new_source();
        Ok(DenseColumn { selection, attribute, file, cell_size: fill.len(), fill, missing, turned_source, view })
    }

    pub fn cells(&self) -> u64 {
        self.selection.cells()
    }

    /// Bytes of one cell.
    pub fn cell_size(&self) -> usize {
        self.cell_size
    }

    pub fn selection(&self) -> &Arc<Selection> {
        &self.selection
    }

    /// Visits the pieces of `count` cells from cell `first`: see [`for_each_piece`].
    pub fn for_each_piece(&self, first: u64, count: u64, visit: impl FnMut(&Piece) -> Result<()>) -> Result<()> {
        for_each_piece(self.view.grid(), &self.selection, first, count, |tile| self.covers(tile), visit)
    }

    fn covers(&self, tile: &[u64]) -> Result<Arc<[Cover]>> {
        let covers = self.view.covers(tile)?;
        Ok(match &self.missing {
            None => covers,
            Some(present) => covers.iter().filter(|cover| present[cover.fragment]).cloned().collect(),
        })
    }

    /// Fills `out` with whole cells from cell `first`.
    ///
    /// # Errors
    /// Any damage in what is needed for these cells.
    pub fn read<'o>(&self, first: u64, out: impl Into<Output<'o>>) -> Result<()> {
        match out.into() {
            Output::Into(out) => self.copy(first, out),
            Output::Ahead(bytes) => self.prepare(first, bytes / self.cell_size.max(1) as u64),
        }
    }

    fn copy(&self, first: u64, out: &mut [u8]) -> Result<()> {
        let count = (out.len() / self.cell_size.max(1)) as u64;
        self.for_each_piece(first, count, |piece| match piece.source {
            Source::Fill => self.fill_piece(piece, out),
            Source::Tile { fragment, tile } => self
                .copy_piece(piece, fragment, tile, out)
                .in_fragment(self.view.array().fragment_name(fragment))
                .in_array(self.view.array().path()),
        })
    }

    /// Decodes what `count` cells from cell `first` need into the cache.
    pub(super) fn prepare(&self, first: u64, count: u64) -> Result<()> {
        self.for_each_piece(first, count, |piece| {
            let Source::Tile { fragment, tile } = piece.source else { return Ok(()) };
            let tiles = self.tiles(fragment)?;
            let size = self.tile_size(fragment, tile)?;
            if self.is_turned(piece, size) {
                let cache = &self.view.array().context().cache;
                return cache.load(self.turned_key(fragment, tile)?, || self.turn(&tiles, tile, size));
            }
            let mut prepared_to = 0;
            piece.for_each_line(|from, _, count, stride, _| {
                let last = from.wrapping_add((stride as u64).wrapping_mul(count - 1));
                let (low, high) = (from.min(last), from.max(last));
                let mut start = (low * self.cell_size as u64).max(prepared_to);
                while start < (high + 1) * self.cell_size as u64 {
                    start = tiles.prepare(tile, size, start)?;
                    prepared_to = start;
                }
                Ok(())
            })
        })
    }

    fn fill_piece(&self, piece: &Piece, out: &mut [u8]) -> Result<()> {
        let size = self.cell_size;
        piece.for_each_line(|_, to, count, _, out_stride| {
            for step in 0..count {
                let at = (to + step * out_stride) as usize * size;
                out[at..at + size].copy_from_slice(&self.fill);
            }
            Ok(())
        })
    }

    fn copy_piece(&self, piece: &Piece, fragment: usize, tile: u64, out: &mut [u8]) -> Result<()> {
        let tiles = self.tiles(fragment)?;
        let tile_size = self.tile_size(fragment, tile)?;
        if self.is_turned(piece, tile_size) {
            let block = self.turned(&tiles, fragment, tile, tile_size)?;
            return self.copy_turned(piece, &block, out);
        }
        let size = self.cell_size;
        let mut reader = TileReader::new(&tiles, tile, tile_size);
        piece.for_each_line(|from, to, count, stride, out_stride| {
            if stride == 1 && out_stride == 1 {
                let to = to as usize * size;
                return reader.copy(from * size as u64, &mut out[to..to + count as usize * size]);
            }
            for step in 0..count {
                let from = from.wrapping_add((stride as u64).wrapping_mul(step));
                let to = (to + step * out_stride) as usize * size;
                reader.copy(from * size as u64, &mut out[to..to + size])?;
            }
            Ok(())
        })
    }

    /// The tiles of this column's file in one fragment.
    pub fn tiles(&self, fragment: usize) -> Result<Arc<Tiles>> {
        self.view.array().attribute_tiles(fragment, self.attribute, self.file)
    }

    /// Decoded bytes of a tile.
    fn tile_size(&self, fragment: usize, tile: u64) -> Result<u64> {
        let cells = self.view.cells_in_tile(fragment, tile)?;
        cells.checked_mul(self.cell_size as u64).ok_or_else(|| Error::damaged("a tile of more than 2^64 bytes"))
    }

    /// Whether a piece is better read from its tile turned to row-major order: where its lines run across
    /// the order of the tile's cells, and the turned tile can be kept.
    fn is_turned(&self, piece: &Piece, tile_size: u64) -> bool {
        let crosses = piece.axes.last().is_some_and(|axis| axis.tile_stride.unsigned_abs() != 1);
        crosses
            && self.view.grid().cell_order == Layout::ColMajor
            && tile_size <= self.view.array().context().cache.budget() as u64 / TURNED_TILE_SHARE
    }

    /// A tile in row-major order.
    fn turned(&self, tiles: &Tiles, fragment: usize, tile: u64, size: u64) -> Result<Arc<Block>> {
        let cache = &self.view.array().context().cache;
        cache.get_or_load(self.turned_key(fragment, tile)?, || self.turn(tiles, tile, size))
    }

    fn turned_key(&self, fragment: usize, tile: u64) -> Result<Key> {
        let part = u32::try_from(fragment).map_err(|_| Error::unsupported("more than 2^32 fragments"))?;
        Ok(Key { source: self.turned_source, tile, part })
    }

    /// Turns a tile to row-major order; gives its weight too.
    fn turn(&self, tiles: &Tiles, tile: u64, size: u64) -> Result<(Block, usize)> {
        let stored = tiles.whole(tile, size)?;
        let extents: Vec<usize> = self.view.grid().axes.iter().map(|axis| axis.extent as usize).collect();
        let mut bytes = self.view.array().context().cache.buffers().get(stored.bytes.len());
        to_row_major(&stored.bytes, &extents, self.cell_size, &mut bytes);
        let weight = bytes.capacity();
        Ok((Block { start: 0, bytes }, weight))
    }

    /// Copies a piece whose tile cells are numbered in column-major order from the tile in row-major order.
    fn copy_turned(&self, piece: &Piece, block: &Block, out: &mut [u8]) -> Result<()> {
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
                out[to..to + length].copy_from_slice(block.bytes.get(from..from + length).ok_or_else(past)?);
                return Ok(());
            }
            for number in 0..count {
                let from = first.wrapping_add(step.wrapping_mul(number)) as usize * size;
                let to = (to + number * out_stride) as usize * size;
                out[to..to + size].copy_from_slice(block.bytes.get(from..from + size).ok_or_else(past)?);
            }
            Ok(())
        })
    }
}
