//! The datatypes of attributes and dimensions (the format's `Datatype` enumeration).

use crate::error::{Error, Result};

/// A TileDB datatype, by its number on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names of TileDB's C API")]
pub enum Datatype {
    Int32 = 0,
    Int64 = 1,
    Float32 = 2,
    Float64 = 3,
    Char = 4,
    Int8 = 5,
    UInt8 = 6,
    Int16 = 7,
    UInt16 = 8,
    UInt32 = 9,
    UInt64 = 10,
    StringAscii = 11,
    StringUtf8 = 12,
    StringUtf16 = 13,
    StringUtf32 = 14,
    StringUcs2 = 15,
    StringUcs4 = 16,
    Any = 17,
    DateTimeYear = 18,
    DateTimeMonth = 19,
    DateTimeWeek = 20,
    DateTimeDay = 21,
    DateTimeHr = 22,
    DateTimeMin = 23,
    DateTimeSec = 24,
    DateTimeMs = 25,
    DateTimeUs = 26,
    DateTimeNs = 27,
    DateTimePs = 28,
    DateTimeFs = 29,
    DateTimeAs = 30,
    TimeHr = 31,
    TimeMin = 32,
    TimeSec = 33,
    TimeMs = 34,
    TimeUs = 35,
    TimeNs = 36,
    TimePs = 37,
    TimeFs = 38,
    TimeAs = 39,
    Blob = 40,
    Bool = 41,
    GeomWkb = 42,
    GeomWkt = 43,
}

use Datatype::*;

/// All datatypes in the order of their numbers, so that `ALL[n] as u8 == n`.
const ALL: [Datatype; 44] = [
    Int32,
    Int64,
    Float32,
    Float64,
    Char,
    Int8,
    UInt8,
    Int16,
    UInt16,
    UInt32,
    UInt64,
    StringAscii,
    StringUtf8,
    StringUtf16,
    StringUtf32,
    StringUcs2,
    StringUcs4,
    Any,
    DateTimeYear,
    DateTimeMonth,
    DateTimeWeek,
    DateTimeDay,
    DateTimeHr,
    DateTimeMin,
    DateTimeSec,
    DateTimeMs,
    DateTimeUs,
    DateTimeNs,
    DateTimePs,
    DateTimeFs,
    DateTimeAs,
    TimeHr,
    TimeMin,
    TimeSec,
    TimeMs,
    TimeUs,
    TimeNs,
    TimePs,
    TimeFs,
    TimeAs,
    Blob,
    Bool,
    GeomWkb,
    GeomWkt,
];

const NAMES: [&str; 44] = [
    "INT32",
    "INT64",
    "FLOAT32",
    "FLOAT64",
    "CHAR",
    "INT8",
    "UINT8",
    "INT16",
    "UINT16",
    "UINT32",
    "UINT64",
    "STRING_ASCII",
    "STRING_UTF8",
    "STRING_UTF16",
    "STRING_UTF32",
    "STRING_UCS2",
    "STRING_UCS4",
    "ANY",
    "DATETIME_YEAR",
    "DATETIME_MONTH",
    "DATETIME_WEEK",
    "DATETIME_DAY",
    "DATETIME_HR",
    "DATETIME_MIN",
    "DATETIME_SEC",
    "DATETIME_MS",
    "DATETIME_US",
    "DATETIME_NS",
    "DATETIME_PS",
    "DATETIME_FS",
    "DATETIME_AS",
    "TIME_HR",
    "TIME_MIN",
    "TIME_SEC",
    "TIME_MS",
    "TIME_US",
    "TIME_NS",
    "TIME_PS",
    "TIME_FS",
    "TIME_AS",
    "BLOB",
    "BOOL",
    "GEOM_WKB",
    "GEOM_WKT",
];

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
    /// Returns the datatype of a stored number.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for an unknown number.
    pub fn from_number(number: u8) -> Result<Self> {
        ALL.get(usize::from(number)).copied().ok_or_else(|| Error::unsupported(format!("datatype number {number}")))
    }

    /// Returns the name in TileDB's C API, without the prefix.
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }

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

    /// Returns the unit of a date or time in NumPy's spelling (`Y M W D h m s ms us ns ps fs as`).
    pub fn time_unit(self) -> Option<&'static str> {
        const UNITS: [&str; 13] = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"];
        if self.is_datetime() {
            Some(UNITS[self as usize - DateTimeYear as usize])
        } else if self.is_time() {
            Some(UNITS[self as usize - TimeHr as usize + 4])
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
        assert_eq!(DateTimeDay.time_unit(), Some("D"));
        assert_eq!(DateTimeAs.time_unit(), Some("as"));
        assert_eq!(TimeHr.time_unit(), Some("h"));
        assert_eq!(TimeAs.time_unit(), Some("as"));
        assert_eq!(Blob.time_unit(), None);
    }
}
