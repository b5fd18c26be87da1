//! The tiles of one data file: their locations, and the units in which they are decoded.
//!
//! The unit of decoding and caching is the chunk, so a small read in a large tile decodes only a chunk. A tile that is
//! no larger than a few chunks is one unit. Most arrays have such tiles; one read of the file and one cache entry then
//! serve the whole tile.

pub mod bitsort;
pub mod offsets;
pub mod open_files;
pub mod reader;
pub mod reorder;
pub mod spilled;
pub mod strided;
pub mod tile_file;
pub mod unit;
pub mod value_plan;
pub mod var_tiles;

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use tilefs_format::filter::Decoder;

use super::context::Context;
use super::folder::sorted_file::SortedFile;
use bitsort::SortedCells;
use tile_file::TileFile;

/// Tiles of at most this many decoded bytes are decoded and cached as a whole.
const WHOLE_TILE: u64 = 128 << 10;

/// The same for a storage with latency: one request fetches such a tile, while locating its chunks would take another
/// one.
const WHOLE_REMOTE_TILE: u64 = 8 << 20;

/// The tiles of one data file of a fragment, and how they are decoded.
pub struct Tiles {
    pub file: TileFile,
    decoder: Decoder,
    /// The number of tiles between which reads alternate.
    by_turns: u64,
    /// Tiles of at most this many decoded bytes are one unit.
    whole_tile: u64,
    /// For cells that are stored in another order than the array's: the kind of this file, and the order.
    sorted: Option<(SortedFile, Arc<SortedCells>)>,
    /// The decoded size of the first of several chunks of a tile, 0 before any is known. Mostly all but the last chunk
    /// of a tile have this size.
    usual_chunk: AtomicU32,
}

impl Tiles {
    /// Creates the tiles of a file. `decoder` undoes the file's filter pipeline. Reads alternate between `by_turns`
    /// tiles.
    pub fn new(context: &Context, file: TileFile, decoder: Decoder, by_turns: u64) -> Self {
        let whole_tile = match context.storage.is_remote(file.path()) {
            // Small enough that even a small cache holds several, and all between which reads alternate.
            true => WHOLE_REMOTE_TILE.min(context.budget().alternating_tile(by_turns)).max(WHOLE_TILE),
            false => WHOLE_TILE,
        };
        Tiles { file, decoder, by_turns, whole_tile, sorted: None, usual_chunk: AtomicU32::new(0) }
    }

    /// Returns the same tiles for cells that are stored in another order.
    pub fn sorted(self, file: SortedFile, cells: Arc<SortedCells>) -> Self {
        Tiles { sorted: Some((file, cells)), ..self }
    }

    /// Returns the approximate memory use in bytes.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.file.memory()
    }

    /// Returns the largest decoded size of tiles that are decoded and cached as a whole.
    pub fn whole_tile(&self) -> u64 {
        self.whole_tile
    }

    /// Returns whether each chunk of a tile has consecutive cells in the array's order.
    pub fn has_chunks_of_cells(&self) -> bool {
        self.sorted.is_none()
    }

    /// Returns the decoder of this file's pipeline.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }
}
