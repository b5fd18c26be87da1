//! The cells of one fragment, counted through: which tile a cell is in, and where.

use std::ops::Range;

use tilefs_format::error::{Error, Locate, Result};

/// Some consecutive cells of one tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileCells {
    pub tile: u64,
    /// Cells of the whole tile.
    pub in_tile: u64,
    /// The first of these cells, in the tile.
    pub first: u64,
    pub count: u64,
}

/// The cells of a fragment, or of some of its tiles: a cell's position counts the cells of those tiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FragmentCells {
    capacity: u64,
    last_tile: u64,
    last_tile_cells: u64,
    tiles: TileRanges,
    cells: u64,
}

impl FragmentCells {
    /// All cells of a fragment of `tiles` tiles, of which all have `capacity` cells but the last.
    ///
    /// # Errors
    /// [`Error::Damaged`] when there are more cells than 64 bits count, or none in a tile.
    pub fn new(tiles: u64, capacity: u64, last_tile_cells: u64) -> Result<Self> {
        let ranges = TileRanges::all(tiles);
        let cells =
            FragmentCells { capacity, last_tile: tiles.saturating_sub(1), last_tile_cells, tiles: ranges, cells: 0 };
        cells.counted()
    }

    /// The cells of those of these tiles that lie in some ranges, which ascend.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a range that leaves the fragment.
    pub fn restricted(&self, ranges: impl Iterator<Item = Range<u64>>) -> Result<Self> {
        let wanted = TileRanges::of(ranges);
        let past = wanted.ranges.last().is_some_and(|range| range.tiles.end > self.last_tile + 1);
        if past || (self.cells == 0 && !wanted.ranges.is_empty()) {
            return Err(Error::damaged("a tile past the end of the fragment"));
        }
        let tiles = self.tiles.intersection(&wanted);
        FragmentCells { tiles, ..self.clone() }.counted()
    }

    fn counted(mut self) -> Result<Self> {
        let tiles = self.tiles.count();
        let has_last = self.tiles.ranges.last().is_some_and(|range| range.tiles.end == self.last_tile + 1);
        if has_last && !(1..=self.capacity).contains(&self.last_tile_cells) {
            let reason = format!("{} cells in the last tile, {} in the others", self.last_tile_cells, self.capacity);
            return Err(Error::damaged(reason).in_field("last tile cell number"));
        }
        let cells = tiles.checked_mul(self.capacity);
        let missing = if has_last { self.capacity - self.last_tile_cells } else { 0 };
        self.cells = cells.ok_or_else(|| Error::damaged("more cells than 64 bits count"))? - missing;
        Ok(self)
    }

    /// How many cells there are.
    pub fn count(&self) -> u64 {
        self.cells
    }

    /// The numbers of the tiles, ascending.
    pub fn tiles(&self) -> impl Iterator<Item = u64> + '_ {
        self.tiles.ranges.iter().flat_map(|range| range.tiles.clone())
    }

    pub fn tile_count(&self) -> u64 {
        self.tiles.count()
    }

    /// The positions of the cells of the tile that comes at this place among these tiles.
    pub fn positions_of(&self, place: u64) -> Range<u64> {
        let start = place.saturating_mul(self.capacity).min(self.cells);
        start..start.saturating_add(self.capacity).min(self.cells)
    }

    /// The place among these tiles of the tile that holds a position.
    pub fn place_of(&self, position: u64) -> u64 {
        position / self.capacity.max(1)
    }

    /// The cells from a position to the end of their tile, `count` at most. There are none past the end.
    pub fn at(&self, position: u64, count: u64) -> Option<TileCells> {
        if position >= self.cells {
            return None;
        }
        let tile = self.tiles.get(self.place_of(position))?;
        let in_tile = if tile == self.last_tile { self.last_tile_cells } else { self.capacity };
        let first = position % self.capacity;
        Some(TileCells { tile, in_tile, first, count: count.min(in_tile - first) })
    }

    /// Visits the cells from a position, tile by tile, with how many came before.
    ///
    /// # Errors
    /// Those of `visit`; [`Error::Damaged`] for cells past the end.
    pub fn for_each_tile(
        &self,
        position: u64,
        count: u64,
        mut visit: impl FnMut(u64, TileCells) -> Result<()>,
    ) -> Result<()> {
        let mut done = 0;
        while done < count {
            let cells = self.at(position + done, count - done);
            let cells = cells.ok_or_else(|| Error::damaged("a cell past the end of the fragment"))?;
            visit(done, cells)?;
            done += cells.count;
        }
        Ok(())
    }
}

