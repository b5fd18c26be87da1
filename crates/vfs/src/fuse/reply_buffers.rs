//! Pool of reply buffers. Reuse avoids zeroing and page faults, and the most recently used buffer is likely in a
//! processor's cache.

use std::ops::{Deref, DerefMut};

use tilefs_threads::sync::{Mutex, MutexGuard, PoisonError};

/// Unused buffers. Memory: as many buffers as there were concurrent requests, each at most as large as the largest
/// read.
#[derive(Debug, Default)]
pub struct ReplyBuffers {
    unused: Mutex<Vec<Vec<u8>>>,
}

/// A buffer that returns to its [`ReplyBuffers`] on drop.
#[derive(Debug)]
pub struct ReplyBuffer<'a> {
    bytes: Vec<u8>,
    length: usize,
    home: &'a ReplyBuffers,
}

impl ReplyBuffers {
    /// Returns a buffer of `length` bytes with arbitrary content: the caller must overwrite all of it.
    pub fn get(&self, length: usize) -> ReplyBuffer<'_> {
        let mut bytes = self.unused().pop().unwrap_or_default();
        if bytes.len() < length {
            // Not resized, because that would write, and so touch, every byte.
            bytes = vec![0; length];
        }
        ReplyBuffer { bytes, length, home: self }
    }

    fn unused(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.unused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for ReplyBuffer<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl DerefMut for ReplyBuffer<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.length]
    }
}

impl Drop for ReplyBuffer<'_> {
    fn drop(&mut self) {
        self.home.unused().push(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_used_last_is_used_next() {
        let buffers = ReplyBuffers::default();
        let (first, second) = (buffers.get(1000), buffers.get(1000));
        let places = [first.as_ptr(), second.as_ptr()];
        drop(first);
        drop(second);
        let again = buffers.get(500);
        assert_eq!((again.as_ptr(), again.len()), (places[1], 500));
        assert_eq!(buffers.get(1000).as_ptr(), places[0]);
        let larger = buffers.get(2000);
        assert_eq!(larger.len(), 2000);
        drop((again, larger));
        assert_eq!(
            buffers.unused().iter().map(Vec::len).collect::<Vec<_>>(),
            [1000, 2000],
            "as many as were in use at once"
        );
    }
}
