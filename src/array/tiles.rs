//! Decoded bytes of the tiles in one data file, chunk by chunk through the cache.
//!
//! The unit of decoding and caching is the chunk, so a small read in a large tile costs a chunk. A tile
//! that is itself no larger than a few chunks is one unit: most arrays have such tiles, and then one
//! read of the file and one entry of the cache serve all of it.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use super::bitsort::{SortedCells, SortedFile};
use super::folder::Context;
use crate::cache::{Buffer, Buffers, Cache, Key};
use crate::error::{Error, Locate, Result};
use crate::filter::{Decoder, Scratch};
use crate::format::fragment::sections::check_tile_offsets;
use crate::format::tile::ChunkHeader;
use crate::storage::{Storage, StoredFile};

/// Tiles of at most this many decoded bytes are decoded and cached whole.
const WHOLE_TILE: u64 = 128 << 10;

/// A persisted chunk may be larger than what it decodes to, by the framing of each filter; more than
/// this is damage.
const MOST_EXPANSION: u64 = 1 << 20;

/// What can only be decoded as one piece may take this many bytes however small the cache is; else as many as that.
const ALWAYS_DECODED: u64 = 16 << 20;

/// Each thread keeps a buffer of at most so many bytes for what is stored.
const MOST_KEPT: usize = 1 << 20;

thread_local! {
    /// What one decoding thread reuses: stored bytes as read, and the filters' own buffers.
    static WORKSPACE: RefCell<Workspace> = RefCell::default();
}

#[derive(Default)]
struct Workspace {
    stored: Vec<u8>,
    scratch: Scratch,
}

impl Workspace {
    /// The same, its buffer being `length` bytes long. What an unusually large piece needed is given back with the next.
    fn for_stored(&mut self, length: u64) -> &mut Self {
        let length = length as usize;
        if self.stored.capacity() > MOST_KEPT && length <= MOST_KEPT {
            self.stored = Vec::new();
        }
        self.stored.resize(length, 0);
        self
    }
}

/// The tiles of one data file of a fragment. Memory: the offsets, 8 bytes a tile; decoded bytes are the
/// cache's.
pub struct Tiles {
    storage: Arc<dyn Storage>,
    /// Weak, because the cache holds the tiles: they would keep each other for ever.
    cache: Weak<Cache>,
    buffers: Arc<Buffers>,
    source: u64,
    path: PathBuf,
    offsets: Arc<[u64]>,
    file_size: u64,
    decoder: Decoder,
    /// Where the cells were stored in another order than the array's: which file this is, and that order.
    sorted: Option<(SortedFile, Arc<SortedCells>)>,
}

/// One decoded unit: bytes `start..start + bytes.len()` of a tile.
#[derive(Debug)]
pub struct Block {
    pub start: u64,
    pub bytes: Buffer,
}

impl Block {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

/// Where the chunks of one tile are in the file, and what each decodes to.
struct ChunkIndex {
    chunks: Vec<StoredChunk>,
}

#[derive(Clone, Copy)]
struct StoredChunk {
    /// Offset in the file of the chunk's metadata, right behind its header.
    offset: u64,
    header: ChunkHeader,
    /// Offset in the decoded tile.
    start: u64,
}

/// What is decoded at a time, and where the cache has it.
#[derive(Clone, Copy)]
struct Unit {
    key: Key,
    /// `None` for a whole tile.
    chunk: Option<StoredChunk>,
}

impl Tiles {
    /// `offsets` are where each tile begins in the file of `file_size` bytes (both as recorded in the
    /// fragment's metadata); `decoder` undoes the file's filter pipeline; `source` names the file in the
    /// cache.
    ///
    /// # Errors
    /// [`Error::Damaged`] when offsets go backwards or leave the file.
    pub fn new(
        context: &Context,
        source: u64,
        path: PathBuf,
        offsets: Arc<[u64]>,
        file_size: u64,
        decoder: Decoder,
    ) -> Result<Self> {
        check_tile_offsets(&offsets, offsets.len() as u64, file_size).in_file(&path)?;
        let (storage, cache) = (context.storage.clone(), Arc::downgrade(&context.cache));
        let buffers = Arc::clone(context.cache.buffers());
        Ok(Tiles { storage, cache, buffers, source, path, offsets, file_size, decoder, sorted: None })
    }

