//! Values of tables as JSON (RFC 8259), so that each column has one type, which follows from the schema:
//!
//! * integers of up to 32 bits, and those of 64 bits that are known to be within 2^53, are numbers; other integers of 64
//!   bits are strings of digits, because many readers take numbers for doubles. Features of GeoJSON have a number for
//!   each that is within 2^53: their readers give a column one type, whatever they find in it
//! * floats are numbers that parse back to the same float; `"NaN"`, `"Infinity"` and `"-Infinity"` are strings
//! * booleans are `true` and `false`, dates and times strings of ISO 8601, blobs strings of base64
//! * several values per cell are arrays; a null, "not a time" and a code without a label are `null`

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::style::{NotShown, ShownResult};
use crate::number;

/// How integers of 64 bits are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WideIntegers {
    Numbers,
    Strings,
    /// Each as a number if it is exact as a double, and otherwise as a string.
    ExactNumbers,
}

impl WideIntegers {
    /// Returns whether an integer of this magnitude is a string.
    pub fn is_string(self, magnitude: u64) -> bool {
        match self {
            WideIntegers::Numbers => false,
            WideIntegers::Strings => true,
            WideIntegers::ExactNumbers => !number::is_exact(magnitude),
        }
    }
}

/// Bytes of a blob that become whole characters of base64.
pub const GROUP: usize = 3;

/// Appends a string.
///
/// # Errors
/// Fails if the text is not UTF-8.
pub fn append_string(text: &[u8], out: &mut Vec<u8>) -> ShownResult<()> {
    out.push(b'"');
    append_within_string(check(text)?, out);
    out.push(b'"');
    Ok(())
}

/// Returns a text, if it is UTF-8.
///
/// # Errors
/// Fails if it is not.
pub fn check(text: &[u8]) -> ShownResult<&str> {
    simdutf8::basic::from_utf8(text).map_err(|_| NotShown::NotUtf8)
}

/// Returns the whole characters at the beginning of a text that continues after these bytes.
///
/// # Errors
/// Fails if the text is not UTF-8.
pub fn whole_characters(text: &[u8]) -> ShownResult<&str> {
    let end = match str::from_utf8(text) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => text.len(),
    };
    check(text.get(..end).unwrap_or(text))
}

/// Appends a part of a string.
pub fn append_within_string(text: &str, out: &mut Vec<u8>) {
    let mut plain_from = 0;
    for (place, byte) in text.bytes().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&text.as_bytes()[plain_from..place]);
        match byte {
            b'"' | b'\\' => out.extend([b'\\', byte]),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\t' => out.extend(b"\\t"),
            _ => out.extend(format!("\\u{byte:04x}").into_bytes()),
        }
        plain_from = place + 1;
    }
    out.extend_from_slice(&text.as_bytes()[plain_from..]);
}

/// Appends the base64 of bytes. If more bytes of the same value follow, their number is a multiple of [`GROUP`].
pub fn append_base64(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend(STANDARD.encode(bytes).into_bytes());
}
