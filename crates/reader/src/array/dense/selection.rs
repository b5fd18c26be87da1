//! The cells of a dense array that a file shows: a list of position ranges per axis.
//!
//! A *position* is the number of a cell along an axis, counted from the low end of the domain. An *index* is the number
//! of a selected position, so the shape of a file is the number of indices per axis.

use smallvec::{SmallVec, smallvec};
use tilefs_base::error::{Error, Result};

/// An entry for each axis. Planning makes several of these lists for each tile, and small reads are mostly planning; so
/// the lists of up to four axes need no allocation.
pub type PerAxis<T> = SmallVec<[T; 4]>;

/// `count` positions from `first`, each `step` after the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AxisRange {
    /// The first selected position.
    pub first: u64,
    /// The distance of selected positions; negative for a descending order.
    pub step: i64,
    /// The number of selected positions.
    pub count: u64,
}

/// The selected positions of one axis: ranges one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AxisSelection {
    ranges: Vec<AxisRange>,
    /// The index of the first position of each range.
    starts: Vec<u64>,
    length: u64,
}

impl AxisSelection {
    /// Selects `count` positions from `first`.
    pub fn contiguous(first: u64, count: u64) -> Self {
        AxisSelection { ranges: vec![AxisRange { first, step: 1, count }], starts: vec![0], length: count }
    }

    /// Selects ranges one after the other; empty ranges are dropped.
    ///
    /// # Errors
    /// [`Error::Usage`] if a step is zero, if a range exceeds the axis of `size` positions, or if the ranges together
    /// have more than 2^64 - 1 positions.
    pub fn new(ranges: impl IntoIterator<Item = AxisRange>, size: u64) -> Result<Self> {
        let mut selection = AxisSelection { ranges: Vec::new(), starts: Vec::new(), length: 0 };
        for range in ranges {
            if range.count == 0 {
                continue;
            }
            if range.step == 0 {
                return Err(Error::usage("a step of 0 selects nothing"));
            }
            let last = i128::from(range.first) + i128::from(range.step) * i128::from(range.count - 1);
            if range.first >= size || last < 0 || last >= i128::from(size) {
                return Err(Error::usage("the selection leaves the domain"));
            }
            selection.starts.push(selection.length);
            selection.ranges.push(range);
            selection.length = selection
                .length
                .checked_add(range.count)
                .ok_or_else(|| Error::usage("the selection has more than 2^64 positions"))?;
        }
        Ok(selection)
    }

    /// Selects single positions, in ascending order, and joins positions at equal distances into ranges.
    ///
    /// # Errors
    /// As for [`AxisSelection::new`].
    pub fn of_positions(positions: impl IntoIterator<Item = u64>, size: u64) -> Result<Self> {
        let mut ranges: Vec<AxisRange> = Vec::new();
        for position in positions {
            if let Some(last) = ranges.last_mut()
                && let Some(distance) = position.checked_sub(last.first)
            {
                let step = if last.count == 1 { distance } else { last.step as u64 };
                if step > 0 && step.checked_mul(last.count) == Some(distance) {
                    (last.step, last.count) = (step as i64, last.count + 1);
                    continue;
                }
            }
            ranges.push(AxisRange { first: position, step: 1, count: 1 });
        }
        AxisSelection::new(ranges, size)
    }

    /// Returns the number of selected positions.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Returns whether nothing is selected.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the ranges in order.
    pub fn ranges(&self) -> &[AxisRange] {
        &self.ranges
    }

    /// Returns the position of an index below [`AxisSelection::len`].
    pub fn position(&self, index: u64) -> Option<u64> {
        self.runs(index, 1).next().map(|run| run.first)
    }

    /// Returns the positions of `count` indices from `index`, as a selection.
    pub fn part(&self, index: u64, count: u64) -> Self {
        let mut part = AxisSelection { ranges: Vec::new(), starts: Vec::new(), length: 0 };
        for range in self.runs(index, count) {
            part.starts.push(part.length);
            part.length += range.count;
            part.ranges.push(range);
        }
        part
    }

