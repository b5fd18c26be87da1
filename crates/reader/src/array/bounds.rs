//! Bounds of the values of cells, collected from the statistics that writers record for tiles.

use std::cmp::Ordering;
use std::collections::HashMap;

use tilefs_base::error::{Locate, Result};
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::scalar::Scalar;
use tilefs_format::schema::{Attribute, CellValNum};

use super::OpenedArray;
use super::context::TileStatistic;

/// A lower and an upper bound of values, as little-endian bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ValueBounds {
    /// The bytes of the lower bound.
    pub least: Vec<u8>,
    /// The bytes of the upper bound.
    pub greatest: Vec<u8>,
    /// Whether a value is known to equal the lower bound.
    pub is_least_exact: bool,
    /// Whether a value is known to equal the upper bound.
    pub is_greatest_exact: bool,
}

/// A lower or an upper bound.
#[derive(Debug, Clone)]
pub struct Extreme {
    value: Scalar,
    /// Whether a value is known to equal it.
    is_exact: bool,
}

impl Extreme {
    /// Creates a bound.
    pub fn new(value: Scalar, is_exact: bool) -> Self {
        Extreme { value, is_exact }
    }

    /// Returns the outer of two bounds; `outwards` is how the outer bound compares with the inner one.
    fn join(self, other: Extreme, outwards: Ordering) -> Extreme {
        match other.value.compare(&self.value) {
            Ordering::Equal => Extreme { is_exact: self.is_exact || other.is_exact, ..self },
            order if order == outwards => other,
            _ => self,
        }
    }
}

/// Some cells of a tile.
#[derive(Debug, Clone, Copy)]
pub struct CellsOfTile {
    /// The number of the visible fragment, and of the tile in it.
    pub tile: (usize, u64),
    /// Number of the cells, if all of them are certain to be shown, and none was added before.
    pub shown: Option<u64>,
    /// Number of cells in the whole tile.
    pub in_tile: u64,
}

/// Maximum number of tiles whose shown cells are counted at the same time.
const MAX_COUNTED: usize = 1 << 16;

/// Collects the bounds of the values of some cells, as far as they are known.
pub struct BoundsOfCells {
    datatype: Datatype,
    found: Option<(Extreme, Extreme)>,
    is_known: bool,
    /// The most recently added tile, because consecutive cells often come from the same one.
    last: Option<(usize, u64)>,
    /// Numbers of shown cells of tiles of which there may be more.
    counted: HashMap<(usize, u64), u64>,
}

impl BoundsOfCells {
    /// Creates the bounds of no cells.
    pub fn new(datatype: Datatype) -> Self {
        BoundsOfCells { datatype, found: None, is_known: true, last: None, counted: HashMap::new() }
    }

    /// Returns whether the bounds are still known.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// Adds cells with unknown bounds.
    pub fn add_unknown(&mut self) {
        self.is_known = false;
    }

    /// Counts cells of a tile. Returns whether all of its cells are now shown; `None` if the bounds of the tile need not
    /// be added, because they would change nothing.
    pub fn count(&mut self, CellsOfTile { tile, shown, in_tile }: CellsOfTile) -> Option<bool> {
        let is_new = self.last.replace(tile) != Some(tile);
        let is_whole = shown.is_some_and(|shown| {
            if shown == in_tile || self.counted.len() == MAX_COUNTED && !self.counted.contains_key(&tile) {
                return shown == in_tile;
            }
            let counted = self.counted.entry(tile).or_default();
            *counted = counted.saturating_add(shown);
            *counted == in_tile
        });
        if is_whole {
            self.counted.remove(&tile);
        }
        (self.is_known && (is_new || is_whole)).then_some(is_whole)
    }

    /// Adds cells whose values lie between two bounds.
    pub fn add(&mut self, low: Extreme, high: Extreme) {
        if low.value.is_nan() || high.value.is_nan() || low.value.compare(&high.value) == Ordering::Greater {
            return self.add_unknown();
        }
        self.found = Some(match self.found.take() {
            None => (low, high),
            Some((least, greatest)) => (least.join(low, Ordering::Less), greatest.join(high, Ordering::Greater)),
        });
    }

