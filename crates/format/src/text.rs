//! Stored strings as Unicode: the datatypes that are text, and how to decode them.

use std::borrow::Cow;

use super::datatype::Datatype;

/// Returns whether values of a datatype are readable text: strings of any encoding, and geometries written as text
/// (WKT).
pub fn is_text(datatype: Datatype) -> bool {
    datatype.is_string() || datatype == Datatype::GeomWkt
}

/// Returns whether values of a datatype are text whose bytes are UTF-8. `CHAR` states no encoding.
pub fn is_utf8(datatype: Datatype) -> bool {
    matches!(datatype, Datatype::StringAscii | Datatype::StringUtf8 | Datatype::GeomWkt)
}

/// Decodes a stored string. UCS-2 is decoded as UTF-16, UCS-4 as UTF-32, `CHAR` and ASCII as UTF-8. Returns `None` for
/// other datatypes, and for bytes that are invalid in their encoding.
pub fn decode(datatype: Datatype, bytes: &[u8]) -> Option<Cow<'_, str>> {
    if !is_text(datatype) {
        return None;
    }
    match datatype.size() {
        1 => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
        2 => {
            let (units, rest) = bytes.as_chunks::<2>();
            let units = units.iter().map(|unit| u16::from_le_bytes(*unit));
            let text: Option<String> = char::decode_utf16(units).map(Result::ok).collect();
            text.filter(|_| rest.is_empty()).map(Cow::Owned)
        }
        _ => {
            let (codes, rest) = bytes.as_chunks::<4>();
            let text: Option<String> = codes.iter().map(|code| char::from_u32(u32::from_le_bytes(*code))).collect();
            text.filter(|_| rest.is_empty()).map(Cow::Owned)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_encoding_gives_the_text_back(text in any::<String>()) {
            let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let utf32: Vec<u8> = text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
            prop_assert_eq!(decode(Datatype::StringUtf8, text.as_bytes()).unwrap(), text.as_str());
            prop_assert_eq!(decode(Datatype::GeomWkt, text.as_bytes()).unwrap(), text.as_str());
            prop_assert_eq!(decode(Datatype::StringUtf16, &utf16).unwrap(), text.as_str());
            prop_assert_eq!(decode(Datatype::StringUcs4, &utf32).unwrap(), text.as_str());
        }

        #[test]
        fn any_bytes_are_text_or_not(number in 0u8..44, bytes in prop::collection::vec(any::<u8>(), 0..9)) {
            let _ = decode(Datatype::from_number(number).unwrap(), &bytes);
        }
    }

    #[test]
    fn invalid_text_is_none() {
        assert_eq!(decode(Datatype::Blob, b"a"), None);
        assert_eq!(decode(Datatype::Char, &[0xe4]), None);
        assert_eq!(decode(Datatype::StringUtf16, &[0x00, 0xd8]), None);
        assert_eq!(decode(Datatype::StringUtf16, &[0x61, 0, 0x62]), None);
        assert_eq!(decode(Datatype::StringUtf32, &[0, 0, 0x11, 0]), None);
    }
}
