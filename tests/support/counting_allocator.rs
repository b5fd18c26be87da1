//! An allocator for tests of memory: counts the bytes that the process holds, and the allocations of each thread and
//! their bytes.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};

static HELD: AtomicI64 = AtomicI64::new(0);

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

/// The system's memory, counted.
pub struct Counting;

/// Returns the number of bytes that the process holds.
pub fn held() -> i64 {
    HELD.load(Ordering::Relaxed)
}

/// Returns how often this thread has allocated.
pub fn allocations() -> u64 {
    ALLOCATIONS.get()
}

/// Returns how many bytes this thread has allocated, also those that it has returned since.
pub fn allocated() -> u64 {
    ALLOCATED.get()
}

fn count(size: usize) {
    HELD.fetch_add(size as i64, Ordering::Relaxed);
    // A thread that ends has no counter.
    let _ = ALLOCATIONS.try_with(|allocations| allocations.set(allocations.get() + 1));
    let _ = ALLOCATED.try_with(|allocated| allocated.set(allocated.get() + size as u64));
}

// SAFETY: every call is forwarded to the system's allocator unchanged. Counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        HELD.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(block, layout) }
    }
}
