//! Pool of buffers for decoded bytes: the memory of an evicted value is reused for the next one.
//!
//! The kernel zeroes fresh memory page by page on first touch, and allocators return large blocks to it. For a reader
//! that streams through an array, this costs more than some decoders do.

use std::ops::{Deref, DerefMut};

use tilefs_threads::address_space;
use tilefs_threads::sync::{Arc, Mutex, PoisonError};

/// Most bytes of unused buffers that the pool keeps; more is freed.
const MOST_UNUSED: usize = 8 << 20;

/// Smaller buffers are left to the allocator, which caches such blocks itself.
const LEAST_POOLED: usize = 4 << 10;

/// From this length on, [`BufferPool::try_get`] tests whether the allocation succeeds. The test implies zeroing the
/// memory, which for large blocks the kernel has already done.
const LARGE: usize = 1 << 20;

/// Number of unused buffers examined for one that fits.
const MOST_EXAMINED: usize = 16;

/// The pool of unused buffers. Memory: at most 8 MiB.
#[derive(Debug, Default)]
pub struct BufferPool {
    unused: Mutex<Unused>,
}

#[derive(Debug, Default)]
struct Unused {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

/// Bytes whose memory returns to its [`BufferPool`] on drop.
#[derive(Debug)]
pub struct PooledBuffer {
    bytes: Vec<u8>,
    home: Arc<BufferPool>,
}

impl BufferPool {
    /// Returns a buffer of `length` bytes with arbitrary content: the caller must overwrite all of it.
    pub fn get(self: &Arc<Self>, length: usize) -> PooledBuffer {
        let mut bytes = self.take(length).unwrap_or_else(|| fresh(length));
        bytes.resize(length, 0);
        PooledBuffer { bytes, home: Arc::clone(self) }
    }

    /// As [`BufferPool::get`], but `None` if the memory cannot be allocated. For lengths from untrusted input.
    pub fn try_get(self: &Arc<Self>, length: usize) -> Option<PooledBuffer> {
        if let Some(mut bytes) = self.take(length) {
            bytes.resize(length, 0);
            return Some(PooledBuffer { bytes, home: Arc::clone(self) });
        }
        if length < LARGE {
            return Some(self.get(length));
        }
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).ok()?;
        bytes.resize(length, 0);
        Some(PooledBuffer { bytes, home: Arc::clone(self) })
    }

    /// Takes the most recently used free buffer with a capacity of at least `length` and less than twice that.
    fn take(&self, length: usize) -> Option<Vec<u8>> {
        if length < LEAST_POOLED {
            return None;
        }
        let mut unused = self.unused.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |buffer: &Vec<u8>| (length..2 * length).contains(&buffer.capacity());
        let from_end = unused.buffers.iter().rev().take(MOST_EXAMINED).position(fits)?;
        let number = unused.buffers.len() - 1 - from_end;
        let buffer = unused.buffers.remove(number);
        unused.bytes -= buffer.capacity();
        Some(buffer)
    }

    fn give_back(&self, buffer: Vec<u8>) {
        if !(LEAST_POOLED..=MOST_UNUSED).contains(&buffer.capacity()) {
            return;
        }
        let mut unused = self.unused.lock().unwrap_or_else(PoisonError::into_inner);
        let mut freed = Vec::new();
        unused.bytes += buffer.capacity();
        unused.buffers.push(buffer);
        if unused.bytes > MOST_UNUSED {
            // The longest unused buffers are the least likely to fit or to be in a processor's cache.
            let mut count = 0;
            while unused.bytes > MOST_UNUSED / 2 {
                unused.bytes -= unused.buffers[count].capacity();
                count += 1;
            }
            freed.extend(unused.buffers.drain(..count));
        }
        drop(unused);
        drop(freed);
    }
}

/// Allocates memory and maps its pages.
fn fresh(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    address_space::map_pages(&mut bytes);
    bytes
}

impl PooledBuffer {
    /// Shortens the buffer to `length` bytes; the capacity stays.
    pub fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
    }

    /// Returns the allocated size in bytes.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}

impl Deref for PooledBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for PooledBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        self.home.give_back(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unused(buffers: &BufferPool) -> (usize, usize) {
        let unused = buffers.unused.lock().unwrap();
        assert_eq!(unused.bytes, unused.buffers.iter().map(Vec::capacity).sum::<usize>());
        (unused.buffers.len(), unused.bytes)
    }

    #[test]
    fn a_fitting_buffer_is_reused() {
        let buffers = Arc::new(BufferPool::default());
        let first = buffers.get(65536);
        let place = first.as_ptr();
        drop(first);
        assert_eq!(unused(&buffers), (1, 65536));
        let (small, large) = (buffers.get(10_000), buffers.get(65537));
        assert_ne!(small.as_ptr(), place, "it would waste most of it");
        assert_ne!(large.as_ptr(), place);
        let shorter = buffers.get(40_000);
        assert_eq!((shorter.as_ptr(), shorter.len()), (place, 40_000));
        drop(shorter);
        assert_eq!(buffers.get(65536).len(), 65536);
    }

    #[test]
    fn unused_memory_is_bounded() {
        let buffers = Arc::new(BufferPool::default());
        let many: Vec<PooledBuffer> = (0..1000).map(|number| buffers.get(50_000 + number)).collect();
        assert_eq!(unused(&buffers).0, 0);
        drop(many);
        assert!((MOST_UNUSED / 4..=MOST_UNUSED).contains(&unused(&buffers).1));
        let before = unused(&buffers);
        drop(buffers.get(MOST_UNUSED + 1));
        drop(buffers.get(10));
        assert_eq!(unused(&buffers), before);
    }
}
