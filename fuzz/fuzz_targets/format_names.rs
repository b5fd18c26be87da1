//! Names of files and folders.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilefs_format::folder::{commit_file, root_fragment, timestamped_file};
use tilefs_format::name::TimestampedName;
use tilefs_fuzz as _; // for its bounded allocator

fuzz_target!(|name: &str| {
    if let Ok(Some(parsed)) = TimestampedName::parse(name) {
        assert!(parsed.t1 <= parsed.t2 && parsed.t2 <= i64::MAX as u64);
    }
    let _ = (root_fragment(name), commit_file(name), timestamped_file(name));
});
