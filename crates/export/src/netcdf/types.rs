//! The representation of TileDB's datatypes in the forms of netCDF.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::text::is_text;

use crate::cf::{NOT_A_TIME, counted_days, days_of};
use crate::content::element::{Converted, ConvertedColumn, Swapped};
use crate::content::refusal::TOO_FAR;
use crate::number;

/// The forms of netCDF in which an array can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// 64-bit offsets: six types, at most 4 GiB per variable except the last.
    Cdf2,
    /// 64-bit data: unsigned and 64-bit integers, any size.
    Cdf5,
    /// HDF5: the types of CDF-5 and strings, with little-endian values.
    NetCdf4,
}

impl Version {
    /// Returns whether it is one of the two classic formats.
    pub(crate) fn is_classic(self) -> bool {
        self != Version::NetCdf4
    }
}

/// The external types of netCDF, by their numbers. CDF-2 lacks those from `UByte` on, and only netCDF-4 has `String`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NcType {
    Byte = 1,
    Char = 2,
    Short = 3,
    Int = 4,
    Float = 5,
    Double = 6,
    UByte = 7,
    UShort = 8,
    UInt = 9,
    Int64 = 10,
    UInt64 = 11,
    String = 12,
}

impl NcType {
    /// Returns the size of one value in bytes; for a string, that of its ID in the global heap.
    pub fn size(self) -> usize {
        match self {
            NcType::String => 16,
            NcType::Byte | NcType::Char | NcType::UByte => 1,
            NcType::Short | NcType::UShort => 2,
            NcType::Int | NcType::Float | NcType::UInt => 4,
            NcType::Double | NcType::Int64 | NcType::UInt64 => 8,
        }
    }

    /// Returns the big-endian value that netCDF's library writes for cells which nobody wrote, if the variable has no
    /// `_FillValue`; `None` for types of text.
    pub fn default_fill(self) -> Option<Vec<u8>> {
        // The library has one number for both types.
        const FLOAT: f32 = 9.969_21e36;
        Some(match self {
            NcType::Char | NcType::String => return None,
            NcType::Byte => (-127i8).to_be_bytes().to_vec(),
            NcType::Short => (-32_767i16).to_be_bytes().to_vec(),
            NcType::Int => (-2_147_483_647i32).to_be_bytes().to_vec(),
            NcType::Float => FLOAT.to_be_bytes().to_vec(),
            NcType::Double => f64::from(FLOAT).to_be_bytes().to_vec(),
            NcType::UByte => u8::MAX.to_be_bytes().to_vec(),
            NcType::UShort => u16::MAX.to_be_bytes().to_vec(),
            NcType::UInt => u32::MAX.to_be_bytes().to_vec(),
            NcType::Int64 => (i64::MIN + 2).to_be_bytes().to_vec(),
            NcType::UInt64 => (u64::MAX - 1).to_be_bytes().to_vec(),
        })
    }
}

/// The representation of the values of a datatype.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NcEncoding {
    pub nc_type: NcType,
    /// Whether the type is signed but the values are unsigned, which the attribute `_Unsigned` states.
    pub unsigned: bool,
    datatype: Datatype,
}

impl NcEncoding {
    /// Returns the encoding of values that lie within `bounds`, if known. `None` if CDF-2 has no type that is certain
    /// to hold them.
    pub fn of(datatype: Datatype, bounds: Option<(i128, i128)>, version: Version) -> Option<Self> {
        let old = version == Version::Cdf2;
        let unsigned = |old_type, new_type| if old { (old_type, true) } else { (new_type, false) };
        let (nc_type, unsigned) = match (datatype.kind(), datatype.size()) {
            (Kind::Bytes, 1) if is_text(datatype) => (NcType::Char, false),
            _ if datatype == Datatype::Bool => (NcType::Byte, false),
            (Kind::Signed, 1) => (NcType::Byte, false),
            (Kind::Signed, 2) => (NcType::Short, false),
            (Kind::Signed, 4) => (NcType::Int, false),
            (Kind::Float, 4) => (NcType::Float, false),
            (Kind::Float, _) => (NcType::Double, false),
            (Kind::Unsigned | Kind::Bytes, 1) => unsigned(NcType::Byte, NcType::UByte),
            (Kind::Unsigned | Kind::Bytes, 2) => unsigned(NcType::Short, NcType::UShort),
            (Kind::Unsigned | Kind::Bytes, 4) => unsigned(NcType::Int, NcType::UInt),
            (Kind::Signed, _) if !old => (NcType::Int64, false),
            (Kind::Unsigned | Kind::Bytes, _) if !old => (NcType::UInt64, false),
            _ => (narrow(datatype, bounds?)?, false),
        };
        Some(NcEncoding { nc_type, unsigned, datatype })
    }

