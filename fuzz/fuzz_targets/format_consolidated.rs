//! Consolidated fragment metadata: all footers lie in the input.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilefs_format::fragment::parse_consolidated_footers;
use tilefs_fuzz as _; // for its bounded allocator

fuzz_target!(|data: &[u8]| {
    let Ok(copies) = parse_consolidated_footers(data) else { return };
    let bytes: usize = copies.iter().map(|copy| 16 + copy.name.len() + copy.footer.len()).sum();
    assert!(4 + bytes <= data.len());
});
