//! Numbers the selected cells of one fragment, and maps these numbers to tiles and cells in them.

use std::ops::{Deref, Range};

use tilefs_base::error::{Error, Locate, Result};

/// Some consecutive cells of one tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileCells {
    pub tile: u64,
    /// The number of cells of the whole tile.
    pub in_tile: u64,
    /// The number in the tile of the first of these cells.
    pub first: u64,
    pub count: u64,
}

impl TileCells {
    /// Returns the numbers of these cells in the tile.
    pub fn range(&self) -> Range<u64> {
        self.first..self.first + self.count
    }
}

/// The cells of a fragment, or some of them. The position of a cell is the number of selected cells before it.
///
/// A piece is a run of consecutive cells within one tile; its place is the number of pieces before it. If whole tiles
/// are selected, pieces are tiles. Memory: 32 bytes, and 32 per range of consecutive cells unless all are selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FragmentCells {
    capacity: u64,
    /// Number of cells in the whole fragment.
    all: u64,
    /// `None` if all cells are selected: there may be millions of fragments.
    chosen: Option<Box<[CellRange]>>,
}

/// Consecutive cells of one fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellSlab {
    pub fragment: u32,
    pub position: u64,
    pub cells: u64,
}

/// Consecutive cells, as numbers within the fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CellRange {
    cells: Range<u64>,
    /// Number of selected cells in earlier ranges.
    before: u64,
    /// Number of pieces in earlier ranges.
    places_before: u64,
}

/// The ranges of selected cells.
enum SelectedRanges<'a> {
    Chosen(&'a [CellRange]),
    Whole([CellRange; 1]),
}

impl Deref for SelectedRanges<'_> {
    type Target = [CellRange];

    fn deref(&self) -> &[CellRange] {
        match self {
            SelectedRanges::Chosen(ranges) => ranges,
            SelectedRanges::Whole(range) => range,
        }
    }
}

impl FragmentCells {
    /// Returns all cells of a fragment of `tiles` tiles, each of `capacity` cells except the last.
    ///
    /// # Errors
    /// [`Error::Damaged`] if there are more cells than 64 bits count, or none in a tile.
    pub fn new(tiles: u64, capacity: u64, last_tile_cells: u64) -> Result<Self> {
        if tiles > 0 && !(1..=capacity).contains(&last_tile_cells) {
            let reason = format!("{last_tile_cells} cells in the last tile, {capacity} in the others");
            return Err(Error::damaged(reason).in_field("last tile cell number"));
        }
        let all = tiles.checked_mul(capacity).ok_or_else(|| Error::damaged("more cells than 64 bits count"))?;
        let all = if tiles > 0 { all - (capacity - last_tile_cells) } else { 0 };
        Ok(FragmentCells { capacity, all, chosen: None })
    }

    /// Returns the selected cells within ascending ranges of tiles.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a range that leaves the fragment.
    pub fn restricted(&self, tiles: impl Iterator<Item = Range<u64>>) -> Result<Self> {
        let first_cell = |tile: u64| tile.checked_mul(self.capacity).filter(|cell| *cell < self.all);
        let cells = tiles.filter(|tiles| !tiles.is_empty()).map(|tiles| {
            let (first, last) = (first_cell(tiles.start), first_cell(tiles.end - 1));
            let (first, last) = first.zip(last).ok_or_else(|| Error::damaged("a tile past the end of the fragment"))?;
            Ok(first..last.saturating_add(self.capacity).min(self.all))
        });
        let wanted = self.with(cells.collect::<Result<Vec<_>>>()?.into_iter());
        Ok(self.with(intersection(&self.ranges(), &wanted.ranges())))
    }

    /// Returns the cells at ascending ranges of positions, without positions past the end.
    pub fn at_positions(&self, positions: impl Iterator<Item = Range<u64>>) -> Self {
        let mut kept = Vec::new();
        for positions in positions {
            let mut at = positions.start;
            while let Some(range) = self.range_of(at).filter(|_| at < positions.end) {
                let first = range.cells.start + (at - range.before);
                let end = range.cells.end.min(first.saturating_add(positions.end - at));
                kept.push(first..end);
                at += end - first;
            }
        }
        self.with(kept.into_iter())
    }

