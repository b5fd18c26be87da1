//! Room for many open files: the limit of them, and the kernel's table, enlarged while there is one thread.
//!
//! The kernel's table of a process's descriptors grows when they pass 64, 128, 256 ..., and where there are several
//! threads, the one that opens the file then waits until no processor uses the old table: some 15 ms each time, more
//! than opening a thousand files takes.

use std::fs::File;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit of this process's open files, raised to `wanted` where it is lower and the system lets us.
pub fn raise_limit(wanted: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    // `None` is no limit.
    let current = limit.current.unwrap_or(u64::MAX);
    let raised = limit.maximum.map_or(wanted, |most| most.min(wanted));
    if raised > current && setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..limit }).is_ok() {
        raised
    } else {
        current
    }
}

/// Has the kernel make room for descriptors up to `most`. Where it refuses, opening files is only slower.
pub fn make_room(most: u16) {
    // Any descriptor will do.
    let Ok(root) = File::open("/") else { return };
    // The table keeps its size when the copy is closed.
    drop(fcntl_dupfd_cloexec(root, most.into()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// The size of the table of descriptors.
    fn room() -> Option<u64> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        status.lines().find_map(|line| line.strip_prefix("FDSize:"))?.trim().parse().ok()
    }

    #[test]
    fn a_limit_that_is_enough_stays() {
        let before = getrlimit(Resource::Nofile);
        assert_eq!(raise_limit(1), before.current.unwrap_or(u64::MAX));
        assert_eq!(getrlimit(Resource::Nofile).current, before.current);
    }

    #[test]
    fn there_is_room_afterwards_and_no_descriptor_is_left() {
        make_room(300);
        // Where /proc is not there, or the limit is lower, there is nothing to see.
        if let Some(room) = room() {
            assert!(room > 300, "{room}");
        }
        assert!(!Path::new("/proc/self/fd/300").exists());
        make_room(u16::MAX);
    }
}
