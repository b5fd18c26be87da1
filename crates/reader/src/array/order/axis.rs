//! One dimension as an axis of unsigned positions that sort as its coordinates do.

use std::borrow::Cow;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::pipeline::Pipeline;
use tilefs_format::scalar::{BEYOND_TEXTS, Range, Scalar};
use tilefs_format::schema::Dimension;

use super::rounding::Rounding;
use crate::vectors::in_wide_vectors;

/// The mapping of a dimension's coordinates to positions.
#[derive(Debug, Clone)]
pub struct KeyAxis {
    pub name: String,
    pub datatype: Datatype,
    pub scale: Scale,
    /// Set if a filter rounds the coordinates. Then every number of the type has a position.
    pub rounding: Option<Rounding>,
}

/// What the positions of an axis count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// Integers, dates and times: the distance of a coordinate from the low end of the domain (of the type, if
    /// coordinates are rounded). A space tile has `extent` coordinates; `None` means that one tile holds everything.
    Integer { low: u64, last: u64, extent: Option<u64> },
    /// Floats: the bits of the number, transformed so that they sort as the numbers do, minus the transformed bits of
    /// the low end (of 0, if coordinates are rounded).
    Float { low: f64, high: f64, low_bits: u64, last: u64, extent: Option<f64> },
    /// Strings have no positions; [`text_word`] sorts them by their first bytes.
    Text,
}

impl KeyAxis {
    /// Returns the axis of a dimension. `filters` are the filters of its coordinates.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for dimensions whose coordinates have no order.
    pub fn new(dimension: &Dimension, filters: &Pipeline) -> Result<Self> {
        let scale = scale(dimension).ok_or_else(|| {
            let what = format!("a sparse dimension of type {}", dimension.datatype.name());
            Error::unsupported(what).in_field(&dimension.name)
        })?;
        let (name, datatype) = (dimension.name.clone(), dimension.datatype);
        let domain = match scale {
            Scale::Integer { low, last, .. } => (low, low + last),
            Scale::Float { low_bits, last, .. } => (low_bits, low_bits + last),
            Scale::Text => return Ok(KeyAxis { name, datatype, scale, rounding: None }),
        };
        let rounding = Rounding::new(filters, domain);
        let scale = if rounding.is_some() { scale.of_whole_type(datatype) } else { scale };
        Ok(KeyAxis { name, datatype, scale, rounding })
    }

    /// Returns whether a filter rounds the coordinates.
    pub fn is_rounded(&self) -> bool {
        self.rounding.is_some()
    }

    pub fn is_text(&self) -> bool {
        self.scale == Scale::Text
    }

    pub fn is_float(&self) -> bool {
        matches!(self.scale, Scale::Float { .. })
    }

    /// Returns whether the axis has more than one coordinate.
    pub fn has_order(&self) -> bool {
        self.is_text() || self.last() > 0
    }

    /// Returns whether the coordinates are dates or times on both sides of 1970.
    pub fn crosses_1970(&self) -> bool {
        let Scale::Integer { low, last, .. } = self.scale else { return false };
        self.datatype.is_datetime() && low < SIGN && last >= SIGN - low
    }

    /// Returns the highest position.
    pub fn last(&self) -> u64 {
        match self.scale {
            Scale::Integer { last, .. } | Scale::Float { last, .. } => last,
            Scale::Text => u64::MAX,
        }
    }

    /// Returns the position of a coordinate; `None` outside the domain, for NaN, and for strings.
    pub fn position(&self, value: &Scalar) -> Option<u64> {
        let position = match (self.scale, value) {
            (Scale::Integer { low, .. }, Scalar::Signed(value)) => sortable(*value).wrapping_sub(low),
            (Scale::Integer { low, .. }, Scalar::Unsigned(value)) => value.wrapping_sub(low),
            (Scale::Float { low_bits, .. }, Scalar::Float32(value)) => {
                u64::from(sortable_f32(*value)).wrapping_sub(low_bits)
            }
            (Scale::Float { low_bits, .. }, Scalar::Float64(value)) => sortable_f64(*value).wrapping_sub(low_bits),
            _ => return None,
        };
        (position <= self.last()).then_some(position)
    }

