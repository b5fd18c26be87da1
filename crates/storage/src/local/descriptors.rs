//! The limit of open files and the size of the kernel's descriptor table, raised while there is only one thread.
//!
//! The kernel enlarges a process's descriptor table when it passes 64, 128, 256 ... entries. With several threads, the
//! thread that opens the file then waits until no processor uses the old table: some 15 ms each time, more than opening
//! a thousand files takes.

use std::fs::File;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files to `wanted` if it is lower and the system allows it. Returns the resulting limit.
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

/// Makes the kernel enlarge the table to hold descriptors up to `most`. If it refuses, opening files is only slower.
pub fn grow_table(most: u16) {
    // Any descriptor will do.
    let Ok(root) = File::open("/") else { return };
    // The table keeps its size when the copy is closed.
    drop(fcntl_dupfd_cloexec(root, most.into()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Reads the size of the descriptor table.
    fn table_size() -> Option<u64> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        status.lines().find_map(|line| line.strip_prefix("FDSize:"))?.trim().parse().ok()
    }

    #[test]
    fn a_sufficient_limit_stays() {
        let before = getrlimit(Resource::Nofile);
        assert_eq!(raise_limit(1), before.current.unwrap_or(u64::MAX));
        assert_eq!(getrlimit(Resource::Nofile).current, before.current);
    }

    #[test]
    fn the_table_grows_without_leaking_descriptors() {
        grow_table(300);
        // Without /proc, or with a lower limit, there is nothing to check.
        if let Some(table_size) = table_size() {
            assert!(table_size > 300, "{table_size}");
        }
        assert!(!Path::new("/proc/self/fd/300").exists());
        grow_table(u16::MAX);
    }
}
