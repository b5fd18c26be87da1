//! Validates a mount point, with a reason and advice if it is unusable.

use std::ffi::c_int;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::detach::{self, Detach};
use super::mount_table::{self, absolute};
use crate::fuse::error::MountError;
use crate::fuse::sys::{self, ProbeResult};
use crate::node::quoting::shell_word;

/// Time after which a mount counts as hanging.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// The folder of the descriptors of a process.
const DESCRIPTORS: &str = "/dev/fd/";

/// Returns the number N of the mount point `/dev/fd/N`: the process that started this one has opened `/dev/fuse` as
/// that descriptor and mounted it.
pub fn descriptor(mountpoint: &Path) -> Option<c_int> {
    let digits = mountpoint.to_str()?.strip_prefix(DESCRIPTORS)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// Returns the mount point as an absolute path without links, if it is usable. `source` is what will be mounted. A dead
/// tilefs mount is unmounted first.
///
/// # Errors
/// [`MountError`] if it is missing, not a folder, not empty, already mounted on, or overlaps the source.
pub fn prepare(mountpoint: &Path, source: &Path) -> Result<PathBuf, MountError> {
    let refuse = |reason: String| Err(MountError::new(mountpoint, reason));
    let path = match absolute(mountpoint) {
        Ok(path) => path,
        Err(error) => return refuse(unusable(&error, mountpoint)),
    };
    // Check the mount table before touching the folder: after a server died, every access fails.
    while let Some(mounted) = mount_table::at(&path) {
        let command = unmount_command(mounted.is_tilefs(), &path);
        return refuse(match sys::probe_folder(&path, PROBE_TIMEOUT) {
            Ok(ProbeResult::Refused(libc::ENOTCONN | libc::ECONNABORTED)) => {
                // Processes with open files get errors either way.
                if mounted.is_tilefs() && detach::unmount(&path, Detach::Lazily).is_ok() {
                    log::info!("a mount whose process had died was taken away from {}", path.display());
                    continue;
                }
                format!("a mount whose process has died is still here; clean it up with `{command}`")
            }
            Ok(ProbeResult::TimedOut) => {
                let lazily = if mounted.is_tilefs() { "--lazy" } else { "-l" };
                format!("a mount that does not answer is still here; take it away with `{command} {lazily}`")
            }
            _ if mounted.is_tilefs() => {
                format!("{} is mounted here already; unmount it with `{command}`", mounted.source)
            }
            _ => format!("a file system of type {} is mounted here already; unmount it with `{command}`", mounted.kind),
        });
    }
    match fs::metadata(&path) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => return refuse("not a folder; mount on an empty folder".into()),
        Err(error) => return refuse(unusable(&error, mountpoint)),
    }
    if let Ok(source) = fs::canonicalize(source) {
        if path.starts_with(&source) {
            return refuse(format!("this is inside {}; mount outside of what is mounted", source.display()));
        }
        if source.starts_with(&path) {
            return refuse(format!("this would hide {} itself; mount somewhere else", source.display()));
        }
    }
    match fs::read_dir(&path).map(|mut entries| entries.next().is_some()) {
        Ok(false) => Ok(path),
        Ok(true) => refuse("not empty, and a mount would hide what is in it; mount on an empty folder".into()),
        Err(error) => refuse(unusable(&error, mountpoint)),
    }
}

/// Returns whether the process that serves the FUSE mount at this path is gone. The probe needs an answer from that
/// process and not from the kernel's cache.
pub fn is_dead(path: &Path) -> bool {
    matches!(sys::probe_folder(path, PROBE_TIMEOUT), Ok(ProbeResult::Refused(libc::ENOTCONN | libc::ECONNABORTED)))
}

fn unusable(error: &io::Error, mountpoint: &Path) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            format!("no such folder; create it with `mkdir -p {}`", quoted(mountpoint))
        }
        io::ErrorKind::PermissionDenied => "no permission to use this folder; mount on one of your own".into(),
        io::ErrorKind::NotADirectory => "not a folder; mount on an empty folder".into(),
        _ => error.to_string(),
    }
}

fn unmount_command(tilefs: bool, path: &Path) -> String {
    format!("{} {}", if tilefs { "tilefs umount" } else { "umount" }, quoted(path))
}

fn quoted(path: &Path) -> String {
    shell_word(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn reason(mountpoint: &Path, source: &Path) -> String {
        match prepare(mountpoint, source) {
            Err(MountError { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_unfit_place_is_refused_with_its_reason() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("array/inside")).unwrap();
        fs::create_dir(at("empty")).unwrap();
        fs::write(at("file"), "").unwrap();
        symlink(at("empty"), at("link")).unwrap();
        let array = at("array");

        assert!(reason(&at("missing dir"), &array).ends_with(&format!("`mkdir -p '{}'`", at("missing dir").display())));
        assert!(reason(&at("missing/deeper"), &array).starts_with("no such folder"));
        assert!(reason(&at("file"), &array).starts_with("not a folder"));
        assert!(reason(&at("file/below"), &array).starts_with("not a folder"));
        assert!(reason(&at("array"), &array).starts_with("this is inside"));
        assert!(reason(&at("array/inside"), &array).starts_with("this is inside"));
        assert!(reason(folder.path(), &array).starts_with("this would hide"));
        assert!(reason(folder.path(), Path::new("/nonexistent")).starts_with("not empty"));
        assert!(reason(Path::new("/proc"), &array).contains("of type proc is mounted here already"));
        let empty = fs::canonicalize(at("empty")).unwrap();
        for good in ["empty", "link", "empty/.", "array/../empty"] {
            assert_eq!(prepare(&at(good), &array).unwrap(), empty);
        }
    }

    #[test]
    fn descriptors_have_a_number() {
        assert_eq!(descriptor(Path::new("/dev/fd/7")), Some(7));
        for other in ["/dev/fd/", "/dev/fd/-1", "/dev/fd/7/a", "/dev/fd/99999999999", "/dev/fd", "7", "/mnt/fd/7"] {
            assert_eq!(descriptor(Path::new(other)), None, "{other}");
        }
    }

    #[test]
    fn quotes_survive_a_shell() {
        assert_eq!(quoted(Path::new("/mnt/a-b_c.d")), "/mnt/a-b_c.d");
        assert_eq!(quoted(Path::new("it's here")), r"'it'\''s here'");
    }
}