    /// The same tiles, of cells that were stored in another order.
    pub(super) fn sorted(self, file: SortedFile, cells: Arc<SortedCells>) -> Self {
        Tiles { sorted: Some((file, cells)), ..self }
    }

    /// How many tiles the file has.
    pub fn count(&self) -> u64 {
        self.offsets.len() as u64
    }

    /// How many bytes the file has, as recorded.
    pub(super) fn file_size(&self) -> u64 {
        self.file_size
    }

    /// How many tiles at the start of the file end within its first `length` bytes.
    pub(super) fn count_within(&self, length: u64) -> u64 {
        if self.file_size <= length {
            return self.count();
        }
        // The last tile ends with the file.
        self.offsets.iter().skip(1).take_while(|end| **end <= length).count() as u64
    }

    /// The pipeline of this file.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// Copies decoded bytes of one tile, from `start`, to `out`. `size` is what the whole tile decodes to.
    ///
    /// # Errors
    /// Any damage met in the chunks that are needed, and no other.
    pub fn read(&self, tile: u64, size: u64, start: u64, out: &mut [u8]) -> Result<()> {
        TileReader::new(self, tile, size).copy(start, out)
    }

    /// A tile's decoded bytes as one block. For tiles that are used whole.
    ///
    /// # Errors
    /// Any damage in the tile; [`Error::Unsupported`] for one of more bytes than may be decoded as one piece.
    pub fn whole(&self, tile: u64, size: u64) -> Result<Arc<Block>> {
        if size <= WHOLE_TILE {
            return self.block(tile, size, 0);
        }
        let mut bytes = self.room(size).in_file(&self.path)?;
        self.read(tile, size, 0, &mut bytes)?;
        Ok(Arc::new(Block { start: 0, bytes }))
    }

    /// The most bytes that may be decoded as one piece.
    pub(super) fn most_at_once(&self) -> u64 {
        self.budget().max(ALWAYS_DECODED)
    }

    /// Memory for one piece of a tile, as long as somebody claims it is.
    fn room(&self, size: u64) -> Result<Buffer> {
        if size > self.most_at_once() {
            let what = format!("{size} bytes that can only be decoded together, more than --cache-size");
            return Err(Error::unsupported(what));
        }
        let length = usize::try_from(size).unwrap_or(usize::MAX);
        self.buffers.try_get(length).ok_or_else(|| Error::unsupported(format!("{size} bytes: not enough memory")))
    }

    /// A tile's decoded bytes, not kept. For those who keep what they make of them; they bound `size`.
    pub(super) fn decode(&self, tile: u64, size: u64) -> Result<Buffer> {
        Ok(self.decode_whole(tile, size).in_file(&self.path)?.bytes)
    }

    /// Whether a tile is stored without chunks. Of a tile that has cells this says that they are elsewhere.
    pub(super) fn has_no_chunks(&self, tile: u64) -> Result<bool> {
        // One chunk already takes more than the count of them.
        Ok(self.stored_range(tile).in_file(&self.path)?.1 == 8)
    }

    /// The start of each of `cells` strings and the strings, for a tile that stores both in one chunk; not kept.
    pub(super) fn decode_strings(&self, tile: u64, size: u64, cells: usize) -> Result<(Vec<u64>, Buffer)> {
        let (offset, stored) = self.stored_range(tile).in_file(&self.path)?;
        let decoded = self.open_for(offset, stored).and_then(|file| {
            plausible(stored, size.saturating_add(8 * cells as u64))?;
            WORKSPACE.with_borrow_mut(|workspace| {
                let Workspace { stored: buffer, scratch } = workspace.for_stored(stored);
                file.read_at(offset, buffer)?;
                let mut decoded = None;
                self.for_each_chunk(buffer, |original, metadata, data| {
                    if decoded.is_some() {
                        return Err(Error::damaged("several chunks of strings that hold their offsets"));
                    }
                    expect_size(original as u64, size)?;
                    let (mut offsets, mut bytes) = (self.offsets_of(cells)?, self.room(size)?);
                    self.decoder.decode_strings(metadata, data, &mut bytes, &mut offsets, scratch)?;
                    decoded = Some((offsets, bytes));
                    Ok(())
                })?;
                decoded.ok_or_else(|| Error::damaged("a tile without chunks"))
            })
        });
        decoded.in_file(&self.path).at(offset)
    }

