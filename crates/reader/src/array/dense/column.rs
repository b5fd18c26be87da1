//! The cells of one attribute of a dense array in file order: fixed-size values, validity bytes, or the offsets of
//! variable-length values.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use foldhash::{HashMap, HashMapExt};
use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::inputs::{Recorded, Recorder};
use tilefs_base::output::Output;
use tilefs_format::schema::Layout;
use tilefs_threads as threads;

use super::pieces::{Piece, PieceSource, TileOwners, for_each_piece};
use super::selection::{Selection, boxes_of_run};
use super::view::DenseView;
use crate::array::folder::outline::FieldFile;
use crate::array::tiles::Tiles;
use crate::array::tiles::open_files::OpenFiles;
use crate::array::tiles::reader::TileReader;
use crate::array::tiles::strided::Strided;
use crate::array::tiles::unit::{TileUnit, keep_marked};
use crate::read::{Batches, Decoding};

/// The minimum size of a band that one thread reads, if there are more bands.
const MIN_BAND_BYTES: u64 = 1 << 20;

/// The maximum size of a band that one thread reads.
const MAX_BAND_BYTES: u64 = 4 << 20;

/// The minimum size of a part of a large read that one thread reads.
const PART_BYTES: usize = 4 << 20;

/// The minimum size of such a part in storage with high latency: as much as is requested at once.
const REMOTE_PART_BYTES: usize = 16 << 20;

/// The most parts that are read from such storage at once, so that there are requests in flight while a part is
/// decoded.
const REMOTE_PARTS_AT_ONCE: usize = 4;

/// One file of a dense attribute, as a sequence of cells of one size. Reads are independent and may be concurrent.
pub struct DenseColumn {
    pub(super) view: Arc<DenseView>,
    selection: Arc<Selection>,
    attribute: usize,
    file: FieldFile,
    cell_size: usize,
    /// The bytes of a cell that no fragment has.
    fill: Vec<u8>,
    /// For each fragment, whether it has the attribute; `None` if all fragments have it.
    present: Option<Vec<bool>>,
    /// The extents of a tile.
    extents: Arc<[usize]>,
    files: OpenFiles<Arc<Tiles>>,
}

/// The plan of a read: units to fetch, and copies from them.
pub struct ColumnPlan {
    /// The units to read.
    pub units: Vec<TileUnit>,
    copies: Vec<PieceCopy>,
}

/// A box of cells that is copied from a range of the units, or filled.
struct PieceCopy {
    piece: Piece,
    /// The range of the plan's units that contain the cells.
    units: Range<usize>,
    /// Whether the units are in row-major order although the piece numbers cells in column-major order.
    is_reordered: bool,
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

/// A range of bytes of a tile, and the range of a plan's units that contain them.
type PlannedRange = (Range<u64>, Range<usize>);

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

    fn owners(&self, tile: &[u64]) -> Result<TileOwners> {
        let owners = self.view.owners(tile)?;
        Ok(match &self.present {
            None => owners,
            Some(present) => TileOwners::Many(owners.iter().filter(|owner| present[owner.fragment]).cloned().collect()),
        })
    }

