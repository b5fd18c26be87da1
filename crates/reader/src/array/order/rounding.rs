//! Coordinates that a filter has rounded: SCALE_FLOAT stores multiples of a scale.
//!
//! Writers sort cells, cut tiles and record boxes by the coordinates before rounding. Those that are read need not be in
//! order, may be equal, and may lie outside their boxes and the domain.

use tilefs_format::pipeline::{Filter, Pipeline};
use tilefs_format::scalar::{Range, Scalar};

/// How the coordinates along one dimension are rounded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rounding {
    /// The positions of the ends of the domain.
    pub domain: (u64, u64),
    /// `None` if other filters may round the coordinates further.
    grid: Option<ScaleGrid>,
}

/// The grid of SCALE_FLOAT: `scale * integer + offset` for integers of some width.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ScaleGrid {
    scale: f64,
    offset: f64,
    /// The least magnitude that an integer of the width may not have.
    end: f64,
}

impl Rounding {
    /// Returns the rounding of a dimension with these filters; `None` if they keep its values.
    pub fn new(filters: &Pipeline, domain: (u64, u64)) -> Option<Self> {
        filters.is_lossy().then(|| Rounding { domain, grid: ScaleGrid::of(filters) })
    }

    /// Returns a range that holds what the coordinates of a range are rounded to; `None` if they can become any number.
    pub fn around(&self, range: &Range) -> Option<Range> {
        let grid = self.grid?;
        match (&range.low, &range.high) {
            (Scalar::Float64(low), Scalar::Float64(high)) => {
                let (low, high) = grid.around(*low, *high, 32.0 * f64::EPSILON)?;
                Some(Range { low: Scalar::Float64(low), high: Scalar::Float64(high) })
            }
            (Scalar::Float32(low), Scalar::Float32(high)) => {
                let (low, high) = grid.around((*low).into(), (*high).into(), 32.0 * f64::from(f32::EPSILON))?;
                Some(Range { low: Scalar::Float32(low as f32), high: Scalar::Float32(high as f32) })
            }
            // The filter takes the bits of integers for those of floats.
            _ => None,
        }
    }
}

impl ScaleGrid {
    fn of(filters: &Pipeline) -> Option<Self> {
        let mut filters = filters.filters.iter().filter(|filter| **filter != Filter::Noop);
        let Some(&Filter::ScaleFloat { scale, offset, byte_width: byte_width @ 1..=8 }) = filters.next() else {
            return None;
        };
        let is_usable = scale.is_finite() && scale != 0.0 && offset.is_finite();
        let end = 2f64.powi(8 * byte_width as i32 - 1);
        (is_usable && !filters.any(Filter::is_lossy)).then_some(ScaleGrid { scale, offset, end })
    }

    /// Returns the ends of a range widened by the scale, which is twice what rounding changes, and by the errors of the
    /// computation, relative to its largest number. `None` if an integer may not have fitted its width: then writers
    /// stored another one.
    fn around(&self, low: f64, high: f64, error: f64) -> Option<(f64, f64)> {
        let largest = low.abs().max(high.abs()) + self.offset.abs();
        let margin = self.scale.abs() + error * largest;
        let fits = largest / self.scale.abs() * (1.0 + error) + 2.0 < self.end;
        (fits && margin.is_finite() && low <= high).then_some((low - margin, high + margin))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pipeline(scale: f64, offset: f64, byte_width: u64) -> Pipeline {
        let filters = vec![Filter::ScaleFloat { scale, offset, byte_width }, Filter::Zstd { level: 3 }];
        Pipeline { max_chunk_size: 65536, filters }
    }

    fn around(filters: &Pipeline, low: f64, high: f64) -> Option<(f64, f64)> {
        let range = Range { low: Scalar::Float64(low), high: Scalar::Float64(high) };
        let around = Rounding::new(filters, (0, u64::MAX)).unwrap().around(&range)?;
        let (Scalar::Float64(low), Scalar::Float64(high)) = (around.low, around.high) else { panic!("other numbers") };
        Some((low, high))
    }

    #[test]
    fn only_filters_that_round_are_rounding() {
        let lossless = Pipeline { max_chunk_size: 65536, filters: vec![Filter::Zstd { level: 3 }] };
        assert_eq!(Rounding::new(&lossless, (0, 9)), None);
        let mut behind = pipeline(0.5, 0.0, 4);
        assert_eq!(around(&behind, 1.0, 2.0).map(|(low, high)| (low.round(), high.round())), Some((0.0, 3.0)));
        behind.filters.insert(0, Filter::Xor);
        assert_eq!(around(&behind, 1.0, 2.0), None);
        let twice =
            Pipeline { filters: [pipeline(0.5, 0.0, 4).filters, pipeline(2.0, 0.0, 4).filters].concat(), ..behind };
        assert_eq!(around(&twice, 1.0, 2.0), None);
    }

    #[test]
    fn integers_that_may_not_fit_can_be_any() {
        assert!(around(&pipeline(1.0, 0.0, 1), -100.0, 124.0).is_some());
        assert!(around(&pipeline(1.0, 0.0, 1), -100.0, 127.0).is_none());
        assert!(around(&pipeline(1.0, 100.0, 1), -30.0, 0.0).is_none());
        assert!(around(&pipeline(0.0, 0.0, 4), 0.0, 1.0).is_none());
        assert!(around(&pipeline(f64::NAN, 0.0, 4), 0.0, 1.0).is_none());
        assert!(around(&pipeline(1.0, 0.0, 8), f64::NAN, 1.0).is_none());
        assert!(around(&pipeline(1.0, 0.0, 8), f64::NEG_INFINITY, f64::INFINITY).is_none());
    }

    proptest! {
        /// Rounds as libtiledb does when it writes and when it reads.
        #[test]
        fn a_rounded_coordinate_lies_around_its_range(
            value in prop_oneof![-1e3f64..1e3, -1e9f64..1e9],
            scale in prop_oneof![Just(1.0), Just(-0.5), Just(0.01), 1e-6f64..1e3],
            offset in prop_oneof![Just(0.0), -1e7f64..1e7],
            byte_width in prop::sample::select(vec![1u64, 2, 4, 8]),
        ) {
            let filters = pipeline(scale, offset, byte_width);
            let fitting = |integer: f64| match byte_width {
                1 => f64::from(integer as i64 as i8),
                2 => f64::from(integer as i64 as i16),
                4 => f64::from(integer as i64 as i32),
                _ => integer as i64 as f64,
            };
            let read = scale * fitting(((value - offset) / scale).round()) + offset;
            if let Some((low, high)) = around(&filters, value, value) {
                prop_assert!((low..=high).contains(&read), "{value} is read as {read}, not from {low} to {high}");
            }
            let single = value as f32;
            let read = (scale * f64::from(fitting(((single - offset as f32) / scale as f32).round().into()) as f32) + offset) as f32;
            let range = Range { low: Scalar::Float32(single), high: Scalar::Float32(single) };
            if let Some(around) = Rounding::new(&filters, (0, u64::MAX)).unwrap().around(&range) {
                prop_assert!(around.contains(&Scalar::Float32(read)), "{single} is read as {read}, not in {around:?}");
            }
        }
    }
}