    /// Room for the start of each of `cells` strings.
    fn offsets_of(&self, cells: usize) -> Result<Vec<u64>> {
        let mut offsets = Vec::new();
        let too_many = |_| Error::unsupported(format!("{cells} strings that can only be decoded together"));
        // One more is wanted in the end.
        offsets.try_reserve_exact(cells.saturating_add(1)).map_err(too_many)?;
        offsets.resize(cells, 0);
        Ok(offsets)
    }

    /// A tile as it is stored, which must be `size` bytes; not kept. For those who bound `size`.
    pub(super) fn stored(&self, tile: u64, size: u64) -> Result<Buffer> {
        let read = || {
            let (offset, stored) = self.stored_range(tile)?;
            if stored != size {
                return Err(Error::damaged(format!("{stored} stored bytes where {size} are due")).at(offset));
            }
            let file = self.open_for(offset, stored)?;
            let mut bytes = self.room(stored)?;
            file.read_at(offset, &mut bytes)?;
            Ok(bytes)
        };
        read().in_file(&self.path)
    }

    /// What `load` makes of a tile as a whole, and its weight, kept in the cache beside the tile's chunks.
    pub(super) fn whole_unit<T, F>(&self, tile: u64, load: F) -> Result<Arc<T>>
    where
        T: std::any::Any + Send + Sync,
        F: FnOnce() -> Result<(T, usize)>,
    {
        self.cache()?.get_or_load(self.whole_key(tile), load)
    }

    /// Makes what [`Tiles::whole_unit`] gives, unless it is there or being made.
    pub(super) fn prepare_whole_unit<T, F>(&self, tile: u64, load: F) -> Result<()>
    where
        T: std::any::Any + Send + Sync,
        F: FnOnce() -> Result<(T, usize)>,
    {
        self.cache()?.load(self.whole_key(tile), load)
    }

    fn whole_key(&self, tile: u64) -> Key {
        Key { source: self.source, tile, part: u32::MAX }
    }

