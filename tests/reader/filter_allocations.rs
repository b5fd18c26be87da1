//! Decoding allocates nothing once a thread's scratch has decoded a chunk of the same kind. A counting allocator proves
//! this with tiles that libtiledb wrote.
#![allow(unsafe_code)]

mod filter_vectors;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use filter_vectors::{decode_into, vectors};
use tilefs_format::filter::Scratch;
use tilefs_format::pipeline::Filter;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

fn count() {
    ALLOCATIONS.with(|allocations| allocations.set(allocations.get() + 1));
}

// SAFETY: every call is forwarded to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_chunk_is_decoded_without_allocation() {
    let mut scratch = Scratch::new();
    let mut tried = 0;
    for vector in vectors() {
        // The bzip2 library cannot reuse its state.
        if vector.pipeline.filters.iter().any(|filter| matches!(filter, Filter::Bzip2 { .. })) {
            continue;
        }
        let decoder = vector.decoder();
        let mut cells = vec![0; vector.cells.len()];
        let mut offsets = vector.offsets.as_ref().map(|offsets| vec![0; offsets.len()]);
        let mut decode = |scratch: &mut Scratch| {
            decode_into(&decoder, &vector.tile, &mut cells, offsets.as_deref_mut(), scratch).unwrap();
        };
        decode(&mut scratch);
        let before = ALLOCATIONS.get();
        decode(&mut scratch);
        assert_eq!(ALLOCATIONS.get() - before, 0, "{}", vector.name);
        tried += 1;
    }
    assert!(tried > 3000, "{tried} vectors");
    assert!(ALLOCATIONS.get() > 0, "the allocator counts");
}
