//! BYTESHUFFLE: each part has the first bytes of all values, then all second bytes, and so on. The bytes of an
//! incomplete value at the end are unchanged.

use tilefs_base::error::Result;

use super::integer::Width;
use super::part_lengths::PartLengths;
use super::simd;
use super::stage::{FilterInput, Stage, Transform};
use crate::cursor::Cursor;

pub(super) fn bind(input: &FilterInput<'_>) -> Result<Stage> {
    Ok(input.transform(Byteshuffle(input.width())))
}

struct Byteshuffle(Width);

impl Transform for Byteshuffle {
    fn undo(&self, metadata: &mut Cursor<'_>, data: &[u8], out: &mut [u8]) -> Result<()> {
        PartLengths::parse(metadata, data.len())?.for_each(data, out, |part, out| {
            undo_part(self.0, part, out);
            Ok(())
        })
    }
}

/// Undoes one part. `part` and `out` have the same length.
fn undo_part(width: Width, part: &[u8], out: &mut [u8]) {
    let whole = part.len() - part.len() % width.bytes();
    let (planes, tail) = part.split_at(whole);
    let (values, rest) = out.split_at_mut(whole);
    let done = simd::interleave(width, planes, values);
    interleave(width, planes, done, values);
    rest.copy_from_slice(tail);
}

/// Rebuilds values from planes of bytes, except the first `done` values. `planes` has all first bytes, then all second
/// bytes, and so on. Both slices have the same length, a multiple of the width.
///
/// The loops join bytes to pairs, pairs to fours and fours to eights, in integers of exactly that width. Compilers turn
/// this form into vector instructions that interleave registers.
#[inline(always)]
pub(super) fn interleave(width: Width, planes: &[u8], done: usize, out: &mut [u8]) {
    let out = &mut out[done * width.bytes()..];
    match width {
        Width::One => out.copy_from_slice(&planes[done..]),
        Width::Two => {
            let values = out.as_chunks_mut::<2>().0;
            let [low, high] = split(planes, done, values.len());
            for (i, value) in values.iter_mut().enumerate() {
                *value = pair(low[i], high[i]).to_le_bytes();
            }
        }
        Width::Four => {
            let values = out.as_chunks_mut::<4>().0;
            let [a, b, c, d] = split(planes, done, values.len());
            for (i, value) in values.iter_mut().enumerate() {
                *value = four([a[i], b[i], c[i], d[i]]).to_le_bytes();
            }
        }
        Width::Eight => {
            let values = out.as_chunks_mut::<8>().0;
            let [a, b, c, d, e, f, g, h] = split(planes, done, values.len());
            for (i, value) in values.iter_mut().enumerate() {
                let low = u64::from(four([a[i], b[i], c[i], d[i]]));
                let high = u64::from(four([e[i], f[i], g[i], h[i]]));
                *value = (low | high << 32).to_le_bytes();
            }
        }
    }
}

#[inline(always)]
fn pair(low: u8, high: u8) -> u16 {
    u16::from(low) | u16::from(high) << 8
}

#[inline(always)]
fn four([a, b, c, d]: [u8; 4]) -> u32 {
    u32::from(pair(a, b)) | u32::from(pair(c, d)) << 16
}

/// Returns N planes without their first `done` bytes, which leaves `left` bytes of each.
#[inline(always)]
fn split<const N: usize>(planes: &[u8], done: usize, left: usize) -> [&[u8]; N] {
    std::array::from_fn(|index| &planes[index * (done + left) + done..][..left])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WIDTHS: [Width; 4] = [Width::One, Width::Two, Width::Four, Width::Eight];

    /// Shuffles as the format describes.
    fn shuffle(width: usize, part: &[u8]) -> Vec<u8> {
        let values = part.len() / width;
        let mut shuffled = part.to_vec();
        for i in 0..values {
            for j in 0..width {
                shuffled[j * values + i] = part[i * width + j];
            }
        }
        shuffled
    }

    proptest! {
        #[test]
        fn undoes_the_filter(part: Vec<u8>) {
            for width in WIDTHS {
                let mut out = vec![0; part.len()];
                undo_part(width, &shuffle(width.bytes(), &part), &mut out);
                prop_assert_eq!(&out, &part);
            }
        }
    }

    #[test]
    fn all_short_lengths_and_a_long_one() {
        for length in (0..200).chain([65536, 100_003]) {
            let part: Vec<u8> = (0..length as u32).map(|i| (i.wrapping_mul(i) >> 3) as u8).collect();
            for width in WIDTHS {
                let mut out = vec![0; part.len()];
                undo_part(width, &shuffle(width.bytes(), &part), &mut out);
                assert!(out == part, "{length} bytes, {width:?}");
            }
        }
    }
}
