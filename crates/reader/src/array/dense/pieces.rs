//! Divides a run of file cells into pieces. A piece is a box of cells from one tile of one fragment, or of cells with
//! the fill value.
//!
//! A cell belongs to the newest fragment that has the attribute and whose non-empty domain contains the cell. Pieces
//! end only at tiles and boxes of fragments, so the work is proportional to the number of tiles and fragments, not of
//! cells.

use std::ops::{Deref, Range};
use std::slice;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use tilefs_base::error::Result;
use tilefs_threads::cancellation;

use super::grid::{Grid, PositionBox};
use super::scattered::ScatteredTile;
use super::selection::{AxisRange, IndexBox, PerAxis, Selection};

/// The most parts along an axis for which memory is allocated at once.
const MOST_RESERVED: u64 = 1024;

/// A fragment that owns cells of a space tile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TileOwner {
    /// The number of the fragment in the array.
    pub fragment: usize,
    /// The positions of the tile that the fragment owns, or more beyond the tile.
    pub positions: Arc<PositionBox>,
    /// The number of the tile in the fragment's files; meaningless for a sparse fragment.
    pub tile: u64,
    /// For a sparse fragment: its cells in this tile, the only ones that it owns.
    pub cells: Option<Arc<ScatteredTile>>,
}

/// The fragments that own cells of a space tile, newest first.
#[derive(Debug, Clone)]
pub enum TileOwners {
    /// One fragment, which needs no allocation.
    One(TileOwner),
    /// Any number of fragments.
    Many(Arc<[TileOwner]>),
}

impl Deref for TileOwners {
    type Target = [TileOwner];

    fn deref(&self) -> &[TileOwner] {
        match self {
            TileOwners::One(owner) => slice::from_ref(owner),
            TileOwners::Many(owners) => owners,
        }
    }
}

/// The source of a piece's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PieceSource {
    /// A tile of a fragment.
    Tile {
        /// The number of the fragment.
        fragment: usize,
        /// The number of the tile in the fragment's files.
        tile: u64,
    },
    /// No fragment: the fill value.
    Fill,
}

/// One axis of a piece: the number of cells, and the distances of adjacent cells in the tile and in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PieceAxis {
    /// The number of cells.
    pub count: u64,
    /// The distance in cells of the tile; negative if a selection runs backwards.
    pub tile_stride: i64,
    /// In cells of the output.
    pub out_stride: u64,
}

/// A box of cells from one source. Cell `(i, j, ...)` is number `tile_first + Σ i·tile_stride` of the tile and number
/// `out_first + Σ i·out_stride` of the run. The last axis varies fastest in the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The source of the values.
    pub source: PieceSource,
    /// The first cell in the tile.
    pub tile_first: u64,
    /// The first cell in the output.
    pub out_first: u64,
    /// The extent along each axis.
    pub axes: PerAxis<PieceAxis>,
}

impl Piece {
    /// Adds the next axis, which varies faster than the axes before it; leaves out an axis of one cell. Joins the next
    /// axis to the last one if both are a single longer axis in the tile and in the output.
    fn add_axis(&mut self, axis: PieceAxis) {
        if axis.count == 1 {
            return;
        }
        if let Some(outer) = self.axes.last_mut()
            && outer.tile_stride == axis.tile_stride.wrapping_mul(axis.count as i64)
            && outer.out_stride == axis.out_stride * axis.count
        {
            *outer = PieceAxis { count: outer.count * axis.count, ..axis };
            return;
        }
        self.axes.push(axis);
    }

    /// Returns the range of the tile's cells from the first to the last that the piece takes.
    pub fn tile_cells(&self) -> Range<u64> {
        let (mut low, mut high) = (self.tile_first, self.tile_first);
        for axis in &self.axes {
            let reach = axis.tile_stride.unsigned_abs().wrapping_mul(axis.count - 1);
            if axis.tile_stride < 0 { low = low.wrapping_sub(reach) } else { high = high.wrapping_add(reach) }
        }
        low..high.wrapping_add(1)
    }

