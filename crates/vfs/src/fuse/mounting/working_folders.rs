//! Finds the working folders of processes.

use std::collections::HashSet;
use std::fs;

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

/// Returns the inode numbers of the working folders of all processes, on any file system. Only root sees those of other
/// users' processes.
///
/// Makes no request that a file system would have to answer: a hanging one blocks nobody, and this process may use our
/// own mount.
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
    fn our_working_folder_is_found() {
        assert!(working_folders().contains(&fs::metadata(".").unwrap().ino()));
    }
}
