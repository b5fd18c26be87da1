//! The entries of an opened folder: all of them, or an error.
//!
//! The directory streams of the C library, of the standard library and of `rustix` end at ENOENT as at the end of the
//! folder. But a folder that was removed after it was opened fails with it, and so do network file systems whose name
//! of the folder is stale: what was read so far would pass for all.

use std::ffi::CStr;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::{FileType, RawDir};
use rustix::io::Errno;

use super::interrupted::Interruptions;

/// Bytes of entries that one system call returns; a name has at most 255.
const BUFFER: usize = 32 << 10;

/// Calls `visit` with the name and the kind of each entry of an opened folder, without `.` and `..`.
///
/// # Errors
/// If the folder cannot be listed to its end, whatever was visited before; errors of `visit`.
pub fn for_each_entry(folder: impl AsFd, mut visit: impl FnMut(&CStr, FileType) -> io::Result<()>) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(BUFFER);
    let mut entries = RawDir::new(folder.as_fd(), buffer.spare_capacity_mut());
    let mut interruptions = Interruptions::default();
    while let Some(entry) = entries.next() {
        match entry {
            Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
            Ok(entry) => visit(entry.file_name(), entry.file_type())?,
            Err(Errno::INTR) => interruptions.count()?,
            Err(Errno::NOENT) => {
                let reason = "the folder was removed, or its name is stale: it cannot be listed to its end";
                return Err(io::Error::new(io::ErrorKind::NotFound, reason));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs::{self, File};

    use super::*;

    fn names(folder: &File) -> io::Result<BTreeSet<String>> {
        let mut names = BTreeSet::new();
        for_each_entry(folder, |name, _| {
            names.insert(name.to_str().unwrap().to_owned());
            Ok(())
        })?;
        Ok(names)
    }

    #[test]
    fn all_entries_are_visited_once() {
        let folder = tempfile::tempdir().unwrap();
        // Several system calls.
        let expected: BTreeSet<String> = (0..2000).map(|number| format!("{number:0>100}")).collect();
        for name in &expected {
            fs::write(folder.path().join(name), []).unwrap();
        }
        assert_eq!(names(&File::open(folder.path()).unwrap()).unwrap(), expected);
    }

    #[test]
    fn a_folder_that_was_removed_is_no_empty_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("removed");
        fs::create_dir(&path).unwrap();
        let opened = File::open(&path).unwrap();
        assert!(names(&opened).unwrap().is_empty());
        let opened = File::open(&path).unwrap();
        fs::remove_dir(&path).unwrap();
        assert_eq!(names(&opened).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
