//! A choice of coordinates: for each dimension some ranges of them.

use super::axis::Axis;
use super::key::AxisColumn;
use crate::error::{Error, Result};
use crate::format::scalar::{Range, Scalar};

/// Coordinates of one dimension from low to high, both included.
#[derive(Debug, Clone, PartialEq)]
pub struct CoordinateRange {
    pub range: Range,
    /// Of integers, dates and times: only every so many-th, counted from the low end. At least 1.
    pub step: u64,
}

/// The coordinates wanted along each dimension of an array. A cell is chosen if all its coordinates are.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    axes: Vec<AxisSelection>,
}

#[derive(Debug, Clone, PartialEq)]
enum AxisSelection {
    All,
    /// By position, in the order of their low ends.
    Positions(Vec<Stepped>),
    Texts(Vec<(Vec<u8>, Vec<u8>)>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stepped {
    low: u64,
    high: u64,
    step: u64,
    /// The highest `high` up to and including this one.
    reach: u64,
}

/// How the cells of a box relate to a selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    None,
    Some,
    All,
}

impl Selection {
    /// For each dimension some ranges, `None` for all of it. Ranges may overlap, and reach past the domain.
    ///
    /// # Errors
    /// [`Error::Usage`] for ranges of another type than the dimension, a step of 0, or one other than 1 on
    /// dimensions that are no integers, dates or times.
    pub fn new(axes: &[Axis], wanted: &[Option<Vec<CoordinateRange>>]) -> Result<Self> {
        if axes.len() != wanted.len() {
            return Err(Error::usage(format!("{} ranges for {} dimensions", wanted.len(), axes.len())));
        }
        let axes = axes.iter().zip(wanted).map(|(axis, ranges)| match ranges {
            None => Ok(AxisSelection::All),
            Some(ranges) if axis.is_text() => texts(axis, ranges),
            Some(ranges) => positions(axis, ranges),
        });
        Ok(Selection { axes: axes.collect::<Result<_>>()? })
    }

    /// Whether the coordinates along a dimension decide anything.
    pub fn restricts(&self, dimension: usize) -> bool {
        self.axes[dimension] != AxisSelection::All
    }

    /// Clears in `chosen` the cells that are not, by their coordinates along one dimension.
    pub fn apply(&self, dimension: usize, column: &AxisColumn, chosen: &mut [bool]) {
        match &self.axes[dimension] {
            AxisSelection::All => {}
            AxisSelection::Positions(ranges) => {
                for (chosen, position) in chosen.iter_mut().zip(&column.positions) {
                    *chosen &= holds(ranges, *position);
                }
            }
            AxisSelection::Texts(ranges) => {
                for (cell, chosen) in chosen.iter_mut().enumerate() {
                    let text = column.text(cell);
                    *chosen &= ranges.iter().any(|(low, high)| low.as_slice() <= text && text <= high.as_slice());
                }
            }
        }
    }

    /// Which of the cells in a box are chosen, as far as the box tells.
    pub fn share(&self, axes: &[Axis], ranges: impl Iterator<Item = Range>) -> Share {
        let mut share = Share::All;
        for ((selection, axis), range) in self.axes.iter().zip(axes).zip(ranges) {
            match selection.share(axis, &range) {
                Share::None => return Share::None,
                Share::Some => share = Share::Some,
                Share::All => {}
            }
        }
        share
    }
}

impl AxisSelection {
    fn share(&self, axis: &Axis, range: &Range) -> Share {
        let range = axis.possible(range);
        match (self, &range.low, &range.high) {
            (AxisSelection::All, ..) => Share::All,
            (AxisSelection::Texts(ranges), Scalar::Text(low), Scalar::Text(high)) => {
                if ranges.iter().any(|(from, to)| from <= low && high <= to) {
                    Share::All
                } else if ranges.iter().any(|(from, to)| from <= high && low <= to) {
                    Share::Some
                } else {
                    Share::None
                }
            }
            (AxisSelection::Positions(ranges), low, high) => {
                let (Some(low), Some(high)) = (axis.position(low), axis.position(high)) else { return Share::Some };
                let covers = |range: &Stepped| range.step == 1 && range.low <= low && high <= range.high;
                if ranges.iter().any(covers) {
                    Share::All
                } else if ranges.iter().any(|range| range.touches(low, high)) {
                    Share::Some
                } else {
                    Share::None
                }
            }
            _ => Share::Some,
        }
    }
}

impl Stepped {
    fn holds(&self, position: u64) -> bool {
        (self.low..=self.high).contains(&position) && (position - self.low).is_multiple_of(self.step)
    }