    /// Returns the cells of the same fragment in ascending ranges.
    fn with(&self, cells: impl Iterator<Item = Range<u64>>) -> Self {
        let mut ranges: Vec<CellRange> = Vec::new();
        let (mut before, mut places_before) = (0, 0);
        for cells in cells.filter(|cells| !cells.is_empty()) {
            match ranges.last_mut() {
                Some(last) if last.cells.end == cells.start => last.cells.end = cells.end,
                last => {
                    if let Some(last) = last {
                        (before, places_before) = (last.end(), places_before + self.pieces(&last.cells));
                    }
                    ranges.push(CellRange { cells, before, places_before });
                }
            }
        }
        let is_whole = ranges.iter().map(|range| range.cells.end - range.cells.start).sum::<u64>() == self.all;
        FragmentCells { capacity: self.capacity, all: self.all, chosen: (!is_whole).then(|| ranges.into()) }
    }

    fn ranges(&self) -> SelectedRanges<'_> {
        match &self.chosen {
            Some(ranges) => SelectedRanges::Chosen(ranges),
            None if self.all == 0 => SelectedRanges::Chosen(&[]),
            None => SelectedRanges::Whole([CellRange { cells: 0..self.all, before: 0, places_before: 0 }]),
        }
    }

    /// Returns the number of tiles in which a range has cells.
    fn pieces(&self, cells: &Range<u64>) -> u64 {
        (cells.end - 1) / self.capacity - cells.start / self.capacity + 1
    }

    /// Returns the number of selected cells.
    pub fn count(&self) -> u64 {
        self.ranges().last().map_or(0, CellRange::end)
    }

    /// Returns the tile number of each piece, in ascending order. A tile with several pieces is repeated.
    pub fn tiles(&self) -> impl Iterator<Item = u64> + '_ {
        let ranges = self.ranges();
        let tiles = move |number: usize| {
            let cells = &ranges[number].cells;
            cells.start / self.capacity..=(cells.end - 1) / self.capacity
        };
        (0..self.ranges().len()).flat_map(tiles)
    }

    /// Returns the number of pieces.
    pub fn tile_count(&self) -> u64 {
        self.ranges().last().map_or(0, |last| last.places_before + self.pieces(&last.cells))
    }

    /// Returns the positions of the cells of the piece at a place; an empty range at the end for a place past the last.
    pub fn positions_of(&self, place: u64) -> Range<u64> {
        let ranges = self.ranges();
        let number = ranges.partition_point(|range| range.places_before <= place);
        let Some(range) = number.checked_sub(1).and_then(|number| ranges.get(number)) else {
            return 0..0;
        };
        let tile = (range.cells.start / self.capacity).saturating_add(place - range.places_before);
        let start = tile.saturating_mul(self.capacity);
        let position = |cell: u64| range.before + (cell.clamp(range.cells.start, range.cells.end) - range.cells.start);
        position(start)..position(start.saturating_add(self.capacity))
    }

    /// Returns the place of the piece that holds a position; the number of pieces for a position past the end.
    pub fn place_of(&self, position: u64) -> u64 {
        let Some(range) = self.range_of(position) else { return self.tile_count() };
        let cell = range.cells.start + (position - range.before);
        range.places_before + (cell / self.capacity - range.cells.start / self.capacity)
    }

    /// Returns the cells from a position to the end of their piece, at most `count`; `None` past the end.
    pub fn at(&self, position: u64, count: u64) -> Option<TileCells> {
        Some(self.cells_of(&self.range_of(position)?, position, count))
    }

    /// Returns the cells from a position in a range to the end of their piece, at most `count`.
    fn cells_of(&self, range: &CellRange, position: u64, count: u64) -> TileCells {
        let cell = range.cells.start + (position - range.before);
        let (tile, first) = (cell / self.capacity, cell % self.capacity);
        let in_tile = (self.all - (cell - first)).min(self.capacity);
        TileCells { tile, in_tile, first, count: count.min(in_tile - first).min(range.cells.end - cell) }
    }

    /// Visits `count` cells from a position on, piece by piece, with the number of cells visited before.
    ///
    /// # Errors
    /// Those of `visit`; [`Error::Damaged`] for cells past the end.
    pub fn for_each_tile(
        &self,
        position: u64,
        count: u64,
        mut visit: impl FnMut(u64, TileCells) -> Result<()>,
    ) -> Result<()> {
        let ranges = self.ranges();
        let mut number = ranges.partition_point(|range| range.end() <= position);
        let mut done = 0;
        while done < count {
            let range = ranges.get(number).ok_or_else(|| Error::damaged("a cell past the end of the fragment"))?;
            let cells = self.cells_of(range, position + done, count - done);
            visit(done, cells)?;
            done += cells.count;
            number += usize::from(position + done == range.end());
        }
        Ok(())
    }

    /// Returns the range that holds a position.
    fn range_of(&self, position: u64) -> Option<CellRange> {
        let ranges = self.ranges();
        let number = ranges.partition_point(|range| range.before <= position).checked_sub(1)?;
        ranges.get(number).filter(|range| position < range.end()).cloned()
    }
}

