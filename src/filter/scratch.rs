//! What one thread keeps between chunks so that decoding allocates nothing: buffers for what passes
//! from filter to filter, and the states of the codecs.

use super::codec::Codecs;
use super::string_dictionary::Entries;

/// Buffers above this many bytes are given back after the chunk that needed them.
const KEPT_BYTES: usize = 8 << 20;

/// Reusable buffers and codec states. Make one per thread and lend it to every
/// [`Decoder`](super::Decoder); it holds some 16 MiB at most between chunks.
#[derive(Default)]
pub struct Scratch {
    pub(super) data: [Vec<u8>; 2],
    pub(super) metadata: [Vec<u8>; 2],
    pub(super) codecs: Codecs,
    pub(super) entries: Entries,
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
        self.entries.trim(KEPT_BYTES);
    }
}

/// The first `length` bytes of a buffer, which grows to that length if it must and never shrinks, so
/// that nothing is cleared again for the next chunk.
pub(super) fn room(buffer: &mut Vec<u8>, length: usize) -> &mut [u8] {
    if buffer.len() < length {
        buffer.resize(length, 0);
    }
    &mut buffer[..length]
}
