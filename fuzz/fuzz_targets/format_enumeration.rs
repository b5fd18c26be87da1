//! Enumerations: the values fit in the data.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilefs_format::enumeration::Enumeration;
use tilefs_fuzz as _; // for its bounded allocator

fuzz_target!(|data: &[u8]| {
    let Ok(enumeration) = Enumeration::parse(data) else { return };
    assert_eq!(enumeration.values().count(), enumeration.len());
    assert!(enumeration.value(enumeration.len()).is_none());
    assert!(enumeration.values().map(<[u8]>::len).sum::<usize>() <= data.len());
});
