//! The address space of this process: its limit (`ulimit -v`), how much is left, and how the allocator takes little of it.
//!
//! An allocation that fails in the midst of some small operation aborts the process and all its mounts. So the needs
//! are known beforehand: adjustable sizes are made to fit, and work that cannot fit is not begun.
//!
//! Invariant of the `unsafe` blocks: they pass numbers to the C library, and one pointer, to pages that lie within a
//! slice that the caller may write.
#![allow(unsafe_code)]

use std::fs;

use rustix::process::{Resource, getrlimit};

/// Address space that glibc's allocator reserves per arena, used or not. Threads share arenas.
const ARENA: u64 = 64 << 20;

/// Arenas per core. Each core runs a thread that decodes and at times one that answers requests.
const ARENAS_PER_CORE: u64 = 2;

/// Arenas on a machine with few cores. On two cores, two arenas cost 3 to 12 % of the time of a sequential read, and
/// 16 arenas a sixth more memory.
const FEWEST_ARENAS: u64 = 8;

/// Arenas may reserve the limit divided by this.
const SHARE_OF_ARENAS: u64 = 16;

/// Freed blocks of this size or more are returned to the system.
const LARGE_BLOCK: i32 = 1 << 20;

/// The page size, or a divisor of it: where pages are larger, [`map_pages`] writes to them.
const PAGE: usize = 4 << 10;

/// Fewer bytes than this are not worth a system call to map their pages.
const LEAST_POPULATED: usize = 4 * PAGE;

/// Returns the address-space limit in bytes; `None` without a limit.
pub fn limit() -> Option<u64> {
    getrlimit(Resource::As).current
}

/// Returns how many bytes of address space are left under the limit; `None` without a limit.
///
/// The space that arenas may still reserve is subtracted.
pub fn left() -> Option<u64> {
    let limit = limit()?;
    // If the current use is unknown, report nothing left: a clear error at the start beats an abort later.
    let used = fs::read_to_string("/proc/self/status").ok().and_then(|text| parse_vm_size(&text)).unwrap_or(limit);
    Some(limit.saturating_sub(used).saturating_sub(arenas(limit).saturating_sub(1) * ARENA))
}

/// Limits the allocator's arenas to two per core, but at least eight, and to what an address-space limit affords. By
/// default glibc has eight arenas per core, and memory that was freed in one arena is useless to the threads of all
/// other arenas: together they can waste as much as the cache holds. glibc also reserves 64 MiB for each arena until
/// the limit is exhausted. With fewer arenas than threads that allocate, though, threads wait for each other. Must be
/// called before any thread starts.
pub fn use_sparingly(cores: usize) {
    let enough = (cores as u64).saturating_mul(ARENAS_PER_CORE).max(FEWEST_ARENAS);
    let accepted = match limit() {
        Some(limit) => limit_arenas(arenas(limit).min(enough)) && return_large_blocks(),
        None => limit_arenas(enough),
    };
    if !accepted {
        log::info!("the allocator may take more memory than it should");
    }
}

/// Returns freed memory to the system. The allocator keeps blocks that were freed for the threads that share their
/// arena, so this is worthwhile after many have been freed that other threads allocated. It takes about 20 ms for
/// 150 MiB, and the next allocations again get cleared pages.
pub fn return_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim takes a number, and may be called at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Maps the pages of memory whose content does not matter, and changes one byte of some pages. One system call does it,
/// where the first write to each page would enter the kernel; only the pages at the ends are written to, because they may
/// hold other memory, and before Linux 5.14 all pages.
///
/// A page fault in this program blocks nobody, while a fault that the kernel meets as it reads a file into the page takes
/// the lock of the whole address space.
pub fn map_pages(bytes: &mut [u8]) {
    let step = if populate(bytes) { bytes.len() } else { PAGE };
    bytes.iter_mut().step_by(step).for_each(|byte| *byte = 1);
    if let Some(last) = bytes.last_mut() {
        *last = 1;
    }
}

