//! Where reads are assembled. What answered one request serves the next: its pages are not cleared and faulted in anew,
//! and of the buffers that nobody uses the one used last is the likeliest to be in a processor's cache.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Buffers that no request uses. Memory: as many as there were requests at the same time, each at most as large as the
/// largest read that was asked for.
#[derive(Debug, Default)]
pub struct ReplyBuffers {
    unused: Mutex<Vec<Vec<u8>>>,
}

/// Bytes that go back to their [`ReplyBuffers`] in the end.
#[derive(Debug)]
pub struct ReplyBuffer<'a> {
    bytes: Vec<u8>,
    length: usize,
    home: &'a ReplyBuffers,
}

impl ReplyBuffers {
    /// A buffer of `length` bytes that hold anything: for a caller who sets all of them.
    pub fn get(&self, length: usize) -> ReplyBuffer<'_> {
        let mut bytes = self.unused().pop().unwrap_or_default();
        if bytes.len() < length {
            // Not resized, which would set, and so touch, every byte.
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