    /// Returns the coordinates that cells in a stored box can have. This range is wider than the box if coordinates are
    /// rounded. It is wider for strings, too: some writers compare bytes as signed numbers, so a string between the two
    /// bounds in the writer's order may lie outside the bounds in ours.
    pub fn possible<'a>(&self, range: &'a Range) -> Cow<'a, Range> {
        if let Some(rounding) = &self.rounding {
            return Cow::Owned(rounding.around(range).unwrap_or_else(|| self.whole_type()));
        }
        let (Scalar::Text(low), Scalar::Text(high)) = (&range.low, &range.high) else { return Cow::Borrowed(range) };
        if low == high {
            return Cow::Borrowed(range);
        }
        if !(low.is_ascii() && high.is_ascii()) {
            return Cow::Owned(Range::of_texts_from(Scalar::Text(Vec::new())));
        }
        // In the writer's order a "negative" byte comes before `high` wherever the bytes in front of it come after
        // `low`.
        let shared = low.iter().zip(high).take_while(|(a, b)| a == b).count();
        let kept = if shared == low.len() { shared } else { shared + 1 };
        let high = [&high[..kept.min(high.len())], &BEYOND_TEXTS].concat();
        Cow::Owned(Range { low: range.low.clone(), high: Scalar::Text(high) })
    }

    /// Returns the first and the last position of a range, clipped to the domain; `None` if no coordinate is left.
    /// Rounded coordinates are not clipped, because they may lie outside the domain.
    ///
    /// # Errors
    /// [`Error::Usage`] for values of another type.
    pub fn clip(&self, range: &Range) -> Result<Option<(u64, u64)>> {
        let domain = match (self.scale, &range.low, &range.high) {
            (Scale::Integer { .. }, Scalar::Signed(_), Scalar::Signed(_)) if self.datatype.kind() == Kind::Signed => {
                Some((Scalar::Signed(self.signed(0)), Scalar::Signed(self.signed(self.last()))))
            }
            (Scale::Integer { low, last, .. }, Scalar::Unsigned(_), Scalar::Unsigned(_))
                if self.datatype.kind() == Kind::Unsigned =>
            {
                Some((Scalar::Unsigned(low), Scalar::Unsigned(low + last)))
            }
            (Scale::Float { low, high, .. }, Scalar::Float64(_), Scalar::Float64(_)) if self.datatype.size() == 8 => {
                Some((Scalar::Float64(low), Scalar::Float64(high)))
            }
            (Scale::Float { low, high, .. }, Scalar::Float32(_), Scalar::Float32(_)) if self.datatype.size() == 4 => {
                Some((Scalar::Float32(low as f32), Scalar::Float32(high as f32)))
            }
            _ => None,
        };
        let wrong = || Error::usage(format!("{} to {} is no range of {}", range.low, range.high, self.name));
        let (low, high) = domain.ok_or_else(wrong)?;
        if let Some(rounding) = &self.rounding {
            let ends = self.position(&range.low).zip(self.position(&range.high));
            return Ok(ends.filter(|_| range.is_ordered()).map(|ends| self.without_domain_ends(ends, rounding)));
        }
        if !range.is_ordered() || range.low.compare(&high).is_gt() || range.high.compare(&low).is_lt() {
            return Ok(None);
        }
        let low = if range.low.compare(&low).is_lt() { Some(0) } else { self.position(&range.low) };
        let high = if range.high.compare(&high).is_gt() { Some(self.last()) } else { self.position(&range.high) };
        Ok(low.zip(high))
    }

    /// Returns the position of the first coordinate in the domain that is `from` plus a multiple of `step`.
    pub fn first_step(&self, from: &Scalar, step: u64) -> Option<u64> {
        if let Some(position) = self.position(from) {
            return Some(position);
        }
        let below = match (self.scale, from) {
            (Scale::Integer { low, .. }, Scalar::Signed(from)) => low.checked_sub(sortable(*from)),
            (Scale::Integer { low, .. }, Scalar::Unsigned(from)) => low.checked_sub(*from),
            _ => None,
        };
        let past = below?.checked_rem(step)?;
        Some(if past == 0 { 0 } else { step - past })
    }

    /// Extends a range of positions that reaches an end of the domain to all numbers beyond this end, because
    /// coordinates may have been rounded to such numbers.
    fn without_domain_ends(&self, (low, high): (u64, u64), rounding: &Rounding) -> (u64, u64) {
        let (first, last) = rounding.domain;
        (if low <= first { 0 } else { low }, if high >= last { self.last() } else { high })
    }

    /// Returns a range of all numbers of the type.
    fn whole_type(&self) -> Range {
        let (low, high) = match (self.datatype.kind(), self.datatype.size()) {
            (Kind::Float, 4) => (Scalar::Float32(f32::NEG_INFINITY), Scalar::Float32(f32::INFINITY)),
            (Kind::Float, _) => (Scalar::Float64(f64::NEG_INFINITY), Scalar::Float64(f64::INFINITY)),
            (Kind::Signed, _) => (Scalar::Signed(i64::MIN), Scalar::Signed(i64::MAX)),
            _ => (Scalar::Unsigned(0), Scalar::Unsigned(u64::MAX)),
        };
        Range { low, high }
    }

    /// Returns the position in the domain that is nearest to the position of a rounded coordinate.
    fn in_domain(&self, position: u64) -> u64 {
        self.rounding.map_or(position, |rounding| position.clamp(rounding.domain.0, rounding.domain.1))
    }

    fn signed(&self, position: u64) -> i64 {
        match self.scale {
            Scale::Integer { low, .. } => (low.wrapping_add(position) ^ SIGN) as i64,
            _ => 0,
        }
    }

    /// Appends the positions of coordinates, given as little-endian bytes.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a coordinate outside the domain; the offset is its index among the given ones.
    pub fn positions(&self, bytes: &[u8], positions: &mut Vec<u64>) -> Result<()> {
        let before = positions.len();
        let (low, last) = match self.scale {
            Scale::Integer { low, last, .. } => (low, last),
            Scale::Float { low_bits, last, .. } => (low_bits, last),
            Scale::Text => return Err(Error::damaged("strings have no positions").in_field(&self.name)),
        };
        match (self.datatype.kind(), self.datatype.size()) {
            (Kind::Float, 4) => append(bytes, low, positions, |b| sortable_f32(f32::from_le_bytes(b)).into()),
            (Kind::Float, _) => append(bytes, low, positions, |b| sortable_f64(f64::from_le_bytes(b))),
            (Kind::Signed, 1) => append(bytes, low, positions, |b| sortable(i8::from_le_bytes(b).into())),
            (Kind::Signed, 2) => append(bytes, low, positions, |b| sortable(i16::from_le_bytes(b).into())),
            (Kind::Signed, 4) => append(bytes, low, positions, |b| sortable(i32::from_le_bytes(b).into())),
            (Kind::Signed, _) => append(bytes, low, positions, |b| sortable(i64::from_le_bytes(b))),
            (_, 1) => append(bytes, low, positions, |b: [u8; 1]| b[0].into()),
            (_, 2) => append(bytes, low, positions, |b| u16::from_le_bytes(b).into()),
            (_, 4) => append(bytes, low, positions, |b| u32::from_le_bytes(b).into()),
            (..) => append(bytes, low, positions, u64::from_le_bytes),
        }
        let added = &positions[before..];
        if added.iter().fold(0, |most, position| most.max(*position)) > last {
            let at = added.iter().position(|position| *position > last).unwrap_or(0);
            return Err(Error::damaged("a coordinate outside the domain").in_field(&self.name).at(at as u64));
        }
        Ok(())
    }

    /// Returns the index of the first coordinate in `bytes`, little-endian, whose position lies outside `first..=end`;
    /// `None` if there is none.
    pub fn find_outside(&self, bytes: &[u8], (first, end): (u64, u64)) -> Option<usize> {
        let low = match self.scale {
            Scale::Integer { low, .. } => low,
            Scale::Float { low_bits, .. } => low_bits,
            Scale::Text => return None,
        };
        let (low, last) = (low.wrapping_add(first), end.saturating_sub(first));
        match (self.datatype.kind(), self.datatype.size()) {
            (Kind::Float, 4) => outside(bytes, low, last, |b| sortable_f32(f32::from_le_bytes(b)).into()),
            (Kind::Float, _) => outside(bytes, low, last, |b| sortable_f64(f64::from_le_bytes(b))),
            (Kind::Signed, 1) => outside(bytes, low, last, |b| sortable(i8::from_le_bytes(b).into())),
            (Kind::Signed, 2) => outside(bytes, low, last, |b| sortable(i16::from_le_bytes(b).into())),
            (Kind::Signed, 4) => outside(bytes, low, last, |b| sortable(i32::from_le_bytes(b).into())),
            (Kind::Signed, _) => outside(bytes, low, last, |b| sortable(i64::from_le_bytes(b))),
            (_, 1) => outside(bytes, low, last, |b: [u8; 1]| b[0].into()),
            (_, 2) => outside(bytes, low, last, |b| u16::from_le_bytes(b).into()),
            (_, 4) => outside(bytes, low, last, |b| u32::from_le_bytes(b).into()),
            (..) => outside(bytes, low, last, u64::from_le_bytes),
        }
    }

    /// Returns the coordinate of a position as a double, from which Hilbert values and the tiles of 64-bit floats are
    /// computed. Exact for floats, rounded for integers beyond 2^53.
    pub fn number(&self, position: u64) -> f64 {
        match self.scale {
            Scale::Integer { low, .. } => {
                let value = low.wrapping_add(position);
                if self.datatype.kind() == Kind::Signed { (value ^ SIGN) as i64 as f64 } else { value as f64 }
            }
            Scale::Float { low_bits, .. } => {
                let bits = low_bits.wrapping_add(position);
                if self.datatype.size() == 4 { from_sortable_f32(bits as u32).into() } else { from_sortable_f64(bits) }
            }
            Scale::Text => 0.0,
        }
    }

    /// As [`KeyAxis::number`], for the nearest position in the domain.
    pub fn number_in_domain(&self, position: u64) -> f64 {
        self.number(self.in_domain(position))
    }

    /// Returns the domain as doubles.
    pub fn domain(&self) -> (f64, f64) {
        match self.scale {
            Scale::Float { low, high, .. } => (low, high),
            _ => (self.number_in_domain(0), self.number_in_domain(self.last())),
        }
    }

    /// Returns the number of the space tile that holds a position; for a position outside the domain, the nearest tile.
    /// Tiles of floats are computed in the type of the floats.
    pub fn tile(&self, position: u64) -> u64 {
        let position = self.in_domain(position);
        match self.scale {
            Scale::Integer { extent: Some(extent), .. } => (position - self.in_domain(0)) / extent,
            Scale::Float { low, extent: Some(extent), .. } if self.datatype.size() == 4 => {
                ((self.number(position) as f32 - low as f32) / extent as f32) as u64
            }
            Scale::Float { low, extent: Some(extent), .. } => ((self.number(position) - low) / extent) as u64,
            _ => 0,
        }
    }
}

