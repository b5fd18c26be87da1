//! Undoes the filters that tiles went through when they were written: bytes in, bytes out, no I/O.
//!
//! A tile is stored as chunks ([`Chunks`]). Each chunk is filtered on its own, by the pipeline that the schema gives
//! for this kind of tile. A [`Decoder`] is a pipeline bound to one kind of tile, with a stage for each filter; it
//! decodes one chunk after the other with the buffers of a [`Scratch`]. Each filter is in the file of its name; `stage`
//! has the table of all filters.

mod aes;
mod bind;
mod bit_width_reduction;
mod bitshuffle;
mod bitsort;
mod byteshuffle;
mod bzip2;
mod checksum;
mod chunk_buffers;
mod chunks;
#[cfg(test)]
mod compressor_tests;
mod decoder;
mod delta;
mod dictionary;
mod double_delta;
mod encoded_parts;
mod generic_tile;
mod gzip;
mod integer;
mod key;
mod libdeflate;
mod libwebp;
mod lz4;
mod part_lengths;
mod positive_delta;
mod rle;
mod scale_float;
mod scratch;
mod simd;
mod stage;
mod stored_order;
mod string_metadata;
mod string_rle;
mod webp;
mod xor;
mod zlib;
mod zstd;

pub use chunks::{Chunk, Chunks};
pub use decoder::{Decoder, TileContext};
pub use generic_tile::{decode_generic_tile, generic_tile_decoder};
pub use key::Key;
pub use scratch::Scratch;
pub use stored_order::StoredOrder;
