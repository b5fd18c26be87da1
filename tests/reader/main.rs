//! Stored bytes and arrays as the crates below the tree read them: the format, filters, tiles, sparse rows, saved
//! results, and the cost of reads.

mod api;
mod bounds;
mod cached;
mod filter_allocations;
mod filter_vectors;
mod filters;
mod format_corpus;
mod lying_bounds;
mod many_fragments;
mod requests;
mod row_bounds;
mod saved;
mod sparse;
mod tiles;
mod unscanned;

use support::counting_allocator::Counting;

#[global_allocator]
static MEMORY: Counting = Counting;