    /// Calls `visit(tile cell, out cell, count, tile stride, out stride)` for each innermost line.
    pub(crate) fn for_each_line(&self, mut visit: impl FnMut(u64, u64, u64, i64, u64) -> Result<()>) -> Result<()> {
        let Some((inner, outer)) = self.axes.split_last() else {
            return visit(self.tile_first, self.out_first, 1, 1, 1);
        };
        let mut index: PerAxis<u64> = smallvec![0; outer.len()];
        let (mut tile, mut out) = (self.tile_first, self.out_first);
        loop {
            visit(tile, out, inner.count, inner.tile_stride, inner.out_stride)?;
            let mut axis = outer.len();
            loop {
                let Some(next) = axis.checked_sub(1) else { return Ok(()) };
                axis = next;
                let PieceAxis { count, tile_stride, out_stride } = outer[axis];
                index[axis] += 1;
                tile = tile.wrapping_add(tile_stride as u64);
                out += out_stride;
                if index[axis] < count {
                    break;
                }
                index[axis] = 0;
                tile = tile.wrapping_sub((tile_stride as u64).wrapping_mul(count));
                out -= out_stride * count;
            }
        }
    }
}

/// Visits the pieces of a run of file cells of a selection, which is divided into boxes, each cell exactly once. `owners`
/// returns the fragments of a space tile, newest first, without the fragments that lack the attribute.
pub fn for_each_piece(
    grid: &Grid,
    selection: &Selection,
    boxes: &[IndexBox],
    mut owners: impl FnMut(&[u64]) -> Result<TileOwners>,
    mut visit: impl FnMut(Piece) -> Result<()>,
) -> Result<()> {
    let cell_strides = grid.cell_strides();
    let mut out_first = 0;
    for one in boxes {
        let cells: u64 = one.count.iter().product();
        let strides = PieceStrides { cells: &cell_strides, out: row_major_strides(&one.count) };
        for_each_tile_part(grid, selection, one, |part| {
            cancellation::check()?;
            let owners = owners(&part.tile)?;
            resolve(grid, part, &owners, &strides, out_first, &mut visit)
        })?;
        out_first += cells;
    }
    Ok(())
}

/// The distances of adjacent cells along each axis, which are the same for all tiles of an index box.
struct PieceStrides<'a> {
    /// In cells of a tile.
    cells: &'a [u64],
    /// In cells of the output.
    out: PerAxis<u64>,
}

/// Returns the distances of adjacent cells along each axis of a row-major box.
fn row_major_strides(count: &[u64]) -> PerAxis<u64> {
    let mut strides: PerAxis<u64> = smallvec![1; count.len()];
    for axis in (1..count.len()).rev() {
        strides[axis - 1] = strides[axis] * count[axis];
    }
    strides
}

/// The part of an index box in one space tile; its positions along each axis are one range.
struct TilePart {
    tile: PerAxis<u64>,
    /// The selected positions of each axis: a range within the tile.
    ranges: PerAxis<AxisRange>,
    /// The index of the first cell of each axis, relative to the index box.
    offset: PerAxis<u64>,
}

/// Divides an index box at the edges of space tiles.
fn for_each_tile_part(
    grid: &Grid,
    selection: &Selection,
    one: &IndexBox,
    mut visit: impl FnMut(&TilePart) -> Result<()>,
) -> Result<()> {
    let rank = grid.axes.len();
    let cuts: PerAxis<SmallVec<[(u64, AxisRange); 1]>> = (0..rank)
        .map(|axis| {
            let runs = selection.axes()[axis].runs(one.first[axis], one.count[axis]);
            cut_along_tiles(runs, grid.axes[axis].extent)
        })
        .collect();
    if cuts.iter().any(|cuts| cuts.is_empty()) {
        return Ok(());
    }
    let mut at: PerAxis<usize> = smallvec![0; rank];
    loop {
        let chosen = || (0..rank).map(|axis| &cuts[axis][at[axis]]);
        let part = TilePart {
            tile: chosen().zip(&grid.axes).map(|((_, range), axis)| range.first / axis.extent).collect(),
            ranges: chosen().map(|(_, range)| *range).collect(),
            offset: chosen().map(|(offset, _)| *offset).collect(),
        };
        visit(&part)?;
        let mut axis = rank;
        loop {
            let Some(next) = axis.checked_sub(1) else { return Ok(()) };
            axis = next;
            at[axis] += 1;
            if at[axis] < cuts[axis].len() {
                break;
            }
            at[axis] = 0;
        }
    }
}

