//! BoundsOfCells of the values of cells, collected from the statistics that writers record for tiles.

use std::cmp::Ordering;

use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::error::{Locate, Result};
use tilefs_format::scalar::Scalar;
use tilefs_format::schema::{Attribute, CellValNum};

use super::Array;
use super::context::TileStatistic;

/// A lower and an upper bound of values, as little-endian bytes. Both may be values themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ValueBounds {
    /// The bytes of the lower bound.
    pub least: Vec<u8>,
    /// The bytes of the upper bound.
    pub greatest: Vec<u8>,
}

/// Collects the bounds of the values of some cells, as far as they are known.
pub struct BoundsOfCells {
    datatype: Datatype,
    found: Option<(Scalar, Scalar)>,
    is_known: bool,
    /// The most recently added tile, because consecutive cells often come from the same one.
    last: Option<(usize, u64)>,
}

impl BoundsOfCells {
    /// BoundsOfCells of no cells.
    pub fn new(datatype: Datatype) -> Self {
        BoundsOfCells { datatype, found: None, is_known: true, last: None }
    }

    /// Returns whether the bounds are still known.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// Adds cells with unknown bounds.
    pub fn add_unknown(&mut self) {
        self.is_known = false;
    }

    /// Returns whether a tile differs from that of the previous call.
    pub fn is_new(&mut self, fragment: usize, tile: u64) -> bool {
        self.last.replace((fragment, tile)) != Some((fragment, tile))
    }

    /// Adds cells whose values lie between two values.
    pub fn add(&mut self, low: Scalar, high: Scalar) {
        if low.is_nan() || high.is_nan() || low.compare(&high) == Ordering::Greater {
            return self.add_unknown();
        }
        self.found = Some(match self.found.take() {
            None => (low, high),
            Some((least, greatest)) => (
                if low.compare(&least) == Ordering::Less { low } else { least },
                if high.compare(&greatest) == Ordering::Greater { high } else { greatest },
            ),
        });
    }

    /// Adds cells of an attribute from a tile of a visible fragment.
    ///
    /// # Errors
    /// Any damage in the metadata with the statistics of the tile.
    pub fn add_tile(&mut self, array: &Array, attribute: usize, fragment: usize, tile: u64) -> Result<()> {
        let Some((least, greatest)) = array.tile_extremes(fragment, attribute, tile)? else {
            self.add_unknown();
            return Ok(());
        };
        let parse = |bytes: Vec<u8>| Scalar::parse(self.datatype, &bytes).in_array(array.path());
        let (least, greatest) = (parse(least)?, parse(greatest)?);
        // For a tile with only nulls, writers record the limits of the type with least and greatest exchanged.
        let is_empty = least.compare(&greatest) == Ordering::Greater;
        if self.datatype.kind() == Kind::Float {
            let sum = array.tile_statistic(fragment, attribute, tile, TileStatistic::Sum)?.map(f64::from_bits);
            let is_proven = |sum: f64| if is_empty { sum == 0.0 } else { are_surely_numbers(sum, [&least, &greatest]) };
            if !sum.is_some_and(is_proven) {
                self.add_unknown();
                return Ok(());
            }
        }
        if !is_empty {
            self.add(least, greatest);
        }
        Ok(())
    }

    /// Returns the bounds; `None` if they are not known.
    ///
    /// # Errors
    /// If a value has another type.
    pub fn finish(self) -> Result<Option<ValueBounds>> {
        let Some((least, greatest)) = self.found.filter(|_| self.is_known) else { return Ok(None) };
        Ok(Some(ValueBounds { least: least.to_bytes(self.datatype)?, greatest: greatest.to_bytes(self.datatype)? }))
    }
}

/// The number of nulls among some cells, collected from the counts that writers record for tiles.
pub struct NullsOfCells(Option<u64>);

impl NullsOfCells {
    /// The nulls of no cells.
    pub fn new() -> Self {
        NullsOfCells(Some(0))
    }

    /// Adds nulls, `None` if their number is not known.
    pub fn add(&mut self, nulls: Option<u64>) {
        self.0 = self.0.zip(nulls).and_then(|(before, nulls)| before.checked_add(nulls));
    }

    /// Adds `shown` cells of a tile of `in_tile` cells in a visible fragment. The number of shown cells is `None` if it is
    /// not known. Which cells of a tile are null is not recorded.
    ///
    /// # Errors
    /// Any damage in the metadata with the count of the tile.
    pub fn add_tile(
        &mut self,
        array: &Array,
        attribute: usize,
        (fragment, tile): (usize, u64),
        shown: Option<u64>,
        in_tile: u64,
    ) -> Result<()> {
        if self.0.is_some() {
            let nulls = array.tile_statistic(fragment, attribute, tile, TileStatistic::Nulls)?;
            self.add(match nulls {
                Some(0) => Some(0),
                Some(nulls) if nulls == in_tile => shown,
                Some(nulls) if nulls < in_tile && shown == Some(in_tile) => Some(nulls),
                _ => None,
            });
        }
        Ok(())
    }

