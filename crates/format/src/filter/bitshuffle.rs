//! BITSHUFFLE: the bits of a block of values are transposed, so that bit k of all values is contiguous.
//!
//! A part is shuffled in blocks of 8192 bytes; the last block may be shorter. A part whose length is not a multiple of
//! the value's width and of 8 is unchanged, and so are the values of a block after the last multiple of eight. Bit k of
//! byte b of the values is row `8 b + k` of the block; in a row, value `i` is bit `i % 8` of byte `i / 8`.

use tilefs_base::error::Result;

use super::byteshuffle::interleave;
use super::integer::Width;
use super::part_lengths::PartLengths;
use super::simd;
use super::stage::{FilterInput, Stage, Transform};
use crate::cursor::Cursor;

const BLOCK_BYTES: usize = 8192;

pub(super) fn bind(input: &FilterInput<'_>) -> Result<Stage> {
    Ok(input.transform(Bitshuffle(input.width())))
}

struct Bitshuffle(Width);

impl Transform for Bitshuffle {
    fn undo(&self, metadata: &mut Cursor<'_>, data: &[u8], out: &mut [u8]) -> Result<()> {
        PartLengths::parse(metadata, data.len())?.for_each(data, out, |part, out| {
            undo_part(self.0, part, out);
            Ok(())
        })
    }
}

/// Undoes one part. `part` and `out` have the same length.
fn undo_part(width: Width, part: &[u8], out: &mut [u8]) {
    if !part.len().is_multiple_of(8) || !part.len().is_multiple_of(width.bytes()) {
        return out.copy_from_slice(part);
    }
    for (block, out) in part.chunks(BLOCK_BYTES).zip(out.chunks_mut(BLOCK_BYTES)) {
        // The number of groups of eight values. A group has one byte in every row of bits.
        let eights = block.len() / width.bytes() / 8;
        let (rows, tail) = block.split_at(8 * eights * width.bytes());
        let (values, rest) = out.split_at_mut(rows.len());
        rest.copy_from_slice(tail);
        let done = simd::interleave_bits(width, rows, values);
        if done < 8 * eights {
            interleave_bits(width, rows, done, values);
        }
    }
}

/// Rebuilds values from rows of bits, except the first `done` values, a multiple of eight. `rows` has the lowest bit of
/// all values, then the next, and so on. Both slices have the same length, a multiple of eight times the width, above
/// zero and at most [`BLOCK_BYTES`].
pub(super) fn interleave_bits(width: Width, rows: &[u8], done: usize, out: &mut [u8]) {
    let mut planes = [0; BLOCK_BYTES];
    let planes = &mut planes[..rows.len()];
    let plane = rows.len() / width.bytes();
    for (rows, plane) in rows.chunks_exact(plane).zip(planes.chunks_exact_mut(plane)) {
        interleave(Width::Eight, rows, done / 8, plane);
        for eight in plane[done..].as_chunks_mut::<8>().0 {
            *eight = transpose(u64::from_le_bytes(*eight)).to_le_bytes();
        }
    }
    interleave(width, planes, done, out);
}

/// Transposes a matrix of 8 x 8 bits: bit `c` of byte `r` becomes bit `r` of byte `c`.
#[inline(always)]
fn transpose(bits: u64) -> u64 {
    let swap = |bits: u64, mask: u64, shift: u32| {
        let moved = (bits ^ (bits >> shift)) & mask;
        bits ^ moved ^ (moved << shift)
    };
    let bits = swap(bits, 0x00aa_00aa_00aa_00aa, 7);
    let bits = swap(bits, 0x0000_cccc_0000_cccc, 14);
    swap(bits, 0x0000_0000_f0f0_f0f0, 28)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Shuffles one part as the format describes, bit by bit.
    fn shuffle(width: usize, part: &[u8]) -> Vec<u8> {
        let mut shuffled = part.to_vec();
        if !part.len().is_multiple_of(8) || !part.len().is_multiple_of(width) {
            return shuffled;
        }
        for (block, out) in part.chunks(8192).zip(shuffled.chunks_mut(8192)) {
            let values = block.len() / width / 8 * 8;
            out[..values * width].fill(0);
            for value in 0..values {
                for byte in 0..width {
                    for bit in 0..8 {
                        let row = byte * 8 + bit;
                        let set = block[value * width + byte] >> bit & 1;
                        out[row * values / 8 + value / 8] |= set << (value % 8);
                    }
                }
            }
        }
        shuffled
    }

    fn check(part: &[u8]) {
        for width in [Width::One, Width::Two, Width::Four, Width::Eight] {
            let mut out = vec![0; part.len()];
            undo_part(width, &shuffle(width.bytes(), part), &mut out);
            assert!(out == part, "{} bytes, {width:?}", part.len());
        }
    }

    proptest! {
        #[test]
        fn undoes_the_filter(part: Vec<u8>) {
            check(&part);
        }
    }

    #[test]
    fn all_short_lengths_and_several_blocks() {
        for length in (0..300).chain([8184, 8192, 8200, 8208, 8256, 8264, 65536]) {
            let part: Vec<u8> = (0..length as u32).map(|i| (i.wrapping_mul(i) >> 3) as u8).collect();
            check(&part);
        }
    }
}
