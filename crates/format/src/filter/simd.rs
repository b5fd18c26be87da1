//! The two shuffles in AVX2 vectors of 32 bytes, on processors that have AVX2. They decode most of a part; the loops of
//! `byteshuffle` and `bitshuffle` decode the rest of it, and everything on other processors.
//!
//! Interleaving N streams of bytes takes log2 N rounds; each round interleaves the bytes of the vectors `i` and `i + N
//! / 2` into the vectors `2 i` and `2 i + 1`. AVX2 interleaves the lower and the upper 16 bytes of a vector separately,
//! so the lower halves have the first half of the result and the upper halves the second.
//!
//! Invariant of the `unsafe` blocks: a function that is compiled for AVX2 is called only after
//! [`std::is_x86_feature_detected`] has found AVX2, and memory is accessed only through slices and arrays of the
//! vector's own length.
#![allow(unsafe_code)]

#[cfg(not(target_arch = "x86_64"))]
pub(super) use none::{interleave, interleave_bits};
#[cfg(target_arch = "x86_64")]
pub(super) use x86::{interleave, interleave_bits};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use crate::filter::integer::Width;

    /// Rebuilds values from planes of bytes: `planes` has all first bytes, then all second bytes, and so on. Both
    /// slices have the same length, a multiple of the width. Returns the number of values written; the rest of `out` is
    /// unchanged.
    pub fn interleave(width: Width, planes: &[u8], out: &mut [u8]) -> usize {
        if !is_x86_feature_detected!("avx2") {
            return 0;
        }
        // SAFETY: the processor has AVX2.
        unsafe {
            match width {
                Width::One => 0,
                Width::Two => bytes::<2>(planes, out),
                Width::Four => bytes::<4>(planes, out),
                Width::Eight => bytes::<8>(planes, out),
            }
        }
    }

    /// Rebuilds values from rows of bits: `rows` has the lowest bit of all values, then the next, and so on. Both
    /// slices have the same length, a multiple of eight times the width. Returns the number of values written, a
    /// multiple of eight; the rest of `out` is unchanged.
    pub fn interleave_bits(width: Width, rows: &[u8], out: &mut [u8]) -> usize {
        if !is_x86_feature_detected!("avx2") {
            return 0;
        }
        // SAFETY: the processor has AVX2.
        unsafe {
            match width {
                Width::One => bits::<1>(rows, out),
                Width::Two => bits::<2>(rows, out),
                Width::Four => bits::<4>(rows, out),
                Width::Eight => bits::<8>(rows, out),
            }
        }
    }

    #[target_feature(enable = "avx2")]
    fn bytes<const WIDTH: usize>(planes: &[u8], out: &mut [u8]) -> usize {
        let length = planes.len() / WIDTH;
        let mut done = 0;
        for out in out.chunks_exact_mut(32 * WIDTH) {
            let mut vectors = [_mm256_setzero_si256(); WIDTH];
            for (index, vector) in vectors.iter_mut().enumerate() {
                *vector = load(planes, index * length + done);
            }
            let (lower, upper) = out.split_at_mut(16 * WIDTH);
            store(rounds(vectors), lower, upper);
            done += 32;
        }
        done
    }

    #[target_feature(enable = "avx2")]
    fn bits<const WIDTH: usize>(rows: &[u8], out: &mut [u8]) -> usize {
        let length = rows.len() / (8 * WIDTH);
        // All first bytes of 256 values, all second bytes, and so on.
        let mut planes = [[_mm256_setzero_si256(); 8]; WIDTH];
        let mut done = 0;
        for out in out.chunks_exact_mut(256 * WIDTH) {
            for (byte, plane) in planes.iter_mut().enumerate() {
                let mut vectors = [_mm256_setzero_si256(); 8];
                for (bit, vector) in vectors.iter_mut().enumerate() {
                    *vector = load(rows, (8 * byte + bit) * length + done);
                }
                *plane = rounds(transpose(vectors));
            }
            let (lower, upper) = out.split_at_mut(128 * WIDTH);
            let halves = lower.chunks_exact_mut(16 * WIDTH).zip(upper.chunks_exact_mut(16 * WIDTH));
            for (index, (lower, upper)) in halves.enumerate() {
                let mut vectors = [_mm256_setzero_si256(); WIDTH];
                for (vector, plane) in vectors.iter_mut().zip(&planes) {
                    *vector = plane[index];
                }
                store(rounds(vectors), lower, upper);
            }
            done += 32;
        }
        8 * done
    }

    /// Interleaves the bytes of N vectors, a power of two; see the head of this file.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn rounds<const N: usize>(mut vectors: [__m256i; N]) -> [__m256i; N] {
        for _ in 0..N.ilog2() {
            let last = vectors;
            for (index, two) in vectors.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                let (a, b) = (last[index], last[index + N / 2]);
                *two = [_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)];
            }
        }
        vectors
    }

    /// Transposes matrices of 8 x 8 bits, one for each byte of the vectors: bit `c` of vector `r` becomes
    /// bit `r` of vector `c`.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn transpose(mut rows: [__m256i; 8]) -> [__m256i; 8] {
        for row in [0, 2, 4, 6] {
            (rows[row], rows[row + 1]) = swap::<1>(rows[row], rows[row + 1], 0x55);
        }
        for row in [0, 1, 4, 5] {
            (rows[row], rows[row + 2]) = swap::<2>(rows[row], rows[row + 2], 0x33);
        }
        for row in [0, 1, 2, 3] {
            (rows[row], rows[row + 4]) = swap::<4>(rows[row], rows[row + 4], 0x0f);
        }
        rows
    }

    /// Swaps the bits of every byte of `b` that are set in `mask` with the bits of `a` that are BITS higher.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn swap<const BITS: i32>(a: __m256i, b: __m256i, mask: i8) -> (__m256i, __m256i) {
        let moved = _mm256_and_si256(_mm256_xor_si256(_mm256_srli_epi64::<BITS>(a), b), _mm256_set1_epi8(mask));
        (_mm256_xor_si256(a, _mm256_slli_epi64::<BITS>(moved)), _mm256_xor_si256(b, moved))
    }

    /// Loads the 32 bytes that start at `from`.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(bytes: &[u8], from: usize) -> __m256i {
        let vector = &bytes[from..from + 32];
        // SAFETY: the slice is 32 bytes long and the load may be unaligned.
        unsafe { _mm256_loadu_si256(vector.as_ptr().cast()) }
    }

    /// Writes the lower halves of the vectors to `lower`, one after the other, and the upper halves to `upper`.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn store<const N: usize>(vectors: [__m256i; N], lower: &mut [u8], upper: &mut [u8]) {
        let halves = lower.as_chunks_mut::<16>().0.iter_mut().zip(upper.as_chunks_mut::<16>().0);
        for (vector, (lower, upper)) in vectors.into_iter().zip(halves) {
            // SAFETY: both arrays are 16 bytes long and the stores may be unaligned.
            unsafe {
                _mm_storeu_si128(lower.as_mut_ptr().cast(), _mm256_castsi256_si128(vector));
                _mm_storeu_si128(upper.as_mut_ptr().cast(), _mm256_extracti128_si256::<1>(vector));
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod none {
    use crate::filter::integer::Width;

    /// Writes no values.
    pub fn interleave(_: Width, _: &[u8], _: &mut [u8]) -> usize {
        0
    }

    /// Writes no values.
    pub fn interleave_bits(_: Width, _: &[u8], _: &mut [u8]) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::filter::integer::Width;
    use crate::filter::{bitshuffle, byteshuffle};

    const WIDTHS: [Width; 4] = [Width::One, Width::Two, Width::Four, Width::Eight];

    /// Checks that both functions write the same values as the loops, return their number, and leave the rest
    /// unchanged.
    fn check(bytes: &[u8]) {
        for width in WIDTHS {
            let eights = bytes.len() / (8 * width.bytes());
            let (planes, rows) =
                (&bytes[..bytes.len() / width.bytes() * width.bytes()], &bytes[..eights * 8 * width.bytes()]);
            let mut expected = vec![0; planes.len()];
            byteshuffle::interleave(width, planes, 0, &mut expected);
            check_against(&expected, width, 1, |out| interleave(width, planes, out));
            if eights > 0 {
                let mut expected = vec![0; rows.len()];
                bitshuffle::interleave_bits(width, rows, 0, &mut expected);
                check_against(&expected, width, 8, |out| interleave_bits(width, rows, out));
            }
        }
    }

    fn check_against(expected: &[u8], width: Width, multiple: usize, make: impl Fn(&mut [u8]) -> usize) {
        let mut out: Vec<u8> = expected.iter().map(|byte| !byte).collect();
        let values = make(&mut out);
        let (done, left) = out.split_at(values * width.bytes());
        assert!(values.is_multiple_of(multiple));
        assert!(done == &expected[..done.len()], "{} bytes, {width:?}", expected.len());
        assert!(left.iter().zip(&expected[done.len()..]).all(|(out, expected)| *out == !expected));
    }

    proptest! {
        #[test]
        fn vectors_and_loops_agree(bytes in prop::collection::vec(any::<u8>(), 0..8193)) {
            check(&bytes);
        }
    }

    #[test]
    fn all_short_lengths_and_a_whole_block() {
        // Miri takes minutes for all of them.
        let step = if cfg!(miri) { 131 } else { 1 };
        for length in (0..2200).step_by(step).chain([8192]) {
            check(&(0..length as u32).map(|i| (i.wrapping_mul(i) >> 3) as u8).collect::<Vec<u8>>());
        }
    }

    /// Ensures that the tests above compare something.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn vectors_write_all_values_but_some_at_the_end() {
        if !is_x86_feature_detected!("avx2") {
            return;
        }
        for width in WIDTHS {
            let block = vec![0; (256 + 248) * width.bytes()];
            assert_eq!(interleave_bits(width, &block, &mut block.clone()), 256);
            let planes = vec![0; (32 + 31) * width.bytes()];
            let expected = if width == Width::One { 0 } else { 32 };
            assert_eq!(interleave(width, &planes, &mut planes.clone()), expected);
        }
    }
}
