//! The tiles of one data file as they are stored: where each is, and its bytes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::search::partition_point;
use tilefs_format::fragment::sections::check_tile_offsets;
use tilefs_format::tile::ChunkHeader;
use tilefs_storage::StoreKey;

use crate::array::context::{Context, IndexKey};
use crate::array::metadata_tiles::chunk_walk::{ChunkWalk, ReadWindow, StoredChunk, chunk_count};
use crate::array::metadata_tiles::tile_numbers::TileNumbers;
use crate::cache::{BufferPool, PooledBuffer};

/// The chunks of larger tiles are located by reading the whole tile there, in reads of this size.
const REMOTE_WINDOW: usize = 8 << 20;

/// Memory for this many stored bytes is allocated before the length of the file has been checked.
const UNCHECKED_READ_BYTES: u64 = 1 << 20;

/// Data that can only be decoded in one piece may take this many bytes, however small the cache is; or as many as the
/// cache.
const ALWAYS_ALLOWED_BYTES: u64 = 16 << 20;

/// One data file of a fragment, as it is stored. Memory: that of the offsets, see [`TileNumbers`].
pub struct TileFile {
    /// Weak, because the context's cache holds the tiles: a strong reference would be a cycle.
    context: Weak<Context>,
    number: u64,
    path: StoreKey,
    offsets: TileNumbers,
    file_size: u64,
    /// The size of the file when it was last requested, at first 0.
    stored_size: AtomicU64,
    /// The most bytes that may be decoded in one piece.
    most_at_once: u64,
    /// The number of bytes to read for one chunk header.
    header_window: usize,
}

/// The location and the decoded size of each chunk of a tile.
pub struct TileChunks {
    pub chunks: Vec<StoredChunk>,
}

impl TileFile {
    /// Creates a file of `file_size` bytes, of which `offsets` are the offsets of the tiles, both as recorded in the
    /// fragment's metadata. `number` is that of the file in cache keys.
    ///
    /// # Errors
    /// [`Error::Damaged`] if offsets decrease or exceed the file.
    pub fn new(
        context: &Arc<Context>,
        number: u64,
        path: StoreKey,
        offsets: TileNumbers,
        file_size: u64,
    ) -> Result<Self> {
        if let TileNumbers::Listed(offsets) = &offsets {
            check_tile_offsets(offsets, offsets.len() as u64, file_size).in_file(&path)?;
        }
        let most_at_once = (context.budget().decoded_units() as u64).max(ALWAYS_ALLOWED_BYTES);
        let header_window = if context.storage.is_remote(&path) { REMOTE_WINDOW } else { ChunkHeader::SIZE };
        let (context, stored_size) = (Arc::downgrade(context), AtomicU64::new(0));
        Ok(TileFile { context, number, path, offsets, file_size, stored_size, most_at_once, header_window })
    }

    /// Returns the number of the file in cache keys, as in [`UnitKey::file`](crate::read::UnitKey).
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the number of tiles.
    pub fn count(&self) -> u64 {
        self.offsets.count()
    }

    /// Returns the approximate memory use in bytes.
    pub fn memory(&self) -> usize {
        self.offsets.memory()
    }

    /// Returns the recorded size of the file.
    pub fn file_size(&self) -> u64 {
        self.file_size
    }

    /// Returns the number of tiles, from the start of the file, that end within its first `length` bytes.
    ///
    /// # Errors
    /// Any damage in the offsets.
    pub fn count_within(&self, length: u64) -> Result<u64> {
        if self.file_size <= length {
            return Ok(self.count());
        }
        // The last tile ends with the file. Offsets ascend.
        partition_point(0..self.count().saturating_sub(1), |tile| {
            Ok(self.offsets.get(tile + 1)?.is_some_and(|offset| offset <= length))
        })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &StoreKey {
        &self.path
    }

    /// Returns the most bytes that may be decoded in one piece.
    pub fn most_at_once(&self) -> u64 {
        self.most_at_once
    }

    /// Allocates memory for one piece of a tile.
    pub fn take_buffer(&self, size: u64, buffers: &Arc<BufferPool>) -> Result<PooledBuffer> {
        if size > self.most_at_once {
            let what = format!("{size} bytes that can only be decoded together, more than --cache-size");
            return Err(Error::unsupported(what));
        }
        let length = usize::try_from(size).unwrap_or(usize::MAX);
        buffers.try_get(length).ok_or_else(|| Error::unsupported(format!("{size} bytes: not enough memory")))
    }

    /// Returns whether a tile is stored without chunks. For a tile with cells this means that its data is elsewhere.
    pub fn has_no_chunks(&self, tile: u64) -> Result<bool> {
        // Even one chunk takes more bytes than the count of chunks.
        Ok(self.stored_range(tile).in_file(&self.path)?.1 == 8)
    }

    /// Reads a tile as it is stored, which must be `size` bytes, without caching it. The caller bounds `size`.
    pub fn stored(&self, tile: u64, size: u64) -> Result<PooledBuffer> {
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
    pub fn context(&self) -> Result<Arc<Context>> {
        self.context.upgrade().ok_or_else(|| Error::internal("the array was closed while it is read"))
    }

    /// Returns the offset and the length of a tile in the file.
    pub fn stored_range(&self, tile: u64) -> Result<(u64, u64)> {
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
    pub fn expect_stored(&self, offset: u64, length: u64) -> Result<()> {
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
    pub fn chunks(&self, tile: u64) -> Result<u64> {
        let (offset, stored) = self.stored_range(tile).in_file(&self.path)?;
        let mut head = [0; 8];
        self.context()?.storage.read_at(&self.path, offset, &mut head).in_file(&self.path)?;
        chunk_count(u64::from_le_bytes(head), stored).in_file(&self.path).at(offset)
    }

    /// Returns the chunks of a tile, located by walking their headers; cached, because large tiles have thousands.
    pub fn chunk_index(&self, tile: u64, size: u64) -> Result<Arc<TileChunks>> {
        let context = self.context()?;
        context.indexes.get_or_load(IndexKey::Chunks(self.number, tile), || {
            let index = self.walk_chunks(&context, tile, size).in_file(&self.path)?;
            let weight = index.chunks.capacity() * size_of::<StoredChunk>();
            Ok((index, weight))
        })
    }

    fn walk_chunks(&self, context: &Context, tile: u64, size: u64) -> Result<TileChunks> {
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
        Ok(TileChunks { chunks })
    }
}

/// Checks that a tile decodes to its recorded size.
pub fn expect_size(found: u64, size: u64) -> Result<()> {
    if found != size {
        return Err(Error::damaged(format!("the tile decodes to {found} bytes instead of {size}")));
    }
    Ok(())
}
