//! A selection of coordinates: a list of ranges for each dimension.

use tilefs_base::error::{Error, Result};
use tilefs_format::scalar::{Range, Scalar};

use crate::array::order::axis::KeyAxis;
use crate::array::order::key::AxisColumn;

/// Coordinates of one dimension from low to high, both included.
#[derive(Debug, Clone, PartialEq)]
pub struct CoordinateRange {
    /// `None` for no limit, which is only valid for strings.
    pub low: Option<Scalar>,
    /// The greatest coordinate, which is part of the range; `None` for no limit.
    pub high: Option<Scalar>,
    /// For integers, dates and times: the range holds every `step`-th coordinate from the low end on. At least 1.
    pub step: u64,
}

/// The selected coordinates along each dimension of an array. A cell is selected if all its coordinates are.
#[derive(Debug, Clone, PartialEq)]
pub struct CoordinateSelection {
    axes: Vec<AxisRanges>,
}

#[derive(Debug, Clone, PartialEq)]
enum AxisRanges {
    All,
    /// Ranges of positions, sorted by their low ends.
    Positions(Vec<StridedRange>),
    /// Ascending, disjoint ranges.
    Texts(Vec<TextRange>),
}

#[derive(Debug, Clone, PartialEq)]
struct TextRange {
    low: Vec<u8>,
    /// `None` for no limit.
    high: Option<Vec<u8>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StridedRange {
    low: u64,
    high: u64,
    step: u64,
    /// The highest `high` of this range and all ranges before it.
    reach: u64,
}

/// How many of the cells in a box are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    None,
    Some,
    All,
}

impl CoordinateSelection {
    /// Builds a selection from a list of ranges for each dimension; `None` selects all of a dimension. Ranges may
    /// overlap, and reach past the domain.
    ///
    /// # Errors
    /// [`Error::Usage`] for ranges of another type than the dimension, a step of 0, or a step other than 1 on
    /// dimensions that are not integers, dates or times.
    pub fn new(axes: &[KeyAxis], wanted: &[Option<Vec<CoordinateRange>>]) -> Result<Self> {
        if axes.len() != wanted.len() {
            return Err(Error::usage(format!("{} ranges for {} dimensions", wanted.len(), axes.len())));
        }
        let axes = axes.iter().zip(wanted).map(|(axis, ranges)| match ranges {
            None => Ok(AxisRanges::All),
            Some(ranges) if axis.is_text() => texts(axis, ranges),
            Some(ranges) => positions(axis, ranges),
        });
        Ok(CoordinateSelection { axes: axes.collect::<Result<_>>()? })
    }

    /// Returns whether the selection limits the coordinates along a dimension.
    pub fn restricts(&self, dimension: usize) -> bool {
        self.axes[dimension] != AxisRanges::All
    }

    /// Returns the selected position along a dimension, if there is exactly one.
    pub fn only_position(&self, dimension: usize) -> Option<u64> {
        match &self.axes[dimension] {
            AxisRanges::Positions(ranges) => match ranges.as_slice() {
                [range] if range.low == range.high => Some(range.low),
                _ => None,
            },
            AxisRanges::All | AxisRanges::Texts(_) => None,
        }
    }

    /// Clears in `chosen` the cells that are not selected by their coordinates along one dimension.
    pub fn apply(&self, dimension: usize, column: &AxisColumn, chosen: &mut [bool]) {
        match &self.axes[dimension] {
            AxisRanges::All => {}
            AxisRanges::Positions(ranges) => {
                for (chosen, position) in chosen.iter_mut().zip(&column.positions) {
                    *chosen &= holds(ranges, *position);
                }
            }
            AxisRanges::Texts(ranges) => {
                for (cell, chosen) in chosen.iter_mut().enumerate() {
                    *chosen &= TextRange::of(ranges, column.text(cell)).is_some();
                }
            }
        }
    }

    /// Finds the dimensions along which the cells of a tile must be tested, because the tile's box does not show that
    /// all cells are selected. Returns `false` if the box shows that no cell is selected.
    pub fn find_tested(&self, axes: &[KeyAxis], ranges: &[Range], tested: &mut Vec<usize>) -> bool {
        tested.clear();
        let mut is_surely_all = true;
        for (number, ((selection, axis), range)) in self.axes.iter().zip(axes).zip(ranges).enumerate() {
            let share = selection.share(axis, range);
            is_surely_all &= share == Share::All;
            // Writers that compare bytes as signed numbers may put other strings between the two bounds.
            if share == Share::Some || self.restricts(number) && axis.is_text() && range.low != range.high {
                tested.push(number);
            }
            if share == Share::None {
                return false;
            }
        }
        if is_surely_all {
            tested.clear();
        }
        true
    }

