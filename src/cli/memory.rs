//! The memory available to this process: the machine's, or less if a control group or `ulimit -v` limits it.

use std::fs;
use std::path::{Path, PathBuf};

use tilefs_threads::address_space;

/// Maximum default budget.
const MAX_CACHE: u64 = 1 << 30;

/// Assumed if nothing can be determined.
const UNKNOWN: u64 = 1 << 30;

/// Returns the default of `--cache-size` in bytes: a quarter of the memory, at most 1 GiB.
pub fn default_cache_size() -> u64 {
    (available_memory() / 4).min(MAX_CACHE)
}

fn available_memory() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_of(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = group_limit(&groups, Path::new("/sys/fs/cgroup"));
    [machine, group, address_space::limit()].into_iter().flatten().min().unwrap_or(UNKNOWN)
}

/// Parses the line `MemTotal:  24683416 kB`.
fn total_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the lowest limit of this process's control group and the groups around it, in version 2 (`0::/path`) or
/// version 1 (`4:memory:/path`).
fn group_limit(groups: &str, root: &Path) -> Option<u64> {
    let limits = groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let (folder, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => (root.join("memory"), "memory.limit_in_bytes"),
            _ => return Vec::new(),
        };
        let inner = folder.join(path.trim_start_matches('/'));
        // Inside a container the path may be the host's, and only the folder itself may exist.
        let around: Vec<PathBuf> =
            inner.ancestors().take_while(|one| one.starts_with(&folder)).map(PathBuf::from).collect();
        around.iter().filter_map(|folder| fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok()).collect()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_in_kib() {
        assert_eq!(total_of("MemFree: 1 kB\nMemTotal:       24683416 kB\n"), Some(24_683_416 * 1024));
        assert_eq!(total_of("MemTotal: lots\n"), None);
    }

    #[test]
    fn lowest_limit_of_surrounding_groups_applies() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("user/shell");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("memory.max"), "max\n").unwrap();
        assert_eq!(group_limit("0::/user/shell\n", root.path()), None);
        fs::write(root.path().join("user/memory.max"), "1000\n").unwrap();
        assert_eq!(group_limit("0::/user/shell\n", root.path()), Some(1000));
        fs::write(inner.join("memory.max"), "700\n").unwrap();
        assert_eq!(group_limit("0::/user/shell\n", root.path()), Some(700));

        fs::create_dir_all(root.path().join("memory/job")).unwrap();
        fs::write(root.path().join("memory/job/memory.limit_in_bytes"), "500\n").unwrap();
        assert_eq!(group_limit("5:cpu:/\n4:memory,other:/job\n", root.path()), Some(500));
        assert_eq!(group_limit("", root.path()), None);
    }

    #[test]
    fn the_default_is_bounded() {
        assert!((1..=MAX_CACHE).contains(&default_cache_size()));
    }
}
