//! The geometry of a dense array: positions, space tiles and the order of cells within a tile.
//!
//! All computations use positions (unsigned numbers of cells from the low end of the domain), so domains that begin
//! anywhere or span a whole integer type need no special cases.

use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::scalar::{Range, Scalar};
use tilefs_format::schema::{ArraySchema, Dimension, Layout};

use super::selection::AxisRange;

/// One dimension: its number of positions, and the number of positions that a tile spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GridAxis {
    /// The low end of the domain, as the two's complement bits of the coordinate.
    pub low: u64,
    /// The number of positions of the domain.
    pub size: u64,
    /// The number of positions of a tile. The last tile may extend beyond the domain.
    pub extent: u64,
}

impl GridAxis {
    /// Returns the position of a coordinate of the dimension's type; meaningless outside the domain.
    pub fn position(&self, coordinate: &Scalar) -> Option<u64> {
        bits(coordinate).map(|bits| bits.wrapping_sub(self.low))
    }
}

/// Returns the two's complement bits of an integer coordinate.
fn bits(coordinate: &Scalar) -> Option<u64> {
    match coordinate {
        Scalar::Signed(value) => Some(*value as u64),
        Scalar::Unsigned(value) => Some(*value),
        _ => None,
    }
}

/// A box of positions, both ends included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PositionBox {
    /// The first cell along each axis.
    pub low: Vec<u64>,
    /// The last cell along each axis, which is part of the box.
    pub high: Vec<u64>,
}

impl PositionBox {
    /// Returns the intersection with another box, if it is not empty.
    pub fn intersection(&self, other: &PositionBox) -> Option<PositionBox> {
        let low: Vec<u64> = self.low.iter().zip(&other.low).map(|(a, b)| *a.max(b)).collect();
        let high: Vec<u64> = self.high.iter().zip(&other.high).map(|(a, b)| *a.min(b)).collect();
        low.iter().zip(&high).all(|(low, high)| low <= high).then_some(PositionBox { low, high })
    }

    /// Returns whether a position lies within this box.
    pub(crate) fn contains_position(&self, position: &[u64]) -> bool {
        self.low.iter().zip(&self.high).zip(position).all(|((low, high), at)| (low..=high).contains(&at))
    }

    /// Returns whether all positions of a range per axis lie within this box. No range is empty.
    pub(crate) fn contains_ranges(&self, ranges: &[AxisRange]) -> bool {
        self.low.iter().zip(&self.high).zip(ranges).all(|((low, high), range)| {
            let last = range.first.wrapping_add((range.step as u64).wrapping_mul(range.count - 1));
            (low..=high).contains(&&range.first) && (low..=high).contains(&&last)
        })
    }

    /// Returns the same box with its axes reversed.
    pub fn reversed(&self) -> PositionBox {
        PositionBox { low: self.low.iter().rev().copied().collect(), high: self.high.iter().rev().copied().collect() }
    }

    /// Returns the smallest box that contains both.
    pub fn union(&self, other: &PositionBox) -> PositionBox {
        PositionBox {
            low: self.low.iter().zip(&other.low).map(|(a, b)| *a.min(b)).collect(),
            high: self.high.iter().zip(&other.high).map(|(a, b)| *a.max(b)).collect(),
        }
    }

    /// Returns whether `other` lies within this box.
    pub fn contains(&self, other: &PositionBox) -> bool {
        self.low.iter().zip(&other.low).all(|(mine, its)| mine <= its)
            && self.high.iter().zip(&other.high).all(|(mine, its)| mine >= its)
    }
}

/// The domain of a dense array, divided into space tiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grid {
    /// The axes in the order of the dimensions.
    pub axes: Vec<GridAxis>,
    /// The order of tiles.
    pub tile_order: Layout,
    /// The order of cells in a tile.
    pub cell_order: Layout,
}

impl Grid {
    /// Returns the grid of a dense schema.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a dimension that is not integral, [`Error::Damaged`] if domain and extent do not give
    /// a grid whose tiles have fewer than 2^64 cells.
    pub fn of_schema(schema: &ArraySchema) -> Result<Self> {
        let mut axes = Vec::new();
        for dimension in &schema.dimensions {
            let axis = axis_of(dimension).in_field(&dimension.name)?;
            axes.push(axis);
        }
        let grid = Grid { axes, tile_order: schema.tile_order, cell_order: schema.cell_order };
        if grid.axes.iter().try_fold(1u64, |cells, axis| cells.checked_mul(axis.extent)).is_none() {
            return Err(Error::damaged("a tile has more than 2^64 cells"));
        }
        Ok(grid)
    }

    /// Returns the same cells with the axes reversed, and so in the other order.
    pub fn reversed(&self) -> Grid {
        let other = |layout: Layout| match layout {
            Layout::RowMajor => Layout::ColMajor,
            Layout::ColMajor => Layout::RowMajor,
            Layout::Hilbert => Layout::Hilbert,
        };
        let axes = self.axes.iter().rev().copied().collect();
        Grid { axes, tile_order: other(self.tile_order), cell_order: other(self.cell_order) }
    }