    /// The budget of the cache.
    pub(super) fn budget(&self) -> u64 {
        self.cache.upgrade().map_or(0, |cache| cache.budget() as u64)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Decodes the block that holds byte `start` of a tile into the cache, unless that is done or under way. Gives
    /// where the block ends, which is behind `start`.
    pub fn prepare(&self, tile: u64, size: u64, start: u64) -> Result<u64> {
        let unit = self.unit(tile, size, start)?;
        self.cache()?.load(unit.key, || self.decode_unit(unit, size))?;
        Ok(unit.chunk.map_or(size, |chunk| chunk.start + u64::from(chunk.header.original)))
    }

    /// The cached block that holds byte `start` of a tile that decodes to `size` bytes.
    fn block(&self, tile: u64, size: u64, start: u64) -> Result<Arc<Block>> {
        let unit = self.unit(tile, size, start)?;
        self.cache()?.get_or_load(unit.key, || self.decode_unit(unit, size))
    }

    /// The unit that holds byte `start` of a tile.
    fn unit(&self, tile: u64, size: u64, start: u64) -> Result<Unit> {
        if start >= size {
            return Err(Error::damaged(format!("byte {start} of a tile of {size} wanted")).in_file(&self.path));
        }
        if size <= WHOLE_TILE || self.sorted.is_some() {
            return Ok(Unit { key: Key { source: self.source, tile, part: 0 }, chunk: None });
        }
        let index = self.chunk_index(tile, size)?;
        let number = index.chunks.partition_point(|chunk| chunk.start <= start).saturating_sub(1);
        let Some(chunk) = index.chunks.get(number).copied() else {
            return Err(Error::damaged("a tile without chunks").in_file(&self.path));
        };
        let part = u32::try_from(number + 1).map_err(|_| Error::damaged("too many chunks").in_file(&self.path))?;
        Ok(Unit { key: Key { source: self.source, tile, part }, chunk: Some(chunk) })
    }

    /// A block and its weight.
    fn decode_unit(&self, unit: Unit, size: u64) -> Result<(Block, usize)> {
        let block = match unit.chunk {
            Some(chunk) => self.decode_chunk(chunk).in_file(&self.path).at(chunk.offset)?,
            None => self.decode_whole(unit.key.tile, size).in_file(&self.path)?,
        };
        let weight = block.bytes.capacity();
        Ok((block, weight))
    }

    /// The cache, which lives as long as the array that these tiles are of.
    fn cache(&self) -> Result<Arc<Cache>> {
        self.cache.upgrade().ok_or_else(|| Error::usage("the array was closed"))
    }

    /// Offset and length of a tile in the file.
    fn stored_range(&self, tile: u64) -> Result<(u64, u64)> {
        let number = usize::try_from(tile).unwrap_or(usize::MAX);
        let Some(&offset) = self.offsets.get(number) else {
            return Err(Error::damaged(format!("tile {tile} of {} wanted", self.offsets.len())));
        };
        let end = self.offsets.get(number + 1).copied().unwrap_or(self.file_size);
        Ok((offset, end - offset))
    }

    fn open(&self) -> Result<Arc<dyn StoredFile>> {
        self.storage.open(&self.path)
    }

    /// The file, which holds `stored` bytes at `offset`: what is recorded of its length need not be so.
    fn open_for(&self, offset: u64, stored: u64) -> Result<Arc<dyn StoredFile>> {
        let file = self.open()?;
        if offset.checked_add(stored).is_none_or(|end| end > file.len()) {
            let reason = format!("the file ends at {}, {stored} bytes wanted", file.len());
            return Err(Error::damaged(reason).at(offset));
        }
        Ok(file)
    }

    /// How many chunks a tile says it has.
    pub(super) fn chunks(&self, tile: u64) -> Result<u64> {
        let (offset, stored) = self.stored_range(tile).in_file(&self.path)?;
        let mut head = [0; 8];
        self.open()?.read_at(offset, &mut head).in_file(&self.path)?;
        self.chunk_count(u64::from_le_bytes(head), stored).in_file(&self.path).at(offset)
    }

    /// The number of chunks at the head of a tile, checked against the tile's stored length.
    fn chunk_count(&self, count: u64, stored: u64) -> Result<u64> {
        let most = stored.saturating_sub(8) / ChunkHeader::SIZE as u64;
        if count > most {
            return Err(
                Error::damaged(format!("{count} chunks claimed, {most} at most fit")).in_field("number of chunks")
            );
        }
        Ok(count)
    }

    /// The chunks of a tile, found by walking their headers; cached, as large tiles have thousands.
    fn chunk_index(&self, tile: u64, size: u64) -> Result<Arc<ChunkIndex>> {
        self.cache()?.get_or_load(Key { source: self.source, tile, part: 0 }, || {
            let index = self.walk_chunks(tile, size).in_file(&self.path)?;
            let weight = index.chunks.capacity() * size_of::<StoredChunk>();
            Ok((index, weight))
        })
    }

    fn walk_chunks(&self, tile: u64, size: u64) -> Result<ChunkIndex> {
        let (offset, stored) = self.stored_range(tile)?;
        let file = self.open_for(offset, stored)?;
        let mut head = [0; 8];
        file.read_at(offset, &mut head)?;
        let count = self.chunk_count(u64::from_le_bytes(head), stored).at(offset)?;
        if count.saturating_mul(size_of::<StoredChunk>() as u64) > self.most_at_once() {
            return Err(Error::unsupported(format!("a tile of {count} chunks"))
                .in_field("number of chunks")
                .at(offset));
        }
        let end = offset + stored;
        let mut position = offset + 8;
        let mut start = 0u64;
        let mut chunks = Vec::new();
        for _ in 0..count {
            let mut bytes = [0; ChunkHeader::SIZE];
            file.read_at(position, &mut bytes)?;
            let header = ChunkHeader::parse(&bytes);
            let chunk = StoredChunk { offset: position + ChunkHeader::SIZE as u64, header, start };
            if header.original == 0 && count > 1 {
                // A hole in a file reads as any number of these.
                return Err(Error::damaged("an empty chunk among others").in_field("chunk header").at(chunk.offset));
            }
            start = start.saturating_add(u64::from(header.original));
            position = chunk.offset + header.payload_size();
            if position > end || start > size {
                return Err(Error::damaged("a chunk leaves its tile").in_field("chunk header").at(chunk.offset));
            }
            chunks.push(chunk);
        }
        expect_size(start, size).at(offset)?;
        Ok(ChunkIndex { chunks })
    }

    fn decode_chunk(&self, chunk: StoredChunk) -> Result<Block> {
        let size = u64::from(chunk.header.original);
        let stored = chunk.header.payload_size();
        plausible(stored, size)?;
        let file = self.open_for(chunk.offset, stored)?;
        let mut bytes = self.room(size)?;
        if self.decoder.is_unfiltered() && chunk.header.metadata == 0 && chunk.header.filtered == chunk.header.original
        {
            file.read_at(chunk.offset, &mut bytes)?;
        } else {
            WORKSPACE.with_borrow_mut(|workspace| {
                let Workspace { stored: buffer, scratch } = workspace.for_stored(stored);
                file.read_at(chunk.offset, buffer)?;
                let (metadata, data) = buffer.split_at(chunk.header.metadata as usize);
                self.decoder.decode(metadata, data, &mut bytes, scratch)
            })?;
        }
        Ok(Block { start: chunk.start, bytes })
    }

    fn decode_whole(&self, tile: u64, size: u64) -> Result<Block> {
        let of_tile = match &self.sorted {
            Some((SortedFile::Coordinates(number), cells)) => {
                return Ok(Block { start: 0, bytes: cells.coordinates(*number, tile, size, &self.buffers)? });
            }
            Some((SortedFile::Values { size: value }, cells)) => Some(cells.decoder(tile, size / *value as u64)?),
            None => None,
        };
        let decoder = of_tile.as_ref().unwrap_or(&self.decoder);
        let (offset, stored) = self.stored_range(tile)?;
        // Bounds the buffer: a small tile has few chunks, each with a header and some framing.
        plausible(stored, size).at(offset)?;
        let file = self.open_for(offset, stored)?;
        let mut bytes = self.room(size).at(offset)?;
        WORKSPACE.with_borrow_mut(|workspace| {
            let Workspace { stored: buffer, scratch } = workspace.for_stored(stored);
            file.read_at(offset, buffer)?;
            let mut filled = 0;
            self.for_each_chunk(buffer, |original, metadata, data| {
                let end = filled + original;
                let Some(out) = bytes.get_mut(filled..end) else {
                    return Err(Error::damaged(format!("the chunks hold more than the {size} bytes of the tile")));
                };
                filled = end;
                decoder.decode(metadata, data, out, scratch)
            })
            .at(offset)?;
            expect_size(filled as u64, size).at(offset)
        })?;
        Ok(Block { start: 0, bytes })
    }

    /// Visits (decoded size, metadata, data) of the chunks of a tile's stored bytes.
    fn for_each_chunk(&self, tile: &[u8], mut visit: impl FnMut(usize, &[u8], &[u8]) -> Result<()>) -> Result<()> {
        let damaged = || Error::damaged("a chunk leaves its tile").in_field("chunk header");
        let (head, mut rest) = tile.split_at_checked(8).ok_or_else(damaged)?;
        let mut count = [0; 8];
        count.copy_from_slice(head);
        for _ in 0..self.chunk_count(u64::from_le_bytes(count), tile.len() as u64)? {
            let (header, behind) = rest.split_first_chunk::<{ ChunkHeader::SIZE }>().ok_or_else(damaged)?;
            let header = ChunkHeader::parse(header);
            let (metadata, behind) = behind.split_at_checked(header.metadata as usize).ok_or_else(damaged)?;
            let (data, behind) = behind.split_at_checked(header.filtered as usize).ok_or_else(damaged)?;
            visit(header.original as usize, metadata, data)?;
            rest = behind;
        }
        Ok(())
    }
}

fn plausible(stored: u64, size: u64) -> Result<()> {
    if stored > size.saturating_mul(4).saturating_add(MOST_EXPANSION) {
        return Err(Error::damaged(format!("{stored} stored bytes for {size} decoded ones")));
    }
    Ok(())
}

fn expect_size(found: u64, size: u64) -> Result<()> {
    if found != size {
        return Err(Error::damaged(format!("the tile decodes to {found} bytes where {size} are due")));
    }
    Ok(())
}

/// Reads one tile at increasing offsets with few look-ups: it holds on to the block it is in.
pub struct TileReader<'a> {
    tiles: &'a Tiles,
    tile: u64,
    size: u64,
    current: Option<Arc<Block>>,
}

impl<'a> TileReader<'a> {
    pub fn new(tiles: &'a Tiles, tile: u64, size: u64) -> Self {
        TileReader { tiles, tile, size, current: None }
    }