/// Divides ranges of positions at the edges of tiles. Returns each part with the number of positions before it.
fn cut_along_tiles(runs: impl Iterator<Item = AxisRange>, extent: u64) -> SmallVec<[(u64, AxisRange); 1]> {
    let mut cuts = SmallVec::new();
    let mut offset = 0;
    for run in runs {
        let (mut first, mut left) = (run.first, run.count);
        let stride = run.step.unsigned_abs();
        cuts.reserve((run.count.saturating_mul(stride) / extent).min(MOST_RESERVED) as usize + 1);
        while left > 0 {
            let within = first % extent;
            let room = if run.step > 0 { extent - 1 - within } else { within };
            let count = left.min(room / stride + 1);
            cuts.push((offset, AxisRange { first, step: run.step, count }));
            offset += count;
            left -= count;
            first = first.wrapping_add((run.step as u64).wrapping_mul(count));
        }
    }
    cuts
}

/// A box of cells of a tile part that have no owner yet: the first offset and the count along each axis.
#[derive(Clone)]
struct UnassignedCells {
    first: PerAxis<u64>,
    count: PerAxis<u64>,
}

/// Assigns each cell of a part to the newest fragment that owns it.
fn resolve(
    grid: &Grid,
    part: &TilePart,
    owners: &[TileOwner],
    strides: &PieceStrides<'_>,
    out_base: u64,
    visit: &mut impl FnMut(Piece) -> Result<()>,
) -> Result<()> {
    let builder = PieceBuilder::new(grid, part, strides, out_base);
    if owners.iter().any(|owner| owner.cells.is_some()) {
        return resolve_by_cell(grid, part, owners, &builder, visit);
    }
    let all = UnassignedCells {
        first: smallvec![0; part.ranges.len()],
        count: part.ranges.iter().map(|range| range.count).collect(),
    };
    if let Some(newest) = owners.first().filter(|newest| newest.positions.contains_ranges(&part.ranges)) {
        return visit(builder.piece(&all, PieceSource::Tile { fragment: newest.fragment, tile: newest.tile }));
    }
    let mut open: SmallVec<[UnassignedCells; 1]> = smallvec![all];
    for owner in owners {
        let mut still_open = SmallVec::new();
        for window in open {
            match owned(&part.ranges, &window, &owner.positions) {
                Some(inside) => {
                    visit(builder.piece(&inside, PieceSource::Tile { fragment: owner.fragment, tile: owner.tile }))?;
                    subtract(window, &inside, &mut still_open);
                }
                None => still_open.push(window),
            }
        }
        if still_open.is_empty() {
            return Ok(());
        }
        open = still_open;
    }
    open.iter().try_for_each(|window| visit(builder.piece(window, PieceSource::Fill)))
}

/// As [`resolve`], cell by cell, for tiles in which a sparse fragment has cells.
fn resolve_by_cell(
    grid: &Grid,
    part: &TilePart,
    owners: &[TileOwner],
    builder: &PieceBuilder<'_>,
    visit: &mut impl FnMut(Piece) -> Result<()>,
) -> Result<()> {
    let cells: u64 = part.ranges.iter().map(|range| range.count).product();
    for number in 0..cells {
        let (mut rest, mut out, mut cell) = (number, builder.out_first, 0);
        let mut position: PerAxis<u64> = smallvec![0; part.ranges.len()];
        for axis in (0..part.ranges.len()).rev() {
            let range = part.ranges[axis];
            let index = rest % range.count;
            rest /= range.count;
            position[axis] = range.first.wrapping_add((range.step as u64).wrapping_mul(index));
            out += index * builder.strides.out[axis];
            cell += position[axis] % grid.axes[axis].extent * builder.strides.cells[axis];
        }
        let found = owners.iter().find_map(|owner| match &owner.cells {
            Some(cells) => {
                let (tile, cell) = *cells.get(&cell)?;
                Some((PieceSource::Tile { fragment: owner.fragment, tile }, cell))
            }
            None if owner.positions.contains_position(&position) => {
                Some((PieceSource::Tile { fragment: owner.fragment, tile: owner.tile }, cell))
            }
            None => None,
        });
        let (source, tile_first) = found.unwrap_or((PieceSource::Fill, 0));
        visit(Piece { source, tile_first, out_first: out, axes: SmallVec::new() })?;
    }
    Ok(())
}

/// Returns the part of a window whose positions lie in a box.
fn owned(ranges: &[AxisRange], window: &UnassignedCells, positions: &PositionBox) -> Option<UnassignedCells> {
    let mut inside = window.clone();
    for (axis, range) in ranges.iter().enumerate() {
        let (low, high) = (positions.low[axis], positions.high[axis]);
        let stride = range.step.unsigned_abs();
        // The offsets o whose position range.first + o * step lies within [low, high].
        let (from, to) = if range.step > 0 {
            (low.saturating_sub(range.first).div_ceil(stride), high.checked_sub(range.first)? / stride)
        } else {
            (range.first.saturating_sub(high).div_ceil(stride), range.first.checked_sub(low)? / stride)
        };
        let first = from.max(window.first[axis]);
        let last = to.min(window.first[axis] + window.count[axis] - 1);
        if first > last {
            return None;
        }
        inside.first[axis] = first;
        inside.count[axis] = last - first + 1;
    }
    Some(inside)
}

