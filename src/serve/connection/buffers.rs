//! Buffers for the pieces of files. Large ones are reused, because the memory of a new one must be mapped and zeroed,
//! which takes as long as copying the bytes into it. If many are in use, pieces should be small.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::body::Bytes;

/// Size of a large buffer, and so of the largest piece. Larger pieces are no faster, because they leave the processor's
/// cache before they are sent.
pub const LARGE: usize = 512 << 10;

/// A piece of at most this size gets a buffer of its own.
pub const SMALL: usize = 64 << 10;

/// Number of large buffers in use beyond which further pieces should be small.
const CROWD: usize = 128;

/// Maximum number of free large buffers that are kept.
const KEPT: usize = 32;

/// The buffers of a server. Memory: about [`CROWD`] times [`LARGE`], which is 64 MiB, and a small one for each further
/// piece.
#[derive(Default)]
pub struct Buffers {
    free: Mutex<Vec<Vec<u8>>>,
    /// Number of large buffers that are in use.
    in_use: AtomicUsize,
}

/// A buffer in use.
pub struct Buffer {
    bytes: Vec<u8>,
    length: usize,
    /// The pool to which a large buffer returns.
    home: Option<Arc<Buffers>>,
}

impl Buffers {
    /// Returns whether so many large buffers are in use that further pieces should be small.
    pub fn are_crowded(&self) -> bool {
        self.in_use.load(Ordering::Relaxed) >= CROWD
    }

    /// Returns a buffer of `length` bytes, at most [`LARGE`], with any content.
    pub fn take(self: &Arc<Self>, length: usize) -> Buffer {
        if length <= SMALL {
            return Buffer { bytes: vec![0; length], length, home: None };
        }
        self.in_use.fetch_add(1, Ordering::Relaxed);
        let known = self.free().pop();
        let bytes = known.unwrap_or_else(|| vec![0; LARGE]);
        Buffer { length: length.min(LARGE), bytes, home: Some(Arc::clone(self)) }
    }

    fn free(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Buffer {
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.length).unwrap_or_default()
    }

    /// Returns the bytes. The buffer is free again when they have been sent.
    pub fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let Some(home) = &self.home else { return };
        home.in_use.fetch_sub(1, Ordering::Relaxed);
        let mut free = home.free();
        if free.len() < KEPT {
            free.push(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_buffers_are_used_again_and_few_are_kept() {
        let buffers = Arc::<Buffers>::default();
        let mut first = buffers.take(SMALL + 1);
        first.as_mut_slice().fill(7);
        let bytes = first.into_bytes();
        let place = bytes.as_ptr();
        assert!(bytes.len() == SMALL + 1 && bytes.iter().all(|byte| *byte == 7));
        drop(bytes);
        let again = buffers.take(usize::MAX);
        assert_eq!((again.as_ref().len(), again.as_ref().as_ptr()), (LARGE, place));
        drop(again);
        let many: Vec<_> = (0..CROWD).map(|_| buffers.take(LARGE)).collect();
        assert!(buffers.are_crowded());
        drop(many);
        assert!(!buffers.are_crowded() && buffers.free().len() == KEPT);
    }

    #[test]
    fn small_buffers_are_as_long_as_their_piece() {
        let buffers = Arc::<Buffers>::default();
        let mut small = buffers.take(5);
        assert_eq!((small.as_mut_slice().len(), small.bytes.len()), (5, 5));
        drop(small);
        assert!(buffers.free().is_empty() && buffers.in_use.load(Ordering::Relaxed) == 0);
    }
}