impl Scale {
    /// Returns the same scale with positions for all numbers of the type.
    fn of_whole_type(self, datatype: Datatype) -> Self {
        match self {
            Scale::Integer { extent, .. } => Scale::Integer { low: 0, last: u64::MAX, extent },
            Scale::Float { low, high, extent, .. } => {
                let last = if datatype.size() == 4 { u32::MAX.into() } else { u64::MAX };
                Scale::Float { low, high, low_bits: 0, last, extent }
            }
            Scale::Text => Scale::Text,
        }
    }
}

const SIGN: u64 = 1 << 63;

fn scale(dimension: &Dimension) -> Option<Scale> {
    if dimension.is_variable() {
        return Some(Scale::Text);
    }
    let Range { low, high } = dimension.domain.as_ref()?;
    match (low, high) {
        (Scalar::Signed(low), Scalar::Signed(high)) => {
            let low = sortable(*low);
            Some(Scale::Integer { low, last: sortable(*high).checked_sub(low)?, extent: dimension.extent_length() })
        }
        (Scalar::Unsigned(low), Scalar::Unsigned(high)) => {
            Some(Scale::Integer { low: *low, last: high.checked_sub(*low)?, extent: dimension.extent_length() })
        }
        (Scalar::Float32(low), Scalar::Float32(high)) => {
            let low_bits = u64::from(sortable_f32(*low));
            let extent = match dimension.extent {
                Some(Scalar::Float32(extent)) => Some(extent.into()),
                _ => None,
            };
            let last = u64::from(sortable_f32(*high)).checked_sub(low_bits)?;
            Some(Scale::Float { low: (*low).into(), high: (*high).into(), low_bits, last, extent })
        }
        (Scalar::Float64(low), Scalar::Float64(high)) => {
            let low_bits = sortable_f64(*low);
            let extent = match dimension.extent {
                Some(Scalar::Float64(extent)) => Some(extent),
                _ => None,
            };
            let last = sortable_f64(*high).checked_sub(low_bits)?;
            Some(Scale::Float { low: *low, high: *high, low_bits, last, extent })
        }
        _ => None,
    }
}