/// Ascending numbers of tiles, as ranges.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct TileRanges {
    ranges: Vec<TileRange>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct TileRange {
    tiles: Range<u64>,
    /// Tiles in the ranges before.
    before: u64,
}

impl TileRanges {
    fn all(tiles: u64) -> Self {
        let ranges = if tiles > 0 { vec![TileRange { tiles: 0..tiles, before: 0 }] } else { Vec::new() };
        TileRanges { ranges }
    }

    /// Ranges that ascend.
    fn of(tiles: impl Iterator<Item = Range<u64>>) -> Self {
        let mut ranges = TileRanges::default();
        for tiles in tiles.filter(|tiles| !tiles.is_empty()) {
            match ranges.ranges.last_mut() {
                Some(last) if last.tiles.end == tiles.start => last.tiles.end = tiles.end,
                _ => {
                    let before = ranges.count();
                    ranges.ranges.push(TileRange { tiles, before });
                }
            }
        }
        ranges
    }

    /// The tiles that are in both.
    fn intersection(&self, other: &Self) -> Self {
        let (mut own, mut others) = (self.ranges.iter().peekable(), other.ranges.iter().peekable());
        Self::of(std::iter::from_fn(|| {
            let (a, b) = (&own.peek()?.tiles, &others.peek()?.tiles);
            let both = a.start.max(b.start)..a.end.min(b.end);
            // The one that ends first meets none of the others any more.
            if a.end <= b.end {
                own.next()
            } else {
                others.next()
            };
            Some(both)
        }))
    }

    fn count(&self) -> u64 {
        self.ranges.last().map_or(0, |last| last.before + (last.tiles.end - last.tiles.start))
    }

    fn get(&self, place: u64) -> Option<u64> {
        let number = self.ranges.partition_point(|range| range.before <= place).checked_sub(1)?;
        let range = &self.ranges[number];
        let tile = range.tiles.start + (place - range.before);
        (tile < range.tiles.end).then_some(tile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_the_chosen_tiles() {
        let whole = FragmentCells::new(4, 10, 3).unwrap();
        assert_eq!(whole.count(), 33);
        assert_eq!(whole.at(32, 9), Some(TileCells { tile: 3, in_tile: 3, first: 2, count: 1 }));
        assert_eq!(whole.at(33, 1), None);
        let some = whole.restricted([1..2, 3..4].into_iter()).unwrap();
        assert_eq!((some.count(), some.tile_count()), (13, 2));
        assert_eq!(some.at(0, 100), Some(TileCells { tile: 1, in_tile: 10, first: 0, count: 10 }));
        assert_eq!(some.at(11, 100), Some(TileCells { tile: 3, in_tile: 3, first: 1, count: 2 }));
        assert_eq!(some.positions_of(1), 10..13);
        let mut seen = Vec::new();
        some.for_each_tile(8, 4, |before, cells| {
            seen.push((before, cells.tile, cells.first, cells.count));
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, [(0, 1, 8, 2), (2, 3, 0, 2)]);
        assert!(some.for_each_tile(12, 2, |_, _| Ok(())).is_err());
        assert!(whole.restricted(std::iter::once(4..5)).is_err());
        assert_eq!(whole.restricted([].into_iter()).unwrap().count(), 0);
        let fewer = some.restricted([0..2, 2..3].into_iter()).unwrap();
        assert_eq!((fewer.count(), fewer.tiles().collect::<Vec<_>>()), (10, vec![1]));
    }

    #[test]
    fn counts_that_cannot_be_are_refused() {
        assert!(FragmentCells::new(2, 10, 11).is_err());
        assert!(FragmentCells::new(2, 10, 0).is_err());
        assert!(FragmentCells::new(2, 0, 0).is_err());
        assert!(FragmentCells::new(u64::MAX, 3, 1).is_err());
        assert_eq!(FragmentCells::new(0, 10, 0).unwrap().count(), 0);
    }
}
