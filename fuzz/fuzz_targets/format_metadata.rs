//! Array and group metadata.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilefs_format::metadata::parse_metadata;
use tilefs_fuzz as _; // for its bounded allocator

fuzz_target!(|data: &[u8]| {
    for value in parse_metadata(data).into_iter().flatten().filter_map(|entry| entry.value) {
        assert_eq!(value.bytes.len(), value.count as usize * value.datatype.size());
    }
});
