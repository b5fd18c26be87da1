//! Tiles of variable-size cells: the offsets and the values of a tile, read together.
//!
//! If [`Tiles`] would not divide a tile into chunks, its offsets and values are decoded as one unit, because a reader
//! of offsets often needs the values, too. Of a larger tile, only the required chunks of offsets or of values are
//! decoded, unless the tile's filter stores the offsets within the values.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::fragment::FragmentField;

use super::Tiles;
use super::offsets::{OFFSET, OffsetTiles};
use super::reader::TileReader;
use super::spilled::SpilledTile;
use super::unit::{TileUnit, drop_untouched};
use crate::array::context::IndexKey;
use crate::array::folder::ArrayFolder;
use crate::array::folder::outline::FieldFile;
use crate::array::metadata_tiles::tile_numbers::TileNumbers;
use crate::read::{Batches, Decoded};

/// The divisor that turns the size of a tile on disk into its weight in the cache of indexes. So tiles on disk take at
/// most this many times the budget of indexes.
const DISK_TO_MEMORY: u64 = 64;

/// The tiles of a variable-size field of a fragment, in two files.
pub struct VarTiles {
    offsets: Arc<OffsetTiles>,
    values: Arc<Tiles>,
    /// The decoded size of each tile of values, in bytes.
    sizes: Arc<TileNumbers>,
}

impl ArrayFolder {
    /// Returns the tiles of a variable-size field. `field` numbers fields as in the fragment's own schema; `value_size`
    /// is that of the field's datatype.
    ///
    /// # Errors
    /// As [`ArrayFolder::tiles`] and [`ArrayFolder::var_sizes`].
    pub(crate) fn var_tiles(&self, fragment: usize, field: FragmentField, value_size: usize) -> Result<VarTiles> {
        let offsets = self.tiles(fragment, field, FieldFile::Data)?;
        let values = self.tiles(fragment, field, FieldFile::Var)?;
        let offsets = Arc::new(OffsetTiles { tiles: offsets, value_size: value_size.max(1) });
        Ok(VarTiles { offsets, values, sizes: self.var_sizes(fragment, field)? })
    }
}

impl VarTiles {
    /// Returns the recorded decoded size of a tile's values in bytes; decoding checks this size.
    ///
    /// # Errors
    /// [`Error::Damaged`] if there is no such tile.
    pub fn size(&self, tile: u64) -> Result<u64> {
        let size = self.sizes.get(tile)?;
        size.ok_or_else(|| Error::damaged(format!("no size for tile {tile}")).in_file(self.values.file.path()))
    }

    /// Returns the files of the offsets and of the values.
    pub(crate) fn files(&self) -> (&Tiles, &Tiles) {
        (&self.offsets.tiles, &self.values)
    }

    /// Returns a tile of `cells` cells, decoded as one unit. For tiles with [`VarTiles::is_whole`], or if the whole
    /// tile is required.
    ///
    /// # Errors
    /// Any damage in the tile; [`Error::Unsupported`] for a tile that does not fit in memory.
    pub fn tile(&self, tile: u64, cells: u64) -> Result<Arc<Decoded>> {
        self.values.fetch(&self.whole_unit(tile, cells)?)
    }

    /// Adds the units that contain offsets of a tile: the starts of `count` cells from `first`, and the end of the last
    /// of these cells.
    ///
    /// # Errors
    /// If there is no such tile.
    pub(crate) fn offset_units(
        &self,
        tile: u64,
        cells: u64,
        first: u64,
        count: u64,
        units: &mut Vec<TileUnit>,
    ) -> Result<()> {
        if self.is_whole(tile, cells)? {
            return self.add_whole_unit(tile, cells, units);
        }
        let end = first.saturating_add(count).saturating_add(1).min(cells);
        let bytes = first.saturating_mul(OFFSET)..end.saturating_mul(OFFSET);
        self.offsets.tiles.units(tile, offset_bytes(cells)?, bytes, units)
    }

    /// Adds the units that contain a range of bytes of a tile's values.
    ///
    /// # Errors
    /// If there is no such tile, or it has no such bytes.
    pub(crate) fn value_units(
        &self,
        tile: u64,
        cells: u64,
        bytes: Range<u64>,
        units: &mut Vec<TileUnit>,
    ) -> Result<()> {
        if self.is_whole(tile, cells)? {
            return self.add_whole_unit(tile, cells, units);
        }
        self.values.units(tile, self.size(tile)?, bytes, units)
    }

