//! The datatypes of attributes and dimensions (the format's `Datatype` enumeration).

use tilefs_base::error::{Error, Result};

use crate::time_unit::TimeUnit;

/// Defines [`Datatype`] from a table: the variant, its number on disk, and its name in TileDB's C API without the
/// prefix.
macro_rules! datatypes {
    ($($datatype:ident = $number:literal, $name:literal;)*) => {
        /// A TileDB datatype. The discriminant is its number on disk.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[allow(missing_docs, reason = "the names of TileDB's C API")]
        pub enum Datatype {
            $($datatype = $number,)*
        }

        impl Datatype {
            /// Returns the datatype of a stored number.
            ///
            /// # Errors
            /// [`Error::Unsupported`] for an unknown number.
            pub fn from_number(number: u8) -> Result<Self> {
                match number {
                    $($number => Ok($datatype),)*
                    _ => Err(Error::unsupported(format!("datatype number {number}"))),
                }
            }

            /// Returns the name in TileDB's C API, without the prefix.
            pub fn name(self) -> &'static str {
                match self {
                    $($datatype => $name,)*
                }
            }
        }
    };
}

datatypes! {
    Int32 = 0, "INT32";
    Int64 = 1, "INT64";
    Float32 = 2, "FLOAT32";
    Float64 = 3, "FLOAT64";
    Char = 4, "CHAR";
    Int8 = 5, "INT8";
    UInt8 = 6, "UINT8";
    Int16 = 7, "INT16";
    UInt16 = 8, "UINT16";
    UInt32 = 9, "UINT32";
    UInt64 = 10, "UINT64";
    StringAscii = 11, "STRING_ASCII";
    StringUtf8 = 12, "STRING_UTF8";
    StringUtf16 = 13, "STRING_UTF16";
    StringUtf32 = 14, "STRING_UTF32";
    StringUcs2 = 15, "STRING_UCS2";
    StringUcs4 = 16, "STRING_UCS4";
    Any = 17, "ANY";
    DateTimeYear = 18, "DATETIME_YEAR";
    DateTimeMonth = 19, "DATETIME_MONTH";
    DateTimeWeek = 20, "DATETIME_WEEK";
    DateTimeDay = 21, "DATETIME_DAY";
    DateTimeHr = 22, "DATETIME_HR";
    DateTimeMin = 23, "DATETIME_MIN";
    DateTimeSec = 24, "DATETIME_SEC";
    DateTimeMs = 25, "DATETIME_MS";
    DateTimeUs = 26, "DATETIME_US";
    DateTimeNs = 27, "DATETIME_NS";
    DateTimePs = 28, "DATETIME_PS";
    DateTimeFs = 29, "DATETIME_FS";
    DateTimeAs = 30, "DATETIME_AS";
    TimeHr = 31, "TIME_HR";
    TimeMin = 32, "TIME_MIN";
    TimeSec = 33, "TIME_SEC";
    TimeMs = 34, "TIME_MS";
    TimeUs = 35, "TIME_US";
    TimeNs = 36, "TIME_NS";
    TimePs = 37, "TIME_PS";
    TimeFs = 38, "TIME_FS";
    TimeAs = 39, "TIME_AS";
    Blob = 40, "BLOB";
    Bool = 41, "BOOL";
    GeomWkb = 42, "GEOM_WKB";
    GeomWkt = 43, "GEOM_WKT";
}

use Datatype::*;

/// The interpretation of a value's bytes, for arithmetic and comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Signed integers, including dates and times.
    Signed,
    /// Unsigned integers, including wide characters.
    Unsigned,
    /// IEEE 754 numbers.
    Float,
    /// Text, blobs, geometries: compared bytewise, never added.
    Bytes,
}

impl Datatype {
    /// Returns the bytes of one value: 1, 2, 4 or 8.
    pub fn size(self) -> usize {
        match self {
            Char | Int8 | UInt8 | StringAscii | StringUtf8 | Any | Blob | Bool | GeomWkb | GeomWkt => 1,
            Int16 | UInt16 | StringUtf16 | StringUcs2 => 2,
            Int32 | UInt32 | Float32 | StringUtf32 | StringUcs4 => 4,
            _ => 8,
        }
    }

    /// Returns the interpretation of a value's bytes. Dates and times are signed counts; `BOOL` is unsigned.
    pub fn kind(self) -> Kind {
        match self {
            Int8 | Int16 | Int32 | Int64 => Kind::Signed,
            UInt8 | UInt16 | UInt32 | UInt64 | Bool => Kind::Unsigned,
            Float32 | Float64 => Kind::Float,
            _ if self.is_datetime() || self.is_time() => Kind::Signed,
            _ => Kind::Bytes,
        }
    }

    /// Returns whether this is a `DATETIME_*` type: a signed 64-bit count since 1970-01-01 in the unit of the name.
    pub fn is_datetime(self) -> bool {
        (DateTimeYear as u8..=DateTimeAs as u8).contains(&(self as u8))
    }

    /// Returns whether this is a `TIME_*` type: a signed 64-bit count since midnight in the unit of the name.
    pub fn is_time(self) -> bool {
        (TimeHr as u8..=TimeAs as u8).contains(&(self as u8))
    }

    /// Returns whether this is text of any encoding, including `CHAR`.
    pub fn is_string(self) -> bool {
        matches!(self, Char | StringAscii | StringUtf8 | StringUtf16 | StringUtf32 | StringUcs2 | StringUcs4)
    }

    /// Returns the unit of a date or time.
    pub fn time_unit(self) -> Option<TimeUnit> {
        if self.is_datetime() {
            TimeUnit::finer_than(TimeUnit::Year, self as usize - DateTimeYear as usize)
        } else if self.is_time() {
            TimeUnit::finer_than(TimeUnit::Hour, self as usize - TimeHr as usize)
        } else {
            None
        }
    }

    /// Returns one element of the default fill value, which TileDB uses where none is stored.
    pub fn default_fill(self) -> &'static [u8] {
        match self {
            Int8 | Char => &[0x80],
            Int16 => &[0, 0x80],
            Int32 => &[0, 0, 0, 0x80],
            UInt8 => &[0xff],
            UInt16 => &[0xff; 2],
            UInt32 => &[0xff; 4],
            UInt64 => &[0xff; 8],
            Float32 => &[0, 0, 0xc0, 0x7f],
            Float64 => &[0, 0, 0, 0, 0, 0, 0xf8, 0x7f],
            StringAscii | StringUtf8 | Any | Blob | Bool | GeomWkb | GeomWkt => &[0],
            StringUtf16 | StringUcs2 => &[0; 2],
            StringUtf32 | StringUcs4 => &[0; 4],
            _ => &[0, 0, 0, 0, 0, 0, 0, 0x80],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip() {
        for number in 0..44 {
            let datatype = Datatype::from_number(number).unwrap();
            assert_eq!(datatype as u8, number);
            assert_eq!(datatype.default_fill().len(), datatype.size(), "{}", datatype.name());
        }
        assert!(Datatype::from_number(44).is_err());
    }

    #[test]
    fn units_follow_the_names() {
        assert_eq!(DateTimeDay.time_unit(), Some(TimeUnit::Day));
        assert_eq!(DateTimeAs.time_unit(), Some(TimeUnit::Attosecond));
        assert_eq!(TimeHr.time_unit(), Some(TimeUnit::Hour));
        assert_eq!(TimeAs.time_unit(), Some(TimeUnit::Attosecond));
        assert_eq!(Blob.time_unit(), None);
    }
}