    /// Returns which of the cells in a box are selected, as far as the box determines it.
    pub fn share<'a>(&self, axes: &[KeyAxis], ranges: impl Iterator<Item = &'a Range>) -> Share {
        let mut share = Share::All;
        for ((selection, axis), range) in self.axes.iter().zip(axes).zip(ranges) {
            match selection.share(axis, range) {
                Share::None => return Share::None,
                Share::Some => share = Share::Some,
                Share::All => {}
            }
        }
        share
    }
}

impl AxisRanges {
    fn share(&self, axis: &KeyAxis, range: &Range) -> Share {
        let range = axis.possible(range);
        match (self, &range.low, &range.high) {
            (AxisRanges::All, ..) => Share::All,
            (AxisRanges::Texts(ranges), Scalar::Text(low), Scalar::Text(high)) => {
                // The last range that begins before the box ends.
                let begun = ranges.partition_point(|range| range.low <= *high);
                match ranges[..begun].last() {
                    _ if TextRange::of(ranges, low).is_some_and(|range| range.reaches(high)) => Share::All,
                    Some(last) if last.reaches(low) => Share::Some,
                    _ => Share::None,
                }
            }
            (AxisRanges::Positions(ranges), low, high) => {
                let (Some(low), Some(high)) = (axis.position(low), axis.position(high)) else { return Share::Some };
                let covers = |range: &StridedRange| range.step == 1 && high <= range.high;
                if reaching(ranges, low, high).any(covers) {
                    Share::All
                } else if reaching(ranges, high, low).any(|range| range.touches(low, high)) {
                    Share::Some
                } else {
                    Share::None
                }
            }
            _ => Share::Some,
        }
    }
}

impl StridedRange {
    fn holds(&self, position: u64) -> bool {
        (self.low..=self.high).contains(&position) && (position - self.low).is_multiple_of(self.step)
    }

    /// Returns whether one of its positions lies between two positions, both included.
    fn touches(&self, low: u64, high: u64) -> bool {
        let first = match low.checked_sub(self.low) {
            None => Some(self.low),
            Some(past) => past.div_ceil(self.step).checked_mul(self.step).and_then(|past| past.checked_add(self.low)),
        };
        first.is_some_and(|first| first <= high.min(self.high))
    }
}

fn holds(ranges: &[StridedRange], position: u64) -> bool {
    reaching(ranges, position, position).any(|range| range.holds(position))
}

/// Returns the ranges that begin at or before the position `last`, the last range first. Stops where no remaining range
/// reaches `least`.
fn reaching(ranges: &[StridedRange], last: u64, least: u64) -> impl Iterator<Item = &StridedRange> {
    let end = ranges.partition_point(|range| range.low <= last);
    ranges[..end].iter().rev().take_while(move |range| range.reach >= least)
}

impl TextRange {
    /// Returns whether a string is no greater than the range's high end.
    fn reaches(&self, text: &[u8]) -> bool {
        self.high.as_ref().is_none_or(|high| text <= high.as_slice())
    }

    /// Returns the range that holds a string.
    fn of<'a>(ranges: &'a [TextRange], text: &[u8]) -> Option<&'a TextRange> {
        let begun = ranges.partition_point(|range| range.low.as_slice() <= text);
        ranges[..begun].last().filter(|range| range.reaches(text))
    }
}

fn texts(axis: &KeyAxis, wanted: &[CoordinateRange]) -> Result<AxisRanges> {
    let end = |end: &Option<Scalar>, range| match end {
        None => Ok(None),
        Some(Scalar::Text(text)) => Ok(Some(text.clone())),
        Some(_) => Err(wrong(axis, range)),
    };
    let mut ranges = Vec::with_capacity(wanted.len());
    for range in wanted {
        if range.step != 1 {
            return Err(wrong(axis, range));
        }
        let found = TextRange { low: end(&range.low, range)?.unwrap_or_default(), high: end(&range.high, range)? };
        if found.reaches(&found.low) {
            ranges.push(found);
        }
    }
    ranges.sort_by(|a, b| a.low.cmp(&b.low));
    ranges.dedup_by(|next, last| {
        let meet = last.reaches(&next.low);
        if meet && next.high.as_ref().is_none_or(|high| !last.reaches(high)) {
            last.high = next.high.take();
        }
        meet
    });
    Ok(AxisRanges::Texts(ranges))
}