/// Adds `window` without `inside` to `rest`, as at most two boxes per axis.
fn subtract(mut window: UnassignedCells, inside: &UnassignedCells, rest: &mut SmallVec<[UnassignedCells; 1]>) {
    for axis in 0..inside.first.len() {
        let (first, end) = (window.first[axis], window.first[axis] + window.count[axis]);
        let (inside_first, inside_end) = (inside.first[axis], inside.first[axis] + inside.count[axis]);
        if inside_first > first {
            let mut below = window.clone();
            below.count[axis] = inside_first - first;
            rest.push(below);
        }
        if end > inside_end {
            let mut above = window.clone();
            above.first[axis] = inside_end;
            above.count[axis] = end - inside_end;
            rest.push(above);
        }
        window.first[axis] = inside_first;
        window.count[axis] = inside.count[axis];
    }
}

/// Converts windows of a part into pieces.
struct PieceBuilder<'a> {
    strides: &'a PieceStrides<'a>,
    /// The number in the tile of the part's first cell.
    tile_first: u64,
    tile_strides: PerAxis<i64>,
    out_first: u64,
}

impl<'a> PieceBuilder<'a> {
    fn new(grid: &Grid, part: &TilePart, strides: &'a PieceStrides<'a>, out_base: u64) -> Self {
        let (mut tile_first, mut out_first) = (0, out_base);
        let mut tile_strides = PerAxis::new();
        for (axis, range) in part.ranges.iter().enumerate() {
            tile_first += range.first % grid.axes[axis].extent * strides.cells[axis];
            // If a step is longer than a tile, its range has one cell, so the stride is never used.
            tile_strides.push(range.step.wrapping_mul(strides.cells[axis] as i64));
            out_first += part.offset[axis] * strides.out[axis];
        }
        PieceBuilder { strides, tile_first, tile_strides, out_first }
    }

