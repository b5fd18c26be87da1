//! Coordinates and bounds of dimensions, and ranges of two bounds.

use std::cmp::Ordering;
use std::fmt;

use tilefs_base::error::{Error, Result};

use super::cursor::Cursor;
use super::datatype::{Datatype, Kind};

/// A value of a dimension: integers, dates and times widened to 64 bits, floats unchanged, text as bytes.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// Signed integers; dates and times, counted in the unit of their type.
    Signed(i64),
    /// Unsigned integers and `BOOL`.
    Unsigned(u64),
    /// A value of `FLOAT32`.
    Float32(f32),
    /// A value of `FLOAT64`.
    Float64(f64),
    /// Strings and other bytes, of any length.
    Text(Vec<u8>),
}

impl Scalar {
    /// Appends an unambiguous, self-delimiting encoding of the value, for cache keys.
    pub fn append_identity(&self, out: &mut Vec<u8>) {
        let (kind, bits) = match self {
            Scalar::Signed(value) => (0, value.cast_unsigned()),
            Scalar::Unsigned(value) => (1, *value),
            Scalar::Float32(value) => (2, value.to_bits().into()),
            Scalar::Float64(value) => (3, value.to_bits()),
            Scalar::Text(text) => (4, text.len() as u64),
        };
        out.push(kind);
        out.extend(bits.to_le_bytes());
        if let Scalar::Text(text) = self {
            out.extend(text);
        }
    }

    /// Takes a value that [`Scalar::append_identity`] wrote from the front of `bytes`; `None` if there is none.
    pub(crate) fn read_identity(bytes: &mut &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (bits, rest) = rest.split_first_chunk()?;
        let bits = u64::from_le_bytes(*bits);
        let (value, rest) = match kind {
            0 => (Scalar::Signed(bits.cast_signed()), rest),
            1 => (Scalar::Unsigned(bits), rest),
            2 => (Scalar::Float32(f32::from_bits(u32::try_from(bits).ok()?)), rest),
            3 => (Scalar::Float64(f64::from_bits(bits)), rest),
            4 => {
                let (text, rest) = rest.split_at_checked(usize::try_from(bits).ok()?)?;
                (Scalar::Text(text.to_vec()), rest)
            }
            _ => return None,
        };
        *bytes = rest;
        Some(value)
    }

    /// Parses little-endian `bytes`. Types of [`Kind::Bytes`] (strings, blobs) have any length, all others the size of
    /// the type.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the length is wrong.
    pub fn parse(datatype: Datatype, bytes: &[u8]) -> Result<Self> {
        let parsed = match datatype.kind() {
            Kind::Bytes => Some(Scalar::Text(bytes.to_vec())),
            Kind::Signed => signed(datatype, bytes).map(Scalar::Signed),
            Kind::Unsigned => unsigned(datatype, bytes).map(Scalar::Unsigned),
            Kind::Float if datatype.size() == 4 => bytes.try_into().ok().map(f32::from_le_bytes).map(Scalar::Float32),
            Kind::Float => bytes.try_into().ok().map(f64::from_le_bytes).map(Scalar::Float64),
        };
        parsed
            .ok_or_else(|| Error::damaged(format!("{} bytes where one {} was expected", bytes.len(), datatype.name())))
    }

    /// Returns the little-endian bytes of this value in `datatype`: the inverse of [`Scalar::parse`].
    ///
    /// # Errors
    /// [`Error::Usage`] if the value is of another kind or does not fit the type.
    pub fn to_bytes(&self, datatype: Datatype) -> Result<Vec<u8>> {
        let size = datatype.size();
        let bytes = match (self, datatype.kind()) {
            (Scalar::Signed(value), Kind::Signed) => value
                .to_le_bytes()
                .get(..size)
                .filter(|bytes| signed(datatype, bytes) == Some(*value))
                .map(<[u8]>::to_vec),
            (Scalar::Unsigned(value), Kind::Unsigned) => value
                .to_le_bytes()
                .get(..size)
                .filter(|bytes| unsigned(datatype, bytes) == Some(*value))
                .map(<[u8]>::to_vec),
            (Scalar::Float32(value), Kind::Float) if size == 4 => Some(value.to_le_bytes().to_vec()),
            (Scalar::Float64(value), Kind::Float) if size == 8 => Some(value.to_le_bytes().to_vec()),
            (Scalar::Text(value), Kind::Bytes) => Some(value.clone()),
            _ => None,
        };
        bytes.ok_or_else(|| Error::usage(format!("{self} is not a value of type {}", datatype.name())))
    }

