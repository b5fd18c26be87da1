//! Memory that decoding reuses for every chunk, so that it does not allocate: buffers between filters, and the states
//! of the codecs.

use super::string_metadata::StringIndex;
use super::zlib::ZlibDecompressor;

/// Buffers of more bytes are freed after the chunk that needed them.
const KEPT_BYTES: usize = 4 << 20;

/// Buffer lengths are a multiple of this many bytes, so that chunks of slightly different lengths can use the same
/// buffer.
const STEP_BYTES: usize = 64 << 10;

/// Reusable buffers and codec states for any [`Decoder`](super::Decoder); each concurrent decode needs its own.
///
/// Memory between chunks: at most 20 MiB, and a few hundred KiB with the usual chunks of 64 KiB.
#[derive(Default)]
pub struct Scratch {
    pub(super) data: [Vec<u8>; 2],
    pub(super) metadata: [Vec<u8>; 2],
    pub(super) states: CodecStates,
}

/// The states that codecs keep from part to part.
#[derive(Default)]
pub(super) struct CodecStates {
    pub zlib: ZlibDecompressor,
    /// Created on first use.
    pub zstd: Option<zstd::bulk::Decompressor<'static>>,
    pub dictionary: StringIndex,
}

impl Scratch {
    /// Creates empty buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Frees the buffers that an unusually large chunk needed.
    pub(super) fn trim(&mut self) {
        for buffer in self.data.iter_mut().chain(&mut self.metadata) {
            if buffer.capacity() > KEPT_BYTES {
                *buffer = Vec::new();
            }
        }
        self.states.dictionary.trim(KEPT_BYTES);
    }
}

/// Returns the first `length` bytes of a buffer. A shorter buffer is replaced by a zeroed one; otherwise the old bytes
/// stay, so that no time is spent on clearing.
pub(super) fn reserve(buffer: &mut Vec<u8>, length: usize) -> &mut [u8] {
    if buffer.len() < length {
        *buffer = Vec::new();
        *buffer = vec![0; length.next_multiple_of(STEP_BYTES)];
    }
    &mut buffer[..length]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_kept_until_they_are_too_large() {
        let mut scratch = Scratch::new();
        for (length, kept) in
            [(10, STEP_BYTES), (STEP_BYTES, STEP_BYTES), (0, STEP_BYTES), (STEP_BYTES + 1, 2 * STEP_BYTES)]
        {
            assert_eq!(reserve(&mut scratch.data[0], length).len(), length);
            scratch.trim();
            assert_eq!(scratch.data[0].capacity(), kept);
        }
        reserve(&mut scratch.data[0], KEPT_BYTES + 1);
        scratch.trim();
        assert_eq!(scratch.data[0].capacity(), 0);
    }
}
