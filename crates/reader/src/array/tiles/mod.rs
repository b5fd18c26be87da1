//! The tiles of one data file: their locations, and the units in which they are decoded.
//!
//! The unit of decoding and caching is the chunk, so a small read in a large tile decodes only a chunk. A tile that is
//! no larger than a few chunks is one unit. Most arrays have such tiles; one read of the file and one cache entry then
//! serve the whole tile.

mod offsets;
mod reader;
mod unit;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use tilefs_format::error::{Error, Locate, Result};
use tilefs_format::filter::Decoder;
use tilefs_format::fragment::sections::check_tile_offsets;
use tilefs_format::tile::ChunkHeader;
use tilefs_storage::StoreKey;

use super::bitsort::SortedCells;
use super::chunk_walk::{ChunkWalk, ReadWindow, StoredChunk, chunk_count};
use super::context::{Context, IndexKey};
use super::sorted_file::SortedFile;
use super::tile_numbers::TileNumbers;
use crate::cache::{Buffer, Buffers};
use crate::read::{Batches, Decoded, Decoding};
use crate::search::partition_point;

pub(super) use offsets::{OFFSET, OffsetTiles};
pub use reader::TileReader;
pub(super) use reader::add_pieces;
use unit::Form;
pub use unit::TileUnit;
pub(super) use unit::{drop_untouched, keep_marked};

/// Tiles of at most this many decoded bytes are decoded and cached as a whole.
const WHOLE_TILE: u64 = 128 << 10;

/// The same for a storage with latency: one request fetches such a tile, while locating its chunks would take another
/// one.
const WHOLE_REMOTE_TILE: u64 = 8 << 20;

/// The chunks of larger tiles are located by reading the whole tile there, in reads of this size.
const REMOTE_WINDOW: usize = 8 << 20;

/// Memory for this many stored bytes is allocated before the length of the file has been checked.
const UNCHECKED_READ_BYTES: u64 = 1 << 20;

/// Data that can only be decoded in one piece may take this many bytes, however small the cache is; or as many as the
/// cache.
const ALWAYS_ALLOWED_BYTES: u64 = 16 << 20;

/// The tiles of one data file of a fragment. Memory: that of the offsets, see [`TileNumbers`].
pub struct Tiles {
    /// Weak, because the context's cache holds the tiles: a strong reference would be a cycle.
    context: Weak<Context>,
    /// As in [`UnitKey::file`].
    file: u64,
    path: StoreKey,
    offsets: TileNumbers,
    file_size: u64,
    /// The size of the file when it was last requested, at first 0.
    stored_size: AtomicU64,
    decoder: Decoder,
    /// The most bytes that may be decoded in one piece.
    most_at_once: u64,
    /// The number of tiles between which reads alternate.
    by_turns: u64,
    /// Tiles of at most this many decoded bytes are one unit.
    whole_tile: u64,
    /// The number of bytes to read for one chunk header.
    header_window: usize,
    /// For cells that are stored in another order than the array's: the kind of this file, and the order.
    sorted: Option<(SortedFile, Arc<SortedCells>)>,
}

/// The location and the decoded size of each chunk of a tile.
struct ChunkIndex {
    chunks: Vec<StoredChunk>,
}

impl Tiles {
    /// Creates the tiles of a file. `offsets` are the offsets of the tiles in a file of `file_size` bytes, both as
    /// recorded in the fragment's metadata. `decoder` undoes the file's filter pipeline. `file` is the number of the
    /// file in cache keys. Reads alternate between `by_turns` tiles.
    ///
    /// # Errors
    /// [`Error::Damaged`] if offsets decrease or exceed the file.
    pub fn new(
        context: &Arc<Context>,
        file: u64,
        path: StoreKey,
        offsets: TileNumbers,
        file_size: u64,
        decoder: Decoder,
        by_turns: u64,
    ) -> Result<Self> {
        if let TileNumbers::Listed(offsets) = &offsets {
            check_tile_offsets(offsets, offsets.len() as u64, file_size).in_file(&path)?;
        }
        let most_at_once = (context.budget().decoded_units() as u64).max(ALWAYS_ALLOWED_BYTES);
        let (whole_tile, header_window) = match context.storage.is_far(&path) {
            // Small enough that even a small cache holds several, and all between which reads alternate.
            true => (WHOLE_REMOTE_TILE.min(context.budget().alternating_tile(by_turns)).max(WHOLE_TILE), REMOTE_WINDOW),
            false => (WHOLE_TILE, ChunkHeader::SIZE),
        };
        let context = Arc::downgrade(context);
        Ok(Tiles {
            context,
            file,
            path,
            offsets,
            file_size,
            stored_size: AtomicU64::new(0),
            decoder,
            most_at_once,
            by_turns,
            whole_tile,
            header_window,
            sorted: None,
        })
    }

