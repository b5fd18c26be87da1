//! The tiles of one data file: where they are stored, and the units that they are decoded by.
//!
//! The unit of decoding and caching is the chunk, so a small read in a large tile costs a chunk. A tile
//! that is itself no larger than a few chunks is one unit: most arrays have such tiles, and then one
//! read of the file and one entry of the cache serve all of it.

use std::ops::Range;
use std::sync::{Arc, OnceLock, Weak};

use super::bitsort::{SortedCells, SortedFile};
use super::context::{Context, IndexKey};
use super::reorder::to_row_major;
use crate::cache::{Buffer, Buffers};
use crate::error::{Error, Locate, Result};
use crate::filter::{Decoder, Scratch, StoredOrder};
use crate::format::fragment::sections::check_tile_offsets;
use crate::format::tile::ChunkHeader;
use crate::read::{Batches, Decoded, Decoding, StoredRange, Unit, UnitKey, UnitPart};
use crate::storage::{StoreKey, is_far};

/// Tiles of at most this many decoded bytes are decoded and cached whole ...
const WHOLE_TILE: u64 = 128 << 10;

/// ... and where requests are waits tiles of so many: one request gets such a tile, and finding its chunks takes another.
const WHOLE_FAR_TILE: u64 = 8 << 20;

/// The chunks of larger tiles are found by reading all of the tile there, so many bytes at a time.
const FAR_WINDOW: u64 = 8 << 20;

/// A persisted chunk may be larger than what it decodes to, by the framing of each filter; more than
/// this is damage.
const MOST_EXPANSION: u64 = 1 << 20;

/// For so many stored bytes there is room made before it is known that the file has them.
const ALWAYS_READ: u64 = 1 << 20;

/// What can only be decoded as one piece may take this many bytes however small the cache is; else as many as that.
const ALWAYS_DECODED: u64 = 16 << 20;

/// The tiles of one data file of a fragment. Memory: the offsets, 8 bytes a tile.
pub struct Tiles {
    /// Weak, because the context keeps the tiles: they would keep each other for ever.
    context: Weak<Context>,
    /// Of [`UnitKey::file`].
    file: u64,
    path: StoreKey,
    offsets: Arc<[u64]>,
    file_size: u64,
    /// How many bytes the file has, once that was asked for.
    stored_size: OnceLock<u64>,
    decoder: Decoder,
    /// The most bytes that may be decoded as one piece.
    most_at_once: u64,
    /// Tiles of at most so many decoded bytes are one unit.
    whole_tile: u64,
    /// So many bytes are read for the sake of one chunk header.
    header_window: u64,
    /// Where the cells were stored in another order than the array's: which file this is, and that order.
    sorted: Option<(SortedFile, Arc<SortedCells>)>,
}

/// Where the chunks of one tile are in the file, and what each decodes to.
struct ChunkIndex {
    chunks: Vec<StoredChunk>,
}

#[derive(Debug, Clone, Copy)]
struct StoredChunk {
    /// Offset in the file of the chunk's metadata, right behind its header.
    offset: u64,
    header: ChunkHeader,
    /// Offset in the decoded tile.
    start: u64,
}

/// What of a tile is decoded at once, and how.
#[derive(Clone)]
pub struct TileUnit {
    tiles: Arc<Tiles>,
    tile: u64,
    /// Where its bytes begin in the decoded tile.
    start: u64,
    /// Bytes that it decodes to.
    size: u64,
    form: Form,
}

#[derive(Clone)]
enum Form {
    Tile,
    Chunk(u32, StoredChunk),
    /// From column-major order: the extents of the tile, and the bytes of a cell.
    RowMajor(Arc<[usize]>, usize),
    /// With the offsets, so many cells.
    VariableSize(Arc<OffsetTiles>, u64),
    /// Values, decoded to another order, or coordinates of so many bytes, that were stored in it.
    Sorted(Arc<Decoder>),
    SortedCoordinates(Arc<StoredOrder>, usize),
}

/// What is needed of the file of the offsets to decode cells of variable size.
pub(super) struct OffsetTiles {
    pub tiles: Arc<Tiles>,
    /// Bytes of one value; a cell is a multiple of it.
    pub value_size: usize,
}

