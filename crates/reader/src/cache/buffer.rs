//! Memory for decoded bytes that is used again: what a value that left the cache was stored in serves the next one.
//!
//! Fresh memory is cleared page by page by the kernel when it is first touched, and allocators hand large blocks back
//! to it. For a reader that streams through an array this costs more than some decoders do.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

/// How much may lie unused; more is freed.
const MOST_UNUSED: usize = 8 << 20;

/// Buffers below this are left to the allocator, which keeps such blocks itself.
const LEAST: usize = 4 << 10;

/// From this length on it is asked whether there is so much memory. (Asking costs clearing it, which for large blocks
/// the kernel has done already.)
const LARGE: usize = 1 << 20;

/// The size of a page, or of a part of one.
const PAGE: usize = 4 << 10;

/// How many unused buffers are looked at for one that fits.
const LOOKED_AT: usize = 16;

/// Buffers that nobody uses. Memory: 8 MiB at most.
#[derive(Debug, Default)]
pub struct Buffers {
    unused: Mutex<Unused>,
}

#[derive(Debug, Default)]
struct Unused {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

/// Bytes in memory that goes back to its [`Buffers`] in the end.
#[derive(Debug)]
pub struct Buffer {
    bytes: Vec<u8>,
    home: Arc<Buffers>,
}

impl Buffers {
    /// A buffer of `length` bytes that hold anything: for a caller who sets all of them.
    pub fn get(self: &Arc<Self>, length: usize) -> Buffer {
        let mut bytes = self.take(length).unwrap_or_else(|| fresh(length));
        bytes.resize(length, 0);
        Buffer { bytes, home: Arc::clone(self) }
    }

    /// As [`Buffers::get`]; `None` where there is not so much memory. For lengths that somebody else chose.
    pub fn try_get(self: &Arc<Self>, length: usize) -> Option<Buffer> {
        if let Some(mut bytes) = self.take(length) {
            bytes.resize(length, 0);
            return Some(Buffer { bytes, home: Arc::clone(self) });
        }
        if length < LARGE {
            return Some(self.get(length));
        }
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).ok()?;
        bytes.resize(length, 0);
        Some(Buffer { bytes, home: Arc::clone(self) })
    }

    /// The unused buffer that was last in use among those that hold `length` bytes and not twice as many.
    fn take(&self, length: usize) -> Option<Vec<u8>> {
        if length < LEAST {
            return None;
        }
        let mut unused = self.unused.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |buffer: &Vec<u8>| (length..2 * length).contains(&buffer.capacity());
        let from_end = unused.buffers.iter().rev().take(LOOKED_AT).position(fits)?;
        let number = unused.buffers.len() - 1 - from_end;
        let buffer = unused.buffers.remove(number);
        unused.bytes -= buffer.capacity();
        Some(buffer)
    }

    fn give_back(&self, buffer: Vec<u8>) {
        if !(LEAST..=MOST_UNUSED).contains(&buffer.capacity()) {
            return;
        }
        let mut unused = self.unused.lock().unwrap_or_else(PoisonError::into_inner);
        let mut freed = Vec::new();
        unused.bytes += buffer.capacity();
        unused.buffers.push(buffer);
        if unused.bytes > MOST_UNUSED {
            // The longest unused are the least likely to fit, and the least likely to be in a processor's cache.
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

/// Memory that was not in use before, each page of which is touched: a fault of this program holds up nobody, while one
/// that the kernel meets as it reads a file into a page takes the lock of the whole address space.
fn fresh(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    bytes.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    bytes
}

impl Buffer {
    /// Leaves out what is behind `length` bytes; the memory stays.
    pub fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
    }

    /// How much memory it takes.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.home.give_back(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unused(buffers: &Buffers) -> (usize, usize) {
        let unused = buffers.unused.lock().unwrap();
        assert_eq!(unused.bytes, unused.buffers.iter().map(Vec::capacity).sum::<usize>());
        (unused.buffers.len(), unused.bytes)
    }

    #[test]
    fn memory_is_used_again_where_it_fits() {
        let buffers = Arc::new(Buffers::default());
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
    fn what_lies_unused_is_bounded() {
        let buffers = Arc::new(Buffers::default());
        let many: Vec<Buffer> = (0..1000).map(|number| buffers.get(50_000 + number)).collect();
        assert_eq!(unused(&buffers).0, 0);
        drop(many);
        assert!((MOST_UNUSED / 4..=MOST_UNUSED).contains(&unused(&buffers).1));
        let before = unused(&buffers);
        drop(buffers.get(MOST_UNUSED + 1));
        drop(buffers.get(10));
        assert_eq!(unused(&buffers), before);
    }
}