    /// Compares coordinates by a total order. Numbers compare by value: `-0.0` equals `0.0`; NaN, which no writer
    /// stores, comes last, or first if its sign is set. Bytes compare as unsigned, and a prefix comes first.
    ///
    /// Values of different kinds compare by kind; no dimension has values of several kinds.
    pub fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Scalar::Signed(a), Scalar::Signed(b)) => a.cmp(b),
            (Scalar::Unsigned(a), Scalar::Unsigned(b)) => a.cmp(b),
            // Adding zero turns -0.0 into 0.0 and changes nothing else.
            (Scalar::Float32(a), Scalar::Float32(b)) => (a + 0.0).total_cmp(&(b + 0.0)),
            (Scalar::Float64(a), Scalar::Float64(b)) => (a + 0.0).total_cmp(&(b + 0.0)),
            (Scalar::Text(a), Scalar::Text(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    /// Returns whether the value is neither NaN nor infinite; true for everything but floats.
    pub fn is_finite(&self) -> bool {
        match self {
            Scalar::Float32(value) => value.is_finite(),
            Scalar::Float64(value) => value.is_finite(),
            _ => true,
        }
    }

    /// Returns whether the value is a float NaN.
    pub fn is_nan(&self) -> bool {
        match self {
            Scalar::Float32(value) => value.is_nan(),
            Scalar::Float64(value) => value.is_nan(),
            _ => false,
        }
    }

    /// Returns the distance of this integer, date or time above `low`; no domain overflows it. `None` if the value is
    /// below `low`, or the two are not integers of the same kind.
    pub fn distance_above(&self, low: &Self) -> Option<u64> {
        match (self, low) {
            (Scalar::Signed(value), Scalar::Signed(low)) if value >= low => Some(value.wrapping_sub(*low) as u64),
            (Scalar::Unsigned(value), Scalar::Unsigned(low)) => value.checked_sub(*low),
            _ => None,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Scalar::Signed(_) => 0,
            Scalar::Unsigned(_) => 1,
            Scalar::Float32(_) => 2,
            Scalar::Float64(_) => 3,
            Scalar::Text(_) => 4,
        }
    }
}

/// Displays numbers in their shortest exact form, and text with everything but printable ASCII escaped as in Rust.
impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Signed(value) => write!(f, "{value}"),
            Scalar::Unsigned(value) => write!(f, "{value}"),
            Scalar::Float32(value) => write!(f, "{value}"),
            Scalar::Float64(value) => write!(f, "{value}"),
            Scalar::Text(value) => write!(f, "{}", value.escape_ascii()),
        }
    }
}

fn signed(datatype: Datatype, bytes: &[u8]) -> Option<i64> {
    Some(match datatype.size() {
        1 => i64::from(i8::from_le_bytes(bytes.try_into().ok()?)),
        2 => i64::from(i16::from_le_bytes(bytes.try_into().ok()?)),
        4 => i64::from(i32::from_le_bytes(bytes.try_into().ok()?)),
        _ => i64::from_le_bytes(bytes.try_into().ok()?),
    })
}

fn unsigned(datatype: Datatype, bytes: &[u8]) -> Option<u64> {
    Some(match datatype.size() {
        1 => u64::from(u8::from_le_bytes(bytes.try_into().ok()?)),
        2 => u64::from(u16::from_le_bytes(bytes.try_into().ok()?)),
        4 => u64::from(u32::from_le_bytes(bytes.try_into().ok()?)),
        _ => u64::from_le_bytes(bytes.try_into().ok()?),
    })
}

/// A range of one dimension, both ends included; used by domains, non-empty domains and bounding rectangles.
#[derive(Debug, Clone, PartialEq)]
pub struct Range {
    /// The least value of the range.
    pub low: Scalar,
    /// The greatest value of the range, which is part of it.
    pub high: Scalar,
}

/// A text that sorts after all texts of coordinates.
pub const BEYOND_TEXTS: [u8; 16] = [0xff; 16];

impl Range {
    /// Returns a range of texts from `low` on, without a high end.
    pub fn of_texts_from(low: Scalar) -> Self {
        Range { low, high: Scalar::Text(BEYOND_TEXTS.to_vec()) }
    }

    /// Returns whether it is a range of texts without a high end.
    pub fn is_open(&self) -> bool {
        matches!(&self.high, Scalar::Text(high) if *high == BEYOND_TEXTS)
    }

    /// Reads a range at the cursor: low and high of a fixed-size type; for a variable-size type, the size of both
    /// together (`u64` bytes), the size of low (`u64` bytes), low, high.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the bytes end early or low is larger than both together.
    pub fn parse(cursor: &mut Cursor<'_>, datatype: Datatype, variable: bool, field: &str) -> Result<Self> {
        let (low, high) = range_bytes(cursor, datatype, variable, field)?;
        Ok(Range { low: Scalar::parse(datatype, low)?, high: Scalar::parse(datatype, high)? })
    }

