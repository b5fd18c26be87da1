//! The cells of one attribute of a dense array in file order: fixed-size values, validity bytes, or the offsets of
//! variable-length values. What a read of them needs to know, and which cells come from the same tiles. The read itself
//! is in `column_read`, which plans (`column_plan`) and copies (`column_copy`), or finds all cells cached (`cached_read`).

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::inputs::{Recorded, Recorder};
use tilefs_format::schema::Layout;

use super::pieces::{Piece, TileOwners, for_each_piece};
use super::selection::{Selection, boxes_of_run};
use super::view::DenseView;
use crate::array::folder::outline::FieldFile;
use crate::array::tiles::Tiles;
use crate::array::tiles::open_files::OpenFiles;

/// The minimum size of a band that one thread reads, if there are more bands.
const MIN_BAND_BYTES: u64 = 1 << 20;

/// The maximum size of a band that one thread reads.
const MAX_BAND_BYTES: u64 = 4 << 20;

/// One file of a dense attribute, as a sequence of cells of one size. Reads are independent and may be concurrent.
pub struct DenseColumn {
    pub(super) view: Arc<DenseView>,
    pub(super) selection: Arc<Selection>,
    attribute: usize,
    file: FieldFile,
    pub(super) cell_size: usize,
    /// The bytes of a cell that no fragment has.
    pub(super) fill: Vec<u8>,
    /// For each fragment, whether it has the attribute; `None` if all fragments have it.
    present: Option<Vec<bool>>,
    /// The extents of a tile.
    pub(super) extents: Arc<[usize]>,
    files: OpenFiles<Arc<Tiles>>,
}

/// The rows of a file along an axis. The cells of a row have the same coordinate along this axis, and along each axis
/// before it.
struct FileRows {
    /// The cells of a row.
    cells: u64,
    /// The bytes of a row.
    bytes: u64,
    /// The number of selected rows.
    count: u64,
    /// The number of rows of a tile.
    of_tile: u64,
    /// The number of rows of a chunk; 0 if chunks are parts of rows.
    of_chunk: u64,
}

impl Recorded for DenseColumn {
    fn record(&self, recorder: &mut Recorder) {
        let Self { view, selection, attribute, file, cell_size: _, fill, present: _, extents: _, files: _ } = self;
        view.array().record(recorder);
        recorder.add::<Self>((selection, attribute, file, fill));
    }
}

