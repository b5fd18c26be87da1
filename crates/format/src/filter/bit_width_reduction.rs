//! BIT_WIDTH_REDUCTION: windows of values, stored as differences from the window's minimum in narrower integers.
//!
//! ```text
//! metadata: total bytes u32, number of windows u32, per window: minimum T, bits u8,
//!           bytes u32; then the metadata of earlier filters
//! data    : per window its values minus the minimum, as integers of `bits` bits
//! ```
//!
//! Lengths in the metadata are those of the original values. A window is stored unchanged if `bits` is the width of T,
//! or if its length is not a multiple of T.

use tilefs_base::error::{Error, Result};

use super::integer::{Integer, Width, with_integer};
use super::stage::{FilterInput, Stage, Transform};
use crate::cursor::Cursor;
use crate::datatype::Datatype;

/// Binds the filter. It changes only integers of two bytes or more.
pub(super) fn bind(input: &FilterInput<'_>) -> Result<Stage> {
    let reduction = is_signed(input).map(|signed| BitWidthReduction { width: input.width(), signed });
    Ok(reduction.map_or_else(|| input.pass_through(), |reduction| input.transform(reduction)))
}

/// Returns whether the values are signed, if they are integers of two bytes or more; `None` for all other values.
pub(super) fn is_signed(input: &FilterInput<'_>) -> Option<bool> {
    match input.datatype {
        Datatype::Int16 | Datatype::Int32 | Datatype::Int64 => Some(true),
        Datatype::UInt16 | Datatype::UInt32 | Datatype::UInt64 => Some(false),
        other if other.is_datetime() || other.is_time() => input.times_are_integers().then_some(true),
        _ => None,
    }
}

struct BitWidthReduction {
    width: Width,
    signed: bool,
}

impl Transform for BitWidthReduction {
    fn decoded_bytes(&self, mut metadata: Cursor<'_>, _: &[u8]) -> Result<u64> {
        metadata.u32("bytes in all").map(u64::from)
    }

    fn undo(&self, metadata: &mut Cursor<'_>, data: &[u8], out: &mut [u8]) -> Result<()> {
        with_integer!(self.width, undo(self.signed, metadata, data, out))
    }
}

fn undo<T: Integer>(signed: bool, metadata: &mut Cursor<'_>, mut data: &[u8], mut out: &mut [u8]) -> Result<()> {
    metadata.u32("bytes in all")?;
    let count = metadata.u32("number of windows")?;
    let count = metadata.checked_count(count.into(), T::BYTES + 5, "number of windows")?;
    for _ in 0..count {
        let smallest = T::load(metadata.bytes(T::BYTES, "smallest of a window")?);
        let bits = metadata.u8("bits of a window")?;
        let length = metadata.u32("window length")? as usize;
        let stored = width(bits)?;
        let plain = stored.bytes() >= T::BYTES || !length.is_multiple_of(T::BYTES);
        let stored_bytes = if plain { length } else { length / T::BYTES * stored.bytes() };
        let (Some(window), Some(out)) = (data.split_off(..stored_bytes), out.split_off_mut(..length)) else {
            return Err(Error::damaged(format!("a window of {length} bytes is longer than what is left")));
        };
        match (stored, signed) {
            _ if plain => out.copy_from_slice(window),
            (Width::One, false) => widen::<T, 1>(smallest, window, out, |[byte]| byte.into()),
            (Width::One, true) => widen::<T, 1>(smallest, window, out, |[byte]| byte as i8 as u64),
            (Width::Two, false) => widen::<T, 2>(smallest, window, out, |bytes| u16::from_le_bytes(bytes).into()),
            (Width::Two, true) => widen::<T, 2>(smallest, window, out, |bytes| i16::from_le_bytes(bytes) as u64),
            (_, false) => widen::<T, 4>(smallest, window, out, |bytes| u32::from_le_bytes(bytes).into()),
            (_, true) => widen::<T, 4>(smallest, window, out, |bytes| i32::from_le_bytes(bytes) as u64),
        }
    }
    if data.is_empty() && out.is_empty() {
        return Ok(());
    }
    Err(Error::damaged("the windows do not cover the data"))
}

fn width(bits: u8) -> Result<Width> {
    match bits {
        8 => Ok(Width::One),
        16 => Ok(Width::Two),
        32 => Ok(Width::Four),
        64 => Ok(Width::Eight),
        _ => Err(Error::damaged(format!("a window has values of {bits} bits"))),
    }
}

