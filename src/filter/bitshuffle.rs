//! BITSHUFFLE: the bits of eight values at a time are transposed, so that bit k of all values of a
//! block lie together.
//!
//! A part is shuffled in blocks of 8192 bytes (the last is shorter); a part whose length is no
//! multiple of the value's width and of 8 is as it was, and so are the values of a block beyond the
//! last multiple of eight. Bit k of byte b of the values is row `8 b + k` of the block; in a row the
//! value `i` is bit `i % 8` of byte `i / 8`.

use super::element::Width;

const BLOCK_BYTES: usize = 8192;

/// Undoes one part. `part` and `out` have the same length.
pub(super) fn undo_part(width: Width, part: &[u8], out: &mut [u8]) {
    if !part.len().is_multiple_of(8) || !part.len().is_multiple_of(width.bytes()) {
        return out.copy_from_slice(part);
    }
    for (block, out) in part.chunks(BLOCK_BYTES).zip(out.chunks_mut(BLOCK_BYTES)) {
        match width {
            Width::One => undo_block::<1>(block, out),
            Width::Two => undo_block::<2>(block, out),
            Width::Four => undo_block::<4>(block, out),
            Width::Eight => undo_block::<8>(block, out),
        }
    }
}

fn undo_block<const N: usize>(block: &[u8], out: &mut [u8]) {
    // Bytes of a row: one for every eight values.
    let row = block.len() / N / 8;
    let (shuffled, tail) = block.split_at(row * 8 * N);
    let (out, rest) = out.split_at_mut(row * 8 * N);
    rest.copy_from_slice(tail);
    if row == 0 {
        return;
    }
    for (group, values) in out.chunks_exact_mut(8 * N).enumerate() {
        for byte in 0..N {
            let mut rows = [0; 8];
            for (k, bits) in rows.iter_mut().enumerate() {
                *bits = shuffled[(byte * 8 + k) * row + group];
            }
            let bytes = transpose(u64::from_le_bytes(rows)).to_le_bytes();
            for (value, bits) in bytes.into_iter().enumerate() {
                values[value * N + byte] = bits;
            }
        }
    }
}

/// Transposes a matrix of 8 x 8 bits: bit `c` of byte `r` becomes bit `r` of byte `c`.
fn transpose(mut bits: u64) -> u64 {
    let swap = |bits: u64, mask: u64, shift: u32| {
        let moved = (bits ^ (bits >> shift)) & mask;
        bits ^ moved ^ (moved << shift)
    };
    bits = swap(bits, 0x00aa_00aa_00aa_00aa, 7);
    bits = swap(bits, 0x0000_cccc_0000_cccc, 14);
    swap(bits, 0x0000_0000_f0f0_f0f0, 28)
}
