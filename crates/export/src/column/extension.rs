//! The extension of a raw file's name: it tells other programs the type of the values.

use tilefs_format::datatype::{Datatype, Kind};

/// Returns the extension for values of a datatype: `i8 u8 i16 u16 i32 u32 i64 u64 f32 f64 bool` or `bytes`.
///
/// Dates and times are `i64`; UTF-16 and UTF-32 text are `u16` and `u32`.
pub fn of_datatype(datatype: Datatype) -> &'static str {
    match (datatype.kind(), datatype.size()) {
        _ if datatype == Datatype::Bool => "bool",
        (Kind::Signed, 1) => "i8",
        (Kind::Signed, 2) => "i16",
        (Kind::Signed, 4) => "i32",
        (Kind::Signed, _) => "i64",
        (Kind::Unsigned, 1) => "u8",
        (Kind::Unsigned | Kind::Bytes, 2) => "u16",
        (Kind::Unsigned | Kind::Bytes, 4) => "u32",
        (Kind::Unsigned, _) => "u64",
        (Kind::Float, 4) => "f32",
        (Kind::Float, _) => "f64",
        (Kind::Bytes, _) => "bytes",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_datatype_has_the_extension_of_its_width() {
        for number in 0..44 {
            let datatype = Datatype::from_number(number).unwrap();
            let extension = of_datatype(datatype);
            let bits = 8 * datatype.size();
            match extension {
                "bytes" | "bool" => assert_eq!(bits, 8),
                _ => assert!(extension.ends_with(&bits.to_string()), "{} is {extension}", datatype.name()),
            }
        }
        assert_eq!(of_datatype(Datatype::DateTimeDay), "i64");
        assert_eq!(of_datatype(Datatype::StringUcs2), "u16");
        assert_eq!(of_datatype(Datatype::GeomWkb), "bytes");
        assert_eq!(of_datatype(Datatype::Bool), "bool");
    }
}
