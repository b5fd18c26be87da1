#![no_main]
//! The payload of generic tiles, plain and encrypted.

use tilefs_format::filter::{Key, Scratch, decode_generic_tile, generic_tile_decoder};
use tilefs_format::pipeline::{Filter, Pipeline};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&[flags, size], persisted)) = bytes.split_first_chunk::<2>() else { return };
    let key = Key::parse(tilefs_fuzz::KEY).expect("32 bytes are a key");
    let filters = if flags & 2 == 0 { vec![Filter::Gzip { level: 1 }] } else { Vec::new() };
    let pipeline = Pipeline { max_chunk_size: 65536, filters };
    let Ok(decoder) = generic_tile_decoder(&pipeline, flags & 1 != 0, Some(&key)) else { return };
    let _ = decode_generic_tile(&decoder, u64::from(size) << (flags >> 4), persisted, &mut Scratch::new());
});
