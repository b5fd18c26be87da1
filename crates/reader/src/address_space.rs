//! The address space of this process where it is limited (`ulimit -v`): how much there is, and an allocator that
//! takes no more of it than it uses.
//!
//! Memory that runs out in the midst of some small allocation ends the process, with all who read its mounts. So what
//! is needed is known beforehand: the parts whose size is chosen are made to fit, and what cannot fit is not begun.
#![allow(unsafe_code)]

use std::fs;

use rustix::process::{Resource, getrlimit};

/// What the allocator reserves for a part of its memory that some threads share, used or not.
const ARENA: u64 = 64 << 20;

/// Arenas may reserve one part in this many of the limit.
const SHARE_OF_ARENAS: u64 = 16;

/// Blocks from this size on are given back to the system when they are freed.
const LARGE_BLOCK: i32 = 1 << 20;

/// How many bytes of addresses this process may have; `None` without a limit.
pub fn limit() -> Option<u64> {
    getrlimit(Resource::As).current
}

/// How many bytes this process can still have under its limit; `None` without one.
///
/// What arenas may reserve later is taken off.
pub fn left() -> Option<u64> {
    let limit = limit()?;
    // Where this is not known, nothing is left, and a limit is not lived with but named.
    let used = fs::read_to_string("/proc/self/status").ok().and_then(|text| used_of(&text)).unwrap_or(limit);
    Some(limit.saturating_sub(used).saturating_sub(arenas(limit).saturating_sub(1) * ARENA))
}

/// Has the allocator reserve little where there is a limit. It otherwise reserves 64 MiB for every thread that
/// allocates, as long as there are any, and what comes next finds nothing. To be called before there are threads.
pub fn use_sparingly() {
    if let Some(limit) = limit() {
        limit_arenas(arenas(limit));
    }
}

/// How many arenas are affordable: one that grows with its use, and others for so many threads to allocate at once.
fn arenas(limit: u64) -> u64 {
    (limit / SHARE_OF_ARENAS / ARENA).max(1)
}

#[cfg(target_env = "gnu")]
fn limit_arenas(count: u64) {
    let count = i32::try_from(count).unwrap_or(i32::MAX);
    for (parameter, value) in [(libc::M_ARENA_MAX, count), (libc::M_MMAP_THRESHOLD, LARGE_BLOCK)] {
        // SAFETY: mallopt takes two numbers, may be called at any time, and refuses values that it cannot have.
        unsafe { libc::mallopt(parameter, value) };
    }
}

/// Other C libraries have no arenas.
#[cfg(not(target_env = "gnu"))]
fn limit_arenas(_count: u64) {
    let _ = LARGE_BLOCK;
}

/// The line `VmSize:    9944 kB`.
fn used_of(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_kib() {
        assert_eq!(used_of("VmPeak:\t  20 kB\nVmSize:\t    9944 kB\n"), Some(9944 * 1024));
        assert_eq!(used_of("VmSize: much\n"), None);
    }

    #[test]
    fn arenas_are_a_small_part() {
        assert_eq!(arenas(300 << 20), 1);
        assert_eq!(arenas(16 << 30), 16);
        assert!((0..40).all(|bits| (arenas(1 << bits) - 1) * ARENA <= (1 << bits) / SHARE_OF_ARENAS));
    }

    #[test]
    fn without_a_limit_nothing_is_known() {
        assert_eq!(left().is_none(), limit().is_none());
    }
}