fn append<const SIZE: usize>(bytes: &[u8], low: u64, positions: &mut Vec<u64>, parse: impl Fn([u8; SIZE]) -> u64) {
    let (values, _) = bytes.as_chunks();
    positions.extend(values.iter().map(|value| parse(*value).wrapping_sub(low)));
}

/// Returns the index of the first value whose distance from `low` exceeds `last`.
fn outside<const SIZE: usize>(bytes: &[u8], low: u64, last: u64, parse: impl Fn([u8; SIZE]) -> u64) -> Option<usize> {
    let (values, _) = bytes.as_chunks();
    let position = |value: &[u8; SIZE]| parse(*value).wrapping_sub(low);
    // Without an early exit, the loop can be vectorized. Below 2^63 the sign of a difference tells which value is less,
    // so processors without instructions for 64-bit comparisons can vectorize it, too.
    let is_any = in_wide_vectors(|| match last < SIGN {
        true => values.iter().map(&position).fold(0, |any, at| any | at | last.wrapping_sub(at)) >= SIGN,
        false => values.iter().map(&position).fold(0, u64::max) > last,
    });
    if is_any { values.iter().position(|value| position(value) > last) } else { None }
}

fn sortable(value: i64) -> u64 {
    value as u64 ^ SIGN
}

/// Adding zero turns -0.0 into 0.0: both are the same coordinate.
fn sortable_f64(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn sortable_f32(value: f32) -> u32 {
    let bits = (value + 0.0).to_bits();
    if bits >> 31 == 0 { bits | 1 << 31 } else { !bits }
}

fn from_sortable_f64(bits: u64) -> f64 {
    f64::from_bits(if bits & SIGN == 0 { !bits } else { bits ^ SIGN })
}

fn from_sortable_f32(bits: u32) -> f32 {
    f32::from_bits(if bits >> 31 == 0 { !bits } else { bits ^ 1 << 31 })
}

/// Longest string that [`text_word`] holds completely.
const WHOLE_TEXT: usize = 7;

/// Returns the first seven bytes of a string and its length, at most 8, so that words sort as the strings do. Equal
/// words of longer strings ([`is_cut`]) leave the order open.
pub fn text_word(text: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = text.len().min(WHOLE_TEXT);
    bytes[..length].copy_from_slice(&text[..length]);
    bytes[WHOLE_TEXT] = text.len().min(WHOLE_TEXT + 1) as u8;
    u64::from_be_bytes(bytes)
}

/// Returns whether a word from [`text_word`] holds only the beginning of its string.
pub fn is_cut(word: u64) -> bool {
    (word & 0xff) as usize > WHOLE_TEXT
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use proptest::prelude::*;
    use tilefs_format::pipeline::Filter;
    use tilefs_format::schema::CellValNum;

    use super::*;

    fn axis(datatype: Datatype, low: Scalar, high: Scalar, extent: Option<Scalar>) -> KeyAxis {
        let dimension = Dimension {
            name: "d".to_owned(),
            datatype,
            cell_count: CellValNum::Fixed(1),
            filters: Pipeline::default(),
            domain: Some(Range { low, high }),
            extent,
        };
        KeyAxis::new(&dimension, &dimension.filters).unwrap()
    }

    /// Numbers, most of them near those where signs and sums overflow.
    fn edge() -> impl Strategy<Value = u64> {
        (prop_oneof![Just(0), Just(SIGN), any::<u64>()], 0u64..4, any::<bool>())
            .prop_map(|(near, by, above)| if above { near.wrapping_add(by) } else { near.wrapping_sub(by) })
    }

    #[test]
    fn tiles_count_from_the_low_end() {
        let axis = axis(Datatype::Int8, Scalar::Signed(-128), Scalar::Signed(127), Some(Scalar::Signed(10)));
        let tile = |value| axis.tile(axis.position(&Scalar::Signed(value)).unwrap());
        assert_eq!([tile(-128), tile(-119), tile(-118), tile(127)], [0, 0, 1, 25]);
        assert_eq!(axis.number(0), -128.0);
    }

    #[test]
    fn what_lies_outside_is_refused() {
        let floats = axis(Datatype::Float32, Scalar::Float32(-1.0), Scalar::Float32(1.0), None);
        for value in [f32::NAN, -f32::NAN, 1.5, -1.0001, f32::INFINITY] {
            assert_eq!(floats.position(&Scalar::Float32(value)), None);
            assert!(floats.positions(&value.to_le_bytes(), &mut Vec::new()).is_err(), "{value}");
        }
        let whole = axis(Datatype::Int64, Scalar::Signed(i64::MIN), Scalar::Signed(i64::MAX), None);
        assert_eq!(whole.position(&Scalar::Signed(i64::MAX)), Some(u64::MAX));
        let few = axis(Datatype::UInt16, Scalar::Unsigned(3), Scalar::Unsigned(5), None);
        let bytes: Vec<u8> = [3u16, 5, 2].iter().flat_map(|value| value.to_le_bytes()).collect();
        let error = few.positions(&bytes, &mut Vec::new()).unwrap_err();
        assert_eq!(error.place().unwrap().offset, Some(2));
    }

    #[test]
    fn rounded_coordinates_have_positions_outside_the_domain() {
        let filters = vec![Filter::ScaleFloat { scale: 1.0, offset: 0.0, byte_width: 4 }];
        let rounded = |datatype: Datatype, low: Scalar, high: Scalar, extent: Scalar| {
            let dimension = Dimension {
                name: "d".to_owned(),
                datatype,
                cell_count: CellValNum::Fixed(1),
                filters: Pipeline { max_chunk_size: 65536, filters: filters.clone() },
                domain: Some(Range { low, high }),
                extent: Some(extent),
            };
            KeyAxis::new(&dimension, &dimension.filters).unwrap()
        };
        let check = |axis: &KeyAxis, values: &[(Scalar, u64)]| {
            let positions: Vec<u64> = values.iter().map(|(value, _)| axis.position(value).unwrap()).collect();
            assert!(positions.windows(2).all(|two| two[0] < two[1]), "{positions:?}");
            let tiles = positions.iter().map(|position| axis.tile(*position));
            assert!(tiles.eq(values.iter().map(|(_, tile)| *tile)), "{values:?}");
            assert_eq!([axis.tile(0), axis.tile(axis.last())], [values[0].1, values[values.len() - 1].1]);
            let whole =
                axis.possible(&Range { low: Scalar::Float64(f64::NAN), high: Scalar::Unsigned(0) }).into_owned();
            let ends = [&whole.low, &whole.high].map(|end| axis.position(end).unwrap());
            assert!(ends[0] <= positions[0] && ends[1] >= positions[positions.len() - 1]);
        };
        let floats = rounded(Datatype::Float64, Scalar::Float64(-0.4), Scalar::Float64(10.3), Scalar::Float64(5.0));
        let tiles = [(f64::NEG_INFINITY, 0), (-1.0, 0), (-0.4, 0), (0.0, 0), (4.7, 1), (10.3, 2), (1e300, 2)];
        check(&floats, &tiles.map(|(value, tile)| (Scalar::Float64(value), tile)));
        assert_eq!(floats.domain(), (-0.4, 10.3));
        let singles = rounded(Datatype::Float32, Scalar::Float32(-0.4), Scalar::Float32(10.3), Scalar::Float32(5.0));
        check(&singles, &tiles.map(|(value, tile)| (Scalar::Float32(value as f32), tile)));
        let integers = rounded(Datatype::Int32, Scalar::Signed(-3), Scalar::Signed(12), Scalar::Signed(5));
        let tiles = [(i32::MIN, 0), (-4, 0), (-3, 0), (1, 0), (2, 1), (12, 3), (13, 3), (i32::MAX, 3)];
        check(&integers, &tiles.map(|(value, tile)| (Scalar::Signed(value.into()), tile)));
        assert_eq!(integers.domain(), (-3.0, 12.0));
        assert_eq!(integers.number(integers.position(&Scalar::Signed(-7)).unwrap()), -7.0);
    }

    proptest! {
        #[test]
        fn floats_sort_as_their_positions(a in any::<f64>(), b in any::<f64>()) {
            let axis = axis(Datatype::Float64, Scalar::Float64(f64::MIN), Scalar::Float64(f64::MAX), None);
            if let (Some(x), Some(y)) = (axis.position(&Scalar::Float64(a)), axis.position(&Scalar::Float64(b))) {
                prop_assert_eq!(x.cmp(&y), a.partial_cmp(&b).unwrap());
                prop_assert_eq!(axis.number(x), a);
            }
        }

        #[test]
        fn integers_sort_as_their_positions(a in any::<i16>(), b in any::<i16>()) {
            let axis = axis(Datatype::Int16, Scalar::Signed(-32768), Scalar::Signed(32767), None);
            let mut positions = Vec::new();
            axis.positions(&[a.to_le_bytes(), b.to_le_bytes()].concat(), &mut positions).unwrap();
            prop_assert_eq!(positions[0].cmp(&positions[1]), a.cmp(&b));
            prop_assert_eq!(axis.position(&Scalar::Signed(a.into())), Some(positions[0]));
            prop_assert_eq!(axis.number(positions[0]), f64::from(a));
        }

        #[test]
        fn the_first_outside_is_found(
            low in edge(),
            last in edge(),
            values in prop::collection::vec(edge(), 0..20),
        ) {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            let due = values.iter().position(|value| value.wrapping_sub(low) > last);
            prop_assert_eq!(outside(&bytes, low, last, u64::from_le_bytes), due);
        }

        #[test]
        fn strings_between_signed_bounds_are_possible(mut texts in prop::collection::vec("[aé]{0,4}", 3)) {
            texts.sort_by_key(|text| text.bytes().map(|byte| byte as i8).collect::<Vec<_>>());
            let texts: Vec<Vec<u8>> = texts.into_iter().map(String::into_bytes).collect();
            let axis = KeyAxis { name: "d".to_owned(), datatype: Datatype::StringAscii, scale: Scale::Text, rounding: None };
            let range = Range { low: Scalar::Text(texts[0].clone()), high: Scalar::Text(texts[2].clone()) };
            prop_assert!(axis.possible(&range).contains(&Scalar::Text(texts[1].clone())));
        }

        #[test]
        fn words_sort_as_their_strings(a in "[\u{0}a-c]{0,10}", b in "[\u{0}a-c]{0,10}") {
            let (x, y) = (text_word(a.as_bytes()), text_word(b.as_bytes()));
            if x != y || !is_cut(x) {
                prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            }
            if a.cmp(&b) == Ordering::Less {
                prop_assert!(x <= y);
            }
        }
    }
}
