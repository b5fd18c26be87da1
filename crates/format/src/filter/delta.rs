//! DELTA: a count u64, the first value, then the differences of neighbours, all of the same integer type.

use tilefs_base::error::{Error, Result};

use super::encoded_parts::EncodedPart;
use super::integer::{Integer, Width, with_integer};
use super::scratch::CodecStates;
use super::stage::{DecodePart, FilterInput, Stage};
use crate::cursor::Cursor;
use crate::datatype::Datatype;

/// Binds the filter. Values are interpreted as the type `reinterpret`, if it is given.
pub(super) fn bind(input: &FilterInput<'_>, reinterpret: Option<Datatype>) -> Result<Stage> {
    let (width, output) = differenced(input, reinterpret)?;
    Ok(input.parts(Delta(width)).with_output(output))
}

/// Returns the width of the integers that DELTA and DOUBLE_DELTA subtract, and the type of the values. All text is
/// subtracted byte by byte.
pub(super) fn differenced(input: &FilterInput<'_>, reinterpret: Option<Datatype>) -> Result<(Width, Datatype)> {
    let datatype = reinterpret.unwrap_or(input.datatype);
    match datatype {
        Datatype::Float32 | Datatype::Float64 => Err(input.unsupported_type(datatype)),
        _ if datatype.is_string() => Ok((Width::One, datatype)),
        _ => Ok((Width::of(datatype), datatype)),
    }
}

struct Delta(Width);

impl DecodePart for Delta {
    fn decode(&self, part: EncodedPart<'_, '_>, _: &mut CodecStates) -> Result<()> {
        with_integer!(self.0, decode(part.encoded, part.out))
    }
}

/// Decodes one part into exactly `out.len()` bytes.
fn decode<T: Integer>(encoded: &[u8], out: &mut [u8]) -> Result<()> {
    let mut encoded = Cursor::new(encoded);
    check_count::<T>(encoded.u64("number of values")?, out)?;
    if out.is_empty() {
        return Ok(());
    }
    // TileDB 2.16 left extra bytes after the last delta, which readers ignore.
    let deltas = encoded.bytes(out.len(), "deltas")?;
    sum(T::truncate(0), deltas, out);
    Ok(())
}

/// Checks the count of values that DELTA and DOUBLE_DELTA store against the length of the output. (After a count of 0,
/// writers leave one meaningless value.)
pub(super) fn check_count<T: Integer>(count: u64, out: &[u8]) -> Result<()> {
    if count.checked_mul(T::BYTES as u64) == Some(out.len() as u64) {
        return Ok(());
    }
    Err(Error::damaged(format!("{count} values of {} bytes claimed in {} bytes", T::BYTES, out.len())))
}

/// Computes running sums that start from `base`. Both slices have the same length, a multiple of the value's width.
pub(super) fn sum<T: Integer>(base: T, deltas: &[u8], out: &mut [u8]) {
    let mut value = base;
    for (delta, out) in deltas.chunks_exact(T::BYTES).zip(out.chunks_exact_mut(T::BYTES)) {
        value = value.plus(T::load(delta));
        value.store(out);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encode(values: &[i32]) -> Vec<u8> {
        let mut encoded = (values.len() as u64).to_le_bytes().to_vec();
        let mut last = 0i32;
        for &value in values {
            encoded.extend(value.wrapping_sub(last).to_le_bytes());
            last = value;
        }
        encoded
    }

    proptest! {
        #[test]
        fn undoes_the_encoder(values in prop::collection::vec(any::<i32>(), 1..200)) {
            let mut out = vec![0; values.len() * 4];
            decode::<u32>(&encode(&values), &mut out).unwrap();
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            prop_assert_eq!(out, bytes);
        }
    }

    #[test]
    fn bytes_after_the_last_delta_are_ignored() {
        let mut out = [0; 12];
        decode::<u32>(&[&encode(&[1, 2, 3])[..], &[9; 5]].concat(), &mut out).unwrap();
        assert_eq!(out, [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
    }

    #[test]
    fn counts_that_do_not_fit_are_errors() {
        let encoded = encode(&[1, 2, 3]);
        assert!(decode::<u32>(&encoded, &mut [0; 8]).is_err());
        assert!(decode::<u32>(&encoded, &mut [0; 16]).is_err());
        assert!(decode::<u64>(&encoded, &mut [0; 12]).is_err());
        assert!(decode::<u32>(&encoded[..19], &mut [0; 12]).is_err());
        assert!(decode::<u64>(&[0xff; 30], &mut [0; 16]).is_err());
        decode::<u32>(&[0; 12], &mut []).unwrap();
        decode::<u32>(&[0; 8], &mut []).unwrap();
    }
}
