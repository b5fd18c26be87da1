//! The unit of decoding.

use tilefs_base::error::Result;
use tilefs_format::filter::Scratch;
use tilefs_storage::StoreKey;

use crate::cache::{BufferPool, CacheKey, PooledBuffer};

use std::sync::Arc;

/// Identifies a unit of an open array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UnitKey {
    /// Number of one stored file of one open array: see `Fetcher::new_files`.
    pub file: u64,
    /// The number of the tile.
    pub tile: u64,
    /// The part of the tile.
    pub part: UnitPart,
}

/// The number of adjacent tiles that are neighbours in the cache.
const NEIGHBOURS: u64 = 16;

impl CacheKey for UnitKey {
    /// Units at the same place of adjacent tiles: a line of cells crosses them.
    fn neighbourhood(&self) -> Self {
        UnitKey { tile: self.tile / NEIGHBOURS, ..*self }
    }
}

/// The part of a tile, or the form it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnitPart {
    /// The whole tile.
    Tile,
    /// One of its chunks.
    Chunk(u32),
    /// The whole tile in row-major cell order, where it is stored in column-major order.
    RowMajor,
    /// The whole tile of variable-size cells, from this file and the offsets file.
    VariableSize,
}

/// A decoded unit.
#[derive(Debug)]
pub struct Decoded {
    /// The decoded bytes.
    pub bytes: PooledBuffer,
    /// For variable-size cells: the start of each cell in `bytes`, and the end of the last one. Otherwise empty.
    pub offsets: Vec<u64>,
    /// The offset of the bytes in the decoded tile.
    pub start: u64,
}

impl Decoded {
    /// Wraps fixed-size cells from byte `start` of the decoded tile on.
    pub fn of_bytes(start: u64, bytes: PooledBuffer) -> Self {
        Decoded { bytes, offsets: Vec::new(), start }
    }

    /// Returns the decoded bytes from a byte of the decoded tile on; `None` if the unit does not contain that byte.
    pub(crate) fn bytes_from(&self, byte: u64) -> Option<&[u8]> {
        let within = usize::try_from(byte.checked_sub(self.start)?).ok()?;
        self.bytes.get(within..).filter(|bytes| !bytes.is_empty())
    }

    /// Returns the memory in bytes.
    pub(crate) fn weight(&self) -> usize {
        self.bytes.capacity() + self.offsets.capacity() * size_of::<u64>()
    }
}

/// A contiguous byte range of a stored file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredRange<'a> {
    /// The stored file.
    pub file: &'a StoreKey,
    /// The offset of the stored bytes in the file.
    pub offset: u64,
    /// The number of stored bytes.
    pub length: u64,
}

/// The smallest piece that is decoded on its own.
pub trait Unit: Send + Sync {
    /// Returns the key under which the decoded unit is cached.
    fn key(&self) -> UnitKey;

    /// Returns the offset of its bytes in the decoded tile.
    fn start(&self) -> u64;

    /// Returns the number of decoded bytes, including offsets.
    fn size(&self) -> u64;

    /// Calls `visit` with each stored byte range that the unit is decoded from: one, or two for variable-size cells.
    ///
    /// # Errors
    /// If the stored size is impossible, or the file is known to be too short.
    fn for_each_stored<'a>(&'a self, visit: &mut dyn FnMut(StoredRange<'a>)) -> Result<()>;

    /// Returns the number of units that a reader from front to back uses in turn, this one included: 1 if it finishes
    /// each unit before it begins the next.
    fn in_turn(&self) -> u64;

    /// Returns whether there is a single stored range that needs no decoding.
    fn is_stored_plain(&self) -> bool;

    /// Decodes the stored bytes, given as the concatenation of all ranges.
    ///
    /// # Errors
    /// Any damage in the bytes.
    fn decode(&self, stored: &[u8], buffers: &Arc<BufferPool>, scratch: &mut Scratch) -> Result<Decoded>;

    /// As [`Unit::decode`], for cells of fixed size, into memory of the unit's size.
    ///
    /// # Errors
    /// Any damage in the bytes.
    fn decode_into(
        &self,
        stored: &[u8],
        out: &mut [u8],
        buffers: &Arc<BufferPool>,
        scratch: &mut Scratch,
    ) -> Result<()>;

    /// Allocates the buffer for the stored bytes of a unit that [is stored plain](Unit::is_stored_plain).
    ///
    /// # Errors
    /// If there is not enough memory.
    fn room(&self, buffers: &Arc<BufferPool>) -> Result<PooledBuffer>;
}