fn positions(axis: &KeyAxis, ranges: &[CoordinateRange]) -> Result<AxisRanges> {
    let mut strided = Vec::new();
    for wanted in ranges {
        let (Some(low), Some(high)) = (&wanted.low, &wanted.high) else { return Err(wrong(axis, wanted)) };
        let range = Range { low: low.clone(), high: high.clone() };
        let Some((low, high)) = axis.clip(&range)? else { continue };
        // Steps count from the range's own low end, which may lie below the domain.
        let low = match axis.is_float() {
            _ if wanted.step == 1 => low,
            false if wanted.step > 1 => match axis.first_step(&range.low, wanted.step) {
                Some(first) if first <= high => first,
                _ => continue,
            },
            _ => return Err(wrong(axis, wanted)),
        };
        strided.push(StridedRange { low, high, step: wanted.step, reach: 0 });
    }
    if strided.iter().any(|range| range.step == 1 && range.low == 0 && range.high == axis.last()) {
        return Ok(AxisRanges::All);
    }
    strided.sort_by_key(|range| range.low);
    let mut reach = 0;
    for range in &mut strided {
        reach = range.high.max(reach);
        range.reach = reach;
    }
    Ok(AxisRanges::Positions(strided))
}

fn wrong(axis: &KeyAxis, range: &CoordinateRange) -> Error {
    let end = |end: &Option<Scalar>| end.as_ref().map_or_else(|| "any".to_owned(), Scalar::to_string);
    let (low, high) = (end(&range.low), end(&range.high));
    Error::usage(format!("no range of {}: {low} to {high} by {}", axis.name, range.step))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use tilefs_format::datatype::Datatype;
    use tilefs_format::pipeline::{Filter, Pipeline};
    use tilefs_format::schema::{CellValNum, Dimension};

    use super::*;

    fn dimension() -> Dimension {
        Dimension {
            name: "d".to_owned(),
            datatype: Datatype::Int32,
            cell_count: CellValNum::Fixed(1),
            filters: Pipeline::default(),
            domain: Some(Range { low: Scalar::Signed(-5), high: Scalar::Signed(20) }),
            extent: None,
        }
    }

    fn axis() -> KeyAxis {
        KeyAxis::new(&dimension(), &Pipeline::default()).unwrap()
    }

    fn wanted(low: i64, high: i64, step: u64) -> CoordinateRange {
        CoordinateRange { low: Some(Scalar::Signed(low)), high: Some(Scalar::Signed(high)), step }
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
            let wanted = ranges.iter().map(|(low, length, step)| wanted(*low, low + length, *step));
            let selection = CoordinateSelection::new(&axes, &[Some(wanted.collect())]).unwrap();
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
            match selection.share(&axes, [range(box_low, box_high)].iter()) {
                Share::None => prop_assert!(!inside.contains(&true)),
                Share::All => prop_assert!(!inside.contains(&false)),
                Share::Some => prop_assert!(inside.contains(&true)),
            }
        }

        #[test]
        fn rounded_coordinates_are_selected_as_they_are_shown(
            written in prop::collection::vec(-0.4f64..=10.3, 1..20),
            (scale, byte_width) in prop::sample::select(vec![(1.0, 1u64), (0.25, 2), (-3.0, 4), (0.05, 1)]),
            ends in prop_oneof![(-2.0f64..12.0, -2.0f64..12.0), Just((-0.4, 5.0)), Just((5.0, 10.3)), Just((-0.4, 10.3))],
        ) {
            let (low, high) = (ends.0.min(ends.1), ends.0.max(ends.1));
            let filters = Pipeline {
                max_chunk_size: 65536,
                filters: vec![Filter::ScaleFloat { scale, offset: 0.0, byte_width }],
            };
            let float = |low, high| Range { low: Scalar::Float64(low), high: Scalar::Float64(high) };
            let dimension = Dimension { datatype: Datatype::Float64, domain: Some(float(-0.4, 10.3)), ..dimension() };
            let axes = [KeyAxis::new(&dimension, &filters).unwrap()];
            // Integers that do not fit in a byte lose their high bits.
            let stored = |value: f64| match byte_width {
                1 => f64::from((value / scale).round() as i64 as i8),
                _ => (value / scale).round(),
            };
            let shown: Vec<f64> = written.iter().map(|value| stored(*value) * scale).collect();
            let wanted = CoordinateRange { low: Some(Scalar::Float64(low)), high: Some(Scalar::Float64(high)), step: 1 };
            let selection = CoordinateSelection::new(&axes, &[Some(vec![wanted])]).unwrap();
            let mut column = AxisColumn::default();
            let bytes: Vec<u8> = shown.iter().flat_map(|value| value.to_le_bytes()).collect();
            axes[0].positions(&bytes, &mut column.positions).unwrap();
            let mut chosen = vec![true; shown.len()];
            selection.apply(0, &column, &mut chosen);
            let is_wanted = |value: &f64| (low <= -0.4 || low <= *value) && (high >= 10.3 || *value <= high);
            prop_assert_eq!(&chosen, &shown.iter().map(is_wanted).collect::<Vec<_>>());
            let least = written.iter().copied().fold(f64::INFINITY, f64::min);
            let most = written.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            match selection.share(&axes, [float(least, most)].iter()) {
                Share::None => prop_assert!(!chosen.contains(&true)),
                Share::All => prop_assert!(!chosen.contains(&false)),
                Share::Some => {}
            }
        }

        #[test]
        fn a_text_is_chosen_if_a_range_holds_it(
            ranges in prop::collection::vec((text(), prop::option::of(text())), 0..5),
            (low, high) in (text(), text()),
        ) {
            let (low, high) = (low.clone().min(high.clone()), high.max(low));
            let wanted = ranges.iter().map(|(low, high)| CoordinateRange {
                low: Some(Scalar::Text(low.clone())),
                high: high.clone().map(Scalar::Text),
                step: 1,
            });
            let axes = [KeyAxis::new(&Dimension { datatype: Datatype::StringAscii, cell_count: CellValNum::Variable, domain: None, ..dimension() }, &Pipeline::default()).unwrap()];
            let selection = CoordinateSelection::new(&axes, &[Some(wanted.collect())]).unwrap();
            let expected = |text: &Vec<u8>| ranges.iter().any(|(low, high)| low <= text && high.as_ref().is_none_or(|high| text <= high));
            let AxisRanges::Texts(texts) = &selection.axes[0] else { panic!("no texts") };
            prop_assert!(texts.windows(2).all(|two| !two[0].reaches(&two[1].low)));
            for text in all_texts() {
                prop_assert_eq!(TextRange::of(texts, &text).is_some(), expected(&text), "{:?}", text);
            }
            let inside: Vec<bool> = all_texts().iter().filter(|text| (&low..=&high).contains(text)).map(expected).collect();
            match selection.share(&axes, [Range { low: Scalar::Text(low), high: Scalar::Text(high) }].iter()) {
                Share::None => prop_assert!(!inside.contains(&true)),
                Share::All => prop_assert!(!inside.contains(&false)),
                // Between two strings there are longer ones.
                Share::Some => {}
            }
        }
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        prop::sample::select(all_texts())
    }

    /// Strings of up to two bytes.
    fn all_texts() -> Vec<Vec<u8>> {
        let one = || b"abc".iter().map(|&byte| vec![byte]);
        let two = || one().flat_map(move |first| one().map(move |second| [first.clone(), second].concat()));
        [Vec::new()].into_iter().chain(one()).chain(two()).collect()
    }

    #[test]
    fn the_whole_domain_restricts_nothing() {
        let restricts =
            |ranges: Vec<CoordinateRange>| CoordinateSelection::new(&[axis()], &[Some(ranges)]).unwrap().restricts(0);
        assert!(!restricts(vec![wanted(-5, 20, 1)]) && !restricts(vec![wanted(3, 4, 1), wanted(-9, 99, 1)]));
        assert!(restricts(vec![wanted(-4, 20, 1)]) && restricts(vec![wanted(-5, 20, 2)]) && restricts(Vec::new()));
    }

    #[test]
    fn a_step_of_nothing_is_refused() {
        assert!(CoordinateSelection::new(&[axis()], &[Some(vec![wanted(0, 3, 0)])]).is_err());
        let open = CoordinateRange { high: None, ..wanted(0, 3, 1) };
        assert!(CoordinateSelection::new(&[axis()], &[Some(vec![open])]).is_err());
        assert!(CoordinateSelection::new(&[axis()], &[]).is_err());
    }
}
