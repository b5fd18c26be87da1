//! Divides the budget of the caches (`--cache-size`): how many bytes each use of memory may take of it, or beside it.

use tilefs_threads as threads;

/// The cache holds at least this many tiles of a file, between which reads may alternate.
const ALTERNATING_TILES: u64 = 8;

/// Records that one thread sorts at once may take this many bytes, however small the budget is.
const LEAST_SORTED_RUN: usize = 256 << 10;

/// The budget of the caches in bytes, and its shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    bytes: usize,
}

/// The shares of the two caches, which add up to the whole budget.
impl Budget {
    /// The budget of all caches together.
    pub fn new(bytes: usize) -> Self {
        Budget { bytes }
    }

    /// The whole budget.
    pub fn bytes(self) -> usize {
        self.bytes
    }

    /// The cache of decoded units.
    pub fn decoded_units(self) -> usize {
        self.bytes - self.indexes()
    }

    /// The cache of indexes.
    pub fn indexes(self) -> usize {
        self.bytes / 4
    }
}

/// Limits for a single value in its cache.
impl Budget {
    /// A tile that is decoded as a whole although reads request parts of it, if reads alternate between `turns` tiles.
    pub fn alternating_tile(self, turns: u64) -> u64 {
        self.decoded_units() as u64 / turns.max(ALTERNATING_TILES)
    }

    /// The tiles of a matrix's band that contain the same row: together they stay while its rows are read.
    pub fn band_tiles(self) -> usize {
        self.bytes / 4
    }

    /// Tiles of a size that are read at the same time. Readers may return to any part of them until they are finished.
    pub fn tiles_at_once(self, size: u64) -> u64 {
        self.decoded_units() as u64 / 2 / size.max(1)
    }

    /// A tile in column-major order that is kept in row-major order.
    pub fn reordered_tile(self) -> usize {
        self.decoded_units() / 8
    }

    /// An R-tree or a list of numbers whose decoded chunks are kept after the first pass.
    pub fn long_list(self) -> usize {
        self.indexes() / 4
    }

    /// Pieces of one text that are cached when its length is measured.
    pub fn text_pieces(self) -> usize {
        self.indexes() / 2
    }
}

/// Limits for data outside of the caches, most of which is held only during a computation.
impl Budget {
    /// Bytes that are prefetched for all readers together. They are in the cache until they are read; requests in
    /// flight and merges of rows take about as much again.
    pub fn read_ahead(self) -> usize {
        self.bytes / 12
    }

    /// A level of an R-tree that is kept while the level below is compared with it.
    pub fn rtree_level(self) -> usize {
        self.bytes / 8
    }

    /// A schema. Short fields take several times more memory when they are parsed.
    pub fn schema(self) -> usize {
        self.bytes / 8
    }

    /// Keys and small values of metadata, however few bytes are stored: similar keys compress well.
    pub fn metadata(self) -> usize {
        self.bytes / 16
    }

    /// The stored details of a group.
    pub fn group_details(self) -> usize {
        self.bytes / 4
    }

    /// The map of rows; beyond it, the map goes to a temporary file.
    pub fn row_map(self) -> usize {
        self.bytes / 32
    }

    /// The batches of cells of one merge of very many fragments.
    pub fn merge_batches(self) -> usize {
        self.bytes / 16
    }

    /// Runs of an external sort; beyond it, they go to a temporary file. [`Self::sorted_run`] may take as much again.
    pub fn sorted_runs(self) -> usize {
        self.bytes / 8
    }

    /// Records that one thread sorts at once.
    pub fn sorted_run(self) -> usize {
        (self.sorted_runs() / threads::decoding()).max(LEAST_SORTED_RUN)
    }

    /// Coordinates that are fetched before they are tested or merged.
    pub fn fetched_coordinates(self) -> usize {
        self.bytes / 8
    }

    /// The starts of the rows or columns of a matrix among its values.
    pub fn matrix_starts(self) -> usize {
        self.bytes / 8
    }

    /// The runs of cells in one band of a matrix's rows ...
    pub fn band(self) -> usize {
        self.bytes / 16
    }

    /// ... and in all of its bands that are kept.
    pub fn bands(self) -> usize {
        self.bytes / 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_that_are_read_at_the_same_time_fit_the_cache() {
        for bytes in [16 << 20, 128 << 20, 1 << 30] {
            let budget = Budget::new(bytes);
            for size in [1, 1 << 20, 14 << 20, 1 << 40, u64::MAX] {
                let together = budget.tiles_at_once(size).saturating_mul(size);
                assert!(together <= budget.decoded_units() as u64 / 2, "{size} bytes of {bytes}");
            }
        }
        assert_eq!(Budget::new(32 << 20).tiles_at_once(14 << 20), 0);
        assert!(Budget::new(1 << 30).tiles_at_once(16 << 20) > 8);
    }
}