    /// Returns the number of cells of every tile, also of a tile at the edge of the domain.
    pub(crate) fn cells_per_tile(&self) -> u64 {
        self.axes.iter().map(|axis| axis.extent).product()
    }

    /// Returns the whole domain.
    pub fn domain(&self) -> PositionBox {
        PositionBox { low: vec![0; self.axes.len()], high: self.axes.iter().map(|axis| axis.size - 1).collect() }
    }

    /// Returns the box of positions of coordinate ranges, clipped to the domain.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the ranges do not match this array's dimensions.
    pub fn box_of(&self, ranges: &[Range]) -> Result<PositionBox> {
        if ranges.len() != self.axes.len() {
            return Err(Error::damaged(format!("{} ranges for {} dimensions", ranges.len(), self.axes.len())));
        }
        let (mut low, mut high) = (Vec::new(), Vec::new());
        for (axis, range) in self.axes.iter().zip(ranges) {
            let (Some(first), Some(last)) = (axis.position(&range.low), axis.position(&range.high)) else {
                return Err(Error::damaged("a range that is not of integers"));
            };
            // Below the domain, positions wrap to large numbers, so compare them as distances from the low end.
            if first >= axis.size || first > last {
                return Err(Error::damaged("a range that begins outside the domain"));
            }
            low.push(first);
            high.push(last.min(axis.size - 1));
        }
        Ok(PositionBox { low, high })
    }

    /// Returns the positions of one tile that lie in the domain.
    pub(crate) fn tile_box(&self, tile: &[u64]) -> PositionBox {
        let low: Vec<u64> = self.axes.iter().zip(tile).map(|(axis, tile)| tile * axis.extent).collect();
        let high = self
            .axes
            .iter()
            .zip(&low)
            .map(|(axis, low)| low.saturating_add(axis.extent - 1).min(axis.size - 1))
            .collect();
        PositionBox { low, high }
    }

    /// Returns the number of a tile in the files of a fragment whose non-empty domain is `fragment`: tiles are numbered
    /// in tile order within the box of tiles that the fragment touches.
    pub fn tile_number(&self, fragment: &PositionBox, tile: &[u64]) -> Option<u64> {
        let rank = self.axes.len();
        let mut number = 0u64;
        for step in 0..rank {
            let axis = match self.tile_order {
                Layout::ColMajor => rank - 1 - step,
                _ => step,
            };
            let extent = self.axes[axis].extent;
            let first = fragment.low[axis] / extent;
            let count = fragment.high[axis] / extent - first + 1;
            let relative = tile[axis].checked_sub(first).filter(|relative| *relative < count)?;
            number = number.checked_mul(count)?.checked_add(relative)?;
        }
        Some(number)
    }

    /// Returns the row-major number of the cell with the column-major number `cell`.
    pub(crate) fn to_row_major_cell(&self, cell: u64) -> u64 {
        let mut rest = cell;
        let mut stride = self.cells_per_tile();
        let mut number = 0;
        for axis in &self.axes {
            stride /= axis.extent;
            number += rest % axis.extent * stride;
            rest /= axis.extent;
        }
        number
    }

    /// Returns the distance in cells between neighbours along each axis within a tile.
    pub(crate) fn cell_strides(&self) -> Vec<u64> {
        let rank = self.axes.len();
        let mut strides = vec![1; rank];
        match self.cell_order {
            Layout::ColMajor => {
                for axis in 1..rank {
                    strides[axis] = strides[axis - 1] * self.axes[axis - 1].extent;
                }
            }
            _ => {
                for axis in (1..rank).rev() {
                    strides[axis - 1] = strides[axis] * self.axes[axis].extent;
                }
            }
        }
        strides
    }
}

fn axis_of(dimension: &Dimension) -> Result<GridAxis> {
    let Some(Range { low, high }) = &dimension.domain else {
        return Err(Error::unsupported("a dense dimension without a domain"));
    };
    let (Some(low), Some(high)) = (bits(low), bits(high)) else {
        return Err(Error::unsupported("a dense dimension that is not of integers"));
    };
    let size = high
        .wrapping_sub(low)
        .checked_add(1)
        .ok_or_else(|| Error::unsupported("a dense dimension of 2^64 positions"))?;
    let extent = dimension.extent_length().unwrap_or(size);
    if extent == 0 {
        return Err(Error::damaged("a tile extent of 0"));
    }
    Ok(GridAxis { low, size, extent })
}

#[cfg(test)]
impl Grid {
    /// Returns a grid of axes given as (size, extent).
    pub fn for_test(axes: &[(u64, u64)], tile_order: Layout, cell_order: Layout) -> Self {
        let axes = axes.iter().map(|&(size, extent)| GridAxis { low: 0, size, extent }).collect();
        Grid { axes, tile_order, cell_order }
    }
}
