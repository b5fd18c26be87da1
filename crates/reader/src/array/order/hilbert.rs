//! Positions along the Hilbert curve, as libtiledb computes them to order the cells of an array.
//!
//! Each coordinate becomes a number of 63 / dimensions bits, rounded down; Skilling's transposition turns these into
//! the curve's index, whose bits are then interleaved. None of this is stored, so every rounding must match
//! libtiledb's.

use tilefs_base::error::{Error, Result};

/// Bits of a Hilbert value, shared by all dimensions.
const TOTAL_BITS: u32 = 63;

/// The most dimensions of a box for which the range of Hilbert values is computed: each level of the curve has 2 to
/// this power parts.
const MOST_SEARCHED_DIMENSIONS: usize = 6;

/// A Hilbert curve through a space of a given number of dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hilbert {
    dimensions: usize,
    bits: u32,
}

impl Hilbert {
    /// # Errors
    /// [`Error::Unsupported`] for more dimensions than a curve of one bit each can have.
    pub fn new(dimensions: usize) -> Result<Self> {
        if dimensions == 0 || dimensions > TOTAL_BITS as usize {
            return Err(Error::unsupported(format!("Hilbert order of {dimensions} dimensions")));
        }
        Ok(Hilbert { dimensions, bits: TOTAL_BITS / dimensions as u32 })
    }

    /// Returns the highest place along every axis.
    pub fn last_place(&self) -> u64 {
        (1 << self.bits) - 1
    }

    /// Returns the place of a numeric coordinate along its axis. `low` and `high` are the dimension's domain. All three
    /// were converted to `f64` first, with rounding.
    pub fn place_of_number(&self, value: f64, low: f64, high: f64) -> u64 {
        let most = self.last_place() as f64;
        // The conversion saturates, and turns the NaN of a domain of one point into 0.
        ((value - low) / (high - low) * most) as u64
    }

    /// Returns the place of a string along its axis: its first eight bytes, each of which libtiledb widens as a signed
    /// number.
    pub fn place_of_text(&self, text: &[u8]) -> u64 {
        let mut place = 0u64;
        for number in 0..8 {
            let byte = text.get(number).copied().unwrap_or(0);
            place = (place << 8) | (byte as i8) as i64 as u64;
        }
        place >> (64 - self.bits)
    }

    /// Returns the index along the curve of the point with these places. Overwrites `places`.
    pub fn index(&self, places: &mut [u64]) -> u64 {
        debug_assert_eq!(places.len(), self.dimensions);
        self.transpose(places);
        self.interleave(places)
    }

    /// Returns the lowest and the highest index of the points in a box of places, both ends included; the range of all
    /// indexes if the box is not searched.
    pub fn bounds(&self, low: &[u64], high: &[u64]) -> (u64, u64) {
        let inside = low.iter().zip(high).all(|(low, high)| low <= high && *high <= self.last_place());
        if !inside || self.dimensions > MOST_SEARCHED_DIMENSIONS {
            return (0, u64::MAX);
        }
        (self.extreme(low, high, false), self.extreme(low, high, true))
    }

    /// Skilling's "axes to transpose": computes the bits of the index, still spread over the axes.
    fn transpose(&self, axes: &mut [u64]) {
        let Some((first, others)) = axes.split_first_mut() else { return };
        let mut bit = 1u64 << (self.bits - 1);
        while bit > 1 {
            let below = bit - 1;
            if *first & bit != 0 {
                *first ^= below;
            }
            for axis in others.iter_mut() {
                if *axis & bit != 0 {
                    *first ^= below;
                } else {
                    let swapped = (*first ^ *axis) & below;
                    *first ^= swapped;
                    *axis ^= swapped;
                }
            }
            bit >>= 1;
        }
        // Gray code.
        for number in 1..axes.len() {
            axes[number] ^= axes[number - 1];
        }
        let Some((last, others)) = axes.split_last_mut() else { return };
        let before = *last;
        // The top of a one-dimensional domain has a bit above `bits`, and it does affect the bits below.
        let mut shift = 1;
        while shift < self.bits {
            *last ^= *last >> shift;
            shift <<= 1;
        }
        let changed = before ^ *last;
        for axis in others {
            *axis ^= changed;
        }
    }

    /// Skilling's "transpose to axes": the inverse.
    fn untranspose(&self, axes: &mut [u64]) {
        let Some((&mut last, _)) = axes.split_last_mut() else { return };
        let gray = last >> 1;
        for number in (1..axes.len()).rev() {
            axes[number] ^= axes[number - 1];
        }
        let Some((first, others)) = axes.split_first_mut() else { return };
        *first ^= gray;
        let mut bit = 2u64;
        while bit != 1 << self.bits {
            let below = bit - 1;
            for axis in others.iter_mut().rev() {
                if *axis & bit != 0 {
                    *first ^= below;
                } else {
                    let swapped = (*first ^ *axis) & below;
                    *first ^= swapped;
                    *axis ^= swapped;
                }
            }
            if *first & bit != 0 {
                *first ^= below;
            }
            bit <<= 1;
        }
    }

    /// Moves bit `j` of axis `i` to bit `j * n + (n - 1 - i)` of the index.
    fn interleave(&self, axes: &[u64]) -> u64 {
        if let [x, y] = axes {
            return (spread(*x) << 1) | spread(*y);
        }
        let mut index = 0;
        for bit in (0..self.bits).rev() {
            for axis in axes {
                index = (index << 1) | ((axis >> bit) & 1);
            }
        }
        index
    }

