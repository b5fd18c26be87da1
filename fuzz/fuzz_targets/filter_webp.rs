#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tilefs_fuzz::one_filter("filter_webp", bytes));