impl DenseColumn {
    /// Creates the column of a file of `attribute` (by its number in the array's schema) over a selection. `fill` is
    /// the value of a cell that was never written; its length is the size of a cell.
    ///
    /// # Errors
    /// If a fragment's schema cannot be read.
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
        let present = (!present.iter().all(|present| *present)).then_some(present);
        let extents = view.grid().axes.iter().map(|axis| axis.extent as usize).collect();
        let (cell_size, files) = (fill.len(), OpenFiles::new());
        Ok(DenseColumn { selection, attribute, file, cell_size, fill, present, extents, files, view })
    }

    /// Returns the number of cells.
    pub fn cells(&self) -> u64 {
        self.selection.cells()
    }

    /// Returns the bytes of one cell.
    pub fn cell_size(&self) -> usize {
        self.cell_size
    }

    /// Returns the selected cells.
    pub fn selection(&self) -> &Arc<Selection> {
        &self.selection
    }

    /// Visits the pieces of `count` cells from cell `first`: see [`for_each_piece`].
    pub fn for_each_piece(&self, first: u64, count: u64, visit: impl FnMut(Piece) -> Result<()>) -> Result<()> {
        let boxes = boxes_of_run(&self.selection.shape(), first, count);
        for_each_piece(self.view.grid(), &self.selection, &boxes, |tile| self.owners(tile), visit)
    }

    pub(super) fn owners(&self, tile: &[u64]) -> Result<TileOwners> {
        let owners = self.view.owners(tile)?;
        Ok(match &self.present {
            None => owners,
            Some(present) => TileOwners::Many(owners.iter().filter(|owner| present[owner.fragment]).cloned().collect()),
        })
    }

    /// Returns the range of cells around `cell` that come from the same tiles. In a row-major file these are rows of
    /// adjacent tiles, several rows if tiles are small, or rows of adjacent chunks if tiles are large. `None` if no
    /// such range has a suitable size.
    pub fn band(&self, cell: u64) -> Option<Range<u64>> {
        self.band_of_rows(cell, FileRows::rows_of_band)
    }

    /// Returns the range of cells around `cell` that come from the same tiles, however large. `None` if there is only
    /// one such range.
    pub(super) fn line_of_tiles(&self, cell: u64) -> Option<Range<u64>> {
        self.band_of_rows(cell, |rows| (rows.count > 1).then_some(rows.of_tile))
    }

    /// Returns the band around `cell`: rows along the first axis for which `rows_of_band` returns the number of rows of
    /// a band.
    fn band_of_rows(&self, cell: u64, rows_of_band: impl Fn(&FileRows) -> Option<u64>) -> Option<Range<u64>> {
        if self.cells() == 0 {
            return None;
        }
        let shape = self.selection.shape();
        let grid = self.view.grid();
        let cell_size = self.cell_size.max(1) as u64;
        // If the cells of a tile have another order than the file, its chunks are not rows of the file.
        let chunk_bytes = if grid.cell_order == Layout::RowMajor { self.max_chunk_bytes() } else { 0 };
        // The cells of one row, among all selected cells, and among the cells of a tile.
        let mut cells_of_row = self.cells();
        let mut tile_cells_of_row =
            self.extents.iter().fold(1u64, |cells, &extent| cells.saturating_mul(extent as u64));
        for ((&count, axis), selected) in shape.iter().zip(&grid.axes).zip(self.selection.axes()) {
            cells_of_row /= count.max(1);
            tile_cells_of_row /= axis.extent.max(1);
            let [range] = selected.ranges() else { return None };
            let Some(bytes) = cells_of_row.checked_mul(cell_size) else { continue };
            let of_chunk = chunk_bytes / tile_cells_of_row.saturating_mul(cell_size).max(1);
            let rows = FileRows { cells: cells_of_row, bytes, count, of_tile: axis.extent, of_chunk };
            let of_band = rows_of_band(&rows).filter(|of_band| *of_band >= rows.of_tile || *of_band < count);
            if let Some(of_band) = of_band.filter(|_| range.step == 1) {
                return self.band_around(cell, &rows, of_band, range.first);
            }
        }
        None
    }

    /// Returns the band of `of_band` rows around a cell. `first` is the position of the first row. `None` if all rows
    /// are one band although there are cells before and after them.
    fn band_around(&self, cell: u64, rows: &FileRows, of_band: u64, first: u64) -> Option<Range<u64>> {
        let cells_of_rows = rows.cells * rows.count;
        let before_rows = cell - cell % cells_of_rows;
        // If adjacent tiles along the axes before this one exceed a band, a line of tiles cannot be a band.
        if of_band >= rows.count && cells_of_rows != self.cells() {
            return None;
        }
        // Rows are counted from the start of the tile in which the selection begins. A band is a part of a tile, or
        // whole tiles.
        let skipped = first % rows.of_tile;
        let row = cell / rows.cells % rows.count + skipped;
        let of_tiles = rows.of_tile.max(of_band);
        let tiles_start = row / of_tiles * of_tiles;
        let start = tiles_start + (row - tiles_start) / of_band * of_band;
        let end = start.saturating_add(of_band).min(tiles_start.saturating_add(of_tiles));
        let (start, end) = (start.saturating_sub(skipped), (end - skipped).min(rows.count));
        Some(before_rows + start * rows.cells..before_rows + end * rows.cells)
    }

    /// Returns the maximum size of a chunk of the attribute's values, except for chunks of a single larger value.
    fn max_chunk_bytes(&self) -> u64 {
        let attributes = &self.view.array().schema().attributes;
        attributes.get(self.attribute).map_or(0, |attribute| attribute.filters.max_chunk_size.into())
    }

    /// Adds the array and the fragment to the place of an error.
    pub(super) fn locate(&self, error: Error, fragment: usize) -> Error {
        error.in_fragment(self.view.array().fragment_name(fragment)).in_array(self.view.array().path())
    }

    /// Returns the range of bytes of the tile from the first to the last byte that a piece takes.
    pub(super) fn bytes_of(&self, piece: &Piece) -> Result<Range<u64>> {
        let cells = piece.tile_cells();
        let bytes = |cell: u64| cell.checked_mul(self.cell_size as u64);
        let range = bytes(cells.start).zip(bytes(cells.end)).map(|(start, end)| start..end);
        range.ok_or_else(|| Error::damaged("a tile of more than 2^64 bytes"))
    }

    /// Returns the tiles of this column's file in one fragment.
    pub(super) fn tiles(&self, fragment: usize) -> Result<Arc<Tiles>> {
        let open = || self.view.array().attribute_tiles(fragment, self.attribute, self.file);
        self.files.get_or_open(fragment, open)
    }

    /// Returns the decoded size of a tile.
    pub(super) fn tile_size(&self, fragment: usize, tile: u64) -> Result<u64> {
        let cells = self.view.cells_in_tile(fragment, tile)?;
        cells.checked_mul(self.cell_size as u64).ok_or_else(|| Error::damaged("a tile of more than 2^64 bytes"))
    }

    /// Returns whether a piece is better read from its tile in row-major order: if its lines run across the order of
    /// the tile's cells, and the reordered tile can be cached. Larger tiles are read cell by cell.
    pub(super) fn is_reordered(&self, piece: &Piece, tile_size: u64) -> bool {
        let crosses = piece.axes.last().is_some_and(|axis| axis.tile_stride.unsigned_abs() != 1);
        crosses
            && self.view.grid().cell_order == Layout::ColMajor
            && tile_size <= self.view.array().context().budget().reordered_tile() as u64
    }
}