impl Tiles {
    /// `offsets` are where each tile begins in the file of `file_size` bytes (both as recorded in the
    /// fragment's metadata); `decoder` undoes the file's filter pipeline; `file` names the file in the
    /// cache.
    ///
    /// # Errors
    /// [`Error::Damaged`] when offsets go backwards or leave the file.
    pub fn new(
        context: &Arc<Context>,
        file: u64,
        path: StoreKey,
        offsets: Arc<[u64]>,
        file_size: u64,
        decoder: Decoder,
    ) -> Result<Self> {
        check_tile_offsets(&offsets, offsets.len() as u64, file_size).in_file(&path)?;
        let most_at_once = (context.fetcher.cache().budget() as u64).max(ALWAYS_DECODED);
        let (whole_tile, header_window) = match is_far(&*context.storage) {
            // Small enough for a small cache to keep several.
            true => (WHOLE_FAR_TILE.min(most_at_once / 8).max(WHOLE_TILE), FAR_WINDOW),
            false => (WHOLE_TILE, ChunkHeader::SIZE as u64),
        };
        let context = Arc::downgrade(context);
        Ok(Tiles {
            context,
            file,
            path,
            offsets,
            file_size,
            stored_size: OnceLock::new(),
            decoder,
            most_at_once,
            whole_tile,
            header_window,
            sorted: None,
        })
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

    pub(super) fn path(&self) -> &StoreKey {
        &self.path
    }

    /// Adds the units that hold the bytes of a range of one tile; `size` is what the whole tile decodes to. They come
    /// in the order of the tile. Of a large tile the index of its chunks may have to be read.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a range that is not in the tile, and for any damage in that index.
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

    /// The unit of a whole tile whose cells are stored in column-major order, in row-major order.
    pub fn row_major_unit(
        self: &Arc<Self>,
        tile: u64,
        size: u64,
        extents: &Arc<[usize]>,
        cell_size: usize,
    ) -> TileUnit {
        TileUnit { tiles: self.clone(), tile, start: 0, size, form: Form::RowMajor(extents.clone(), cell_size) }
    }

    /// The unit of a whole tile of values of variable size, `size` bytes in so many cells, with its offsets.
    pub(super) fn variable_size_unit(
        self: &Arc<Self>,
        offsets: &Arc<OffsetTiles>,
        tile: u64,
        size: u64,
        cells: u64,
    ) -> TileUnit {
        TileUnit { tiles: self.clone(), tile, start: 0, size, form: Form::VariableSize(offsets.clone(), cells) }
    }

    /// Copies decoded bytes of one tile, from `start`, to `out`. `size` is what the whole tile decodes to.
    ///
    /// # Errors
    /// Any damage in the chunks that are needed, and no other.
    pub fn read(self: &Arc<Self>, tile: u64, size: u64, start: u64, out: &mut [u8]) -> Result<()> {
        TileCursor::new(self.clone(), tile, size).copy(start, out)
    }

    /// A unit, by way of the cache.
    ///
    /// # Errors
    /// Any damage in it.
    pub(super) fn fetch(&self, unit: &TileUnit) -> Result<Arc<Decoded>> {
        self.context()?.fetcher.fetch_one(unit)
    }

    /// Decodes all of a tile.
    ///
    /// # Errors
    /// Any damage in it.
    pub(super) fn check(self: &Arc<Self>, tile: u64, size: u64) -> Result<()> {
        let context = self.context()?;
        let mut units = Vec::new();
        self.units(tile, size, 0..size, &mut units)?;
        Batches::new(&context.fetcher, &units, Decoding::OnThisThread).fetch_all()
    }

    /// Memory for one piece of a tile, as long as somebody claims it is.
    fn room(&self, size: u64, buffers: &Arc<Buffers>) -> Result<Buffer> {
        if size > self.most_at_once {
            let what = format!("{size} bytes that can only be decoded together, more than --cache-size");
            return Err(Error::unsupported(what));
        }
        let length = usize::try_from(size).unwrap_or(usize::MAX);
        buffers.try_get(length).ok_or_else(|| Error::unsupported(format!("{size} bytes: not enough memory")))
    }

    /// Whether a tile is stored without chunks. Of a tile that has cells this says that they are elsewhere.
    pub(super) fn has_no_chunks(&self, tile: u64) -> Result<bool> {
        // One chunk already takes more than the count of them.
        Ok(self.stored_range(tile).in_file(&self.path)?.1 == 8)
    }

    /// A tile as it is stored, which must be `size` bytes; not kept. For those who bound `size`.
    pub(super) fn stored(&self, tile: u64, size: u64) -> Result<Buffer> {
        let context = self.context()?;
        let read = || {
            let (offset, stored) = self.stored_range(tile)?;
            if stored != size {
                return Err(Error::damaged(format!("{stored} stored bytes where {size} are due")).at(offset));
            }
            self.expect_stored(offset, stored)?;
            let mut bytes = self.room(stored, context.fetcher.buffers())?;
            context.storage.read_at(&self.path, offset, &mut bytes)?;
            Ok(bytes)
        };
        read().in_file(&self.path)
    }

    /// What all arrays of the mount share, which lives as long as the array that these tiles are of.
    pub(super) fn context(&self) -> Result<Arc<Context>> {
        self.context.upgrade().ok_or_else(|| Error::internal("the array was closed while it is read"))
    }

    /// The number of this file in keys.
    pub(super) fn file(&self) -> u64 {
        self.file
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

    /// Whether the file holds `length` bytes at `offset`, before there is room made for many: what is recorded of its
    /// length need not be so. Reading few tells it as well.
    fn expect_stored(&self, offset: u64, length: u64) -> Result<()> {
        if length <= ALWAYS_READ {
            return Ok(());
        }
        let end = match self.stored_size.get() {
            Some(end) => *end,
            None => {
                let end = self.context()?.storage.length(&self.path)?;
                *self.stored_size.get_or_init(|| end)
            }
        };
        if offset.checked_add(length).is_none_or(|wanted| wanted > end) {
            let reason = format!("the file ends at {end}, {length} bytes wanted");
            return Err(Error::damaged(reason).in_file(&self.path).at(offset));
        }
        Ok(())
    }

    /// How many chunks a tile says it has.
    pub(super) fn chunks(&self, tile: u64) -> Result<u64> {
        let (offset, stored) = self.stored_range(tile).in_file(&self.path)?;
        let mut head = [0; 8];
        self.context()?.storage.read_at(&self.path, offset, &mut head).in_file(&self.path)?;
        chunk_count(u64::from_le_bytes(head), stored).in_file(&self.path).at(offset)
    }

    /// The chunks of a tile, found by walking their headers; kept, as large tiles have thousands.
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
        let end = offset + stored;
        // What was read last, from the position of its first byte on.
        let (mut window, mut window_start) = (Vec::new(), offset);
        let mut read = |position: u64, length: usize| -> Result<[u8; ChunkHeader::SIZE]> {
            let mut bytes = [0; ChunkHeader::SIZE];
            let within = usize::try_from(position - window_start).unwrap_or(usize::MAX);
            if window.get(within..).is_none_or(|rest| rest.len() < length) {
                window.resize(self.header_window.min(end - position).max(length as u64) as usize, 0);
                context.storage.read_at(&self.path, position, &mut window)?;
                window_start = position;
            }
            let within = (position - window_start) as usize;
            bytes[..length].copy_from_slice(&window[within..within + length]);
            Ok(bytes)
        };
        let [a, b, c, d, e, f, g, h, ..] = read(offset, 8)?;
        let count = chunk_count(u64::from_le_bytes([a, b, c, d, e, f, g, h]), stored).at(offset)?;
        if count.saturating_mul(size_of::<StoredChunk>() as u64) > self.most_at_once {
            return Err(Error::unsupported(format!("a tile of {count} chunks"))
                .in_field("number of chunks")
                .at(offset));
        }
        let mut position = offset + 8;
        let mut start = 0u64;
        let mut chunks = Vec::new();
        for _ in 0..count {
            let header = ChunkHeader::parse(&read(position, ChunkHeader::SIZE)?);
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
        if u32::try_from(chunks.len()).is_err() {
            return Err(Error::damaged("too many chunks").at(offset));
        }
        expect_size(start, size).at(offset)?;
        Ok(ChunkIndex { chunks })
    }

    /// Decodes all chunks of a tile's stored bytes, one after the other.
    fn decode_chunks(
        &self,
        stored: &[u8],
        size: u64,
        decoder: &Decoder,
        buffers: &Arc<Buffers>,
        scratch: &mut Scratch,
    ) -> Result<Buffer> {
        let mut bytes = self.room(size, buffers)?;
        let mut filled = 0;
        for_each_chunk(stored, |original, metadata, data| {
            let end = filled + original;
            let Some(out) = bytes.get_mut(filled..end) else {
                return Err(Error::damaged(format!("the chunks hold more than the {size} bytes of the tile")));
            };
            filled = end;
            decoder.decode(metadata, data, out, scratch)
        })?;
        expect_size(filled as u64, size)?;
        Ok(bytes)
    }

    /// Decodes a tile that stores strings and their offsets in one chunk: the start of each of `cells` strings, and the
    /// strings.
    fn decode_strings(
        &self,
        stored: &[u8],
        size: u64,
        cells: u64,
        buffers: &Arc<Buffers>,
        scratch: &mut Scratch,
    ) -> Result<(Vec<u64>, Buffer)> {
        let mut decoded = None;
        for_each_chunk(stored, |original, metadata, data| {
            if decoded.is_some() {
                return Err(Error::damaged("several chunks of strings that hold their offsets"));
            }
            expect_size(original as u64, size)?;
            let (mut offsets, mut bytes) = (room_for_offsets(cells)?, self.room(size, buffers)?);
            self.decoder.decode_strings(metadata, data, &mut bytes, &mut offsets, scratch)?;
            decoded = Some((offsets, bytes));
            Ok(())
        })?;
        decoded.ok_or_else(|| Error::damaged("a tile without chunks"))
    }
}

impl TileUnit {
    /// Which of the decoded bytes of its tile it has.
    pub fn range(&self) -> Range<u64> {
        self.start..self.start + self.size
    }

    /// Bytes of the tile of offsets, where there is one that is not in the values.
    fn offset_bytes(&self) -> Option<(&Arc<Tiles>, u64)> {
        match &self.form {
            Form::VariableSize(offsets, cells) => {
                let is_folded = *cells > 0 && offsets.tiles.has_no_chunks(self.tile).unwrap_or(false);
                (!is_folded).then(|| (&offsets.tiles, cells.saturating_mul(OFFSET)))
            }
            _ => None,
        }
    }

    fn decode_at_place(&self, stored: &[u8], buffers: &Arc<Buffers>, scratch: &mut Scratch) -> Result<Decoded> {
        let tiles = &*self.tiles;
        Ok(Decoded::of_bytes(match &self.form {
            Form::Tile => tiles.decode_chunks(stored, self.size, &tiles.decoder, buffers, scratch)?,
            Form::Sorted(decoder) => tiles.decode_chunks(stored, self.size, decoder, buffers, scratch)?,
            Form::SortedCoordinates(order, size) => {
                let mut coordinates = tiles.room(self.size, buffers)?;
                order.restore(*size, stored, &mut coordinates)?;
                coordinates
            }
            Form::RowMajor(extents, cell_size) => {
                let column_major = tiles.decode_chunks(stored, self.size, &tiles.decoder, buffers, scratch)?;
                let mut bytes = tiles.room(self.size, buffers)?;
                to_row_major(&column_major, extents, *cell_size, &mut bytes);
                bytes
            }
            Form::Chunk(_, chunk) => {
                let mut bytes = tiles.room(self.size, buffers)?;
                let (metadata, data) = stored.split_at(chunk.header.metadata as usize);
                tiles.decoder.decode(metadata, data, &mut bytes, scratch)?;
                bytes
            }
            Form::VariableSize(..) => return self.decode_variable_size(stored, buffers, scratch),
        }))
    }

    fn decode_variable_size(&self, stored: &[u8], buffers: &Arc<Buffers>, scratch: &mut Scratch) -> Result<Decoded> {
        let Form::VariableSize(offset_tiles, cells) = &self.form else {
            return Err(Error::internal("a tile of cells of one size decoded as of variable size"));
        };
        let tiles = &*self.tiles;
        let (mut offsets, bytes) = match self.offset_bytes() {
            None => tiles.decode_strings(stored, self.size, *cells, buffers, scratch)?,
            Some((file, size)) => {
                let (_, length) = file.stored_range(self.tile)?;
                let (stored_offsets, stored) = stored.split_at(length as usize);
                let decoded =
                    file.decode_chunks(stored_offsets, size, &file.decoder, buffers, scratch).in_file(&file.path)?;
                let mut offsets = room_for_offsets(0)?;
                // As many as have just been decoded, and the end.
                offsets.reserve_exact(decoded.len() / OFFSET as usize + 1);
                offsets.extend(decoded.as_chunks().0.iter().copied().map(u64::from_le_bytes));
                (offsets, tiles.decode_chunks(stored, self.size, &tiles.decoder, buffers, scratch)?)
            }
        };
        offset_tiles.check_first(self.tile, &offsets)?;
        offsets.push(self.size);
        offset_tiles.check(self.tile, 0, &offsets, self.size)?;
        Ok(Decoded { bytes, offsets })
    }
}

/// Bytes of one offset.
pub(super) const OFFSET: u64 = 8;

impl OffsetTiles {
    /// Offsets begin at 0.
    pub fn check_first(&self, tile: u64, offsets: &[u64]) -> Result<()> {
        match offsets.first() {
            Some(first) if *first != 0 => Err(self.wrong_offset(tile, 0, "the first offset is not 0")),
            _ => Ok(()),
        }
    }

    /// Offsets from that of cell `first` on do not go backwards nor past the values, and lie between values. The values
    /// of the tile are `size` bytes.
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
        Error::damaged(format!("tile {tile}, cell {cell}: {reason}")).in_file(&self.tiles.path).at(at)
    }
}

impl Unit for TileUnit {
    fn key(&self) -> UnitKey {
        let part = match &self.form {
            Form::Tile | Form::Sorted(_) | Form::SortedCoordinates(..) => UnitPart::Tile,
            Form::Chunk(number, _) => UnitPart::Chunk(*number),
            Form::RowMajor(..) => UnitPart::RowMajor,
            Form::VariableSize(..) => UnitPart::VariableSize,
        };
        UnitKey { file: self.tiles.file, tile: self.tile, part }
    }

