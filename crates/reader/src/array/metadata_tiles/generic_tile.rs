//! Generic tiles: the containers of all metadata except footers.
//!
//! Their decoded size is checked before decoding, because a few stored bytes can decode to a thousand times as many.
//! `read_generic_tile` returns a whole structure of plausible size, `GenericTile` reads ranges of a tile of any
//! size, and `open_section` chooses between the two for a list.

use std::sync::{Arc, Weak};

use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::memory;
use tilefs_format::filter::{Decoder, Scratch, decode_generic_tile, generic_tile_decoder};
use tilefs_format::fragment::Pages;
use tilefs_format::generic_tile::GenericTileHeader;
use tilefs_format::tile::ChunkHeader;
use tilefs_storage::{Storage, StoreKey};
use tilefs_threads::cancellation;

use super::chunk_walk::{ChunkWalk, ReadWindow, StoredChunk};
use crate::array::context::{Context, IndexKey};

/// A structure may decode to this many bytes, however few are stored.
const ALWAYS_ALLOWED_BYTES: u64 = 4 << 20;

/// A larger structure may decode to this many times its stored bytes. Names, offsets and boxes compress less.
const MAX_RATIO: u64 = 16;

/// The framing of filters can make a stored chunk longer than its decoded data. This is a bound on the fixed part of
/// the framing.
const MAX_FRAMING: u64 = 1 << 20;

/// Tiles of at most this many stored bytes are read at once; longer tiles are decoded chunk by chunk.
const MAX_SINGLE_READ: u64 = 256 << 10;

/// Bytes that are read together with a header. Most structures fit.
const FIRST_READ: usize = 16 << 10;

/// The size of reads when walking over the chunks of a long tile. Only such a walk locates the chunks.
const LARGE_READ: usize = 4 << 20;

/// The same for consolidated metadata, the longest structure. Only one such file is read at a time.
const LARGEST_READ: usize = 16 << 20;

/// The maximum decoded size of a chunk. Writers make chunks of 64 KiB, and a chunk is decoded as a whole.
const MAX_CHUNK_BYTES: u32 = 4 << 20;

/// The maximum number of chunks: several times the number of 64 KiB chunks in the largest tiles.
const MAX_CHUNKS: u64 = 1 << 17;

/// Lists of at most this many decoded bytes are kept whole; longer lists are kept chunk by chunk.
const MAX_WHOLE_LIST: u64 = 256 << 10;

/// Returns the number of bytes to which a structure with `stored` stored bytes may decode.
pub(crate) fn max_decoded(stored: u64) -> u64 {
    stored.saturating_mul(MAX_RATIO).saturating_add(ALWAYS_ALLOWED_BYTES)
}

/// A generic tile with its parsed header and the bytes that were read along with it.
struct OpenedTile<'a> {
    storage: &'a dyn Storage,
    path: &'a StoreKey,
    header: GenericTileHeader,
    /// The offset in the file of the bytes after the header.
    start: u64,
    /// The first bytes after the header.
    front: Vec<u8>,
}

impl<'a> OpenedTile<'a> {
    /// Reads the header at an offset, and checks it against the length of the file. If the file is too short,
    /// determines its length again.
    fn read(storage: &'a dyn Storage, path: &'a StoreKey, offset: u64) -> Result<Self> {
        match Self::read_once(storage, path, offset) {
            Err(Error::Damaged { .. }) => {
                storage.forget(path);
                Self::read_once(storage, path, offset)
            }
            read => read,
        }
    }

    fn read_once(storage: &'a dyn Storage, path: &'a StoreKey, offset: u64) -> Result<Self> {
        let (mut front, length) = storage.read_from(path, offset, FIRST_READ)?;
        let header = GenericTileHeader::parse(&front).at(offset)?;
        let left = length.saturating_sub(offset).saturating_sub(header.header_size as u64);
        let (persisted, size) = (header.persisted_size, header.tile_size);
        if persisted > left || persisted > size.saturating_mul(2).saturating_add(MAX_FRAMING) {
            let reason = format!("{persisted} bytes for a tile of {size} claimed, {left} are left");
            return Err(Error::damaged(reason).in_field("persisted size").at(offset));
        }
        front.drain(..header.header_size.min(front.len()));
        front.truncate(usize::try_from(persisted).unwrap_or(usize::MAX));
        let start = offset + header.header_size as u64;
        Ok(OpenedTile { storage, path, header, start, front })
    }

