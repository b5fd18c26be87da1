//! The zlib decoder of libdeflate, behind a safe interface. What a stream decodes to has to be known beforehand, as
//! here it is; then it takes about half of the time of a decoder that can stop anywhere.
//!
//! It takes what zlib takes, and two things more that no encoder makes: the codes that DEFLATE reserves (length 287,
//! which fixed codes have too, is as long as 285), and the half of a code of one codeword that has no meaning. What
//! they decode to still has to fit the checksum: a bit that changed may be overlooked, bytes that changed are not.
//!
//! The safe bindings (libdeflater) do not say how many bytes of the input were read, hence these.
//!
//! Invariant of the `unsafe` blocks: a pointer to bytes comes from a slice that lives through the call and goes with
//! that slice's own length, and libdeflate keeps none of them. It reads no byte beyond the one length and writes none
//! beyond the other, whatever the stream claims. The pointer to a decompressor came from libdeflate, is used by one
//! call at a time, as every call borrows its owner alone, and is given back once.
#![allow(unsafe_code)]

use std::ptr::{self, NonNull};

use libdeflate_sys::{
    libdeflate_alloc_decompressor, libdeflate_decompressor, libdeflate_free_decompressor,
    libdeflate_result_LIBDEFLATE_INSUFFICIENT_SPACE as INSUFFICIENT_SPACE,
    libdeflate_result_LIBDEFLATE_SHORT_OUTPUT as SHORT_OUTPUT, libdeflate_result_LIBDEFLATE_SUCCESS as SUCCESS,
    libdeflate_zlib_decompress_ex,
};

/// Tables of the decoder, some 11 KiB, made when they are first needed.
#[derive(Default)]
pub(super) struct Decompressor(Option<NonNull<libdeflate_decompressor>>);

/// Why a stream was not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Problem {
    /// No memory for the decoder.
    OutOfMemory,
    /// It is no zlib stream, or its checksum is wrong.
    Damaged,
    /// It ends before the output is full.
    TooShort,
    /// It does not end where the output is full.
    TooLong,
}

// SAFETY: libdeflate's decompressor is plain memory that belongs to no thread.
unsafe impl Send for Decompressor {}

impl Decompressor {
    /// Fills `out` with what the zlib stream at the start of `stream` holds, and gives the length of that stream. `out`
    /// holds nothing of use after a [`Problem`].
    pub fn decompress_zlib(&mut self, stream: &[u8], out: &mut [u8]) -> Result<usize, Problem> {
        let decompressor = self.get()?;
        let mut read = 0;
        // SAFETY: the decompressor is borrowed alone; `stream` is readable and `out` writable for its length, and
        // `read` is writable. Without a place for the length of the output, it has to fill `out`.
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
            SHORT_OUTPUT => Err(Problem::TooShort),
            INSUFFICIENT_SPACE => Err(Problem::TooLong),
            _ => Err(Problem::Damaged),
        }
    }

    fn get(&mut self) -> Result<NonNull<libdeflate_decompressor>, Problem> {
        if self.0.is_none() {
            // SAFETY: the call wants nothing. It gives null or a decompressor that is ours.
            self.0 = NonNull::new(unsafe { libdeflate_alloc_decompressor() });
        }
        self.0.ok_or(Problem::OutOfMemory)
    }
}

impl Drop for Decompressor {
    fn drop(&mut self) {
        if let Some(decompressor) = self.0.take() {
            // SAFETY: it came from libdeflate, and no one uses it any more.
            unsafe { libdeflate_free_decompressor(decompressor.as_ptr()) }
        }
    }
}