    fn piece(&self, window: &UnassignedCells, source: PieceSource) -> Piece {
        let mut piece = Piece { source, tile_first: self.tile_first, out_first: self.out_first, axes: PerAxis::new() };
        for axis in 0..window.first.len() {
            let (tile_stride, out_stride) = (self.tile_strides[axis], self.strides.out[axis]);
            piece.tile_first = piece.tile_first.wrapping_add((tile_stride as u64).wrapping_mul(window.first[axis]));
            piece.out_first += out_stride * window.first[axis];
            piece.add_axis(PieceAxis { count: window.count[axis], tile_stride, out_stride });
        }
        piece
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use tilefs_format::schema::Layout;

    use super::super::selection::{AxisSelection, boxes_of_run};
    use super::*;

    /// Finds a cell in the simplest way: fragment and cell number within its tile, or none.
    fn naive(grid: &Grid, fragments: &[PositionBox], position: &[u64]) -> Option<(usize, u64, u64)> {
        let fragment = (0..fragments.len()).rev().find(|&number| {
            let one = &fragments[number];
            (0..position.len()).all(|axis| (one.low[axis]..=one.high[axis]).contains(&position[axis]))
        })?;
        let tile: Vec<u64> = position.iter().zip(&grid.axes).map(|(position, axis)| position / axis.extent).collect();
        let cell =
            (0..position.len()).map(|axis| position[axis] % grid.axes[axis].extent * grid.cell_strides()[axis]).sum();
        Some((fragment, grid.tile_number(&fragments[fragment], &tile)?, cell))
    }

    fn owners(grid: &Grid, fragments: &[PositionBox], tile: &[u64]) -> TileOwners {
        let whole = grid.tile_box(tile);
        let owners = (0..fragments.len())
            .rev()
            .filter_map(|fragment| {
                let positions = fragments[fragment].intersection(&whole)?;
                Some(TileOwner {
                    fragment,
                    positions: positions.into(),
                    tile: grid.tile_number(&fragments[fragment], tile)?,
                    cells: None,
                })
            })
            .collect();
        TileOwners::Many(owners)
    }

    fn order() -> impl Strategy<Value = Layout> {
        prop_oneof![Just(Layout::RowMajor), Just(Layout::ColMajor)]
    }

    fn case() -> impl Strategy<Value = (Grid, Vec<PositionBox>, Selection)> {
        let axes = prop::collection::vec((1u64..9, 1u64..6), 1..4);
        (axes, order(), order()).prop_flat_map(|(axes, tile_order, cell_order)| {
            let ends = axes.iter().map(|&(size, _)| (0..size, 0..size)).collect::<Vec<_>>();
            let fragments = prop::collection::vec(ends, 0..4);
            let ranges = axes
                .iter()
                .map(|&(size, _)| {
                    prop::collection::vec((0..size, 1..size + 1, prop_oneof![Just(1i64), -3i64..4]), 1..3)
                })
                .collect::<Vec<_>>();
            (Just(axes), Just((tile_order, cell_order)), fragments, ranges).prop_map(
                |(axes, (tile_order, cell_order), fragments, ranges)| {
                    let grid = Grid::for_test(&axes, tile_order, cell_order);
                    let fragments = fragments
                        .into_iter()
                        .map(|ends| PositionBox {
                            low: ends.iter().map(|&(a, b)| a.min(b)).collect(),
                            high: ends.iter().map(|&(a, b)| a.max(b)).collect(),
                        })
                        .collect();
                    let selected = ranges
                        .into_iter()
                        .zip(&axes)
                        .map(|(ranges, &(size, _))| {
                            let fitting = ranges.into_iter().map(|(first, count, step)| {
                                let step = if step == 0 { 1 } else { step };
                                let room = if step > 0 { size - 1 - first } else { first };
                                AxisRange { first, step, count: count.min(room / step.unsigned_abs() + 1) }
                            });
                            AxisSelection::new(fitting, size).unwrap()
                        })
                        .collect();
                    (grid, fragments, Selection::new(selected).unwrap())
                },
            )
        })
    }

    proptest! {
        #[test]
        fn pieces_equal_a_cell_by_cell_search((grid, fragments, selection) in case(), a in 0u64..4000, b in 0u64..4000) {
            let total = selection.cells();
            let (first, end) = (a.min(b) % (total + 1), a.max(b) % (total + 1));
            prop_assume!(first <= end);
            let mut found = vec![None; (end - first) as usize];
            for_each_piece(
                &grid,
                &selection,
                &boxes_of_run(&selection.shape(), first, end - first),
                |tile| Ok(owners(&grid, &fragments, tile)),
                |piece| {
                    piece.for_each_line(|tile_cell, out_cell, count, tile_stride, out_stride| {
                        for step in 0..count {
                            let cell = tile_cell.wrapping_add((tile_stride as u64).wrapping_mul(step));
                            let slot = &mut found[(out_cell + step * out_stride) as usize];
                            assert_eq!(*slot, None, "a cell was given twice");
                            *slot = Some(match piece.source {
                                PieceSource::Tile { fragment, tile } => Some((fragment, tile, cell)),
                                PieceSource::Fill => None,
                            });
                        }
                        Ok(())
                    })
                },
            )
            .unwrap();
            let shape = selection.shape();
            for (number, found) in found.into_iter().enumerate() {
                let mut rest = first + number as u64;
                let mut position = vec![0; shape.len()];
                for axis in (0..shape.len()).rev() {
                    position[axis] = selection.axes()[axis].position(rest % shape[axis]).unwrap();
                    rest /= shape[axis];
                }
                prop_assert_eq!(found, Some(naive(&grid, &fragments, &position)), "cell {}", number);
            }
        }
    }

    #[test]
    fn whole_tiles_become_one_line() {
        let grid = Grid::for_test(&[(8, 4), (4, 4)], Layout::RowMajor, Layout::RowMajor);
        let fragments = [grid.domain()];
        let selection = Selection::new(vec![AxisSelection::contiguous(0, 8), AxisSelection::contiguous(0, 4)]).unwrap();
        let mut pieces = Vec::new();
        for_each_piece(
            &grid,
            &selection,
            &boxes_of_run(&selection.shape(), 0, 32),
            |tile| Ok(owners(&grid, &fragments, tile)),
            |piece| {
                pieces.push(piece);
                Ok(())
            },
        )
        .unwrap();
        assert_eq!(pieces.len(), 2);
        assert_eq!(pieces[1].axes[..], [PieceAxis { count: 16, tile_stride: 1, out_stride: 1 }]);
        assert_eq!(pieces[1].out_first, 16);
    }
}