    /// Adds cells of an attribute from a tile of a visible fragment. The extremes of a tile are values of its cells; if all
    /// of these are shown, the bounds are exact.
    ///
    /// # Errors
    /// Any damage in the metadata with the statistics of the tile.
    pub fn add_tile(&mut self, array: &OpenedArray, attribute: usize, cells: CellsOfTile) -> Result<()> {
        let (Some(is_whole), (fragment, tile)) = (self.count(cells), cells.tile) else { return Ok(()) };
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
            let are_values = is_whole && has_no_nulls(array, attribute, (fragment, tile))?;
            let is_value = are_values && is_surely_a_maximum(&greatest);
            self.add(Extreme::new(least, are_values), Extreme::new(greatest, is_value));
        }
        Ok(())
    }

    /// Returns the bounds; `None` if they are not known.
    ///
    /// # Errors
    /// If a value has another type.
    pub fn finish(self) -> Result<Option<ValueBounds>> {
        let Some((least, greatest)) = self.found.filter(|_| self.is_known) else { return Ok(None) };
        Ok(Some(ValueBounds {
            least: least.value.to_bytes(self.datatype)?,
            greatest: greatest.value.to_bytes(self.datatype)?,
            is_least_exact: least.is_exact,
            is_greatest_exact: greatest.is_exact,
        }))
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
        array: &OpenedArray,
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

/// Returns whether no cell of a tile is null. libtiledb 2.7 records the extremes 0 and 0 for a tile with only nulls.
fn has_no_nulls(array: &OpenedArray, attribute: usize, (fragment, tile): (usize, u64)) -> Result<bool> {
    let is_nullable = array.schema().attributes.get(attribute).is_none_or(|attribute| attribute.nullable);
    Ok(!is_nullable || array.tile_statistic(fragment, attribute, tile, TileStatistic::Nulls)? == Some(0))
}

/// Returns whether the maximum that a writer recorded for a tile must be a value. For floats, it is the least positive
/// normal number if all values are below that.
fn is_surely_a_maximum(greatest: &Scalar) -> bool {
    match greatest {
        Scalar::Float32(value) => *value > f32::MIN_POSITIVE,
        Scalar::Float64(value) => *value > f64::MIN_POSITIVE,
        _ => true,
    }
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

    fn signed(value: i64, is_exact: bool) -> Extreme {
        Extreme::new(Scalar::Signed(value), is_exact)
    }

    #[test]
    fn bounds_include_all_added_values() {
        let mut bounds = BoundsOfCells::new(Datatype::Int16);
        bounds.add(signed(-3, true), signed(5, true));
        bounds.add(signed(2, true), signed(9, false));
        assert!(bounds.is_known());
        let wanted = ValueBounds {
            least: vec![0xfd, 0xff],
            greatest: vec![9, 0],
            is_least_exact: true,
            is_greatest_exact: false,
        };
        assert_eq!(bounds.finish().unwrap(), Some(wanted));
        assert_eq!(BoundsOfCells::new(Datatype::Int16).finish().unwrap(), None);
        let mut unordered = BoundsOfCells::new(Datatype::Int16);
        unordered.add(signed(0, true), signed(1, true));
        unordered.add(signed(5, true), signed(2, true));
        assert_eq!(unordered.finish().unwrap(), None);
        let mut nan = BoundsOfCells::new(Datatype::Float32);
        nan.add(Extreme::new(Scalar::Float32(f32::NAN), true), Extreme::new(Scalar::Float32(1.0), true));
        assert!(!nan.is_known());
    }

    #[test]
    fn a_bound_is_exact_if_any_of_its_values_is() {
        let exact = |added: &[(i64, bool)]| {
            let mut bounds = BoundsOfCells::new(Datatype::Int16);
            added.iter().for_each(|&(value, is_exact)| bounds.add(signed(value, is_exact), signed(value, is_exact)));
            let found = bounds.finish().unwrap().unwrap();
            (found.is_least_exact, found.is_greatest_exact)
        };
        assert_eq!(exact(&[(1, false), (1, true)]), (true, true));
        assert_eq!(exact(&[(1, true), (1, false)]), (true, true));
        assert_eq!(exact(&[(1, true), (0, false), (2, false)]), (false, false));
        assert_eq!(exact(&[(1, false), (0, true)]), (true, false));
    }

    #[test]
    fn a_tile_is_whole_once_all_of_its_cells_were_counted() {
        let mut bounds = BoundsOfCells::new(Datatype::Int16);
        let mut count = |tile, shown| bounds.count(CellsOfTile { tile: (0, tile), shown, in_tile: 10 });
        assert_eq!((count(0, Some(10)), count(1, Some(4)), count(1, Some(4))), (Some(true), Some(false), None));
        assert_eq!((count(2, None), count(1, Some(2)), count(2, Some(9))), (Some(false), Some(true), Some(false)));
        let largest = Scalar::Float64(f64::MIN_POSITIVE);
        assert!(!is_surely_a_maximum(&largest) && is_surely_a_maximum(&Scalar::Signed(-1)));
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
