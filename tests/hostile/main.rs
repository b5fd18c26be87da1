//! Stored bytes that are damaged, forged or made to do harm: a read gives the right bytes or an error, in bounded memory
//! and time.
//!
//! All tests of this program share 256 MiB of memory.

mod bombs;
mod commits;
mod damage;
mod forged_indexes;
mod forgery;
mod lost_cells;
mod mutator;
mod random_damage;
mod unknown_filters;
mod untouched;

use support::bounded_allocator::Bounded;

#[global_allocator]
static MEMORY: Bounded = Bounded::new();