    fn deinterleave(&self, index: u64, axes: &mut [u64]) {
        axes.fill(0);
        let mut position = self.bits * self.dimensions as u32;
        for _ in 0..self.bits {
            for axis in axes.iter_mut() {
                position -= 1;
                *axis = (*axis << 1) | ((index >> position) & 1);
            }
        }
    }

    /// Returns the lowest or highest index in a box: descends the levels of the curve, always into the first (or last)
    /// part that the box intersects.
    fn extreme(&self, low: &[u64], high: &[u64], highest: bool) -> u64 {
        let dimensions = self.dimensions as u32;
        let mut corner = [0; MOST_SEARCHED_DIMENSIONS];
        let corner = &mut corner[..self.dimensions];
        let mut index = 0;
        for level in (0..self.bits).rev() {
            let parts = 0..1u64 << dimensions;
            let touches = |part: &u64| {
                // Any point of a part locates it: all its points agree in the bits above the level.
                self.deinterleave(index | (part << (level * dimensions)), corner);
                self.untranspose(corner);
                corner.iter().zip(low.iter().zip(high)).all(|(place, (low, high))| {
                    let place = place >> level;
                    low >> level <= place && place <= high >> level
                })
            };
            let found = if highest { parts.rev().find(touches) } else { parts.into_iter().find(touches) };
            index |= found.unwrap_or(0) << (level * dimensions);
        }
        index
    }
}

/// Moves bit `j` of the low 32 to bit `2 j`.
fn spread(value: u64) -> u64 {
    let mut value = value & 0x7fff_ffff;
    value = (value | (value << 16)) & 0x0000_ffff_0000_ffff;
    value = (value | (value << 8)) & 0x00ff_00ff_00ff_00ff;
    value = (value | (value << 4)) & 0x0f0f_0f0f_0f0f_0f0f;
    value = (value | (value << 2)) & 0x3333_3333_3333_3333;
    (value | (value << 1)) & 0x5555_5555_5555_5555
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn curve(dimensions: usize, bits: u32) -> Hilbert {
        Hilbert { dimensions, bits }
    }

    #[test]
    fn every_step_along_the_curve_is_one_step_in_space() {
        for (dimensions, bits) in [(1, 6), (2, 5), (3, 3), (4, 2)] {
            let curve = curve(dimensions, bits);
            let mut points = vec![None; 1 << (dimensions as u32 * bits)];
            for number in 0..points.len() as u64 {
                let mut places: Vec<u64> =
                    (0..dimensions as u32).map(|axis| (number >> (axis * bits)) & ((1 << bits) - 1)).collect();
                let point = places.clone();
                let index = curve.index(&mut places) as usize;
                assert!(points[index].is_none());
                let mut back = vec![0; dimensions];
                curve.deinterleave(index as u64, &mut back);
                curve.untranspose(&mut back);
                assert_eq!(back, point);
                points[index] = Some(point);
            }
            for pair in points.windows(2) {
                let (a, b) = (pair[0].as_ref().unwrap(), pair[1].as_ref().unwrap());
                let distance: u64 = a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).sum();
                assert_eq!(distance, 1, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn the_top_of_one_dimension_is_last() {
        // As a double, 2^63 - 1 is 2^63, so the highest coordinate overflows by one bit.
        let curve = Hilbert::new(1).unwrap();
        let top = curve.place_of_number(1000.0, 0.0, 1000.0);
        assert_eq!(top, 1 << 63);
        let index = |value| curve.index(&mut [curve.place_of_number(value, 0.0, 1000.0)]);
        assert!(index(999.0) < index(1000.0));
        assert_eq!(curve.bounds(&[0], &[top]), (0, u64::MAX));
    }

    #[test]
    fn bytes_of_strings_are_signed() {
        let curve = Hilbert::new(2).unwrap();
        assert_eq!(curve.place_of_text(b""), 0);
        assert_eq!(curve.place_of_text(b"a"), 0x6100_0000 >> 1);
        assert_eq!(curve.place_of_text(b"a\xe9zzzzzzzzz"), 0xffe9_7a7a >> 1);
        assert_eq!(curve.place_of_number(5.0, 5.0, 5.0), 0);
    }

    proptest! {
        #[test]
        fn bounds_are_those_of_all_points(
            dimensions in 1usize..4,
            corners in prop::collection::vec((0u64..8, 0u64..8), 3),
        ) {
            let curve = curve(dimensions, 3);
            let low: Vec<u64> = corners[..dimensions].iter().map(|(a, b)| *a.min(b)).collect();
            let high: Vec<u64> = corners[..dimensions].iter().map(|(a, b)| *a.max(b)).collect();
            let indexes = (0..1u64 << (3 * dimensions)).filter_map(|number| {
                let mut point: Vec<u64> = (0..dimensions).map(|axis| (number >> (3 * axis)) & 7).collect();
                let inside = point.iter().zip(low.iter().zip(&high)).all(|(p, (low, high))| (low..=high).contains(&p));
                inside.then(|| curve.index(&mut point))
            });
            let all: Vec<u64> = indexes.collect();
            let expected = (*all.iter().min().unwrap(), *all.iter().max().unwrap());
            prop_assert_eq!(curve.bounds(&low, &high), expected);
        }

        #[test]
        fn interleaving_two_axes_is_that_of_many(x in 0u64..1 << 31, y in 0u64..1 << 31) {
            let curve = Hilbert::new(2).unwrap();
            let mut axes = [0; 2];
            curve.deinterleave(curve.interleave(&[x, y]), &mut axes);
            prop_assert_eq!(axes, [x, y]);
        }
    }
}
