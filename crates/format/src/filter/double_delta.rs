//! DOUBLE_DELTA: differences of differences, in as many bits as the largest one needs.
//!
//! ```text
//! bits u8, number of values u64
//! bits >= width of a value in bits - 1: the values, unchanged
//! else: first value, second value, then per value a sign bit and a magnitude of `bits` bits, in u64
//!       words that are filled from the highest bit down
//! ```

use tilefs_base::error::Result;

use super::delta::{check_count, differenced};
use super::encoded_parts::EncodedPart;
use super::integer::{Integer, Width, with_integer};
use super::scratch::CodecStates;
use super::stage::{DecodePart, FilterInput, Stage};
use crate::cursor::Cursor;
use crate::datatype::Datatype;

/// Binds the filter. Values are interpreted as the type `reinterpret`, if it is given.
pub(super) fn bind(input: &FilterInput<'_>, reinterpret: Option<Datatype>) -> Result<Stage> {
    let (width, output) = differenced(input, reinterpret)?;
    Ok(input.parts(DoubleDelta(width)).with_output(output))
}

struct DoubleDelta(Width);

impl DecodePart for DoubleDelta {
    fn decode(&self, part: EncodedPart<'_, '_>, _: &mut CodecStates) -> Result<()> {
        with_integer!(self.0, decode(part.encoded, part.out))
    }
}

/// Decodes one part into exactly `out.len()` bytes.
fn decode<T: Integer>(encoded: &[u8], out: &mut [u8]) -> Result<()> {
    let mut encoded = Cursor::new(encoded);
    let bits = u32::from(encoded.u8("bits")?);
    let count = encoded.u64("number of values")?;
    check_count::<T>(count, out)?;
    if out.is_empty() {
        return Ok(());
    }
    let plain = bits >= 8 * T::BYTES as u32 - 1;
    let whole = if plain { out.len() } else { out.len().min(2 * T::BYTES) };
    let (first, rest) = out.split_at_mut(whole);
    first.copy_from_slice(encoded.bytes(whole, "values")?);
    let differences = (rest.len() / T::BYTES) as u64;
    // With a count of at most 2^61 and a width of 63, the product may exceed 64 bits.
    let words = u128::from(differences) * u128::from(bits + 1);
    let words = u64::try_from(words.div_ceil(64)).unwrap_or(u64::MAX);
    let words = encoded.bytes_u64(words.saturating_mul(8), "double deltas")?;
    if !encoded.is_at_end() {
        return Err(encoded.error("double deltas", "bytes follow the last word"));
    }
    if !rest.is_empty() {
        let (before, last) = first.split_at(T::BYTES);
        sum_twice::<T>(T::load(before), T::load(last), Words::new(words, bits), rest);
    }
    Ok(())
}

/// Decodes the values after `before` and `last`. As a function of its own, the loop keeps its state in registers.
#[inline(never)]
fn sum_twice<T: Integer>(before: T, last: T, mut words: Words<'_>, out: &mut [u8]) {
    let mut value = last;
    let mut delta = last.minus(before);
    for out in out.chunks_exact_mut(T::BYTES) {
        delta = delta.plus(T::truncate(words.next_difference()));
        value = value.plus(delta);
        value.store(out);
    }
}

/// A reader of signed magnitudes from u64 words, highest bit first.
struct Words<'a> {
    words: &'a [[u8; 8]],
    /// Bits already read.
    position: u64,
    bits: u32,
}

impl<'a> Words<'a> {
    /// Starts at the first word. `bits`, the width of a magnitude, is at most 62.
    fn new(bytes: &'a [u8], bits: u32) -> Self {
        Words { words: bytes.as_chunks().0, position: 0, bits }
    }

    #[inline(always)]
    fn word(&self, index: u64) -> u64 {
        self.words.get(index as usize).map_or(0, |&word| u64::from_le_bytes(word))
    }

