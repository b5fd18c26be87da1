//! The cells of a file within the box that contains all fragments. All other cells have the fill value, and there may
//! be very many of them, so work per cell is only done for cells inside.

use tilefs_base::error::Result;

use super::grid::PositionBox;
use super::selection::{AxisSelection, Selection};

/// `count` indices along one axis from `first`, after `before` other indices that are inside.
#[derive(Debug, Clone, Copy)]
struct Interval {
    first: u64,
    count: u64,
    before: u64,
}

/// The cells of a selection that lie in a box, as another selection. Inner and outer cells are both numbered in file
/// order, so inner cells have the same order as outer ones.
#[derive(Debug)]
pub struct Embedding {
    inner: Selection,
    inner_shape: Vec<u64>,
    outer_shape: Vec<u64>,
    axes: Vec<Vec<Interval>>,
}

impl Embedding {
    /// Returns the part of `outer` inside a box of positions; it is empty if there is no box.
    ///
    /// # Errors
    /// None that a valid selection can cause.
    pub fn new(outer: &Selection, inside: Option<&PositionBox>) -> Result<Self> {
        let mut axes = Vec::new();
        let mut selections = Vec::new();
        for (number, axis) in outer.axes().iter().enumerate() {
            let ends = inside.map(|inside| (inside.low[number], inside.high[number]));
            let intervals = intervals_inside(axis, ends);
            let ranges = intervals.iter().flat_map(|interval| axis.runs(interval.first, interval.count));
            selections.push(AxisSelection::new(ranges, u64::MAX)?);
            axes.push(intervals);
        }
        let inner = Selection::new(selections)?;
        Ok(Embedding { inner_shape: inner.shape(), outer_shape: outer.shape(), inner, axes })
    }

    /// Returns the cells inside.
    pub fn inner(&self) -> &Selection {
        &self.inner
    }

    /// Returns the number in the file of an inner cell, and how many inner cells, from this one on, are consecutive in
    /// the file. For the number of inner cells itself, returns the number of file cells.
    pub(crate) fn outer_cell(&self, inner: u64) -> (u64, u64) {
        if inner >= self.inner.cells() {
            return (self.outer_shape.iter().product(), 0);
        }
        let (mut rest, mut cell, mut stride, mut run) = (inner, 0, 1, 0);
        for axis in (0..self.axes.len()).rev() {
            let index = rest % self.inner_shape[axis];
            rest /= self.inner_shape[axis];
            let at = self.axes[axis].partition_point(|interval| interval.before <= index).saturating_sub(1);
            let interval = self.axes[axis][at];
            if axis + 1 == self.axes.len() {
                run = interval.count - (index - interval.before);
            }
            cell += (interval.first + index - interval.before) * stride;
            stride *= self.outer_shape[axis];
        }
        (cell, run)
    }

    /// Returns how many inner cells come before a file cell.
    pub(crate) fn inner_before(&self, outer: u64) -> u64 {
        let cells: u64 = self.outer_shape.iter().product();
        if outer >= cells {
            return self.inner.cells();
        }
        let (mut stride, mut inner_stride, mut before) = (cells, self.inner.cells(), 0);
        let mut rest = outer;
        for (axis, intervals) in self.axes.iter().enumerate() {
            if self.inner_shape[axis] == 0 {
                return 0;
            }
            stride /= self.outer_shape[axis];
            inner_stride /= self.inner_shape[axis];
            let index = rest / stride;
            rest %= stride;
            let at = intervals.partition_point(|interval| interval.first <= index);
            let Some(interval) = at.checked_sub(1).map(|at| intervals[at]) else { return before };
            let into = index - interval.first;
            before += (interval.before + into.min(interval.count)) * inner_stride;
            if into >= interval.count {
                return before;
            }
        }
        before
    }
}

/// Returns the indices of an axis whose positions lie within `ends`, both included.
fn intervals_inside(axis: &AxisSelection, ends: Option<(u64, u64)>) -> Vec<Interval> {
    let Some((low, high)) = ends else { return Vec::new() };
    let mut intervals: Vec<Interval> = Vec::new();
    let (mut index, mut before) = (0, 0);
    for range in axis.ranges() {
        let stride = range.step.unsigned_abs();
        let steps = if range.step > 0 {
            let from = low.saturating_sub(range.first).div_ceil(stride);
            high.checked_sub(range.first).map(|distance| (from, distance / stride))
        } else {
            let from = range.first.saturating_sub(high).div_ceil(stride);
            range.first.checked_sub(low).map(|distance| (from, distance / stride))
        };
        if let Some((from, to)) =
            steps.map(|(from, to)| (from, to.min(range.count - 1))).filter(|(from, to)| from <= to)
        {
            let (first, count) = (index + from, to - from + 1);
            match intervals.last_mut() {
                Some(last) if last.first + last.count == first => last.count += count,
                _ => intervals.push(Interval { first, count, before }),
            }
            before += count;
        }
        index += range.count;
    }
    intervals
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::selection::AxisRange;
    use super::*;

    proptest! {
        #[test]
        fn inner_cells_are_the_cells_in_the_box(
            axes in prop::collection::vec(
                (prop::collection::vec((0u64..12, -3i64..4, 1u64..5), 1..4), 0u64..12, 0u64..12), 1..4),
        ) {
            let selections = axes.iter().map(|(ranges, _, _)| {
                let ranges = ranges.iter().map(|&(first, step, count)| {
                    let step = if step == 0 { 1 } else { step };
                    let room = if step > 0 { 11 - first } else { first };
                    AxisRange { first, step, count: count.min(room / step.unsigned_abs() + 1) }
                });
                AxisSelection::new(ranges, 12).unwrap()
            }).collect();
            let outer = Selection::new(selections).unwrap();
            let inside = PositionBox {
                low: axes.iter().map(|axis| axis.1.min(axis.2)).collect(),
                high: axes.iter().map(|axis| axis.1.max(axis.2)).collect(),
            };
            let embedding = Embedding::new(&outer, Some(&inside)).unwrap();
            let shape = outer.shape();
            let mut found = 0;
            for cell in 0..outer.cells() {
                prop_assert_eq!(embedding.inner_before(cell), found);
                let mut rest = cell;
                let mut is_inside = true;
                for axis in (0..shape.len()).rev() {
                    let position = outer.axes()[axis].position(rest % shape[axis]).unwrap();
                    rest /= shape[axis];
                    is_inside &= (inside.low[axis]..=inside.high[axis]).contains(&position);
                }
                if is_inside {
                    let (outer_cell, run) = embedding.outer_cell(found);
                    prop_assert_eq!(outer_cell, cell);
                    prop_assert!(run > 0);
                    if run > 1 {
                        prop_assert_eq!(embedding.outer_cell(found + 1).0, cell + 1);
                    }
                    found += 1;
                }
            }
            prop_assert_eq!(found, embedding.inner().cells());
            prop_assert_eq!(embedding.inner_before(outer.cells()), found);
            prop_assert_eq!(embedding.outer_cell(found), (outer.cells(), 0));
        }
    }
}