    pub fn tile(&self) -> u64 {
        self.tile
    }

    /// Copies the decoded bytes from `start`.
    pub fn copy(&mut self, mut start: u64, mut out: &mut [u8]) -> Result<()> {
        while !out.is_empty() {
            let available = self.from(start)?;
            let length = available.len().min(out.len());
            let (now, later) = out.split_at_mut(length);
            now.copy_from_slice(&available[..length]);
            start += length as u64;
            out = later;
        }
        Ok(())
    }

    /// The decoded bytes from `start` to the end of the block it is in: at least one.
    pub fn from(&mut self, start: u64) -> Result<&[u8]> {
        let held = self.current.as_ref().is_some_and(|block| (block.start..block.end()).contains(&start));
        if !held {
            self.current = Some(self.tiles.block(self.tile, self.size, start)?);
        }
        let bytes = self.current.as_ref().and_then(|block| block.bytes.get(start.checked_sub(block.start)? as usize..));
        bytes
            .filter(|bytes| !bytes.is_empty())
            .ok_or_else(|| Error::damaged("a chunk ends before its header says").in_file(&self.tiles.path))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::filter::TileContext;
    use crate::format::datatype::Datatype;
    use crate::format::pipeline::{Filter, Pipeline};
    use crate::storage::LocalStorage;

    /// The only tile of a file that holds `stored` and is a hole up to `length`, of which `recorded` bytes are recorded.
    fn tiles(filters: Vec<Filter>, stored: &[u8], length: u64, recorded: u64) -> (tempfile::TempDir, Context, Tiles) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a0.tdb");
        fs::write(&path, stored).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_len(length).unwrap();
        let storage = Arc::new(LocalStorage::new());
        let context = Context { storage, cache: Arc::new(Cache::new(1 << 20)), key: None };
        let of = TileContext {
            datatype: Datatype::UInt8,
            cell_size: 1,
            format_version: 22,
            writer_version: None,
            key: None,
        };
        let decoder = Decoder::new(&Pipeline { max_chunk_size: 65536, filters }, &of).unwrap();
        let source = context.cache.new_source();
        let tiles = Tiles::new(&context, source, path, vec![0].into(), recorded, decoder).unwrap();
        (folder, context, tiles)
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

    #[test]
    fn what_is_recorded_is_no_more_than_the_file() {
        let many = numbers(1 << 40, [1 << 16, 1 << 16, 0]);
        assert!(damaged(&many, many.len() as u64, 1 << 62, 1000).contains("stored bytes for 1000 decoded ones"));
        assert!(damaged(&many, many.len() as u64, 1 << 62, 1 << 30).contains("the file ends at 20"));
        let long = numbers(1, [u32::MAX, u32::MAX, 0]);
        assert!(damaged(&long, long.len() as u64, 20, u32::MAX.into()).contains("a chunk leaves its tile"));
    }

    #[test]
    fn a_hole_is_no_number_of_empty_chunks() {
        let many = numbers(1 << 18, [1 << 16, 0, 0]);
        assert!(damaged(&many, 1 << 40, 1 << 40, 1 << 30).contains("an empty chunk among others"));
    }

    #[test]
    fn what_is_decoded_as_one_piece_is_bounded_by_the_cache() {
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