    /// Returns the next difference, as a wrapping 64-bit integer.
    #[inline(always)]
    fn next_difference(&mut self) -> u64 {
        let (index, shift) = (self.position / 64, (self.position % 64) as u32);
        let bits = self.word(index) << shift | (self.word(index + 1) >> 1) >> (63 - shift);
        self.position += u64::from(self.bits) + 1;
        let negative = (bits >> 63).wrapping_neg();
        let magnitude = (bits & (u64::MAX >> 1)) >> (63 - self.bits);
        (magnitude ^ negative).wrapping_sub(negative)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Encodes as the format describes, one bit at a time.
    fn encode(values: &[i64], bytes_each: usize) -> Vec<u8> {
        let double_deltas: Vec<i128> = values
            .windows(3)
            .map(|three| three.iter().map(|&value| i128::from(value)).collect::<Vec<_>>())
            .map(|three| (three[2] - three[1]) - (three[1] - three[0]))
            .collect();
        let largest = double_deltas.iter().map(|difference| difference.unsigned_abs()).max();
        let bits = largest.map_or(0, |largest| (128 - largest.leading_zeros()).max(1));
        let mut encoded = vec![bits as u8];
        encoded.extend((values.len() as u64).to_le_bytes());
        let plain = bits >= 8 * bytes_each as u32 - 1;
        for value in values.iter().take(if plain { values.len() } else { 2 }) {
            encoded.extend(&value.to_le_bytes()[..bytes_each]);
        }
        if plain {
            return encoded;
        }
        let mut all = String::new();
        for difference in double_deltas {
            let sign = if difference < 0 { '1' } else { '0' };
            all.push_str(&format!("{sign}{:0width$b}", difference.unsigned_abs(), width = bits as usize));
        }
        while !all.len().is_multiple_of(64) {
            all.push('0');
        }
        for start in (0..all.len()).step_by(64) {
            encoded.extend(u64::from_str_radix(&all[start..start + 64], 2).unwrap().to_le_bytes());
        }
        encoded
    }

    fn check<T: Integer>(values: &[i64]) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()[..T::BYTES].to_vec()).collect();
        let mut out = vec![0; bytes.len()];
        decode::<T>(&encode(values, T::BYTES), &mut out).unwrap();
        assert_eq!(out, bytes);
    }

    /// Generates values whose second differences fit `bits` bits.
    fn smooth(bits: u32) -> impl Strategy<Value = Vec<i64>> {
        let largest = (1i64 << bits) - 1;
        prop::collection::vec(-largest..=largest, 0..200).prop_map(|steps| {
            let (mut value, mut delta) = (0i64, 0i64);
            steps
                .into_iter()
                .map(|step| {
                    delta = step - delta / 2;
                    value = step / 2 - value / 2 + delta / 4;
                    value
                })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn undoes_the_encoder(values in (1u32..60).prop_flat_map(smooth)) {
            check::<u64>(&values);
            let narrow = |bits: u32| values.iter().map(|value| value << (64 - bits) >> (64 - bits)).collect::<Vec<_>>();
            check::<u8>(&narrow(8));
            check::<u16>(&narrow(16));
            check::<u32>(&narrow(32));
        }

        #[test]
        fn never_panics(encoded: Vec<u8>, length in 0usize..100) {
            let _ = decode::<u8>(&encoded, &mut vec![0; length]);
            let _ = decode::<u64>(&encoded, &mut vec![0; length * 8]);
        }
    }

    #[test]
    fn damage_is_an_error() {
        let encoded = encode(&[1, 2, 4, 8, 16], 8);
        assert!(decode::<u64>(&encoded, &mut [0; 32]).is_err());
        assert!(decode::<u64>(&encoded, &mut [0; 48]).is_err());
        assert!(decode::<u32>(&encoded, &mut [0; 40]).is_err());
        assert!(decode::<u64>(&encoded[..encoded.len() - 1], &mut [0; 40]).is_err());
        assert!(decode::<u64>(&[&encoded[..], &[0; 8]].concat(), &mut [0; 40]).is_err());
        let mut huge = vec![3];
        huge.extend([0xff; 8]);
        assert!(decode::<u64>(&huge, &mut [0; 40]).is_err());
    }
}
