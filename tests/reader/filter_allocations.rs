//! Decoding allocates nothing once a thread's scratch has decoded a chunk of the same kind. A counting allocator proves
//! this with tiles that libtiledb wrote.
use support::counting_allocator::allocations;
use tilefs_format::filter::Scratch;
use tilefs_format::pipeline::Filter;

use crate::filter_vectors::{decode_into, vectors};

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
        let before = allocations();
        decode(&mut scratch);
        assert_eq!(allocations() - before, 0, "{}", vector.name);
        tried += 1;
    }
    assert!(tried > 3000, "{tried} vectors");
    assert!(allocations() > 0, "the allocator counts");
}