    /// Returns the positions of the indices that `indices` selects, which may go backwards.
    ///
    /// # Errors
    /// If there is no such index.
    pub fn select(&self, indices: &AxisSelection) -> Result<Self> {
        let past = || Error::internal("an index past the end of a selection");
        let mut selected = AxisSelection { ranges: Vec::new(), starts: Vec::new(), length: 0 };
        for range in indices.ranges() {
            let (mut index, mut left) = (range.first, range.count);
            let stride = range.step.unsigned_abs().max(1);
            while left > 0 {
                let own = self.runs(index, 1).next().ok_or_else(past)?;
                let number = self.starts.partition_point(|&start| start <= index).saturating_sub(1);
                let (start, whole) = self.starts.get(number).zip(self.ranges.get(number)).ok_or_else(past)?;
                let room = if range.step > 0 { start + (whole.count - 1) - index } else { index - start };
                let count = left.min(room / stride + 1);
                selected.starts.push(selected.length);
                selected.length += count;
                selected.ranges.push(AxisRange { first: own.first, step: own.step.wrapping_mul(range.step), count });
                index = index.wrapping_add((range.step as u64).wrapping_mul(count));
                left -= count;
            }
        }
        Ok(selected)
    }

    /// Returns the positions of `count` indices from `index`, as ranges in order.
    pub fn runs(&self, index: u64, count: u64) -> impl Iterator<Item = AxisRange> + '_ {
        let start = self.starts.partition_point(|&start| start <= index).saturating_sub(1);
        let end = index.saturating_add(count);
        self.ranges.iter().zip(&self.starts).skip(start).map_while(move |(range, &range_start)| {
            if range_start >= end {
                return None;
            }
            let skip = index.saturating_sub(range_start);
            let take = range.count.min(end - range_start).checked_sub(skip).filter(|&take| take > 0)?;
            Some(AxisRange {
                first: range.first.wrapping_add((range.step as u64).wrapping_mul(skip)),
                step: range.step,
                count: take,
            })
        })
    }
}

/// The selected positions of every axis. The cells of a file are their product; the last axis varies fastest.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Selection {
    axes: Vec<AxisSelection>,
    cells: u64,
}

impl Selection {
    /// Selects the product of the positions along each axis.
    ///
    /// # Errors
    /// [`Error::Usage`] for more than 2^63 - 1 cells, which no file can have.
    pub fn new(axes: Vec<AxisSelection>) -> Result<Self> {
        let cells = if axes.iter().any(AxisSelection::is_empty) {
            Some(0)
        } else {
            axes.iter().try_fold(1u64, |cells, axis| cells.checked_mul(axis.len()))
        };
        match cells {
            Some(cells) if cells <= i64::MAX as u64 => Ok(Selection { axes, cells }),
            _ => Err(Error::usage("the selection has more cells than a file can have bytes")),
        }
    }

    /// Returns the selection along each axis.
    pub fn axes(&self) -> &[AxisSelection] {
        &self.axes
    }

    /// Returns the positions of a box of indices within the shape, as a selection.
    ///
    /// # Errors
    /// If the box has another number of axes than the selection.
    pub fn part(&self, cells: &IndexBox) -> Result<Self> {
        if cells.first.len() != self.axes.len() || cells.count.len() != self.axes.len() {
            return Err(Error::internal("a box with another number of axes"));
        }
        let axes = self.axes.iter().zip(cells.first.iter().zip(&cells.count));
        Selection::new(axes.map(|(axis, (&first, &count))| axis.part(first, count)).collect())
    }