    /// Reads whole cells from cell `first` on.
    ///
    /// # Errors
    /// Any damage in the data that is required for these cells.
    pub fn read<'o>(&self, first: u64, out: impl Into<Output<'o>>) -> Result<()> {
        match out.into() {
            Output::Into(out) => self.read_into(first, out),
            Output::Ahead(bytes) => {
                let plan = self.plan(first, bytes / self.cell_size.max(1) as u64)?;
                self.batches(&plan, Decoding::OnThisThread).fetch_all()
            }
        }
    }

    fn read_into(&self, first: u64, out: &mut [u8]) -> Result<()> {
        if self.read_cached(first, out)? {
            return Ok(());
        }
        let ends = self.part_ends(first, out.len());
        if ends.len() < 2 {
            return self.read_part(first, out, Decoding::OnManyThreads);
        }
        let has_failed = AtomicBool::new(false);
        let (mut start, mut rest) = (first, out);
        let parts = ends.into_iter().take_while(|_| !has_failed.load(Ordering::Relaxed)).map(|end| {
            let (part, behind) = std::mem::take(&mut rest).split_at_mut((end - start) as usize * self.cell_size);
            rest = behind;
            (std::mem::replace(&mut start, end), part)
        });
        let read = |(first, part): (u64, &mut [u8]), how| {
            self.read_part(first, part, how).inspect_err(|_| has_failed.store(true, Ordering::Relaxed))
        };
        let outcomes = if self.view.array().is_remote() {
            let at_once = self.remote_parts_at_once();
            threads::map_waiting("tilefs-part", at_once, parts, |part| read(part, Decoding::OnManyThreads))
        } else {
            threads::map(parts, |part| read(part, Decoding::OnThisThread))
        };
        outcomes.into_iter().collect()
    }

    /// Returns how many parts are read from storage with high latency at once: as many as the cache can hold a tile of.
    /// More parts would evict each other's tiles, some of which are read line by line.
    fn remote_parts_at_once(&self) -> usize {
        let tile = self.extents.iter().fold(self.cell_size, |size, &extent| size.saturating_mul(extent));
        let most = self.view.array().context().budget().tiles_at_once(tile.max(REMOTE_PART_BYTES) as u64);
        most.min(REMOTE_PARTS_AT_ONCE as u64) as usize
    }

    /// Returns where the parts of a large read of `bytes` end, as cells of the column. A thread reads, decodes and
    /// copies each part: filling new memory takes as long as decoding does. Parts are bands, or lines of whole tiles in
    /// storage with high latency, where tiles are read as a whole. Returns at most one end if the read has no such
    /// parts, or if the cache is too small for several parts.
    fn part_ends(&self, first: u64, bytes: usize) -> Vec<u64> {
        let is_remote = self.view.array().is_remote();
        let least = if is_remote { REMOTE_PART_BYTES } else { PART_BYTES };
        let mut ends = Vec::new();
        if bytes < 2 * least || is_remote && self.remote_parts_at_once() < 2 {
            return ends;
        }
        let end = first.saturating_add((bytes / self.cell_size.max(1)) as u64);
        let (mut start, mut at) = (first, first);
        while at < end {
            let band = if is_remote { self.line_of_tiles(at) } else { self.band(at) };
            let Some(band) = band.filter(|band| band.end > at) else { return Vec::new() };
            at = band.end.min(end);
            if at == end || (at - start) as usize * self.cell_size >= least {
                ends.push(at);
                start = at;
            }
        }
        ends
    }

    fn read_part(&self, first: u64, out: &mut [u8], how: Decoding) -> Result<()> {
        let plan = self.plan(first, (out.len() / self.cell_size.max(1)) as u64)?;
        self.copy(&plan, &mut self.batches(&plan, how), out)
    }

    fn batches<'p>(&'p self, plan: &'p ColumnPlan, how: Decoding) -> Batches<'p, TileUnit> {
        Batches::new(&self.view.array().context().fetcher, &plan.units, how)
    }

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

    /// Returns the range of cells around `cell` that come from the same tiles. In a row-major file these are rows of
    /// adjacent tiles, several rows if tiles are small, or rows of adjacent chunks if tiles are large. `None` if no
    /// such range has a suitable size.
    pub fn band(&self, cell: u64) -> Option<Range<u64>> {
        self.band_of_rows(cell, FileRows::rows_of_band)
    }

    /// Returns the range of cells around `cell` that come from the same tiles, however large. `None` if there is only
    /// one such range.
    fn line_of_tiles(&self, cell: u64) -> Option<Range<u64>> {
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

    /// Returns the range of bytes of the tile from the first to the last byte that a piece takes.
    pub(super) fn bytes_of(&self, piece: &Piece) -> Result<Range<u64>> {
        let cells = piece.tile_cells();
        let bytes = |cell: u64| cell.checked_mul(self.cell_size as u64);
        let range = bytes(cells.start).zip(bytes(cells.end)).map(|(start, end)| start..end);
        range.ok_or_else(|| Error::damaged("a tile of more than 2^64 bytes"))
    }

    fn copy(&self, plan: &ColumnPlan, batches: &mut Batches<'_, TileUnit>, out: &mut [u8]) -> Result<()> {
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
    use crate::array::dense::pieces::PieceAxis;
    use proptest::prelude::*;

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