    /// Returns all bytes after the header.
    fn read_rest(self) -> Result<Vec<u8>> {
        let mut stored = self.front;
        let there = stored.len();
        stored.resize(self.header.persisted_size as usize, 0);
        if there < stored.len() {
            self.storage.read_at(self.path, self.start + there as u64, &mut stored[there..])?;
        }
        Ok(stored)
    }

    /// Returns a walk over the chunks of the tile, with reads of `at_once` bytes.
    fn walk(self, at_once: usize) -> Result<ChunkWalk<'a>> {
        let end = self.start + self.header.persisted_size;
        let window = ReadWindow::new(self.storage, self.path, self.start, end, self.front, at_once);
        let walk = ChunkWalk::new(window, self.header.tile_size)?;
        if walk.count() > MAX_CHUNKS {
            let what = format!("metadata in {} chunks", walk.count());
            return Err(Error::unsupported(what).in_field("number of chunks"));
        }
        Ok(walk)
    }
}

/// Returns the next chunk of metadata. After the last chunk, checks that the chunks fill the tile.
fn next_chunk_of_metadata(walk: &mut ChunkWalk<'_>, size: u64) -> Result<Option<StoredChunk>> {
    let Some(chunk) = walk.next_chunk()? else {
        if walk.rest() != 0 || walk.decoded() != size {
            let reason = format!("chunks of {} bytes in a tile of {size}", walk.decoded());
            return Err(Error::damaged(reason).in_field("chunks"));
        }
        return Ok(None);
    };
    check_chunk(&chunk.header).in_field("chunk header").at(chunk.offset)?;
    Ok(Some(chunk))
}

/// Checks that the lengths are plausible for a chunk of metadata.
fn check_chunk(header: &ChunkHeader) -> Result<()> {
    let original = header.original;
    if original > MAX_CHUNK_BYTES {
        return Err(Error::unsupported(format!("metadata in chunks of {original} bytes")));
    }
    if header.payload_size() > 2 * u64::from(original) + MAX_FRAMING {
        return Err(Error::damaged(format!("{} bytes for a chunk of {original}", header.payload_size())));
    }
    Ok(())
}

fn decode_chunk(
    chunk: &StoredChunk,
    stored: &[u8],
    decoder: &Decoder,
    out: &mut [u8],
    scratch: &mut Scratch,
) -> Result<()> {
    let (metadata, data) = stored.split_at(chunk.header.metadata as usize);
    decoder.decode(metadata, data, out, scratch).at(chunk.offset)
}

/// Reads the header of the generic tile at `offset` of a file.
///
/// # Errors
/// [`Error::Io`] and [`Error::Damaged`] with file and offset.
pub(crate) fn read_header(storage: &dyn Storage, path: &StoreKey, offset: u64) -> Result<GenericTileHeader> {
    Ok(OpenedTile::read(storage, path, offset).in_file(path)?.header)
}

/// Reads the payload of the generic tile at `offset` of a file.
///
/// # Errors
/// [`Error::Io`] and [`Error::Damaged`] with file and offset; [`Error::Unsupported`] for more bytes than
/// [`max_decoded`]; [`Error::Key`] if the tile is encrypted and the key is missing or wrong, or if there is a key and
/// the tile is not encrypted.
pub(crate) fn read_generic_tile(context: &Context, path: &StoreKey, offset: u64) -> Result<Vec<u8>> {
    read_generic_tile_of(context, path, offset, 0)
}

/// As `read_generic_tile`, for a structure that may decode to `expected` bytes according to other metadata.
///
/// # Errors
/// As for `read_generic_tile`.
pub(crate) fn read_generic_tile_of(context: &Context, path: &StoreKey, offset: u64, expected: u64) -> Result<Vec<u8>> {
    let tile = OpenedTile::read(&*context.storage, path, offset).in_file(path)?;
    decode_whole(context, tile, expected).in_file(path).at(offset)
}

