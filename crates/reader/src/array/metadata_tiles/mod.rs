//! The tiles that hold metadata of fragments, and the walk over the chunks of any tile.

pub mod chunk_walk;
pub mod generic_tile;
pub mod tile_boxes;
pub mod tile_numbers;
