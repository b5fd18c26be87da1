//! Finds the rows of a sparse array: which cells of which fragments are rows, and in which order.
//!
//! 1. [`plan`] compares the key ranges of fragments and tiles ([`span`], [`overlap`], [`coincidence`]). Tiles that
//!    overlap with no other fragment are rows as they are stored; all others become merges. It reads only metadata.
//! 2. [`build`] makes the map of rows from the plan. A short merge is made at once; a long one is a [`lazy_merge`], cut
//!    into segments that are made when one of their rows is first read. [`rank`] finds where a segment begins in each
//!    fragment.
//! 3. [`task`] makes one segment. [`prefetch`] requests the coordinates of all its fragments, and [`tournament`] merges
//!    their streams. What becomes a row depends on the cells:
//!    * [`every`]: no two fragments have coordinates in common, so every cell is a row;
//!    * [`newest`]: of several cells with the same coordinates, the newest is the row;
//!    * [`distinct`]: as `newest`, but cells with the same coordinates need not be adjacent in the merge, so all cells
//!      are sorted by their coordinates first.

pub mod build;
pub mod coincidence;
pub mod distinct;
pub mod every;
pub mod lazy_merge;
pub mod newest;
pub mod overlap;
pub mod plan;
pub mod prefetch;
pub mod rank;
pub mod span;
pub mod task;
pub mod tournament;