    fn size(&self) -> u64 {
        self.size.saturating_add(self.offset_bytes().map_or(0, |(_, bytes)| bytes))
    }

    fn for_each_stored<'a>(&'a self, visit: &mut dyn FnMut(StoredRange<'a>)) -> Result<()> {
        let tiles = &*self.tiles;
        if let Form::Chunk(_, chunk) = &self.form {
            let length = chunk.header.payload_size();
            plausible(length, self.size).in_file(&tiles.path).at(chunk.offset)?;
            tiles.expect_stored(chunk.offset, length)?;
            visit(StoredRange { file: &tiles.path, offset: chunk.offset, length });
            return Ok(());
        }
        let most = match &self.form {
            // Also where the offsets are in the values.
            Form::VariableSize(_, cells) => self.size.saturating_add(cells.saturating_mul(OFFSET)),
            _ => self.size,
        };
        if most > tiles.most_at_once {
            let what = match &self.form {
                Form::VariableSize(_, cells) => format!("{} bytes in {cells} cells", self.size),
                _ => format!("{most} bytes"),
            };
            let what = format!("{what} that can only be decoded together, more than --cache-size");
            return Err(Error::unsupported(what).in_file(&tiles.path));
        }
        if let Some((offsets, size)) = self.offset_bytes() {
            let (offset, length) = offsets.stored_range(self.tile).in_file(&offsets.path)?;
            plausible(length, size).in_file(&offsets.path).at(offset)?;
            offsets.expect_stored(offset, length)?;
            visit(StoredRange { file: &offsets.path, offset, length });
        }
        let (offset, length) = tiles.stored_range(self.tile).in_file(&tiles.path)?;
        // Bounds the buffer: a small tile has few chunks, each with a header and some framing.
        match &self.form {
            Form::SortedCoordinates(..) if length != self.size => {
                let reason = format!("{length} stored bytes where {} are due", self.size);
                return Err(Error::damaged(reason).in_file(&tiles.path).at(offset));
            }
            _ => plausible(length, most).in_file(&tiles.path).at(offset)?,
        }
        tiles.expect_stored(offset, length)?;
        visit(StoredRange { file: &tiles.path, offset, length });
        Ok(())
    }

