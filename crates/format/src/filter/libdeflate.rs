//! The zlib decoder of libdeflate, behind a safe interface. It needs the decoded length in advance, which is known
//! here, and takes about half the time of a streaming decoder.
//!
//! It accepts all streams that zlib accepts, and two forms that no encoder writes: reserved DEFLATE codes (length code
//! 287, which also exists among the fixed codes, is decoded as 285), and the unused half of a code with a single
//! codeword. The decoded bytes must still match the checksum: a flipped bit may go unnoticed only if no decoded byte
//! changes.
//!
//! The safe bindings (libdeflater) do not return the number of input bytes read, so this module calls the C functions.
//!
//! Invariant of the `unsafe` blocks: every pointer to bytes comes from a slice that outlives the call and is passed
//! with that slice's own length; libdeflate keeps none of them. It never reads beyond the input length or writes beyond
//! the output length, whatever the stream claims. The pointer to a decompressor comes from libdeflate, is used by one
//! call at a time, as every call borrows its owner exclusively, and is freed once.
#![allow(unsafe_code)]

use std::ptr::{self, NonNull};

use libdeflate_sys::{
    libdeflate_alloc_decompressor, libdeflate_decompressor, libdeflate_free_decompressor,
    libdeflate_result_LIBDEFLATE_INSUFFICIENT_SPACE as INSUFFICIENT_SPACE,
    libdeflate_result_LIBDEFLATE_SHORT_OUTPUT as SHORT_OUTPUT, libdeflate_result_LIBDEFLATE_SUCCESS as SUCCESS,
    libdeflate_zlib_decompress_ex,
};

/// The tables of the decoder, about 11 KiB, allocated on first use.
#[derive(Default)]
pub(super) struct Decompressor(Option<NonNull<libdeflate_decompressor>>);

// SAFETY: libdeflate's decompressor is plain memory that belongs to no thread.
unsafe impl Send for Decompressor {}

/// The reason why a stream was not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecompressError {
    /// The tables of the decoder could not be allocated.
    OutOfMemory,
    /// The input is not a zlib stream, or its checksum is wrong.
    Damaged,
    /// The stream ends before the output is full.
    TooShort,
    /// The stream continues after the output is full.
    TooLong,
}

impl Decompressor {
    /// Decodes the zlib stream at the start of `stream` into `out`, which it must fill exactly, and returns the length
    /// of that stream. After a [`DecompressError`], the content of `out` is unspecified.
    pub fn decompress_zlib(&mut self, stream: &[u8], out: &mut [u8]) -> Result<usize, DecompressError> {
        let decompressor = self.get()?;
        let mut read = 0;
        // SAFETY: the decompressor is borrowed exclusively; `stream` is readable and `out` writable for its length, and
        // `read` is writable. The null pointer for the output length makes libdeflate fail unless it fills `out`.
        let result = unsafe {
            libdeflate_zlib_decompress_ex(
                decompressor.as_ptr(),
                stream.as_ptr().cast(),
                stream.len(),
                out.as_mut_ptr().cast(),
                out.len(),
                &mut read,
                ptr::null_mut(),
            )
        };
        match result {
            SUCCESS => Ok(read),
            SHORT_OUTPUT => Err(DecompressError::TooShort),
            INSUFFICIENT_SPACE => Err(DecompressError::TooLong),
            _ => Err(DecompressError::Damaged),
        }
    }

    fn get(&mut self) -> Result<NonNull<libdeflate_decompressor>, DecompressError> {
        if self.0.is_none() {
            // SAFETY: the call has no preconditions. It returns null or a decompressor that we own.
            self.0 = NonNull::new(unsafe { libdeflate_alloc_decompressor() });
        }
        self.0.ok_or(DecompressError::OutOfMemory)
    }
}

impl Drop for Decompressor {
    fn drop(&mut self) {
        if let Some(decompressor) = self.0.take() {
            // SAFETY: the pointer came from libdeflate, and is not used any more.
            unsafe { libdeflate_free_decompressor(decompressor.as_ptr()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use flate2::Compression;
    use flate2::read::ZlibDecoder;
    use flate2::write::ZlibEncoder;
    use proptest::prelude::*;

    use super::*;

    /// Bytes around the output, which must stay as they are.
    const GUARD: usize = 64;

    fn encode(bytes: &[u8], level: u32) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(level));
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// The safe twin.
    fn decode_safely(stream: &[u8], length: usize) -> Option<(Vec<u8>, usize)> {
        let (mut decoder, mut bytes) = (ZlibDecoder::new(stream), Vec::new());
        decoder.read_to_end(&mut bytes).ok()?;
        (bytes.len() == length).then(|| (bytes, decoder.total_in() as usize))
    }

    fn decode(
        decompressor: &mut Decompressor,
        stream: &[u8],
        length: usize,
    ) -> Result<(Vec<u8>, usize), DecompressError> {
        let mut memory = vec![0xA5; GUARD + length + GUARD];
        let outcome = decompressor.decompress_zlib(stream, &mut memory[GUARD..GUARD + length]);
        assert!(memory[..GUARD].iter().chain(&memory[GUARD + length..]).all(|byte| *byte == 0xA5), "written outside");
        outcome.map(|read| (memory[GUARD..GUARD + length].to_vec(), read))
    }

    /// Bytes that compress well or badly.
    fn values() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec((any::<u8>(), 1..40usize), 0..300)
            .prop_map(|runs| runs.into_iter().flat_map(|(byte, count)| vec![byte; count]).collect())
    }

    proptest! {
        #[test]
        fn streams_decode_as_with_a_safe_decoder(bytes in values(), level in 0..10u32, behind in 0..9usize) {
            let mut stream = encode(&bytes, level);
            let length = stream.len();
            stream.resize(length + behind, 0xFF);
            let mut decompressor = Decompressor::default();
            prop_assert_eq!(decode(&mut decompressor, &stream, bytes.len()), Ok((bytes.clone(), length)));
            prop_assert_eq!(decode_safely(&stream, bytes.len()), Some((bytes.clone(), length)));
            prop_assert_eq!(decode(&mut decompressor, &stream, bytes.len() + 1), Err(DecompressError::TooShort));
            if let Some(less) = bytes.len().checked_sub(1) {
                prop_assert_eq!(decode(&mut decompressor, &stream, less), Err(DecompressError::TooLong));
            }
        }

        /// A truncated or damaged stream fails or decodes to the same bytes, and does not affect the next stream.
        #[test]
        fn damaged_streams_never_give_other_bytes(
            bytes in values(), level in 0..10u32, at: prop::sample::Index, flip in 1..=u8::MAX, is_cut: bool,
        ) {
            let whole = encode(&bytes, level);
            let (mut damaged, at) = (whole.clone(), at.index(whole.len()));
            if is_cut { damaged.truncate(at) } else { damaged[at] ^= flip }
            let mut decompressor = Decompressor::default();
            let decoded = decode(&mut decompressor, &damaged, bytes.len());
            if let Some(expected) = decode_safely(&damaged, bytes.len()) {
                prop_assert_eq!(decoded.as_ref(), Ok(&expected));
            }
            prop_assert!(decoded.is_err() || decoded.is_ok_and(|(decoded, _)| decoded == bytes));
            prop_assert_eq!(decode(&mut decompressor, &whole, bytes.len()), Ok((bytes.clone(), whole.len())));
        }
    }
}
