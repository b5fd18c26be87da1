//! Typed values: a descriptor with their type and number, then the values, little-endian.
//!
//! The four high bits of a descriptor are the number of values, or 15 if that follows as a typed integer; the low bits
//! are the type. Integers have the smallest width that holds all of them. In each width the eight lowest numbers are
//! reserved: the first stands for a missing value, the second ends a vector early.

use super::super::fields::{INTEGER_END, MISSING_INTEGER};

const NOTHING: u8 = 0;
const INTEGER_8: u8 = 1;
const INTEGER_16: u8 = 2;
const INTEGER_32: u8 = 3;
const FLOAT: u8 = 5;
const CHARACTER: u8 = 7;

/// From this number of values on, the number follows the descriptor.
const MANY: usize = 15;

/// Number of integers that are reserved in each width.
const RESERVED: i32 = 8;

/// The least integer that can be a value.
pub(super) const LEAST_INTEGER: i32 = i32::MIN + RESERVED;

/// Appends a descriptor. `count` is less than 2^31, like all lengths in a record.
fn append_descriptor(kind: u8, count: usize, out: &mut Vec<u8>) {
    match u8::try_from(count) {
        Ok(count) if usize::from(count) < MANY => out.push(count << 4 | kind),
        _ => {
            out.push((MANY as u8) << 4 | kind);
            append_integers(1, &[i32::try_from(count).unwrap_or(i32::MAX)], out);
        }
    }
}

/// Appends vectors of `count` integers each. An element is a value, `MISSING_INTEGER` or `INTEGER_END`.
pub(super) fn append_integers(count: usize, integers: &[i32], out: &mut Vec<u8>) {
    let values = || integers.iter().filter(|&&value| value != MISSING_INTEGER && value != INTEGER_END);
    let (least, most) = values().fold((0, 0), |(least, most), &value| (value.min(least), value.max(most)));
    let holds = |low: i32, high: i32| low + RESERVED <= least && most <= high;
    if holds(i8::MIN.into(), i8::MAX.into()) {
        append_descriptor(INTEGER_8, count, out);
        // The reserved numbers are the lowest ones of each width.
        out.extend(integers.iter().map(|&value| match value {
            MISSING_INTEGER => i8::MIN as u8,
            INTEGER_END => (i8::MIN + 1) as u8,
            _ => value as u8,
        }));
    } else if holds(i16::MIN.into(), i16::MAX.into()) {
        append_descriptor(INTEGER_16, count, out);
        let narrow = |value: i32| match value {
            MISSING_INTEGER => i16::MIN,
            INTEGER_END => i16::MIN + 1,
            _ => value as i16,
        };
        out.extend(integers.iter().flat_map(|&value| narrow(value).to_le_bytes()));
    } else {
        append_descriptor(INTEGER_32, count, out);
        out.extend(integers.iter().flat_map(|value| value.to_le_bytes()));
    }
}

/// Appends vectors of `count` floats each, given by their bits.
pub(super) fn append_floats(count: usize, floats: &[u32], out: &mut Vec<u8>) {
    append_descriptor(FLOAT, count, out);
    out.extend(floats.iter().flat_map(|bits| bits.to_le_bytes()));
}

/// Appends texts, padded to `length` bytes each.
pub(super) fn append_texts<'a>(length: usize, texts: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    append_descriptor(CHARACTER, length, out);
    for text in texts {
        let end = out.len() + length;
        out.extend_from_slice(text);
        out.resize(end, 0);
    }
}

/// Appends the value of a field without values.
pub(super) fn append_nothing(out: &mut Vec<u8>) {
    append_descriptor(NOTHING, 0, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integers(values: &[i32]) -> Vec<u8> {
        let mut out = Vec::new();
        append_integers(values.len(), values, &mut out);
        out
    }

    #[test]
    fn integers_take_the_fewest_bytes_that_hold_them() {
        assert_eq!(integers(&[]), [0x01]);
        assert_eq!(integers(&[5]), [0x11, 5]);
        assert_eq!(integers(&[-120, 127, MISSING_INTEGER, INTEGER_END]), [0x41, 0x88, 0x7f, 0x80, 0x81]);
        assert_eq!(integers(&[MISSING_INTEGER]), [0x11, 0x80]);
        // -121 is reserved among the 8-bit integers.
        assert_eq!(integers(&[-121, INTEGER_END]), [0x22, 0x87, 0xff, 0x01, 0x80]);
        assert_eq!(integers(&[128, MISSING_INTEGER]), [0x22, 0x80, 0, 0, 0x80]);
        assert_eq!(integers(&[-32_760]), [0x12, 0x08, 0x80]);
        assert_eq!(integers(&[-32_761]), [0x13, 0x07, 0x80, 0xff, 0xff]);
        assert_eq!(integers(&[32_768, MISSING_INTEGER, INTEGER_END])[5..], [0, 0, 0, 0x80, 1, 0, 0, 0x80]);
        assert_eq!(integers(&[LEAST_INTEGER]), [0x13, 8, 0, 0, 0x80]);
    }

    #[test]
    fn long_vectors_have_their_number_behind_the_descriptor() {
        assert_eq!(integers(&[1; 14])[..2], [0xe1, 1]);
        assert_eq!(integers(&[1; 15])[..4], [0xf1, 0x11, 15, 1]);
        assert_eq!(integers(&[1; 200])[..5], [0xf1, 0x12, 200, 0, 1]);
        assert_eq!(integers(&[1; 40_000])[..7], [0xf1, 0x13, 0x40, 0x9c, 0, 0, 1]);
        let mut out = Vec::new();
        append_texts(3, [&b"abc"[..], b"d"].into_iter(), &mut out);
        append_texts(0, [&b""[..]].into_iter(), &mut out);
        append_floats(1, &[0x7f80_0001], &mut out);
        append_nothing(&mut out);
        assert_eq!(out, [0x37, b'a', b'b', b'c', b'd', 0, 0, 0x07, 0x15, 1, 0, 0x80, 0x7f, 0]);
    }
}
