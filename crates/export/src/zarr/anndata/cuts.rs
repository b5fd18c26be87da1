//! The cells at which a pass over stored cells is divided into parts.

use std::ops::Range;

/// Number of cells of a part. Their coordinates and values stay in a core's cache.
pub const CELLS_OF_A_PART: u64 = 1 << 17;

/// The cells at which a pass over stored cells is divided into parts: each part has whole tiles, or whole chunks of a tile
/// that is larger than a part. A chunk of which a part has only some cells is decoded for them and for the next part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cuts {
    /// The first cells of fragments, ascending; tiles are counted from these.
    firsts: Vec<u64>,
    /// Number of cells of a tile, at least 1.
    tile: u64,
    /// The most cells of a part: a power of two, so that parts of a large tile end with its chunks.
    most: u64,
}

impl Cuts {
    /// Creates the cuts of fragments that begin at these cells, with tiles of `tile` cells, into parts of at most `most`.
    pub fn new(firsts: Vec<u64>, tile: u64, most: u64) -> Self {
        Cuts { firsts, tile: tile.max(1), most: most.max(1) }
    }

    /// Returns the end of the part that has a cell.
    pub fn end_of_part(&self, cell: u64) -> u64 {
        let number = self.firsts.partition_point(|first| *first <= cell);
        let first = number.checked_sub(1).and_then(|number| self.firsts.get(number)).copied().unwrap_or(0);
        let behind = self.firsts.get(number).copied().unwrap_or(u64::MAX);
        let within = cell - first;
        let end = if self.tile > self.most {
            let start = within - within % self.tile;
            let part = (within - start) / self.most * self.most + self.most;
            start.saturating_add(part.min(self.tile))
        } else {
            let step = self.most - self.most % self.tile;
            (within - within % step).saturating_add(step)
        };
        first.saturating_add(end).min(behind)
    }

    /// Returns the parts of some cells, in order.
    pub fn parts(&self, cells: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let mut first = cells.start;
        std::iter::from_fn(move || {
            let part = first..self.end_of_part(first).min(cells.end);
            first = part.end;
            (!part.is_empty()).then_some(part)
        })
    }
}

impl Default for Cuts {
    fn default() -> Self {
        Cuts::new(Vec::new(), 1, CELLS_OF_A_PART)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_whole_tiles_or_chunks() {
        let parts = |firsts: &[u64], tile, most, cells: Range<u64>| -> Vec<u64> {
            let all: Vec<_> = Cuts::new(firsts.to_vec(), tile, most).parts(cells.clone()).collect();
            assert!(all.windows(2).all(|pair| pair[0].end == pair[1].start), "{all:?}");
            assert_eq!(
                (all.first().map(|part| part.start), all.last().map(|part| part.end)),
                (Some(cells.start), Some(cells.end))
            );
            all.iter().map(|part| part.end).collect()
        };
        assert_eq!(parts(&[], 3, 8, 0..20), [6, 12, 18, 20]);
        assert_eq!(parts(&[], 3, 8, 7..13), [12, 13]);
        assert_eq!(parts(&[0, 4], 3, 8, 0..20), [4, 10, 16, 20]);
        assert_eq!(parts(&[0, 4], 20, 8, 0..30), [4, 12, 20, 24, 30]);
        assert_eq!(Cuts::default().parts(5..5).count(), 0);
        assert_eq!(parts(&[], u64::MAX, 8, 0..9), [8, 9]);
        assert_eq!(Cuts::new(vec![], u64::MAX, u64::MAX).end_of_part(u64::MAX - 1), u64::MAX);
    }
}
