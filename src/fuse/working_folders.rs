//! Which folders processes work in.

use std::collections::HashSet;
use std::fs;

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

/// The inode numbers of the working folders of all processes, of whatever file systems. Those of other users' processes
/// are seen by root only.
///
/// No file system is asked for what it would have to look up: one that does not answer keeps nobody waiting, and ours
/// may be asked by its own process.
pub fn working_folders() -> HashSet<u64> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter(|entry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit))
        .filter_map(|entry| {
            let folder = statx(CWD, entry.path().join("cwd"), AtFlags::STATX_DONT_SYNC, StatxFlags::INO);
            folder.ok().map(|folder| folder.stx_ino)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn ours_is_one_of_them() {
        assert!(working_folders().contains(&fs::metadata(".").unwrap().ino()));
    }
}