    /// Converts little-endian values of the datatype to big-endian values of the type. A date too far away to be a number
    /// of days becomes "not a time". Errors name the column `name`.
    pub fn apply(self, values: Arc<dyn Content>, name: &str) -> Arc<dyn Content> {
        let column = ConvertedColumn::new(name);
        let count = move |value: i64| self.count(value);
        let is_date = counted_days(self.datatype).is_some();
        let refused = |integer: &'static str| if is_date { TOO_FAR } else { integer };
        match self.nc_type {
            _ if self.datatype.size() < 8 || self.datatype == Datatype::Float64 => {}
            NcType::Int => {
                let each = move |value| i32::try_from(count(value)?).ok().map(i32::to_be_bytes);
                return Arc::new(Converted::integers(values, refused("no integer of 32 bits"), column, each));
            }
            NcType::Double => {
                let fits = |value: &i64| number::is_exact(*value);
                let each = move |value| count(value).filter(fits).map(|value| (value as f64).to_be_bytes());
                return Arc::new(Converted::integers(values, refused("no integer that a double holds"), column, each));
            }
            _ => {
                if let Some(days) = counted_days(self.datatype) {
                    // An error would be one of the whole file: netCDF's library reads 4 MiB with the header.
                    let each = move |value| Some(days(value).unwrap_or(NOT_A_TIME).to_be_bytes());
                    return Arc::new(Converted::integers(values, TOO_FAR, column, each));
                }
            }
        }
        match self.nc_type.size() {
            1 => values,
            size => Arc::new(Swapped::new(values, size)),
        }
    }

    /// As [`NcEncoding::apply`], to little-endian values of the type, if that has the same size.
    pub fn apply_little_endian(self, values: Arc<dyn Content>, name: &str) -> Arc<dyn Content> {
        let Some(days) = counted_days(self.datatype) else { return values };
        let each = move |value| Some(days(value).unwrap_or(NOT_A_TIME).to_le_bytes());
        Arc::new(Converted::integers(values, TOO_FAR, ConvertedColumn::new(name), each))
    }

    /// Returns the big-endian number of "not a time", if the values are days that all 64-bit integers count.
    pub fn not_a_time(self) -> Option<Vec<u8>> {
        let is_days = self.nc_type == NcType::Int64 && days_of(self.datatype).is_some();
        is_days.then(|| NOT_A_TIME.to_be_bytes().to_vec())
    }

    /// Converts one value to big-endian; `None` if it does not fit.
    pub fn apply_to(self, value: &[u8]) -> Option<Vec<u8>> {
        if let (Some(days), Ok(value)) = (counted_days(self.datatype), value.try_into()) {
            days(i64::from_le_bytes(value))?;
        }
        let encoded = self.apply(Arc::new(value.to_vec()), "");
        let mut bytes = vec![0; self.nc_type.size()];
        encoded.read_at(0, &mut bytes).ok().map(|()| bytes)
    }

    /// Returns the number that is stored for a 64-bit integer or date.
    fn count(self, value: i64) -> Option<i64> {
        match counted_days(self.datatype) {
            _ if self.datatype.kind() == Kind::Unsigned && value < 0 => None,
            Some(days) => days(value),
            None => Some(value),
        }
    }
}

