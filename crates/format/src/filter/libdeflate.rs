//! The zlib decoder of libdeflate, behind a safe interface. It requires that the decoded length is known beforehand, as
//! it is here, and takes about half the time of a streaming decoder.
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

use super::zlib::DecompressError;

/// The tables of the decoder, about 11 KiB, allocated on first use.
#[derive(Default)]
pub(super) struct Decompressor(Option<NonNull<libdeflate_decompressor>>);

// SAFETY: libdeflate's decompressor is plain memory that belongs to no thread.
unsafe impl Send for Decompressor {}

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
