//! What is decoded at once.

use tilefs_format::error::Result;
use tilefs_format::filter::Scratch;

use crate::cache::{Buffer, Buffers};
use crate::storage::StoreKey;

use std::sync::Arc;

/// Which unit of an open array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UnitKey {
    /// A number that stands for one stored file of one open array: see [`Fetcher::new_files`](super::Fetcher::new_files).
    pub file: u64,
    pub tile: u64,
    pub part: UnitPart,
}

/// Which part of a tile, or in which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnitPart {
    /// All of it.
    Tile,
    /// One of its chunks.
    Chunk(u32),
    /// All of it, its cells in row-major order where they are stored in column-major order.
    RowMajor,
    /// All of it, cells of variable size: of this file and of that of the offsets.
    VariableSize,
}

/// A decoded unit.
#[derive(Debug)]
pub struct Decoded {
    pub bytes: Buffer,
    /// Of cells of variable size, where each begins in the bytes, and where the last one ends; else none.
    pub offsets: Vec<u64>,
}

impl Decoded {
    /// Cells of one size, or a part of them.
    pub fn of_bytes(bytes: Buffer) -> Self {
        Decoded { bytes, offsets: Vec::new() }
    }

    /// The memory that it takes.
    pub fn weight(&self) -> usize {
        self.bytes.capacity() + self.offsets.capacity() * size_of::<u64>()
    }
}

/// Some consecutive bytes of a stored file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredRange<'a> {
    pub file: &'a StoreKey,
    pub offset: u64,
    pub length: u64,
}

/// What is decoded at once.
pub trait Unit: Send + Sync {
    fn key(&self) -> UnitKey;

    /// Bytes that it decodes to: those that copies are made from, and the offsets.
    fn size(&self) -> u64;

    /// Calls `visit` with each range of stored bytes that it is decoded from: one, or of cells of variable size two.
    ///
    /// # Errors
    /// Where the stored bytes cannot be so many, or the file is known not to have them.
    fn for_each_stored<'a>(&'a self, visit: &mut dyn FnMut(StoredRange<'a>)) -> Result<()>;

    /// Whether it has one stored range, whose bytes are the decoded ones.
    fn is_stored_plain(&self) -> bool;

    /// Decodes the stored bytes, given as one piece, range after range.
    ///
    /// # Errors
    /// Any damage in them.
    fn decode(&self, stored: &[u8], buffers: &Arc<Buffers>, scratch: &mut Scratch) -> Result<Decoded>;

    /// The memory to be filled with the stored bytes of a unit that [is stored plain](Unit::is_stored_plain).
    ///
    /// # Errors
    /// Where there is not so much.
    fn room(&self, buffers: &Arc<Buffers>) -> Result<Buffer>;
}