/// Has the kernel map the pages that lie within the bytes, which stay the same. Returns whether it did.
fn populate(bytes: &mut [u8]) -> bool {
    let before = bytes.as_ptr().align_offset(PAGE);
    let Some(pages) = bytes.get_mut(before..) else { return false };
    let length = pages.len() - pages.len() % PAGE;
    if length < LEAST_POPULATED {
        return false;
    }
    // SAFETY: the pages lie within the slice, which this function may write; their bytes do not change.
    unsafe { libc::madvise(pages.as_mut_ptr().cast(), length, libc::MADV_POPULATE_WRITE) == 0 }
}

/// Returns the number of affordable arenas: the main one, which grows with use, and more for threads that allocate at
/// once.
fn arenas(limit: u64) -> u64 {
    (limit / SHARE_OF_ARENAS / ARENA).max(1)
}

/// Sets the number of arenas; returns whether the allocator accepts it.
fn limit_arenas(count: u64) -> bool {
    set_allocator(Setting::Arenas, i32::try_from(count).unwrap_or(i32::MAX))
}

/// Has freed large blocks returned to the system; returns whether the allocator accepts it.
fn return_large_blocks() -> bool {
    set_allocator(Setting::LargeBlock, LARGE_BLOCK)
}

/// Settings of glibc's allocator.
enum Setting {
    Arenas,
    LargeBlock,
}

#[cfg(target_env = "gnu")]
fn set_allocator(setting: Setting, value: i32) -> bool {
    let parameter = match setting {
        Setting::Arenas => libc::M_ARENA_MAX,
        Setting::LargeBlock => libc::M_MMAP_THRESHOLD,
    };
    // SAFETY: mallopt takes two numbers, may be called at any time, and rejects invalid values.
    unsafe { libc::mallopt(parameter, value) == 1 }
}

/// The allocators of other C libraries have no such settings.
#[cfg(not(target_env = "gnu"))]
fn set_allocator(_: Setting, _: i32) -> bool {
    true
}

/// Parses the line `VmSize:    9944 kB` of `/proc/self/status`; returns bytes.
fn parse_vm_size(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_kib() {
        assert_eq!(parse_vm_size("VmPeak:\t  20 kB\nVmSize:\t    9944 kB\n"), Some(9944 * 1024));
        assert_eq!(parse_vm_size("VmSize: much\n"), None);
    }

    #[test]
    fn arenas_are_a_small_part() {
        assert_eq!(arenas(300 << 20), 1);
        assert_eq!(arenas(16 << 30), 16);
        assert!((0..40).all(|bits| (arenas(1 << bits) - 1) * ARENA <= (1 << bits) / SHARE_OF_ARENAS));
    }

    #[test]
    fn the_allocator_accepts_the_limits() {
        // More arenas than any other test can use.
        assert!(limit_arenas(1024) && return_large_blocks());
    }

    /// Returns how many pages the kernel has mapped as this thread touched them.
    fn faults() -> u64 {
        let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
        stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(7).unwrap().parse().unwrap()
    }

    #[test]
    fn mapped_pages_can_be_touched_without_the_kernel() {
        let pages = 2000;
        let mut bytes = vec![0; pages * PAGE];
        map_pages(&mut bytes);
        let before = faults();
        bytes.iter_mut().step_by(PAGE).for_each(|byte| *byte = 7);
        assert!(faults() - before < pages as u64 / 4, "{}", faults() - before);
    }

    #[test]
    fn bytes_outside_stay_the_same() {
        let before: Vec<u8> = (0..20 * PAGE).map(|number| (number % 251) as u8 + 2).collect();
        for (start, length) in [(0, 20 * PAGE), (1, 19 * PAGE), (PAGE - 1, 4 * PAGE), (5, 3 * PAGE), (9, 1), (0, 0)] {
            let (mut mapped, mut populated) = (before.clone(), before.clone());
            map_pages(&mut mapped[start..start + length]);
            populate(&mut populated[start..start + length]);
            assert!(populated == before, "{length} bytes at {start}");
            let changed: Vec<usize> = (0..before.len()).filter(|&at| mapped[at] != before[at]).collect();
            assert!(changed.iter().all(|at| (start..start + length).contains(at)), "{length} bytes at {start}");
            assert!(changed.len() <= length.div_ceil(PAGE) + 1);
        }
        assert!(!populate(&mut before.clone()[..LEAST_POPULATED - 1]));
    }

    #[test]
    fn without_a_limit_nothing_is_known() {
        assert_eq!(left().is_none(), limit().is_none());
    }
}
