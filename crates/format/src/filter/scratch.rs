//! What decoding keeps from chunk to chunk so that it allocates nothing: buffers for what passes from filter to filter,
//! and the states of the codecs.

use super::dictionary::Index;
use super::libdeflate;
use super::zstd;

/// Buffers above this many bytes are given back after the chunk that needed them.
const KEPT_BYTES: usize = 4 << 20;

/// Buffers are made a multiple of this long, so that chunks of slightly different lengths share one.
const STEP_BYTES: usize = 64 << 10;

/// Reusable buffers and codec states, of which there are as many as chunks are decoded at once, for any
/// [`Decoder`](super::Decoder). One holds 20 MiB at most between chunks, and a few hundred KiB where chunks have the
/// usual 64 KiB.
#[derive(Default)]
pub struct Scratch {
    pub(super) data: [Vec<u8>; 2],
    pub(super) metadata: [Vec<u8>; 2],
    pub(super) states: States,
}

/// What single filters keep from part to part.
#[derive(Default)]
pub(super) struct States {
    pub zlib: libdeflate::Decompressor,
    pub zstd: zstd::Decompressor,
    pub dictionary: Index,
}

impl Scratch {
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives back buffers that an unusually large chunk made.
    pub(super) fn trim(&mut self) {
        for buffer in self.data.iter_mut().chain(&mut self.metadata) {
            if buffer.capacity() > KEPT_BYTES {
                *buffer = Vec::new();
            }
        }
        self.states.dictionary.trim(KEPT_BYTES);
    }
}

/// The first `length` bytes of a buffer, which is replaced if it is shorter and otherwise left as it
/// is, so that nothing is cleared again for the next chunk.
pub(super) fn room(buffer: &mut Vec<u8>, length: usize) -> &mut [u8] {
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
            assert_eq!(room(&mut scratch.data[0], length).len(), length);
            scratch.trim();
            assert_eq!(scratch.data[0].capacity(), kept);
        }
        room(&mut scratch.data[0], KEPT_BYTES + 1);
        scratch.trim();
        assert_eq!(scratch.data[0].capacity(), 0);
    }
}