    /// Returns the number of nulls; `None` if it is not known.
    pub fn finish(self) -> Option<u64> {
        self.0
    }
}

/// Returns whether the sum and the extremes that a writer recorded for a tile of floats prove that no value is "not a
/// number".
///
/// A sum with such a value is itself "not a number". Writers leave "not a number" out of the sum only while it is the
/// greatest or the least finite number, which stands for sums beyond; then only a number of 2^970 or more, half of the
/// distance to the next number, changes the sum again. Extremes begin again after "not a number", so that number is within
/// them if it came after the last one.
fn are_surely_numbers(sum: f64, ends: [&Scalar; 2]) -> bool {
    let changes_greatest = f64::from_bits((970 + 1023) << 52);
    let is_small = |end: &Scalar| match end {
        Scalar::Float32(value) => f64::from(*value).abs() < changes_greatest,
        Scalar::Float64(value) => value.abs() < changes_greatest,
        _ => false,
    };
    sum.abs() < f64::MAX && ends.into_iter().all(is_small)
}

/// Returns whether writers record reliable extremes of an attribute: for numbers, dates and times with one value per
/// cell. Nulls are not included in them.
///
/// The test in `tests/reader/row_bounds.rs` compares them with every row of many arrays. It was run on arrays with
/// random histories by libtiledb 2.7 to 2.30: dense and sparse, in each layout and in global order, nullable or not,
/// evolved, with delete conditions, and consolidated and vacuumed in every mode.
///
/// For floats, the recorded maximum is never below the least positive normal number, which is a bound, too. The extremes of
/// tiles with "not a number" leave values out, so [`BoundsOfCells::add_tile`] excludes such tiles by their sums. For text of variable length, libtiledb 2.30 records bytes of other cells or zeros in some cases, and other releases
/// may, too: only decoding a tile would show whether its bounds hold.
pub fn are_recorded(attribute: &Attribute) -> bool {
    attribute.datatype.kind() != Kind::Bytes && attribute.cell_count == CellValNum::Fixed(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_include_all_added_values() {
        let signed = |value: i64| Scalar::Signed(value);
        let mut bounds = BoundsOfCells::new(Datatype::Int16);
        bounds.add(signed(-3), signed(5));
        bounds.add(signed(2), signed(9));
        assert!(bounds.is_known());
        assert_eq!(bounds.finish().unwrap(), Some(ValueBounds { least: vec![0xfd, 0xff], greatest: vec![9, 0] }));
        assert_eq!(BoundsOfCells::new(Datatype::Int16).finish().unwrap(), None);
        let mut unordered = BoundsOfCells::new(Datatype::Int16);
        unordered.add(signed(0), signed(1));
        unordered.add(signed(5), signed(2));
        assert_eq!(unordered.finish().unwrap(), None);
        let mut nan = BoundsOfCells::new(Datatype::Float32);
        nan.add(Scalar::Float32(f32::NAN), Scalar::Float32(1.0));
        assert!(!nan.is_known());
    }

    #[test]
    fn sums_and_extremes_prove_that_there_are_numbers_only() {
        let are = |sum: f64, least: f64, greatest: f64| {
            are_surely_numbers(sum, [&Scalar::Float64(least), &Scalar::Float64(greatest)])
        };
        assert!(are(-3.0, -1e200, 1e200) && are(0.0, 0.0, f64::MIN_POSITIVE));
        assert!(!are(f64::NAN, 0.0, 1.0) && !are(f64::INFINITY, 0.0, 1.0) && !are(f64::MIN, 0.0, 1.0));
        // Twice the greatest number, "not a number", then the least number: a sum of 0.
        assert!(!are(0.0, f64::MIN, f64::MIN) && !are(0.0, 0.0, 2f64.powi(970)) && are(0.0, 0.0, 2f64.powi(969)));
        assert!(!are(0.0, f64::NAN, 0.0) && !are(0.0, 0.0, f64::NAN));
        let floats = [f32::MIN, f32::INFINITY].map(Scalar::Float32);
        assert!(
            are_surely_numbers(1.0, [&floats[0], &floats[0]]) && !are_surely_numbers(1.0, [&floats[0], &floats[1]])
        );
    }
}