    /// Returns the same tiles for cells that are stored in another order.
    pub(super) fn sorted(self, file: SortedFile, cells: Arc<SortedCells>) -> Self {
        Tiles { sorted: Some((file, cells)), ..self }
    }

    /// Returns the number of tiles.
    pub fn count(&self) -> u64 {
        self.offsets.count()
    }

    /// Returns the approximate memory use in bytes.
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.offsets.memory()
    }

    /// Returns the largest decoded size of tiles that are decoded and cached as a whole.
    pub(super) fn whole_tile(&self) -> u64 {
        self.whole_tile
    }

    /// Returns the recorded size of the file.
    pub(super) fn file_size(&self) -> u64 {
        self.file_size
    }

    /// Returns the number of tiles, from the start of the file, that end within its first `length` bytes.
    ///
    /// # Errors
    /// Any damage in the offsets.
    pub(super) fn count_within(&self, length: u64) -> Result<u64> {
        if self.file_size <= length {
            return Ok(self.count());
        }
        // The last tile ends with the file. Offsets ascend.
        partition_point(0..self.count().saturating_sub(1), |tile| {
            Ok(self.offsets.get(tile + 1)?.is_some_and(|offset| offset <= length))
        })
    }

    /// Returns the decoder of this file's pipeline.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    pub(super) fn path(&self) -> &StoreKey {
        &self.path
    }

    /// Adds the units that contain a range of bytes of one tile, in the order of the tile; `size` is the decoded size
    /// of the whole tile. For a large tile this may read the index of its chunks.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a range outside the tile, and for any damage in that index.
    pub fn units(self: &Arc<Self>, tile: u64, size: u64, range: Range<u64>, units: &mut Vec<TileUnit>) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        if range.end > size {
            let reason = format!("byte {} of a tile of {size} wanted", range.end - 1);
            return Err(Error::damaged(reason).in_file(&self.path));
        }
        let unit = |start: u64, size: u64, form: Form| TileUnit { tiles: self.clone(), tile, start, size, form };
        if let Some((file, cells)) = &self.sorted {
            let count = size / file.cell_size().max(1) as u64;
            units.push(unit(
                0,
                size,
                match file {
                    SortedFile::Values { .. } => Form::Sorted(Arc::new(cells.decoder(tile, count)?)),
                    SortedFile::Coordinates { size } => Form::SortedCoordinates(cells.order(tile, count)?, *size),
                },
            ));
            return Ok(());
        }
        if size <= self.whole_tile {
            units.push(unit(0, size, Form::Tile));
            return Ok(());
        }
        let index = self.chunk_index(tile, size)?;
        let first = index.chunks.partition_point(|chunk| chunk.start <= range.start).saturating_sub(1);
        for (number, chunk) in (0u32..).zip(&index.chunks).skip(first) {
            if chunk.start >= range.end {
                break;
            }
            units.push(unit(chunk.start, u64::from(chunk.header.original), Form::Chunk(number, *chunk)));
        }
        Ok(())
    }

    /// Returns the unit of a whole tile whose cells are stored in column-major order; it decodes to row-major order.
    pub(crate) fn row_major_unit(
        self: &Arc<Self>,
        tile: u64,
        size: u64,
        extents: &Arc<[usize]>,
        cell_size: usize,
    ) -> TileUnit {
        TileUnit { tiles: self.clone(), tile, start: 0, size, form: Form::RowMajor(extents.clone(), cell_size) }
    }

    /// Returns the unit of a whole tile of values of variable size, with its offsets: `size` bytes of values in `cells`
    /// cells.
    pub(super) fn variable_size_unit(
        self: &Arc<Self>,
        offsets: &Arc<OffsetTiles>,
        tile: u64,
        size: u64,
        cells: u64,
    ) -> TileUnit {
        TileUnit { tiles: self.clone(), tile, start: 0, size, form: Form::VariableSize(offsets.clone(), cells) }
    }

    /// Copies decoded bytes of one tile from `start` to `out`. `size` is the decoded size of the whole tile.
    ///
    /// # Errors
    /// Any damage in the required chunks, and in no others.
    pub fn read(self: &Arc<Self>, tile: u64, size: u64, start: u64, out: &mut [u8]) -> Result<()> {
        let (context, mut units) = (self.context()?, Vec::new());
        self.units(tile, size, start..start.saturating_add(out.len() as u64), &mut units)?;
        let mut batches = Batches::new(&context.fetcher, &units, Decoding::OnThisThread);
        TileReader::new(0..units.len()).copy(&mut batches, start, out)
    }

    /// Returns a unit from the cache, and fetches it on a miss.
    ///
    /// # Errors
    /// Any damage in it.
    pub(super) fn fetch(&self, unit: &TileUnit) -> Result<Arc<Decoded>> {
        self.context()?.fetcher.fetch_one(unit)
    }

    /// Decodes a whole tile.
    ///
    /// # Errors
    /// Any damage in it.
    pub(super) fn check(self: &Arc<Self>, tile: u64, size: u64) -> Result<()> {
        let context = self.context()?;
        let mut units = Vec::new();
        self.units(tile, size, 0..size, &mut units)?;
        Batches::new(&context.fetcher, &units, Decoding::OnThisThread).fetch_all()
    }

    /// Allocates memory for one piece of a tile.
    fn take_buffer(&self, size: u64, buffers: &Arc<Buffers>) -> Result<Buffer> {
        if size > self.most_at_once {
            let what = format!("{size} bytes that can only be decoded together, more than --cache-size");
            return Err(Error::unsupported(what));
        }
        let length = usize::try_from(size).unwrap_or(usize::MAX);
        buffers.try_get(length).ok_or_else(|| Error::unsupported(format!("{size} bytes: not enough memory")))
    }

    /// Returns whether a tile is stored without chunks. For a tile with cells this means that its data is elsewhere.
    pub(super) fn has_no_chunks(&self, tile: u64) -> Result<bool> {
        // Even one chunk takes more bytes than the count of chunks.
        Ok(self.stored_range(tile).in_file(&self.path)?.1 == 8)
    }

    /// Reads a tile as it is stored, which must be `size` bytes, without caching it. The caller bounds `size`.
    pub(super) fn stored(&self, tile: u64, size: u64) -> Result<Buffer> {
        let context = self.context()?;
        let read = || {
            let (offset, stored) = self.stored_range(tile)?;
            if stored != size {
                return Err(Error::damaged(format!("{stored} stored bytes instead of {size}")).at(offset));
            }
            self.expect_stored(offset, stored)?;
            let mut bytes = self.take_buffer(stored, context.fetcher.buffers())?;
            context.storage.read_at(&self.path, offset, &mut bytes)?;
            Ok(bytes)
        };
        read().in_file(&self.path)
    }

    /// Returns the context, which lives as long as the array of these tiles.
    pub(super) fn context(&self) -> Result<Arc<Context>> {
        self.context.upgrade().ok_or_else(|| Error::internal("the array was closed while it is read"))
    }

    /// Returns the number of this file in cache keys.
    pub(super) fn file(&self) -> u64 {
        self.file
    }

    /// Returns the offset and the length of a tile in the file.
    fn stored_range(&self, tile: u64) -> Result<(u64, u64)> {
        let Some(offset) = self.offsets.get(tile)? else {
            return Err(Error::damaged(format!("tile {tile} of {} wanted", self.count())));
        };
        let end = self.offsets.get(tile + 1)?.unwrap_or(self.file_size);
        if end < offset || end > self.file_size {
            let reason = format!("tile {tile} from {offset} to {end} of a file of {} bytes", self.file_size);
            return Err(Error::damaged(reason).in_field("tile offsets"));
        }
        Ok((offset, end - offset))
    }

    /// Checks that the file contains `length` bytes at `offset` before a large buffer is allocated, because the
    /// recorded size may be wrong. Small reads detect that themselves.
    fn expect_stored(&self, offset: u64, length: u64) -> Result<()> {
        if length <= UNCHECKED_READ_BYTES {
            return Ok(());
        }
        let wanted = offset.saturating_add(length);
        if self.stored_size.load(Ordering::Relaxed) >= wanted {
            return Ok(());
        }
        // Asked again if the file was too short: it may have been restored since.
        let end = self.context()?.storage.length(&self.path)?;
        self.stored_size.store(end, Ordering::Relaxed);
        if wanted > end {
            let reason = format!("the file ends at {end}, {length} bytes wanted");
            return Err(Error::damaged(reason).in_file(&self.path).at(offset));
        }
        Ok(())
    }

    /// Returns the number of chunks according to a tile.
    pub(super) fn chunks(&self, tile: u64) -> Result<u64> {
        let (offset, stored) = self.stored_range(tile).in_file(&self.path)?;
        let mut head = [0; 8];
        self.context()?.storage.read_at(&self.path, offset, &mut head).in_file(&self.path)?;
        chunk_count(u64::from_le_bytes(head), stored).in_file(&self.path).at(offset)
    }

    /// Returns the chunks of a tile, located by walking their headers; cached, because large tiles have thousands.
    fn chunk_index(&self, tile: u64, size: u64) -> Result<Arc<ChunkIndex>> {
        let context = self.context()?;
        context.indexes.get_or_load(IndexKey::Chunks(self.file, tile), || {
            let index = self.walk_chunks(&context, tile, size).in_file(&self.path)?;
            let weight = index.chunks.capacity() * size_of::<StoredChunk>();
            Ok((index, weight))
        })
    }

    fn walk_chunks(&self, context: &Context, tile: u64, size: u64) -> Result<ChunkIndex> {
        let (offset, stored) = self.stored_range(tile)?;
        self.expect_stored(offset, stored)?;
        let window =
            ReadWindow::new(&*context.storage, &self.path, offset, offset + stored, Vec::new(), self.header_window);
        let mut walk = ChunkWalk::new(window, size)?;
        let count = walk.count();
        if count.saturating_mul(size_of::<StoredChunk>() as u64) > self.most_at_once {
            return Err(Error::unsupported(format!("a tile of {count} chunks"))
                .in_field("number of chunks")
                .at(offset));
        }
        let mut chunks = Vec::new();
        while let Some(chunk) = walk.next_chunk()? {
            chunks.push(chunk);
        }
        if u32::try_from(chunks.len()).is_err() {
            return Err(Error::damaged("too many chunks").at(offset));
        }
        expect_size(walk.decoded(), size).at(offset)?;
        Ok(ChunkIndex { chunks })
    }
}

