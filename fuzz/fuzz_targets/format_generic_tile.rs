//! Headers of generic tiles, and the pipelines in them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilefs_format::generic_tile::GenericTileHeader;
use tilefs_fuzz as _; // for its bounded allocator

fuzz_target!(|data: &[u8]| {
    if let Ok(header) = GenericTileHeader::parse(data) {
        assert!(header.header_size <= data.len() && header.header_size <= GenericTileHeader::MAX_SIZE);
        let start = &data[..header.header_size];
        assert_eq!(GenericTileHeader::parse(start).unwrap(), header);
    }
});