/// Decodes the generic tile at the start of a file chunk by chunk, and passes each chunk to `visit`, in order. Memory:
/// one chunk, and one read.
///
/// # Errors
/// As for `read_generic_tile`, except for the size; errors of `visit`. Chunks before damage are visited.
pub(crate) fn for_each_chunk(context: &Context, path: &StoreKey, visit: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let tile = OpenedTile::read(&*context.storage, path, 0).in_file(path)?;
    visit_chunks(context, tile, LARGEST_READ, visit).in_file(path).at(0)
}

fn visit_chunks(
    context: &Context,
    tile: OpenedTile<'_>,
    at_once: usize,
    mut visit: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let (decoder, size) = (generic_decoder(context, &tile.header)?, tile.header.tile_size);
    let (mut walk, mut decoded) = (tile.walk(at_once)?, Vec::new());
    while let Some(chunk) = next_chunk_of_metadata(&mut walk, size)? {
        let stored = walk.stored(&chunk)?;
        decoded.clear();
        memory::resize(&mut decoded, chunk.header.original as usize, "metadata")?;
        {
            let mut permit = context.fetcher.permit();
            permit.count(stored.len(), decoded.len() as u64);
            decode_chunk(&chunk, stored, &decoder, &mut decoded, permit.scratch())?;
        }
        visit(&decoded)?;
    }
    Ok(())
}

fn decode_whole(context: &Context, tile: OpenedTile<'_>, expected: u64) -> Result<Vec<u8>> {
    let header = tile.header.clone();
    check_claim(&header, expected)?;
    if header.persisted_size > MAX_SINGLE_READ {
        let mut all = Vec::new();
        visit_chunks(context, tile, LARGE_READ, |chunk| {
            let start = all.len();
            memory::resize(&mut all, start.saturating_add(chunk.len()), "metadata")?;
            all[start..].copy_from_slice(chunk);
            Ok(())
        })?;
        return Ok(all);
    }
    decode_stored(context, &header, &tile.read_rest()?)
}

/// As `read_generic_tile`, for a generic tile in memory.
///
/// # Errors
/// As for `read_generic_tile`, without the file.
pub fn decode_inline_tile(context: &Context, bytes: &[u8]) -> Result<Vec<u8>> {
    decode_inline_tile_of(context, bytes, 0)
}

/// As `read_generic_tile_of`, for a generic tile in memory.
///
/// # Errors
/// As for `read_generic_tile_of`, without the file.
pub(crate) fn decode_inline_tile_of(context: &Context, bytes: &[u8], expected: u64) -> Result<Vec<u8>> {
    let header = GenericTileHeader::parse(bytes)?;
    let end = (header.header_size as u64).checked_add(header.persisted_size).and_then(|end| usize::try_from(end).ok());
    let stored = end
        .and_then(|end| bytes.get(header.header_size..end))
        .ok_or_else(|| Error::damaged("the tile is longer than its copy").in_field("persisted size"))?;
    check_claim(&header, expected)?;
    decode_stored(context, &header, stored)
}

/// Refuses a tile that claims to decode to implausibly many bytes.
fn check_claim(header: &GenericTileHeader, expected: u64) -> Result<()> {
    if header.tile_size > max_decoded(header.persisted_size).max(expected) {
        let what = format!("{} bytes of metadata in {} stored ones", header.tile_size, header.persisted_size);
        return Err(Error::unsupported(what).in_field("tile size"));
    }
    Ok(())
}

fn decode_stored(context: &Context, header: &GenericTileHeader, stored: &[u8]) -> Result<Vec<u8>> {
    let decoder = generic_decoder(context, header)?;
    let mut permit = context.fetcher.permit();
    permit.count(stored.len(), header.tile_size);
    decode_generic_tile(&decoder, header.tile_size, stored, permit.scratch())
}

fn generic_decoder(context: &Context, header: &GenericTileHeader) -> Result<Decoder> {
    generic_tile_decoder(&header.pipeline, header.encrypted, context.key.as_deref())
}

/// A list in a generic tile.
pub enum StoredList<'a> {
    /// A short list, decoded.
    Whole(Vec<u8>),
    /// A tile that is read chunk by chunk.
    Long(Box<LongTile<'a>>),
}