fn expect_size(found: u64, size: u64) -> Result<()> {
    if found != size {
        return Err(Error::damaged(format!("the tile decodes to {found} bytes instead of {size}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;
    use tilefs_format::datatype::Datatype;
    use tilefs_format::filter::TileContext;
    use tilefs_format::pipeline::{Filter, Pipeline};
    use tilefs_storage::LocalStorage;

    use super::*;
    use crate::read::Unit;

    /// Returns the only tile of a file that contains `stored`, followed by a hole up to `length`, with `recorded` bytes
    /// recorded.
    fn tiles(
        filters: Vec<Filter>,
        stored: &[u8],
        length: u64,
        recorded: u64,
    ) -> (tempfile::TempDir, Arc<Context>, Arc<Tiles>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a0.tdb");
        fs::write(&path, stored).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_len(length).unwrap();
        let storage = Arc::new(LocalStorage::new());
        let context = Arc::new(Context::new(storage, 64 << 20, 1, None));
        let of = TileContext {
            datatype: Datatype::UInt8,
            cell_size: 1,
            format_version: 22,
            writer_version: None,
            key: None,
        };
        let decoder = Decoder::new(&Pipeline { max_chunk_size: 65536, filters }, &of).unwrap();
        let file = context.fetcher.new_files(1);
        let tiles = Tiles::new(&context, file, path.into(), vec![0].into(), recorded, decoder, 1).unwrap();
        (folder, context, Arc::new(tiles))
    }

    fn numbers<const COUNT: usize>(count: u64, heads: [u32; COUNT]) -> Vec<u8> {
        count.to_le_bytes().into_iter().chain(heads.iter().flat_map(|number| number.to_le_bytes())).collect()
    }

    fn damaged(stored: &[u8], length: u64, recorded: u64, size: u64) -> String {
        let (_folder, _context, tiles) = tiles(Vec::new(), stored, length, recorded);
        match tiles.read(0, size, 0, &mut [0; 1]) {
            Err(error @ Error::Damaged { .. }) => error.to_string(),
            other => panic!("{other:?}"),
        }
    }

    /// Returns a tile of chunks of `chunk` cells each, in runs of one cell if `in_runs`.
    fn stored_in_chunks(cells: &[u8], chunk: usize, in_runs: bool) -> Vec<u8> {
        let mut stored = (cells.len().div_ceil(chunk) as u64).to_le_bytes().to_vec();
        for cells in cells.chunks(chunk) {
            let size = cells.len() as u32;
            if in_runs {
                let heads = [size, 3 * size, 16, 0, 1, size, 3 * size];
                stored.extend(heads.iter().flat_map(|number| number.to_le_bytes()));
                stored.extend(cells.iter().flat_map(|cell| [*cell, 0, 1]));
            } else {
                stored.extend([size, size, 0].iter().flat_map(|number| number.to_le_bytes()));
                stored.extend(cells);
            }
        }
        stored
    }

    proptest! {
        /// The units are the tile, or its chunks.
        #[test]
        fn cells_that_bypass_the_cache_are_the_same(
            size in prop_oneof![1usize..2000, 131_060usize..132_000],
            chunk in 2000usize..5000,
            in_runs: bool,
            ends: [prop::sample::Index; 2],
        ) {
            let cells: Vec<u8> = (0..size).map(|cell| (cell * cell / 7) as u8).collect();
            let stored = stored_in_chunks(&cells, chunk, in_runs);
            let filters = if in_runs { vec![Filter::Rle { level: -1 }] } else { Vec::new() };
            let length = stored.len() as u64;
            let (_folder, context, tiles) = tiles(filters, &stored, length, length);
            let mut ends = ends.map(|end| end.index(size + 1));
            ends.sort_unstable();
            let wanted = &cells[ends[0]..ends[1]];
            let mut units = Vec::new();
            tiles.units(0, size as u64, ends[0] as u64..ends[1] as u64, &mut units).unwrap();
            let whole = |unit: &&TileUnit| unit.start >= ends[0] as u64 && unit.range().end <= ends[1] as u64;
            let whole = units.iter().filter(whole).count();
            for reads in 1..4 {
                let (mut out, mut pieces) = (vec![0; wanted.len()], Vec::new());
                add_pieces(&units, ends[0] as u64, &mut out, &mut pieces).unwrap();
                context.fetcher.copy_once(pieces).unwrap();
                prop_assert!(out == wanted, "read {}", reads);
                let cached = units.iter().filter(|unit| context.fetcher.cache().contains(&unit.key())).count();
                prop_assert_eq!(cached, if reads == 1 { units.len() - whole } else { units.len() });
            }
            let mut out = vec![0; wanted.len()];
            tiles.read(0, size as u64, ends[0] as u64, &mut out).unwrap();
            prop_assert!(out == wanted);
        }
    }

    #[test]
    fn a_recorded_size_beyond_the_file_is_damage() {
        let many = numbers(1 << 40, [1 << 16, 1 << 16, 0]);
        assert!(damaged(&many, many.len() as u64, 1 << 62, 1000).contains("stored bytes for 1000 decoded ones"));
        assert!(damaged(&many, many.len() as u64, 1 << 62, 1 << 30).contains("the file ends at 20"));
        let long = numbers(1, [u32::MAX, u32::MAX, 0]);
        assert!(damaged(&long, long.len() as u64, 20, u32::MAX.into()).contains("a chunk leaves its tile"));
    }

    #[test]
    fn a_hole_is_not_read_as_empty_chunks() {
        let many = numbers(1 << 18, [1 << 16, 0, 0]);
        assert!(damaged(&many, 1 << 40, 1 << 40, 1 << 30).contains("an empty chunk before others"));
    }

    #[test]
    fn pieces_larger_than_the_cache_are_refused() {
        // 2 GiB of one value in 98 KiB.
        let run = [7, 0xff, 0xff].repeat(32769);
        let original = 32769 * 65535;
        let mut stored = numbers(1, [original, run.len() as u32, 16, 0, 1, original, run.len() as u32]);
        stored.extend(run);
        let length = stored.len() as u64;
        let (_folder, _context, tiles) = tiles(vec![Filter::Rle { level: -1 }], &stored, length, length);
        let error = tiles.read(0, original.into(), 0, &mut [0; 1]).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains("2147516415 bytes that can only be decoded together"), "{error}");
    }
}