    /// Decodes all values of a tile.
    ///
    /// # Errors
    /// Any damage in them.
    pub(crate) fn check_values(&self, tile: u64) -> Result<()> {
        self.values.check(tile, self.size(tile)?)
    }

    /// Adds the unit of a tile that is decoded as one unit, unless the tile is too large for memory.
    fn add_whole_unit(&self, tile: u64, cells: u64, units: &mut Vec<TileUnit>) -> Result<()> {
        if !self.is_spilled(tile, cells)? {
            units.push(self.whole_unit(tile, cells)?);
        }
        Ok(())
    }

    fn whole_unit(&self, tile: u64, cells: u64) -> Result<TileUnit> {
        Ok(self.values.variable_size_unit(&self.offsets, tile, self.size(tile)?, cells))
    }

    /// Returns whether a tile is cached as one unit.
    ///
    /// # Errors
    /// As [`VarTiles::size`].
    pub fn is_whole(&self, tile: u64, cells: u64) -> Result<bool> {
        let total = cells.saturating_mul(OFFSET).saturating_add(self.size(tile)?);
        Ok(total <= self.values.whole_tile() || self.is_folded(tile, cells)?)
    }

    /// Plans a read of the offsets of some runs of a tile's cells, with the end of the last cell of each run: adds the
    /// units of these offsets, and returns a reader of the offsets. The runs are ascending, and none is empty.
    ///
    /// # Errors
    /// As [`VarTiles::offset_units`] and [`VarTiles::offset_reader`].
    pub(crate) fn plan_offsets(
        &self,
        tile: u64,
        cells: u64,
        runs: impl Iterator<Item = Range<u64>> + Clone,
        units: &mut Vec<TileUnit>,
    ) -> Result<OffsetReader> {
        let before = units.len();
        let (first, last) = (runs.clone().next().unwrap_or(0..0), runs.clone().last().unwrap_or(0..0));
        self.offset_units(tile, cells, first.start, last.end.saturating_sub(first.start), units)?;
        // The first and the last unit are always needed.
        if units.len() - before > 2 {
            let bytes =
                |run: Range<u64>| run.start.saturating_mul(OFFSET)..run.end.saturating_add(1).saturating_mul(OFFSET);
            drop_untouched(runs.map(bytes), before, units);
        }
        self.offset_reader(tile, cells, before..units.len())
    }

    /// Returns a reader of offsets of a tile. `units` is the range of a plan's units that
    /// [`VarTiles::offset_units`] added.
    ///
    /// # Errors
    /// Any damage in a tile that is too large for memory.
    pub(crate) fn offset_reader(&self, tile: u64, cells: u64, units: Range<usize>) -> Result<OffsetReader> {
        if let Some(spilled) = self.spilled_tile(tile, cells)? {
            return Ok(OffsetReader::Spilled(spilled));
        }
        if self.is_whole(tile, cells)? {
            return Ok(OffsetReader::Whole(units.start));
        }
        let (file, size) = (self.offsets.clone(), self.size(tile)?);
        Ok(OffsetReader::Chunks(ChunkedOffsets { file, tile, cells, size, reader: TileReader::new(units) }))
    }

    /// Returns a tile that is one unit and too large for memory; `None` for all other tiles.
    ///
    /// # Errors
    /// Any damage in it.
    pub(crate) fn spilled_tile(&self, tile: u64, cells: u64) -> Result<Option<Arc<SpilledTile>>> {
        if self.is_spilled(tile, cells)? { self.spilled(tile, cells).map(Some) } else { Ok(None) }
    }

    /// Returns whether a tile that is one unit is too large for memory.
    fn is_spilled(&self, tile: u64, cells: u64) -> Result<bool> {
        let total = cells.saturating_mul(OFFSET).saturating_add(self.size(tile)?);
        let most = self.values.file.context()?.fetcher.cache().most_kept() as u64;
        Ok(total > most && self.is_whole(tile, cells)?)
    }

    /// Returns a tile that is one unit and too large for memory. Decodes it on first use.
    fn spilled(&self, tile: u64, cells: u64) -> Result<Arc<SpilledTile>> {
        let context = self.values.file.context()?;
        context.indexes.get_or_load(IndexKey::Spilled(self.values.file.number(), tile), || {
            let spilled =
                context.fetcher.with_large(&self.whole_unit(tile, cells)?, |decoded| SpilledTile::write(&decoded))?;
            let weight = spilled.disk() / DISK_TO_MEMORY;
            Ok((spilled, weight as usize))
        })
    }

