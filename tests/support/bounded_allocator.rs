//! An allocator for tests of hostile input: no process gets more than [`MOST`] bytes at once. Larger requests fail, as
//! on a machine without more memory; requests that cannot fail (`vec![0; length]`) end the process.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum memory of a process. The inputs of these tests are small in comparison.
pub const MOST: usize = 256 << 20;

/// The system's memory, up to [`MOST`] bytes.
pub struct Bounded {
    used: AtomicUsize,
}

impl Bounded {
    #[allow(clippy::new_without_default, reason = "a static cannot be made by a trait's function")]
    pub const fn new() -> Self {
        Bounded { used: AtomicUsize::new(0) }
    }

    /// Reserves `size` bytes, if they fit.
    fn take(&self, size: usize) -> bool {
        let used = self.used.fetch_add(size, Ordering::Relaxed).saturating_add(size);
        if used > MOST {
            self.used.fetch_sub(size, Ordering::Relaxed);
            return false;
        }
        true
    }
}

// SAFETY: every call is forwarded to the system's allocator with the same arguments, or fails, which an allocator may
// do at any time. Counting does not touch the memory.
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
