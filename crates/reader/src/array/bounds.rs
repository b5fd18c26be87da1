//! BoundsOfCells of the values of cells, collected from the statistics that writers record for tiles.

use std::cmp::Ordering;

use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::error::{Locate, Result};
use tilefs_format::scalar::Scalar;
use tilefs_format::schema::{Attribute, CellValNum};

use super::Array;

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
        if least.compare(&greatest) != Ordering::Greater {
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

/// Returns whether writers record reliable extremes of an attribute: for integers, dates and times with one value per
/// cell. Nulls are not included in them.
///
/// The test in `tests/reader/row_bounds.rs` compares them with every row of many arrays. It was run on arrays with random
/// histories by libtiledb 2.7 to 2.30: dense and sparse, in each layout and in global order, nullable or not, evolved,
/// with delete conditions, and consolidated and vacuumed in every mode.
///
/// For floats, writers record extremes that ignore negative numbers, and start again after a "not a number". For text
/// of variable length, libtiledb 2.30 records bytes of other cells or zeros in some cases, and other releases may, too.
/// Only decoding a tile would show whether its bounds hold.
pub fn are_recorded(attribute: &Attribute) -> bool {
    let is_integer = matches!(attribute.datatype.kind(), Kind::Signed | Kind::Unsigned);
    is_integer && attribute.cell_count == CellValNum::Fixed(1)
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
}