    /// Returns whether a tile's offsets are in its values, which is the case if a tile with cells has an offsets tile
    /// without chunks.
    fn is_folded(&self, tile: u64, cells: u64) -> Result<bool> {
        Ok(cells > 0 && self.offsets.tiles.file.has_no_chunks(tile)?)
    }
}

fn offset_bytes(cells: u64) -> Result<u64> {
    cells.checked_mul(OFFSET).ok_or_else(|| Error::damaged("more cells in a tile than memory has bytes"))
}

/// A reader of offsets of one tile, from the units of a plan.
pub enum OffsetReader {
    /// The number of the unit with all offsets and values.
    Whole(usize),
    /// That unit, once it is decoded.
    Decoded(Arc<Decoded>),
    /// A tile that is too large for memory.
    Spilled(Arc<SpilledTile>),
    /// The chunks that contain the offsets.
    Chunks(ChunkedOffsets),
    /// No tile: every value has this many bytes.
    Fill(u64),
}

/// Offsets in some chunks of a tile.
pub struct ChunkedOffsets {
    file: Arc<OffsetTiles>,
    tile: u64,
    cells: u64,
    /// The bytes of the tile's values.
    size: u64,
    reader: TileReader,
}

impl OffsetReader {
    /// Reads the offsets of planned cells from cell `first` on within the tile's values. Fills `out`, whose last entry
    /// may be the end of the last cell.
    ///
    /// # Errors
    /// Offsets that decrease or exceed the tile, and any damage in the data that is read.
    pub fn read(&mut self, batches: &mut Batches<'_, TileUnit>, first: u64, out: &mut [u64]) -> Result<()> {
        match self {
            OffsetReader::Whole(unit) => {
                *self = OffsetReader::Decoded(batches.get(*unit)?.clone());
                self.read(batches, first, out)
            }
            OffsetReader::Decoded(tile) => {
                let stored = tile.offsets.get(first as usize..).and_then(|some| some.get(..out.len()));
                out.copy_from_slice(stored.ok_or_else(|| Error::damaged("cells past the end of the tile"))?);
                Ok(())
            }
            OffsetReader::Spilled(tile) => tile.offsets(first, out),
            OffsetReader::Chunks(chunks) => chunks.read(batches, first, out),
            OffsetReader::Fill(size) => {
                (first..).zip(out).for_each(|(cell, offset)| *offset = cell * *size);
                Ok(())
            }
        }
    }
}

