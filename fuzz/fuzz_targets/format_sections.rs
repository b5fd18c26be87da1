//! List sections of fragment metadata.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilefs_format::fragment::sections;
use tilefs_fuzz as _; // for its bounded allocator

fuzz_target!(|data: &[u8]| {
    if let Ok(list) = sections::parse_u64_list(data) {
        assert_eq!(8 * (list.len() + 1), data.len());
        if let Ok(offsets) = sections::parse_tile_offsets(data, list.len() as u64, 1 << 20) {
            assert!(offsets.iter().all(|&offset| offset <= 1 << 20));
        }
    }
    let _ = sections::parse_processed_conditions(data);
});