    /// Returns whether low is at most high and neither is NaN.
    pub fn is_ordered(&self) -> bool {
        !self.low.is_nan() && !self.high.is_nan() && self.low.compare(&self.high) != Ordering::Greater
    }

    /// Returns whether a value is in the range.
    pub fn contains(&self, value: &Scalar) -> bool {
        self.low.compare(value) != Ordering::Greater && self.high.compare(value) != Ordering::Less
    }

    /// Returns whether two ranges have a value in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.low.compare(&other.high) != Ordering::Greater && self.high.compare(&other.low) != Ordering::Less
    }
}

/// Reads the bytes of low and high of the range at the cursor; see [`Range::parse`].
pub(super) fn range_bytes<'a>(
    cursor: &mut Cursor<'a>,
    datatype: Datatype,
    variable: bool,
    field: &str,
) -> Result<(&'a [u8], &'a [u8])> {
    if !variable {
        return Ok((cursor.bytes(datatype.size(), field)?, cursor.bytes(datatype.size(), field)?));
    }
    let total = cursor.u64(field)?;
    let low_size = cursor.u64(field)?;
    let both = cursor.bytes_u64(total, field)?;
    usize::try_from(low_size)
        .ok()
        .and_then(|low_size| both.split_at_checked(low_size))
        .ok_or_else(|| cursor.error(field, format!("low bound of {low_size} bytes in a range of {total}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn datatypes() -> impl Strategy<Value = Datatype> {
        (0u8..44).prop_map(|number| Datatype::from_number(number).unwrap())
    }

    proptest! {
        #[test]
        fn bytes_round_trip(datatype in datatypes(), eight in any::<[u8; 8]>()) {
            let bytes = &eight[..datatype.size()];
            let value = Scalar::parse(datatype, bytes).unwrap();
            prop_assert_eq!(value.to_bytes(datatype).unwrap(), bytes);
        }

        #[test]
        fn signed_order_is_that_of_the_numbers(a in any::<i16>(), b in any::<i16>()) {
            let parse = |n: i16| Scalar::parse(Datatype::Int16, &n.to_le_bytes()).unwrap();
            prop_assert_eq!(parse(a).compare(&parse(b)), a.cmp(&b));
            let distance = parse(a).distance_above(&parse(b));
            prop_assert_eq!(distance, u64::try_from(i32::from(a) - i32::from(b)).ok());
        }

        #[test]
        fn comparison_is_a_total_order(bits in any::<[u32; 3]>()) {
            let [a, b, c] = bits.map(|bits| Scalar::Float32(f32::from_bits(bits)));
            prop_assert_eq!(a.compare(&b), b.compare(&a).reverse());
            if a.compare(&b) != Ordering::Greater && b.compare(&c) != Ordering::Greater {
                prop_assert!(a.compare(&c) != Ordering::Greater);
            }
        }
    }

    #[test]
    fn wrong_lengths_and_values_are_refused() {
        assert!(Scalar::parse(Datatype::Int32, &[0; 3]).is_err());
        assert!(Scalar::parse(Datatype::Float64, &[0; 4]).is_err());
        assert!(Scalar::parse(Datatype::StringAscii, b"any length").is_ok());
        assert!(Scalar::Signed(128).to_bytes(Datatype::Int8).is_err());
        assert!(Scalar::Signed(1).to_bytes(Datatype::UInt8).is_err());
        assert!(Scalar::Unsigned(256).to_bytes(Datatype::UInt8).is_err());
        assert!(Scalar::Float32(1.0).to_bytes(Datatype::Float64).is_err());
    }

    #[test]
    fn zeros_are_equal_and_distances_do_not_overflow() {
        assert_eq!(Scalar::Float64(-0.0).compare(&Scalar::Float64(0.0)), Ordering::Equal);
        assert_eq!(Scalar::Signed(i64::MAX).distance_above(&Scalar::Signed(i64::MIN)), Some(u64::MAX));
        assert_eq!(Scalar::Unsigned(3).distance_above(&Scalar::Unsigned(4)), None);
    }

    #[test]
    fn ranges_of_strings() {
        let bytes = [5, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, b'a', b'b', b'x', b'y', b'z'];
        let range = Range::parse(&mut Cursor::new(&bytes), Datatype::StringAscii, true, "range").unwrap();
        assert_eq!(range, Range { low: Scalar::Text(b"ab".to_vec()), high: Scalar::Text(b"xyz".to_vec()) });
        assert!(range.contains(&Scalar::Text(b"b".to_vec())));
        assert!(!range.contains(&Scalar::Text(b"a".to_vec())));
        let mut wrong = bytes;
        wrong[8] = 6;
        assert!(Range::parse(&mut Cursor::new(&wrong), Datatype::StringAscii, true, "range").is_err());
    }
}