impl FileRows {
    /// Returns how many rows are a band: the rows of some tiles or, within a tile, the rows of some chunks.
    fn rows_of_band(&self) -> Option<u64> {
        let tile_bytes = self.bytes.checked_mul(self.of_tile)?;
        if tile_bytes <= MAX_BAND_BYTES {
            return (MIN_BAND_BYTES / tile_bytes.max(1)).max(1).checked_mul(self.of_tile);
        }
        let chunk_bytes = self.bytes.checked_mul(self.of_chunk)?;
        let chunks = (MIN_BAND_BYTES / chunk_bytes.max(1)).max(1);
        (1..=MAX_BAND_BYTES).contains(&chunk_bytes).then_some(self.of_chunk * chunks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_follow_tiles_or_chunks() {
        const KIB: u64 = 1 << 10;
        let rows_of_band = |bytes, of_tile, of_chunk| {
            FileRows { cells: bytes, bytes, count: 1 << 20, of_tile, of_chunk }.rows_of_band()
        };
        assert_eq!(rows_of_band(KIB, 100, 7), Some(1000), "ten rows of tiles, nearly a MiB");
        assert_eq!(rows_of_band(8 * KIB, 512, 7), Some(512), "a row of tiles of 4 MiB");
        assert_eq!(rows_of_band(16 * KIB, 512, 128), Some(128), "a row of chunks of 2 MiB");
        assert_eq!(rows_of_band(16 * KIB, 512, 3), Some(63), "rows of chunks, nearly a MiB");
        assert_eq!(rows_of_band(16 * KIB, 512, 0), None, "chunks are parts of rows");
        assert_eq!(rows_of_band(16 * KIB, 512, 300), None, "too much for one thread");
        assert_eq!(rows_of_band(u64::MAX, 2, 1), None);
        assert_eq!(rows_of_band(0, 512, 3), Some(512 << 20));
    }
}
