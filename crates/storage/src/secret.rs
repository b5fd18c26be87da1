//! Reads a small secret, such as a key, from a file or pipe without leaving copies in memory.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use tilefs_base::error::{Error, Locate, Result};
use zeroize::Zeroizing;

/// Reads a file or pipe of at most `most` bytes. From then on the kernel writes no core dump of this process and lets
/// no other process of this user inspect its memory.
///
/// A file that others can read causes a warning in the log.
///
/// # Errors
/// [`Error::Io`] and [`Error::Missing`] if it cannot be read, [`Error::Key`] if it is longer.
pub fn read_secret(path: &Path, most: usize) -> Result<Zeroizing<Vec<u8>>> {
    let (bytes, mode) = read_private(path, most)?;
    warn_if_open(path, mode, true);
    Ok(bytes)
}

/// Warns if others may open a file that holds a key.
pub fn warn_if_open(path: &Path, mode: u32, holds_a_key: bool) {
    if holds_a_key && mode & 0o077 != 0 {
        let path = path.display();
        log::warn!("{path} holds a key and others may open it (mode {:03o}); `chmod 600 {path}`", mode & 0o777);
    }
}

/// As [`read_secret`], for a file that may hold a secret; also returns its mode, or 0 for a pipe.
pub fn read_private(path: &Path, most: usize) -> Result<(Zeroizing<Vec<u8>>, u32)> {
    let failed = |error: std::io::Error| Error::stored(error).in_file(path.display());
    // Before any secret is in memory. If refused, the secret is as safe as any other program's.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let mut file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    // Allocate the full length: a growing vector would leave copies behind.
    let mut bytes = Zeroizing::new(vec![0; most + 1]);
    let mut length = 0;
    while length < bytes.len() {
        match file.read(&mut bytes[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
    if length > most {
        return Err(Error::key(format!("{} has more than {most} bytes, which is no key", path.display())));
    }
    bytes.truncate(length);
    Ok((bytes, if metadata.is_file() { metadata.permissions().mode() } else { 0 }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::dumpable_behavior;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    #[test]
    fn files_and_pipes_are_read_once_and_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, b"0123456789").unwrap();
        assert_eq!(**read_secret(&path, 10).unwrap(), *b"0123456789");
        assert!(matches!(read_secret(&path, 9), Err(Error::Key { .. })));
        assert!(matches!(read_secret(&folder.path().join("none"), 9), Err(Error::Missing { .. })));
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b"pi").unwrap();
        let rest = std::thread::spawn(move || writer.write_all(b"pe"));
        let bytes = read_secret(Path::new(&format!("/dev/fd/{}", reader.as_raw_fd())), 9).unwrap();
        rest.join().unwrap().unwrap();
        assert_eq!(**bytes, *b"pipe");
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }
}
