//! The orders of cells: coordinates as numbers that sort as they do, and keys that sort as the cells of a fragment do.

pub mod axis;
pub mod hilbert;
pub mod key;
pub mod rounding;
pub mod writers;
pub mod wrong_tiles;
