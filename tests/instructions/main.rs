//! How many instructions the hot paths take, and how many allocations: none may take over 3 % more than `counts.txt`
//! says.
//!
//! Counts depend on the compiler and the processor, but not on how busy the machine is. So they notice a slowdown that
//! a clock would not, where other programs run beside the tests. What is counted is the build of the tests, not a
//! release: a path that takes more steps shows in both.
//!
//! What several threads share, such as the planning of what is prefetched, is not counted: who comes first decides who
//! has which work.
//!
//! `scripts/accept.sh`, or `TILEFS_ACCEPT=yes cargo test --workspace --test instructions`, accepts the counts of this
//! build.

mod counter;
mod hot_paths;

use support::counting_allocator::Counting;

#[global_allocator]
static MEMORY: Counting = Counting;