    /// Returns the positions of the indices that another selection selects.
    ///
    /// # Errors
    /// If the other selection has another number of axes, or an index outside the shape.
    pub fn select(&self, indices: &Selection) -> Result<Self> {
        if indices.axes.len() != self.axes.len() {
            return Err(Error::internal("a selection with another number of axes"));
        }
        let axes = self.axes.iter().zip(&indices.axes).map(|(axis, indices)| axis.select(indices));
        Selection::new(axes.collect::<Result<_>>()?)
    }

    /// Returns the number of indices per axis.
    pub fn shape(&self) -> Vec<u64> {
        self.axes.iter().map(AxisSelection::len).collect()
    }

    /// Returns the product of the shape.
    pub fn cells(&self) -> u64 {
        self.cells
    }
}

/// A box of indices: first index and count per axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexBox {
    /// The first index along each axis.
    pub first: Vec<u64>,
    /// The number of indices along each axis.
    pub count: Vec<u64>,
}

/// Divides `count` consecutive cells of a row-major file, from cell `first` on, into boxes of indices, in file order.
/// There are at most `2 * rank - 1` of them.
pub(crate) fn boxes_of_run(shape: &[u64], first: u64, count: u64) -> Vec<IndexBox> {
    let rank = shape.len();
    // cells[d] is the number of file cells per step along axis d.
    let mut cells: PerAxis<u64> = smallvec![1; rank];
    for axis in (1..rank).rev() {
        cells[axis - 1] = cells[axis].saturating_mul(shape[axis]);
    }
    let mut boxes = Vec::new();
    let (mut cell, mut left) = (first, count);
    while left > 0 {
        let Some(axis) = (0..rank).find(|&axis| cell.is_multiple_of(cells[axis]) && cells[axis] <= left) else {
            break;
        };
        let index: Vec<u64> = (0..rank).map(|axis| cell / cells[axis] % shape[axis].max(1)).collect();
        let steps = (left / cells[axis]).min(shape[axis] - index[axis]);
        if steps == 0 {
            break;
        }
        let mut size: Vec<u64> = vec![1; rank];
        size[axis] = steps;
        size[axis + 1..].copy_from_slice(&shape[axis + 1..]);
        boxes.push(IndexBox { first: index, count: size });
        cell += steps * cells[axis];
        left -= steps * cells[axis];
    }
    boxes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_part_selects_the_positions_of_its_indices() {
        let ranges = [AxisRange { first: 3, step: -2, count: 2 }, AxisRange { first: 8, step: 1, count: 3 }];
        let axis = AxisSelection::new(ranges, 11).unwrap();
        let positions = |axis: &AxisSelection| (0..axis.len()).map(|n| axis.position(n).unwrap()).collect::<Vec<_>>();
        let all = positions(&axis);
        for first in 0..=all.len() {
            for end in first..=all.len() {
                let part = axis.part(first as u64, (end - first) as u64);
                assert_eq!(positions(&part), all[first..end], "{first}..{end}");
            }
        }
        let selection = Selection::new(vec![axis, AxisSelection::contiguous(5, 9)]).unwrap();
        let part = selection.part(&IndexBox { first: vec![1, 2], count: vec![2, 3] }).unwrap();
        assert_eq!((part.shape(), part.axes()[1].position(0)), (vec![2, 3], Some(7)));
        assert!(selection.part(&IndexBox { first: vec![1], count: vec![2] }).is_err());
    }

    #[test]
    fn runs_follow_the_ranges() {
        let ranges = [
            AxisRange { first: 5, step: 1, count: 3 },
            AxisRange { first: 9, step: -3, count: 4 },
            AxisRange { first: 0, step: 4, count: 0 },
            AxisRange { first: 2, step: 2, count: 2 },
        ];
        let selection = AxisSelection::new(ranges, 10).unwrap();
        let all: Vec<u64> = (0..selection.len()).map(|index| selection.position(index).unwrap()).collect();
        assert_eq!(all, [5, 6, 7, 9, 6, 3, 0, 2, 4]);
        let runs: Vec<AxisRange> = selection.runs(2, 4).collect();
        assert_eq!(runs, [AxisRange { first: 7, step: 1, count: 1 }, AxisRange { first: 9, step: -3, count: 3 }]);
        assert_eq!(selection.position(9), None);
    }

    #[test]
    fn positions_at_equal_distances_are_ranges() {
        let of = |positions: &[u64]| AxisSelection::of_positions(positions.iter().copied(), 100).unwrap();
        let range = |first, step, count| AxisRange { first, step, count };
        assert_eq!(of(&[0, 2, 4, 5, 7, 9]).ranges(), [range(0, 2, 3), range(5, 2, 3)]);
        assert_eq!(of(&[7]).ranges(), [range(7, 1, 1)]);
        assert_eq!(of(&[3, 3, 90]).ranges(), [range(3, 1, 1), range(3, 87, 2)]);
        assert!(of(&[]).is_empty());
        assert!(AxisSelection::of_positions([5, 100], 100).is_err());
    }

    #[test]
    fn ranges_outside_the_axis_are_refused() {
        assert!(AxisSelection::new([AxisRange { first: 5, step: 1, count: 6 }], 10).is_err());
        assert!(AxisSelection::new([AxisRange { first: 5, step: -2, count: 4 }], 10).is_err());
        assert!(AxisSelection::new([AxisRange { first: 5, step: 0, count: 4 }], 10).is_err());
        assert!(AxisSelection::new([AxisRange { first: u64::MAX - 1, step: 1, count: 1 }], u64::MAX).is_ok());
    }

    proptest! {
        #[test]
        fn selected_indices_have_their_positions(
            own in prop::collection::vec((0u64..100, prop_oneof![-9i64..0, 1i64..9], 1u64..9), 1..5),
            chosen in prop::collection::vec((0u64..40, prop_oneof![-9i64..0, 1i64..9], 1u64..9), 0..5),
        ) {
            let fitting = |ranges: Vec<(u64, i64, u64)>, size: u64| {
                let range = move |(first, step, count): (u64, i64, u64)| {
                    let first = first.min(size - 1);
                    let room = if step > 0 { size - 1 - first } else { first };
                    AxisRange { first, step, count: count.min(room / step.unsigned_abs() + 1) }
                };
                AxisSelection::new(ranges.into_iter().map(range), size).unwrap()
            };
            let all = |axis: &AxisSelection| (0..axis.len()).map(|n| axis.position(n).unwrap()).collect::<Vec<_>>();
            let own = fitting(own, 100);
            let chosen = fitting(chosen, own.len());
            let expected: Vec<u64> = all(&chosen).into_iter().map(|index| own.position(index).unwrap()).collect();
            prop_assert_eq!(all(&own.select(&chosen).unwrap()), expected);
            prop_assert!(own.select(&AxisSelection::contiguous(own.len(), 1)).is_err());
        }

        #[test]
        fn boxes_cover_the_run_in_order(shape in prop::collection::vec(1u64..5, 1..5), a in 0u64..700, b in 0u64..700) {
            let total: u64 = shape.iter().product();
            let (first, last) = (a.min(b) % (total + 1), a.max(b) % (total + 1));
            prop_assume!(first <= last);
            let boxes = boxes_of_run(&shape, first, last - first);
            prop_assert!(boxes.len() <= 2 * shape.len());
            let mut cells = Vec::new();
            for one in boxes {
                let size: u64 = one.count.iter().product();
                for number in 0..size {
                    let (mut rest, mut linear, mut stride) = (number, 0, 1);
                    for axis in (0..shape.len()).rev() {
                        linear += (one.first[axis] + rest % one.count[axis]) * stride;
                        rest /= one.count[axis];
                        stride *= shape[axis];
                    }
                    cells.push(linear);
                }
            }
            prop_assert_eq!(cells, (first..last).collect::<Vec<u64>>());
        }
    }
}
