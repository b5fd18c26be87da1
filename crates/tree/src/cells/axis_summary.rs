//! The coordinates along an axis, in short.

use tilefs_format::datatype::Kind;
use tilefs_format::scalar::Scalar;
use tilefs_format::schema::Dimension;
use tilefs_reader::array::dense::AxisSelection;

/// The coordinates along one axis of the files.
#[derive(Debug, Clone, PartialEq)]
pub struct AxisSummary {
    pub length: u64,
    /// `None` if there is nothing along the axis.
    pub first: Option<Scalar>,
    pub last: Option<Scalar>,
    /// The difference between consecutive coordinates; `None` if it varies.
    pub step: Option<i64>,
}

impl AxisSummary {
    /// Returns the coordinates of an axis of a dense array.
    pub fn of(selection: &AxisSelection, dimension: &Dimension) -> Self {
        let coordinate = |index: u64| {
            let position = selection.position(index)?;
            let value = match dimension.domain.as_ref()?.low {
                Scalar::Signed(low) => Scalar::Signed(low.wrapping_add(position as i64)),
                Scalar::Unsigned(low) => Scalar::Unsigned(low.wrapping_add(position)),
                _ => return None,
            };
            Some(value)
        };
        let step = match selection.ranges() {
            [] => None,
            [one] => Some(one.step),
            _ => None,
        };
        let length = selection.len();
        let last = length.checked_sub(1).and_then(coordinate);
        debug_assert!(dimension.datatype.kind() != Kind::Bytes);
        AxisSummary { length, first: coordinate(0), last, step }
    }
}

#[cfg(test)]
mod tests {
    use tilefs_reader::array::dense::AxisRange;

    use super::*;
    use crate::texts::testing;

    #[test]
    fn axis_summary_has_its_ends() {
        let schema = testing::dense_schema();
        let of = |ranges: &[AxisRange]| {
            let axis = AxisSelection::new(ranges.iter().copied(), 100).unwrap();
            let axis = AxisSummary::of(&axis, &schema.dimensions[0]);
            (axis.length, axis.first, axis.last, axis.step)
        };
        let range = |first, step, count| AxisRange { first, step, count };
        let signed = |value| Some(Scalar::Signed(value));
        assert_eq!(of(&[range(3, -2, 2)]), (2, signed(-2), signed(-4), Some(-2)));
        assert_eq!(of(&[range(3, 1, 2), range(9, 1, 1)]), (3, signed(-2), signed(4), None));
        assert_eq!(of(&[]), (0, None, None, None));
    }
}