/// Opens the generic tile at an offset; its list may decode to `expected` bytes according to other metadata.
///
/// # Errors
/// As `read_generic_tile_of`.
pub(crate) fn open_section<'a>(
    context: &'a Arc<Context>,
    path: &'a StoreKey,
    offset: u64,
    expected: u64,
) -> Result<StoredList<'a>> {
    let open = || {
        let tile = OpenedTile::read(&*context.storage, path, offset)?;
        if tile.header.tile_size <= MAX_WHOLE_LIST {
            return decode_whole(context, tile, expected).map(StoredList::Whole).at(offset);
        }
        check_claim(&tile.header, expected).at(offset)?;
        Ok(StoredList::Long(LongTile::new(context, tile)?.into()))
    };
    open().in_file(path)
}

/// A generic tile that is read from its start, chunk by chunk. Memory: one read, and one chunk.
pub struct LongTile<'a> {
    context: &'a Arc<Context>,
    walk: ChunkWalk<'a>,
    found: GenericTile,
    /// Whether decoded chunks are put into the cache.
    keeps: bool,
}

impl<'a> LongTile<'a> {
    fn new(context: &'a Arc<Context>, tile: OpenedTile<'a>) -> Result<Self> {
        let found = GenericTile {
            context: Arc::downgrade(context),
            owner: context.indexes.new_owner(),
            path: tile.path.clone(),
            decoder: generic_decoder(context, &tile.header)?,
            chunks: Vec::new(),
            size: tile.header.tile_size,
            stored: tile.header.persisted_size,
            start: tile.start,
            front: tile.front.clone(),
        };
        let keeps = found.size <= context.budget().long_list() as u64;
        Ok(LongTile { context, walk: tile.walk(LARGE_READ)?, found, keeps })
    }

    /// Returns the tile in a form that reads ranges. Decodes nothing.
    ///
    /// # Errors
    /// Any damage in the headers of its chunks.
    pub fn index(mut self) -> Result<GenericTile> {
        while let Some(chunk) = next_chunk_of_metadata(&mut self.walk, self.found.size)? {
            self.found.chunks.push(chunk);
        }
        Ok(self.found)
    }
}

impl Pages for &mut LongTile<'_> {
    fn next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        cancellation::check()?;
        let Some(chunk) = next_chunk_of_metadata(&mut self.walk, self.found.size)? else { return Ok(false) };
        let start = out.len();
        memory::resize(out, start.saturating_add(chunk.header.original as usize), "metadata")?;
        self.found.decode(self.context, &chunk, self.walk.stored(&chunk)?, &mut out[start..])?;
        if self.keeps {
            let key = IndexKey::GenericChunk(self.found.owner, self.found.chunks.len() as u64);
            let page = &out[start..];
            self.context.indexes.get_or_load(key, || Ok((page.to_vec(), page.len())))?;
        }
        self.found.chunks.push(chunk);
        Ok(true)
    }
}

/// A generic tile for reading ranges. Its chunks are decoded on demand and cached.
pub struct GenericTile {
    /// Weak, because the context's cache may hold the tile: a strong reference would be a cycle.
    context: Weak<Context>,
    owner: u64,
    path: StoreKey,
    decoder: Decoder,
    /// 32 bytes each, at most 2^17 of them.
    chunks: Vec<StoredChunk>,
    size: u64,
    stored: u64,
    /// The offset of `front` in the file.
    start: u64,
    /// The first stored bytes, which were read along with the header; a small tile fits completely.
    front: Vec<u8>,
}

impl std::fmt::Debug for GenericTile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GenericTile").field("path", &self.path).field("size", &self.size).finish_non_exhaustive()
    }
}

impl GenericTile {
    /// Opens the generic tile at the start of a file. Decodes nothing.
    ///
    /// # Errors
    /// As for `read_generic_tile`, except for the size; [`Error::Unsupported`] for chunks of more than 4 MiB.
    pub fn open(context: &Arc<Context>, path: &StoreKey) -> Result<Self> {
        let open = || LongTile::new(context, OpenedTile::read(&*context.storage, path, 0)?)?.index();
        open().in_file(path)
    }