/// Returns the type of CDF-2 that holds all 64-bit integers or dates within the bounds.
fn narrow(datatype: Datatype, (lowest, highest): (i128, i128)) -> Option<NcType> {
    let days = |value: i128| match days_of(datatype) {
        Some(days) => i64::try_from(value).ok().and_then(days).map(i128::from),
        None => Some(value),
    };
    let (lowest, highest) = (days(lowest)?, days(highest)?);
    let both = |is_held: fn(i128) -> bool| is_held(lowest) && is_held(highest);
    let is_int = |value: i128| value.unsigned_abs() <= i32::MAX.unsigned_abs().into();
    if both(is_int) { Some(NcType::Int) } else { both(number::is_exact).then_some(NcType::Double) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read_all;
    use Datatype::*;

    #[test]
    fn cdf2_accepts_only_values_certain_to_fit() {
        let of = |datatype, bounds| NcEncoding::of(datatype, bounds, Version::Cdf2);
        assert_eq!(of(Int64, None), None);
        assert_eq!(of(Int64, Some((-5, 1 << 31))).unwrap().nc_type, NcType::Double);
        assert_eq!(of(Int64, Some((-5, (1 << 31) - 1))).unwrap().nc_type, NcType::Int);
        assert_eq!(of(UInt64, Some((0, 1 << 54))), None);
        assert_eq!(of(DateTimeYear, Some((0, 60))).unwrap().nc_type, NcType::Int);
        // 2^53 years have more days than a double counts exactly.
        assert_eq!(of(DateTimeYear, Some((0, 1 << 53))), None);
        assert!(of(UInt16, None).unwrap().unsigned);
        assert!(!NcEncoding::of(UInt16, None, Version::Cdf5).unwrap().unsigned);
        for number in 0..44 {
            assert!(NcEncoding::of(Datatype::from_number(number).unwrap(), None, Version::Cdf5).is_some());
        }
    }

    #[test]
    fn default_fill_values_are_those_of_the_library() {
        // NC_FILL_FLOAT and NC_FILL_DOUBLE of netcdf.h.
        assert_eq!(NcType::Float.default_fill(), Some(9.969_21e36_f32.to_be_bytes().to_vec()));
        assert_eq!(NcType::Double.default_fill(), Some(9.969_209_968_386_869e36_f64.to_be_bytes().to_vec()));
        assert_eq!(NcType::Int64.default_fill(), Some((-9_223_372_036_854_775_806_i64).to_be_bytes().to_vec()));
        assert_eq!(NcType::UInt64.default_fill(), Some(18_446_744_073_709_551_614_u64.to_be_bytes().to_vec()));
        assert_eq!(NcType::Char.default_fill(), None);
    }

    #[test]
    fn values_are_converted_or_refused() {
        let wide = |value: i64| value.to_le_bytes();
        let int = NcEncoding::of(UInt64, Some((0, 9)), Version::Cdf2).unwrap();
        assert_eq!(int.apply_to(&wide(7)), Some(7i32.to_be_bytes().to_vec()));
        assert_eq!(int.apply_to(&wide(-1)), None, "2^64-1 is not -1");
        let double = NcEncoding::of(Int64, Some((0, 1 << 40)), Version::Cdf2).unwrap();
        assert_eq!(double.apply_to(&wide(1 << 40)), Some(((1i64 << 40) as f64).to_be_bytes().to_vec()));
        assert_eq!(double.apply_to(&wide(i64::MIN)), None);
        let years = NcEncoding::of(DateTimeYear, None, Version::Cdf5).unwrap();
        assert_eq!(years.apply_to(&wide(1)), Some(365i64.to_be_bytes().to_vec()));
        assert_eq!(years.apply_to(&wide(i64::MIN)), Some(i64::MIN.to_be_bytes().to_vec()));
        assert_eq!(years.apply_to(&wide(i64::MAX)), None);
        let both = |values: [i64; 2]| Arc::new(values.map(wide).concat());
        assert_eq!(read_all(&*years.apply(both([i64::MIN, 1]), "a")), [i64::MIN, 365].map(i64::to_be_bytes).concat());
        let little = |values| years.apply_little_endian(both(values), "a");
        assert_eq!(read_all(&*little([i64::MIN, 1])), [i64::MIN, 365].map(i64::to_le_bytes).concat());
        let far = read_all(&*years.apply(both([1, i64::MAX]), "a"));
        assert_eq!(far, [365, i64::MIN].map(i64::to_be_bytes).concat());
        assert_eq!(read_all(&*little([1, i64::MIN + 1])), [365, i64::MIN].map(i64::to_le_bytes).concat());
        let days = NcEncoding::of(DateTimeDay, None, Version::Cdf5).unwrap();
        assert_eq!(days.apply_to(&wide(i64::MAX)), Some(i64::MAX.to_be_bytes().to_vec()));
        let float = NcEncoding::of(Float64, None, Version::Cdf2).unwrap();
        assert_eq!(float.apply_to(&1.5f64.to_le_bytes()), Some(1.5f64.to_be_bytes().to_vec()));
    }
}