/// Adds `smallest` to integers of N bytes that `extend` extends to 64 bits.
#[inline(always)]
fn widen<T: Integer, const N: usize>(smallest: T, stored: &[u8], out: &mut [u8], extend: impl Fn([u8; N]) -> u64) {
    for (&stored, out) in stored.as_chunks::<N>().0.iter().zip(out.chunks_exact_mut(T::BYTES)) {
        smallest.plus(T::truncate(extend(stored))).store(out);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Encodes as the format describes, in windows of `window` values.
    fn encode(values: &[i32], window: usize) -> (Vec<u8>, Vec<u8>) {
        let mut metadata = (4 * values.len() as u32).to_le_bytes().to_vec();
        metadata.extend((values.len().div_ceil(window) as u32).to_le_bytes());
        let mut data = Vec::new();
        for window in values.chunks(window) {
            let smallest = *window.iter().min().unwrap();
            let largest = *window.iter().max().unwrap();
            let range = i64::from(largest) - i64::from(smallest);
            let bytes = if range < 128 {
                1
            } else if range < 32768 {
                2
            } else {
                4
            };
            // The minimum of a window that is stored unchanged may be any number.
            let noted = if bytes == 4 { 0x5a5a_5a5a } else { smallest };
            metadata.extend(noted.to_le_bytes());
            metadata.push(8 * bytes as u8);
            metadata.extend((4 * window.len() as u32).to_le_bytes());
            for &value in window {
                let stored = if bytes == 4 { value } else { value - smallest };
                data.extend(&stored.to_le_bytes()[..bytes]);
            }
        }
        (metadata, data)
    }

    proptest! {
        #[test]
        fn undoes_the_encoder(
            values in prop::collection::vec((any::<i32>(), 0u32..32).prop_map(|(value, shift)| value >> shift), 0..300),
            window in 1usize..40,
        ) {
            let (mut metadata, data) = encode(&values, window);
            metadata.push(77);
            let mut cursor = Cursor::new(&metadata);
            let filter = BitWidthReduction { width: Width::Four, signed: true };
            prop_assert_eq!(filter.decoded_bytes(cursor.clone(), &data).unwrap(), 4 * values.len() as u64);
            let mut out = vec![0; 4 * values.len()];
            undo::<u32>(true, &mut cursor, &data, &mut out).unwrap();
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            prop_assert_eq!(out, bytes);
            prop_assert_eq!(cursor.remaining(), 1);
        }

        #[test]
        fn never_panics(metadata: Vec<u8>, data: Vec<u8>, length in 0usize..100) {
            let _ = undo::<u16>(true, &mut Cursor::new(&metadata), &data, &mut vec![0; length]);
        }
    }

    fn one_window(smallest: u64, bits: u8, length: u32) -> Vec<u8> {
        let mut metadata = length.to_le_bytes().to_vec();
        metadata.extend([1, 0, 0, 0]);
        metadata.extend(smallest.to_le_bytes());
        metadata.push(bits);
        metadata.extend(length.to_le_bytes());
        metadata
    }

    #[test]
    fn stored_values_are_extended_by_the_sign_of_the_type() {
        for (signed, expected) in [(true, 9u64), (false, 265)] {
            let metadata = one_window(10, 8, 8);
            let mut out = [0; 8];
            undo::<u64>(signed, &mut Cursor::new(&metadata), &[0xff], &mut out).unwrap();
            assert_eq!(u64::from_le_bytes(out), expected);
        }
    }

    #[test]
    fn windows_that_do_not_fit_are_errors() {
        let undo = |metadata: &[u8], data: &[u8], length: usize| {
            undo::<u64>(false, &mut Cursor::new(metadata), data, &mut vec![0; length])
        };
        undo(&one_window(1, 16, 16), &[0; 4], 16).unwrap();
        assert!(undo(&one_window(1, 16, 16), &[0; 3], 16).is_err());
        assert!(undo(&one_window(1, 16, 16), &[0; 5], 16).is_err());
        assert!(undo(&one_window(1, 16, 16), &[0; 4], 8).is_err());
        assert!(undo(&one_window(1, 16, 16), &[0; 4], 24).is_err());
        assert!(undo(&one_window(1, 12, 16), &[0; 3], 16).is_err());
        assert!(undo(&one_window(1, 64, u32::MAX), &[0; 3], 16).is_err());
        undo(&one_window(1, 64, 9), &[0; 9], 9).unwrap();
        undo(&one_window(1, 8, 9), &[0; 9], 9).unwrap();
    }
}