    /// Returns the approximate memory use in bytes.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.chunks.capacity() * size_of::<StoredChunk>() + self.front.capacity()
    }

    /// Returns the decoded length in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the stored length in bytes.
    pub fn stored(&self) -> u64 {
        self.stored
    }

    /// Copies decoded bytes from `start`.
    ///
    /// # Errors
    /// Any damage in the chunks that contain these bytes, and [`Error::Damaged`] past the end.
    pub fn read_at(&self, mut start: u64, mut out: &mut [u8]) -> Result<()> {
        while !out.is_empty() {
            let number = self.chunks.partition_point(|place| place.start <= start).saturating_sub(1);
            let past = || Error::damaged(format!("byte {start} of {} wanted", self.size())).in_file(&self.path);
            let place = self.chunks.get(number).ok_or_else(past)?;
            let chunk = self.chunk(number, place).in_file(&self.path)?;
            let from = chunk.get((start - place.start) as usize..).filter(|from| !from.is_empty()).ok_or_else(past)?;
            let length = from.len().min(out.len());
            let (now, later) = out.split_at_mut(length);
            now.copy_from_slice(&from[..length]);
            start += length as u64;
            out = later;
        }
        Ok(())
    }

    fn chunk(&self, number: usize, place: &StoredChunk) -> Result<Arc<Vec<u8>>> {
        let context = self.context.upgrade().ok_or_else(|| Error::internal("the array was closed while it is read"))?;
        context.indexes.get_or_load(IndexKey::GenericChunk(self.owner, number as u64), || {
            let mut out = vec![0; place.header.original as usize];
            let length = place.header.payload_size() as usize;
            let from = (place.offset - self.start) as usize;
            match from.checked_add(length).and_then(|end| self.front.get(from..end)) {
                Some(stored) => self.decode(&context, place, stored, &mut out)?,
                None => {
                    let mut stored = vec![0; length];
                    context.storage.read_at(&self.path, place.offset, &mut stored)?;
                    self.decode(&context, place, &stored, &mut out)?;
                }
            }
            let weight = out.capacity();
            Ok((out, weight))
        })
    }

    fn decode(&self, context: &Context, place: &StoredChunk, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let mut permit = context.fetcher.permit();
        permit.count(stored.len(), out.len() as u64);
        decode_chunk(place, stored, &self.decoder, out, permit.scratch())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write;

    use tilefs_storage::{LocalStorage, MemoryStorage, SimulatedStorage};

    use super::*;
    use std::time::Duration;

    /// Returns a generic tile of these chunks, compressed.
    pub(crate) fn stored<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
        let (mut size, mut count, mut body) = (0u64, 0u64, Vec::new());
        for chunk in chunks {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
            encoder.write_all(chunk).unwrap();
            let data = encoder.finish().unwrap();
            for number in [chunk.len(), data.len(), 16, 0, 1, chunk.len(), data.len()] {
                body.extend((number as u32).to_le_bytes());
            }
            body.extend(data);
            (size, count) = (size + chunk.len() as u64, count + 1);
        }
        let mut tile = 22u32.to_le_bytes().to_vec();
        tile.extend((8 + body.len() as u64).to_le_bytes());
        tile.extend(size.to_le_bytes());
        tile.push(4);
        tile.extend(1u64.to_le_bytes());
        tile.push(0);
        tile.extend(18u32.to_le_bytes());
        tile.extend([0, 0, 1, 0, 1, 0, 0, 0, 1, 5, 0, 0, 0, 1, 1, 0, 0, 0]);
        tile.extend(count.to_le_bytes());
        tile.extend(body);
        tile
    }

    fn context() -> Arc<Context> {
        Arc::new(Context::new(Arc::new(LocalStorage::new()), 1 << 20, 1, None))
    }

    #[test]
    fn ranges_are_parts_of_the_whole_payload() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tile");
        let key = StoreKey::from(&file);
        let mut random = 1u32;
        let mut noise = || {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 24) as u8
        };
        for length in [0, 1, 65536, 200_000, 900_000] {
            let payload: Vec<u8> = (0..length).map(|_| noise()).collect();
            std::fs::write(&file, stored(payload.chunks(65536))).unwrap();
            let context = context();
            assert_eq!(read_generic_tile(&context, &key, 0).unwrap(), payload);
            let tile = GenericTile::open(&context, &key).unwrap();
            assert_eq!(tile.size(), length as u64);
            for start in [0, 1, length / 3, 65535, 65536].into_iter().filter(|start| *start <= length) {
                let mut part = vec![0; (length - start).min(70_000)];
                tile.read_at(start as u64, &mut part).unwrap();
                assert_eq!(part, payload[start..start + part.len()]);
            }
            assert!(tile.read_at(length as u64, &mut [0]).is_err());
        }
    }

    #[test]
    fn requests_do_not_grow_with_the_number_of_chunks() {
        // Long enough for concurrent requests to be in flight at the same time.
        const DELAY: Duration = Duration::from_millis(40);
        let (memory, key) = (MemoryStorage::new(), StoreKey::from("s3://bucket/tile"));
        let mixed = |at: u32| {
            let mixed = (u64::from(at) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 56) as u8
        };
        let noise = |length: u32| (0..length).map(mixed).collect::<Vec<u8>>();
        for (length, most) in [(100, 1), (100_000, 2), (6 << 20, 4)] {
            let payload = noise(length);
            memory.put(key.clone(), stored(payload.chunks(4096)));
            let storage = Arc::new(SimulatedStorage::new(Arc::new(memory.clone()), DELAY));
            let context = Arc::new(Context::new(storage.clone(), 1 << 20, 1, None));
            assert_eq!(read_generic_tile(&context, &key, 0).unwrap(), payload);
            // As for one object whose parts are requested one after the other; a large part may take several requests.
            let whole = storage.take_requests().iter().map(|request| request.step).max();
            assert!(whole.is_some_and(|steps| steps <= most), "{whole:?} for {length}");
            let tile = GenericTile::open(&context, &key).unwrap();
            let index = storage.take_requests().iter().map(|request| request.step).max();
            assert!(index.is_some_and(|steps| steps <= most), "{index:?} for {length}");
            let mut part = vec![0; 10];
            tile.read_at(u64::from(length) / 2, &mut part).unwrap();
            assert_eq!(part, payload[length as usize / 2..][..10]);
            assert_eq!(storage.take_requests().len(), usize::from(length > 100));
        }
    }

    #[test]
    fn implausible_sizes_are_refused_before_decoding() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tile");
        let key = StoreKey::from(&file);
        let zeros = vec![0; 65536];
        // 16 MiB in some tens of KiB.
        let bomb = stored(std::iter::repeat_n(&*zeros, 256));
        std::fs::write(&file, &bomb).unwrap();
        let context = context();
        let error = read_generic_tile(&context, &key, 0).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains("16777216 bytes of metadata"), "{error}");
        assert!(decode_inline_tile(&context, &bomb).is_err());
        // Reading ranges is not limited, and a structure that is expected to be this large can be read as a whole.
        let mut last = [1; 2];
        GenericTile::open(&context, &key).unwrap().read_at((16 << 20) - 2, &mut last).unwrap();
        assert_eq!(last, [0; 2]);
        assert_eq!(read_generic_tile_of(&context, &key, 0, 16 << 20).unwrap().len(), 16 << 20);
    }

    #[test]
    fn holes_and_false_lengths_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tile");
        let key = StoreKey::from(&file);
        let context = context();
        let refused = |bytes: &[u8], length: u64| {
            std::fs::write(&file, bytes).unwrap();
            std::fs::File::options().write(true).open(&file).unwrap().set_len(length).unwrap();
            let whole = read_generic_tile(&context, &key, 0);
            let ranges = GenericTile::open(&context, &key).map(|tile| tile.size());
            assert!(whole.is_err() && ranges.is_err(), "{length}");
        };
        let good = stored([&b"payload"[..]]);
        // The rest of a large file is a hole.
        let claiming = |persisted: u64, size: u64| {
            let mut bytes = good.clone();
            bytes[4..12].copy_from_slice(&persisted.to_le_bytes());
            bytes[12..20].copy_from_slice(&size.to_le_bytes());
            bytes
        };
        refused(&claiming(1 << 30, 7), 2 << 30);
        refused(&claiming(1 << 29, 1 << 29), 2 << 30);
        refused(&claiming(1 << 62, 1 << 30), 2 << 30);
        let mut many = claiming(1 << 29, 1 << 29);
        many[52..60].copy_from_slice(&(1u64 << 40).to_le_bytes());
        refused(&many, 2 << 30);
        let mut long = claiming(1 << 29, 1 << 29);
        long[60..64].copy_from_slice(&u32::MAX.to_le_bytes());
        refused(&long, 2 << 30);
    }
}
