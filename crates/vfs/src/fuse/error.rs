//! Errors of mounting and unmounting, and the error numbers of requests.

use std::fmt;
use std::io;
use std::path::Path;

use tilefs_base::error::Error;

/// The reason why a mount point could not be mounted or unmounted, in one line with advice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountError {
    mountpoint: String,
    /// The reason, without the mount point.
    pub(super) reason: String,
}

impl MountError {
    /// Creates the error of a mount point.
    pub fn new(mountpoint: &Path, reason: impl Into<String>) -> Self {
        MountError { mountpoint: mountpoint.display().to_string(), reason: reason.into() }
    }
}

impl fmt::Display for MountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.mountpoint, self.reason)
    }
}

impl std::error::Error for MountError {}

/// Returns the error number of a request that fails with this error.
pub fn errno(error: &Error) -> i32 {
    match error {
        Error::NotFound { .. } | Error::Usage { .. } => libc::ENOENT,
        Error::Io { kind: io::ErrorKind::PermissionDenied, .. } => libc::EACCES,
        _ => libc::EIO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_no_tree_has_are_absent() {
        assert_eq!(errno(&Error::NotFound { path: "a".to_owned() }), libc::ENOENT);
        assert_eq!(errno(&Error::usage("no such slice")), libc::ENOENT);
        for error in [Error::internal("two and two are five"), Error::missing("gone"), Error::damaged("bad")] {
            assert_eq!(errno(&error), libc::EIO, "{error}");
        }
        assert_eq!(errno(&Error::io(io::ErrorKind::PermissionDenied.into())), libc::EACCES);
    }
}
