//! Memory for tests of hostile input: no process gets more than [`MOST`] bytes at once. Who asks for more is refused,
//! as by a machine that has no more, and who cannot be refused (`vec![0; length]`) ends the process.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a process may have at once. The inputs of these tests are small beside it.
pub const MOST: usize = 256 << 20;

/// The system's memory, up to [`MOST`] bytes.
pub struct Bounded {
    used: AtomicUsize,
}

impl Bounded {
    pub const fn new() -> Self {
        Bounded { used: AtomicUsize::new(0) }
    }

    /// Counts `size` bytes in, unless there is no room for them.
    fn take(&self, size: usize) -> bool {
        let used = self.used.fetch_add(size, Ordering::Relaxed).saturating_add(size);
        if used > MOST {
            self.used.fetch_sub(size, Ordering::Relaxed);
            return false;
        }
        true
    }
}

// SAFETY: every call is the system allocator's, with the same arguments, or a refusal, which an allocator may give at
// any time. The counts are beside the memory and touch none of it.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !self.take(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !self.take(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !self.take(size) {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promises.
        let moved = unsafe { System.realloc(block, layout, size) };
        // The old block is gone, unless there was no new one.
        self.used.fetch_sub(if moved.is_null() { size } else { layout.size() }, Ordering::Relaxed);
        moved
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.used.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(block, layout) }
    }
}
