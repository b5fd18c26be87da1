//! Consolidated commits, ignored commits and vacuum files: all paths in them stay in the array.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilefs_format::commit::{fragment_of_mark, parse_consolidated_commits, parse_ignored_commits, parse_vacuum};
use tilefs_fuzz as _; // for its bounded allocator

fn assert_in_array(path: &str) {
    assert!(!path.starts_with('/') && path.split('/').all(|part| !matches!(part, "" | "." | "..")), "{path:?}");
}

fuzz_target!(|data: &[u8]| {
    for commit in parse_consolidated_commits(data).into_iter().flatten() {
        assert_in_array(commit.mark);
        fragment_of_mark(commit.mark).iter().for_each(|path| assert_in_array(path));
    }
    parse_ignored_commits(data).into_iter().flatten().for_each(assert_in_array);
    parse_vacuum(data).into_iter().flatten().for_each(|path| assert_in_array(&path));
});
