//! Consolidated commits, ignored marks and vacuum files: what they name stays in the array.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilefs_format::commit::{fragment_of_mark, parse_consolidated_commits, parse_ignored_commits, parse_vacuum};
use tilefs_fuzz as _; // its bounded memory

fn stays(path: &str) {
    assert!(!path.starts_with('/') && path.split('/').all(|part| !matches!(part, "" | "." | "..")), "{path:?}");
}

fuzz_target!(|data: &[u8]| {
    for commit in parse_consolidated_commits(data).into_iter().flatten() {
        stays(commit.mark);
        fragment_of_mark(commit.mark).iter().for_each(|path| stays(path));
    }
    parse_ignored_commits(data).into_iter().flatten().for_each(stays);
    parse_vacuum(data).into_iter().flatten().for_each(|path| stays(&path));
});
