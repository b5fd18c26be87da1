//! Undoing the filters that tiles went through when they were written. Pure: bytes in, bytes out.
//!
//! A tile is stored as chunks ([`Chunks`]), each filtered on its own by the pipeline that the schema
//! gives for its kind. A [`Decoder`] is one pipeline bound to one kind of tile; it undoes chunk after
//! chunk with the buffers of a [`Scratch`]. What one filter does is in the file of its name.

mod aes;
mod bit_width_reduction;
mod bitshuffle;
mod bitsort;
mod byteshuffle;
mod checksum;
mod chunks;
mod codec;
mod delta;
mod double_delta;
mod element;
mod generic_tile;
mod key;
mod libwebp;
mod parts;
mod passage;
mod pipeline;
mod positive_delta;
mod rle;
mod scale_float;
mod scratch;
mod shuffle_parts;
mod simd;
mod step;
mod string_dictionary;
mod string_frame;
mod string_rle;
mod webp;
mod xor;

pub use bitsort::StoredOrder;
pub use chunks::{Chunk, Chunks};
pub use generic_tile::{decode_generic_chunk, decode_generic_tile, generic_tile_decoder};
pub use key::Key;
pub use pipeline::{Decoder, TileContext};
pub use scratch::Scratch;