impl CellRange {
    /// Returns the position after the last cell of the range.
    fn end(&self) -> u64 {
        self.before + (self.cells.end - self.cells.start)
    }
}

/// Returns the cells that are in both lists of ranges.
fn intersection<'a>(own: &'a [CellRange], others: &'a [CellRange]) -> impl Iterator<Item = Range<u64>> + 'a {
    let (mut own, mut others) = (own.iter().peekable(), others.iter().peekable());
    std::iter::from_fn(move || {
        let (a, b) = (&own.peek()?.cells, &others.peek()?.cells);
        let both = a.start.max(b.start)..a.end.min(b.end);
        // The range that ends first intersects none of the remaining ones.
        if a.end <= b.end {
            own.next()
        } else {
            others.next()
        };
        Some(both)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    proptest! {
        #[test]
        fn positions_count_the_chosen_cells(
            (capacity, tiles, last) in (1u64..9).prop_flat_map(|capacity| (Just(capacity), 0u64..9, 1..=capacity)),
            tile_marks in prop::collection::vec(any::<bool>(), 9),
            cell_marks in prop::collection::vec(any::<bool>(), 81),
        ) {
            let whole = FragmentCells::new(tiles, capacity, last).unwrap();
            let tile_ranges = (0..tiles).filter(|tile| tile_marks[*tile as usize]).map(|tile| tile..tile + 1);
            let some = whole.restricted(tile_ranges).unwrap();
            let marked = |position: &u64| cell_marks[*position as usize];
            let fewer = some.at_positions((0..=some.count()).filter(marked).map(|position| position..position + 1));
            let numbers = |cells: &FragmentCells| -> Vec<u64> {
                let cell = |position| cells.at(position, 1).map(|at| at.tile * capacity + at.first);
                (0..cells.count()).map(|position| cell(position).unwrap()).collect()
            };
            let all: Vec<u64> = (0..whole.count()).collect();
            let of_tiles: Vec<u64> = all.iter().copied().filter(|cell| tile_marks[(cell / capacity) as usize]).collect();
            let chosen = of_tiles.iter().zip(&cell_marks).filter(|(_, is_marked)| **is_marked).map(|(cell, _)| *cell);
            let chosen: Vec<u64> = chosen.collect();
            prop_assert_eq!(numbers(&whole), all);
            prop_assert_eq!(numbers(&some), of_tiles);
            prop_assert_eq!(numbers(&fewer), chosen.clone());
            for cells in [&whole, &some, &fewer] {
                let pieces: Vec<_> = cells.tiles().collect();
                prop_assert_eq!(pieces.len() as u64, cells.tile_count());
                let mut end = 0;
                for (place, tile) in (0..).zip(pieces) {
                    let own = cells.positions_of(place);
                    prop_assert!(own.start == end && own.end > end);
                    end = own.end;
                    let at = cells.at(own.start, u64::MAX).unwrap();
                    let in_tile = if tile + 1 == tiles { last } else { capacity };
                    prop_assert_eq!((at.tile, at.in_tile, at.count), (tile, in_tile, own.end - own.start));
                    prop_assert!(own.clone().all(|position| cells.place_of(position) == place));
                }
                prop_assert_eq!(end, cells.count());
                prop_assert!(cells.at(end, 1).is_none() && cells.positions_of(cells.place_of(end)).is_empty());
            }
        }
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