    fn is_stored_plain(&self) -> bool {
        match &self.form {
            Form::Chunk(_, StoredChunk { header, .. }) => {
                self.tiles.decoder.is_unfiltered() && header.metadata == 0 && header.filtered == header.original
            }
            _ => false,
        }
    }

    fn decode(&self, stored: &[u8], buffers: &Arc<Buffers>, scratch: &mut Scratch) -> Result<Decoded> {
        let offset = match &self.form {
            Form::Chunk(_, chunk) => chunk.offset,
            _ => self.tiles.stored_range(self.tile)?.0,
        };
        self.decode_at_place(stored, buffers, scratch).in_file(&self.tiles.path).at(offset)
    }

    fn room(&self, buffers: &Arc<Buffers>) -> Result<Buffer> {
        self.tiles.room(self.size, buffers).in_file(&self.tiles.path)
    }
}

/// Room for the start of each of `cells` strings, set to 0.
fn room_for_offsets(cells: u64) -> Result<Vec<u64>> {
    let mut offsets = Vec::new();
    let too_many = || Error::unsupported(format!("{cells} strings that can only be decoded together"));
    let cells = usize::try_from(cells).map_err(|_| too_many())?;
    // One more is wanted in the end.
    offsets.try_reserve_exact(cells.saturating_add(1)).map_err(|_| too_many())?;
    offsets.resize(cells, 0);
    Ok(offsets)
}

/// The number of chunks at the head of a tile, checked against the tile's stored length.
fn chunk_count(count: u64, stored: u64) -> Result<u64> {
    let most = stored.saturating_sub(8) / ChunkHeader::SIZE as u64;
    if count > most {
        return Err(Error::damaged(format!("{count} chunks claimed, {most} at most fit")).in_field("number of chunks"));
    }
    Ok(count)
}

/// Visits (decoded size, metadata, data) of the chunks of a tile's stored bytes.
fn for_each_chunk(tile: &[u8], mut visit: impl FnMut(usize, &[u8], &[u8]) -> Result<()>) -> Result<()> {
    let damaged = || Error::damaged("a chunk leaves its tile").in_field("chunk header");
    let (head, mut rest) = tile.split_first_chunk().ok_or_else(damaged)?;
    for _ in 0..chunk_count(u64::from_le_bytes(*head), tile.len() as u64)? {
        let (header, behind) = rest.split_first_chunk::<{ ChunkHeader::SIZE }>().ok_or_else(damaged)?;
        let header = ChunkHeader::parse(header);
        let (metadata, behind) = behind.split_at_checked(header.metadata as usize).ok_or_else(damaged)?;
        let (data, behind) = behind.split_at_checked(header.filtered as usize).ok_or_else(damaged)?;
        visit(header.original as usize, metadata, data)?;
        rest = behind;
    }
    Ok(())
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

/// Copies from the units of one tile, which are some of those of a plan. Holds the unit that it was in last, in which a
/// copy takes no look-up.
#[derive(Debug, Clone)]
pub struct TileReader {
    /// Which of the plan's units.
    units: Range<usize>,
    held: Option<(Range<u64>, Arc<Decoded>)>,
}

impl TileReader {
    /// The units are in the order of the tile.
    pub fn new(units: Range<usize>) -> Self {
        TileReader { units, held: None }
    }

    /// Copies the decoded bytes from byte `start` of the tile.
    ///
    /// # Errors
    /// Any damage in the units that hold them.
    pub fn copy(&mut self, batches: &mut Batches<'_, TileUnit>, mut start: u64, mut out: &mut [u8]) -> Result<()> {
        while !out.is_empty() {
            if let Some((range, decoded)) = &self.held
                && range.contains(&start)
            {
                let within = (start - range.start) as usize;
                let length = ((range.end - start) as usize).min(out.len());
                let (now, later) = out.split_at_mut(length);
                now.copy_from_slice(decoded.bytes.get(within..within + length).ok_or_else(|| not_there(start))?);
                start += length as u64;
                out = later;
            } else {
                self.held = Some(self.unit_of(batches, start)?);
            }
        }
        Ok(())
    }

    /// The unit that holds byte `start` of the tile, and its part of the tile.
    #[cold]
    fn unit_of(&self, batches: &mut Batches<'_, TileUnit>, start: u64) -> Result<(Range<u64>, Arc<Decoded>)> {
        let own = batches.units().get(self.units.clone()).unwrap_or_default();
        let number = own.partition_point(|unit| unit.start <= start).saturating_sub(1);
        let range = own.get(number).map(TileUnit::range).filter(|range| range.contains(&start));
        let range = range.ok_or_else(|| not_there(start))?;
        Ok((range, batches.get(self.units.start + number)?.clone()))
    }
}

fn not_there(start: u64) -> Error {
    Error::internal(format!("byte {start} of a tile is in none of its units"))
}

/// Copies from one tile wherever it is asked to, without a plan. Holds the unit that it was in last.
pub struct TileCursor {
    tiles: Arc<Tiles>,
    tile: u64,
    size: u64,
    held: Option<(Range<u64>, Arc<Decoded>)>,
}

impl TileCursor {
    /// `size` is what the whole tile decodes to.
    pub fn new(tiles: Arc<Tiles>, tile: u64, size: u64) -> Self {
        TileCursor { tiles, tile, size, held: None }
    }

    pub fn tile(&self) -> u64 {
        self.tile
    }

    /// Copies the decoded bytes from byte `start` of the tile.
    ///
    /// # Errors
    /// Any damage in the units that hold them, and no other.
    pub fn copy(&mut self, start: u64, out: &mut [u8]) -> Result<()> {
        let wanted = start..start.saturating_add(out.len() as u64);
        if let Some((range, decoded)) = &self.held
            && range.start <= wanted.start
            && wanted.end <= range.end
        {
            return copy_common(range, decoded, &wanted, out);
        }
        let context = self.tiles.context()?;
        let mut units = Vec::new();
        self.tiles.units(self.tile, self.size, wanted.clone(), &mut units)?;
        let mut batches = Batches::new(&context.fetcher, &units, Decoding::OnThisThread);
        for (number, unit) in units.iter().enumerate() {
            let decoded = batches.get(number)?;
            copy_common(&unit.range(), decoded, &wanted, out)?;
            if number + 1 == units.len() {
                self.held = Some((unit.range(), decoded.clone()));
            }
        }
        Ok(())
    }
}

/// Copies what a unit, which has some bytes of a tile, has of those wanted.
fn copy_common(range: &Range<u64>, decoded: &Decoded, wanted: &Range<u64>, out: &mut [u8]) -> Result<()> {
    let (from, to) = (range.start.max(wanted.start), range.end.min(wanted.end));
    if from >= to {
        return Ok(());
    }
    let bytes = decoded.bytes.get((from - range.start) as usize..(to - range.start) as usize);
    let bytes = bytes.ok_or_else(|| Error::damaged("a chunk ends before its header says"))?;
    out[(from - wanted.start) as usize..(to - wanted.start) as usize].copy_from_slice(bytes);
    Ok(())
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
        let context = Arc::new(Context::new(storage, 1 << 20, 1, None));
        let of = TileContext {
            datatype: Datatype::UInt8,
            cell_size: 1,
            format_version: 22,
            writer_version: None,
            key: None,
        };
        let decoder = Decoder::new(&Pipeline { max_chunk_size: 65536, filters }, &of).unwrap();
        let file = context.fetcher.new_files(1);
        let tiles = Tiles::new(&context, file, path.into(), vec![0].into(), recorded, decoder).unwrap();
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