impl ChunkedOffsets {
    fn read(&mut self, batches: &mut Batches<'_, TileUnit>, first: u64, out: &mut [u64]) -> Result<()> {
        let past = || Error::damaged(format!("cells past the {} of the tile", self.cells));
        let end = first.checked_add(out.len() as u64).filter(|&end| end <= self.cells + 1).ok_or_else(past)?;
        let stored = end.min(self.cells).saturating_sub(first) as usize;
        let mut bytes = [0; 512 * OFFSET as usize];
        for (number, part) in out[..stored].chunks_mut(512).enumerate() {
            let bytes = &mut bytes[..part.len() * OFFSET as usize];
            self.reader.copy(batches, (first + 512 * number as u64) * OFFSET, bytes)?;
            for (offset, stored) in part.iter_mut().zip(bytes.as_chunks().0) {
                *offset = u64::from_le_bytes(*stored);
            }
        }
        out[stored..].fill(self.size);
        if first == 0 && stored > 0 {
            self.file.check_first(self.tile, out)?;
        }
        self.file.check(self.tile, first, out, self.size)
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use tilefs_format::datatype::Datatype;
    use tilefs_format::filter::{Decoder, TileContext};
    use tilefs_format::pipeline::Pipeline;
    use tilefs_storage::{LocalStorage, SimulatedStorage, Storage};

    use super::super::tile_file::TileFile;
    use super::super::value_plan::{ValueCopy, ValuePlan};
    use super::*;
    use crate::array::Context;
    use crate::read::Decoding;
    use std::time::Duration;

    const CHUNK: usize = 65536;

    /// Returns a tile without filters.
    fn framed(bytes: &[u8]) -> Vec<u8> {
        let mut tile = (bytes.len().div_ceil(CHUNK) as u64).to_le_bytes().to_vec();
        for chunk in bytes.chunks(CHUNK) {
            let size = (chunk.len() as u32).to_le_bytes();
            tile.extend([size, size, [0; 4]].as_flattened());
            tile.extend(chunk);
        }
        tile
    }

    /// Returns tiles 0 (with one cell) and 1 (with the given data) in two files, and the context that must outlive
    /// them.
    fn stored(folder: &TempDir, offsets: &[u64], values: &[u8], value_size: usize) -> (VarTiles, Arc<Context>) {
        stored_with(folder, offsets, values, value_size, 64 << 20, Arc::new(LocalStorage::default()))
    }

    /// The same with a memory budget, from another storage.
    fn stored_with(
        folder: &TempDir,
        offsets: &[u64],
        values: &[u8],
        value_size: usize,
        budget: usize,
        storage: Arc<dyn Storage>,
    ) -> (VarTiles, Arc<Context>) {
        let context = Arc::new(Context::new(storage, budget, 1, None));
        let file = |name: &str, datatype: Datatype, first: &[u8], second: &[u8]| {
            let path = folder.path().join(name);
            let (first, second) = (framed(first), framed(second));
            std::fs::write(&path, [&first[..], &second].concat()).unwrap();
            let tile = TileContext {
                datatype,
                cell_size: datatype.size(),
                format_version: 22,
                writer_version: None,
                key: None,
            };
            let decoder = Decoder::new(&Pipeline::default(), &tile).unwrap();
            let size = (first.len() + second.len()) as u64;
            let starts = vec![0, first.len() as u64].into();
            let file = TileFile::new(&context, context.fetcher.new_files(1), path.into(), starts, size).unwrap();
            Arc::new(Tiles::new(&context, file, decoder, 1))
        };
        let encoded: Vec<u8> = offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect();
        let tiles = VarTiles {
            offsets: Arc::new(OffsetTiles { tiles: file("a0.tdb", Datatype::UInt64, &[0; 8], &encoded), value_size }),
            values: file("a0_var.tdb", Datatype::UInt8, b"first", values),
            sizes: Arc::new(vec![5, values.len() as u64].into()),
        };
        (tiles, context)
    }

    /// Reads offsets of tile 1 with a plan of their own.
    fn offsets_of(tiles: &VarTiles, context: &Context, cells: u64, first: u64, out: &mut [u64]) -> Result<()> {
        let mut units = Vec::new();
        let mut reader =
            tiles.plan_offsets(1, cells, std::iter::once(first..first + out.len() as u64 - 1), &mut units)?;
        reader.read(&mut Batches::new(&context.fetcher, &units, Decoding::OnThisThread), first, out)
    }

    /// Reads values of a tile with a plan of their own.
    fn values_of(tiles: &VarTiles, context: &Context, tile: u64, cells: u64, from: u64, out: &mut [u8]) -> Result<()> {
        let mut plan = ValuePlan::default();
        plan.add(0, tiles, tile, cells, [ValueCopy { from, to: 0, length: out.len() }])?;
        plan.read(&context.fetcher, out, |_, result| result)
    }

    #[test]
    fn small_tiles_are_one_unit_and_large_tiles_are_not() {
        for cells in [0usize, 1, 1000, 10_000, 700_000] {
            let folder = TempDir::new().unwrap();
            let values: Vec<u8> = (0..3 * cells).map(|byte| (byte % 251) as u8).collect();
            let offsets: Vec<u64> = (0..cells).map(|cell| (3 * cell - cell % 3) as u64).collect();
            let (tiles, context) = stored(&folder, &offsets, &values, 1);
            let mut first = [0; 5];
            values_of(&tiles, &context, 0, 1, 0, &mut first).unwrap();
            assert_eq!(&first, b"first");
            let reader = tiles.offset_reader(1, cells as u64, 0..0).unwrap();
            assert_eq!(matches!(reader, OffsetReader::Whole(_)), cells < 12_000);
            let mut all = offsets.clone();
            all.push(values.len() as u64);
            for (first, count) in [(0, cells + 1), (cells / 2, 1), (cells, 1), (cells / 3, cells / 2)] {
                let mut some = vec![7; count];
                if count > 0 {
                    offsets_of(&tiles, &context, cells as u64, first as u64, &mut some).unwrap();
                }
                assert_eq!(some, all[first..first + count]);
            }
            assert!(offsets_of(&tiles, &context, cells as u64, cells as u64, &mut [0; 2]).is_err());
            let mut some = vec![0; cells];
            if cells > 0 {
                values_of(&tiles, &context, 1, cells as u64, cells as u64, &mut some).unwrap();
            }
            assert_eq!(some, values[cells..2 * cells]);
            let whole = tiles.tile(1, cells as u64).unwrap();
            assert_eq!((&whole.offsets[..], &whole.bytes[..]), (&all[..], &values[..]));
        }
    }

    #[test]
    fn planned_units_are_those_that_a_read_needs() {
        for cells in [1000u64, 20_000, 700_000] {
            let folder = TempDir::new().unwrap();
            let offsets: Vec<u64> = (0..cells).map(|cell| 3 * cell).collect();
            let (tiles, context) = stored(&folder, &offsets, &vec![1; 3 * cells as usize], 1);
            let misses = || context.fetcher.cache().statistics().misses;
            let fetch = |units: &[TileUnit]| context.fetcher.fetch(units, Decoding::OnThisThread).unwrap();
            let (first, count) = (cells / 3, cells / 2);
            let (mut some, mut values) = (vec![0; count as usize], vec![0; 3 * count as usize]);
            let mut units = Vec::new();
            tiles.offset_units(1, cells, first, count, &mut units).unwrap();
            fetch(&units);
            let before = misses();
            offsets_of(&tiles, &context, cells, first, &mut some).unwrap();
            assert!(before > 0 && misses() == before, "offsets of {cells} cells");
            units.clear();
            tiles.value_units(1, cells, 3 * first..3 * (first + count), &mut units).unwrap();
            fetch(&units);
            let before = misses();
            values_of(&tiles, &context, 1, cells, 3 * first, &mut values).unwrap();
            assert_eq!(misses(), before, "values of {cells} cells");
        }
    }

    /// Each unit is planned once for all runs of cells, and only if one of them needs it.
    #[test]
    fn runs_of_cells_share_units() {
        for (cells, step, units_of) in [(1000u64, 7, 1), (30_000, 7, 4), (30_000, 29_000, 2), (700_000, 90_000, 8)] {
            let folder = TempDir::new().unwrap();
            let offsets: Vec<u64> = (0..cells).map(|cell| 3 * cell).collect();
            let (tiles, context) = stored(&folder, &offsets, &vec![1; 3 * cells as usize], 1);
            let runs: Vec<Range<u64>> = (0..cells).step_by(step).map(|first| first..(first + 2).min(cells)).collect();
            let mut units = Vec::new();
            let mut reader = tiles.plan_offsets(1, cells, runs.iter().cloned(), &mut units).unwrap();
            assert_eq!(units.len(), units_of, "{cells} cells, by {step}");
            let mut batches = Batches::new(&context.fetcher, &units, Decoding::OnThisThread);
            for run in runs {
                let mut some = vec![0; (run.end - run.start) as usize + 1];
                reader.read(&mut batches, run.start, &mut some).unwrap();
                assert_eq!(some, (run.start..=run.end).map(|cell| 3 * cell).collect::<Vec<_>>());
            }
        }
    }

    /// From a tile that is one unit, from chunks, and from a tile on disk.
    #[test]
    fn plans_copy_the_stored_bytes() {
        let local = || -> Arc<dyn Storage> { Arc::new(LocalStorage::default()) };
        let remote = || -> Arc<dyn Storage> { Arc::new(SimulatedStorage::new(local(), Duration::ZERO)) };
        for (cells, budget, storage) in [
            (1000u64, 64 << 20, local()),
            (60_000, 64 << 20, local()),
            (60_000, 64 << 20, remote()),
            (10_000, 64 << 10, local()),
        ] {
            let folder = TempDir::new().unwrap();
            let offsets: Vec<u64> = (0..cells).map(|cell| 3 * cell).collect();
            let values: Vec<u8> = (0..3 * cells).map(|byte| (byte % 251) as u8).collect();
            let (tiles, context) = stored_with(&folder, &offsets, &values, 1, budget, storage);
            // Some consecutive cells, some scattered and backwards, across the ends of chunks.
            let wanted: Vec<u64> = (0..50).chain((0..40).map(|number| cells - 1 - number * (cells / 41))).collect();
            let cell = |place: usize, cell: u64| ValueCopy { from: 3 * cell, to: 3 * place, length: 3 };
            let mut plan = ValuePlan::default();
            plan.add(0, &tiles, 1, cells, []).unwrap();
            plan.add(0, &tiles, 1, cells, wanted.iter().enumerate().map(|(place, wanted)| cell(place, *wanted)))
                .unwrap();
            plan.add(7, &tiles, 0, 1, [ValueCopy { from: 1, to: 3 * wanted.len(), length: 4 }]).unwrap();
            let mut out = vec![0; 3 * wanted.len() + 4];
            plan.fetch(&context.fetcher).unwrap();
            let before = context.fetcher.cache().statistics().misses;
            plan.read(&context.fetcher, &mut out, |_, result| result).unwrap();
            if !tiles.is_spilled(1, cells).unwrap() {
                assert_eq!(context.fetcher.cache().statistics().misses, before, "all was fetched");
            }
            let mut expected = vec![0; out.len()];
            for (place, wanted) in wanted.iter().enumerate() {
                expected[3 * place..][..3].copy_from_slice(&values[3 * *wanted as usize..][..3]);
            }
            expected[3 * wanted.len()..].copy_from_slice(b"irst");
            assert_eq!(out, expected, "{cells}");

            let mut past = ValuePlan::default();
            let end = ValueCopy { from: 3 * cells - 1, to: 0, length: 2 };
            let planned = past.add(3, &tiles, 1, cells, [end]);
            let read = || {
                past.read(&context.fetcher, &mut [0; 2], |fragment, result| {
                    assert_eq!(fragment, 3);
                    result
                })
            };
            assert!(planned.and_then(|()| read()).is_err());
            assert!(plan.read(&context.fetcher, &mut out[..8], |_, result| result).is_err());
        }
    }

    #[test]
    fn tiles_too_large_for_memory_are_decoded_once() {
        let folder = TempDir::new().unwrap();
        let cells = 10_000;
        let values: Vec<u8> = (0..3 * cells).map(|byte| (byte % 251) as u8).collect();
        let offsets: Vec<u64> = (0..cells as u64).map(|cell| 3 * cell).collect();
        // One unit, which is larger than the cache.
        let (tiles, context) = stored_with(&folder, &offsets, &values, 1, 64 << 10, Arc::new(LocalStorage::default()));
        assert!(tiles.is_spilled(1, cells as u64).unwrap());
        let mut all = vec![0; values.len()];
        for (part, out) in all.chunks_mut(1001).enumerate() {
            // A separate plan for each, as for each request.
            values_of(&tiles, &context, 1, cells as u64, part as u64 * 1001, out).unwrap();
            let mut some = [0; 5];
            offsets_of(&tiles, &context, cells as u64, part as u64 * 300, &mut some).unwrap();
            assert_eq!(some, offsets[part * 300..][..5]);
        }
        assert_eq!(all, values);
        assert_eq!(context.fetcher.cache().statistics().misses, 0, "not by way of the cache");
        let file = tiles.spilled(1, cells as u64).unwrap();
        assert!(Arc::ptr_eq(&file, &tiles.spilled(1, cells as u64).unwrap()));
        assert!(
            file.copy(3 * cells as u64 - 1, &mut [0; 2]).is_err() && file.offsets(cells as u64, &mut [0; 2]).is_err()
        );
    }

    #[test]
    fn impossible_offsets_are_refused() {
        for (offsets, value_size) in [([0, 2, 1], 1), ([1, 2, 2], 1), ([0, 2, 5], 1), ([0, 1, 2], 2)] {
            let folder = TempDir::new().unwrap();
            let (tiles, _context) = stored(&folder, &offsets, b"abcd", value_size);
            assert!(matches!(tiles.tile(1, 3), Err(Error::Damaged { .. })), "{offsets:?}");
        }
        // In a large tile, only the required chunks are decoded.
        let folder = TempDir::new().unwrap();
        let values = vec![0; 5 << 20];
        let (tiles, context) = stored(&folder, &[0, 9, 8, 8], &values, 1);
        assert!(offsets_of(&tiles, &context, 4, 0, &mut [0; 2]).is_ok());
        assert!(offsets_of(&tiles, &context, 4, 1, &mut [0; 2]).is_err());
        assert!(offsets_of(&tiles, &context, 4, 2, &mut [0; 3]).is_ok());
    }
}