    /// Whether one of its positions lies between two.
    fn touches(&self, low: u64, high: u64) -> bool {
        let first = match low.checked_sub(self.low) {
            None => Some(self.low),
            Some(past) => past.div_ceil(self.step).checked_mul(self.step).and_then(|past| past.checked_add(self.low)),
        };
        first.is_some_and(|first| first <= high.min(self.high))
    }
}

fn holds(ranges: &[Stepped], position: u64) -> bool {
    let end = ranges.partition_point(|range| range.low <= position);
    let candidates = ranges[..end].iter().rev().take_while(|range| range.reach >= position);
    candidates.into_iter().any(|range| range.holds(position))
}

fn texts(axis: &Axis, ranges: &[CoordinateRange]) -> Result<AxisSelection> {
    let ranges = ranges.iter().map(|range| match (&range.range.low, &range.range.high) {
        (Scalar::Text(low), Scalar::Text(high)) if range.step == 1 => Ok((low.clone(), high.clone())),
        _ => Err(wrong(axis, range)),
    });
    Ok(AxisSelection::Texts(ranges.collect::<Result<_>>()?))
}

fn positions(axis: &Axis, ranges: &[CoordinateRange]) -> Result<AxisSelection> {
    let mut stepped = Vec::new();
    for wanted in ranges {
        let Some((low, high)) = axis.clip(&wanted.range)? else { continue };
        // Steps count from the range's own low end, which may lie below the domain.
        let low = match axis.is_float() {
            _ if wanted.step == 1 => low,
            false if wanted.step > 1 => match axis.first_step(&wanted.range.low, wanted.step) {
                Some(first) if first <= high => first,
                _ => continue,
            },
            _ => return Err(wrong(axis, wanted)),
        };
        stepped.push(Stepped { low, high, step: wanted.step, reach: 0 });
    }
    stepped.sort_by_key(|range| range.low);
    let mut reach = 0;
    for range in &mut stepped {
        reach = range.high.max(reach);
        range.reach = reach;
    }
    Ok(AxisSelection::Positions(stepped))
}

fn wrong(axis: &Axis, range: &CoordinateRange) -> Error {
    let CoordinateRange { range, step } = range;
    Error::usage(format!("no range of {}: {} to {} by {step}", axis.name, range.low, range.high))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::datatype::Datatype;
    use crate::format::pipeline::Pipeline;
    use crate::format::schema::{CellValNum, Dimension};

    fn axis() -> Axis {
        let dimension = Dimension {
            name: "d".to_owned(),
            datatype: Datatype::Int32,
            cell_count: CellValNum::Fixed(1),
            filters: Pipeline::default(),
            domain: Some(Range { low: Scalar::Signed(-5), high: Scalar::Signed(20) }),
            extent: None,
        };
        Axis::new(&dimension).unwrap()
    }

    fn range(low: i64, high: i64) -> Range {
        Range { low: Scalar::Signed(low), high: Scalar::Signed(high) }
    }

    proptest! {
        #[test]
        fn a_coordinate_is_chosen_if_a_range_steps_on_it(
            ranges in prop::collection::vec((-15i64..30, 0i64..20, 1u64..5), 0..4),
            (box_low, box_length) in (-5i64..20, 0i64..6),
        ) {
            let axes = [axis()];
            let wanted = ranges.iter().map(|(low, length, step)| CoordinateRange { range: range(*low, low + length), step: *step });
            let selection = Selection::new(&axes, &[Some(wanted.collect())]).unwrap();
            let expected = |value: i64| {
                ranges.iter().any(|&(low, length, step)| (low..=low + length).contains(&value) && (value - low) % step as i64 == 0)
            };
            let values: Vec<i64> = (-5..=20).collect();
            let column = AxisColumn { positions: (0..26).collect(), ..AxisColumn::default() };
            let mut chosen = vec![true; 26];
            selection.apply(0, &column, &mut chosen);
            prop_assert_eq!(&chosen, &values.iter().map(|value| expected(*value)).collect::<Vec<_>>());
            let box_high = (box_low + box_length).min(20);
            let inside: Vec<bool> = (box_low..=box_high).map(expected).collect();
            match selection.share(&axes, [range(box_low, box_high)].into_iter()) {
                Share::None => prop_assert!(!inside.contains(&true)),
                Share::All => prop_assert!(!inside.contains(&false)),
                Share::Some => prop_assert!(inside.contains(&true)),
            }
        }
    }

    #[test]
    fn a_step_of_nothing_is_refused() {
        let wanted = CoordinateRange { range: range(0, 3), step: 0 };
        assert!(Selection::new(&[axis()], &[Some(vec![wanted])]).is_err());
        assert!(Selection::new(&[axis()], &[]).is_err());
    }
}
