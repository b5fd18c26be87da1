//! Unmounts with umount2(2) if this process may, otherwise with the helper `fusermount3`, and finds the processes that
//! use a mount.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::mount::UnmountFlags;

use super::{attach, mount_table};
use crate::fuse::error::MountError;

/// Time to wait for a mount to disappear from the mount table.
const DETACH_TIMEOUT: Duration = Duration::from_secs(10);

/// Grace period for EBUSY when no process is visibly using the mount. Programs that query a mount's type, or a program
/// that has just forked with a file open, keep it busy for a moment.
const BUSY_GRACE: Duration = Duration::from_millis(500);

/// Maximum number of processes named in a message.
const MAX_NAMED: usize = 5;

/// How to unmount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detach {
    /// Fail if the mount is in use.
    WhenIdle,
    /// Detach the name at once, and the rest when the last user is done.
    Lazily,
}

/// Reasons why a mount could not be detached.
#[derive(Debug)]
pub enum DetachRefusal {
    /// A process is using it.
    Busy,
    /// Any other reason, in one line.
    Other(String),
}

/// Unmounts a tilefs mount, even one whose process died long ago, and waits until it is gone.
///
/// # Errors
/// [`MountError`] if no tilefs mount is here, or if it is in use, with the processes that use it.
pub fn unmount(mountpoint: &Path, how: Detach) -> Result<(), MountError> {
    let fail = |reason: String| MountError::new(mountpoint, reason);
    let path = mount_table::absolute(mountpoint).map_err(|error| fail(error.to_string()))?;
    let mounted = match mount_table::at(&path) {
        Some(mounted) if mounted.is_tilefs() => mounted,
        Some(mounted) => {
            return Err(fail(format!(
                "a file system of type {} is mounted here, not tilefs; use umount",
                mounted.kind
            )));
        }
        None => return Err(fail("nothing is mounted here".into())),
    };
    let start = Instant::now();
    while let Err(refusal) = detach(&path, how) {
        let reason = match (refusal, processes_in(&path)) {
            (DetachRefusal::Busy, processes) if processes.is_empty() && start.elapsed() < BUSY_GRACE => {
                thread::sleep(Duration::from_millis(10));
                continue;
            }
            (DetachRefusal::Busy, processes) => format!(
                "in use by {}; end its use, or detach the mount with `tilefs umount --lazy`",
                in_words(&processes)
            ),
            (DetachRefusal::Other(reason), _) => reason,
        };
        return Err(fail(reason));
    }
    let start = Instant::now();
    while mount_table::holds(&path, &mounted.device) {
        if start.elapsed() > DETACH_TIMEOUT {
            return Err(fail("it was unmounted but does not disappear from the mount table".into()));
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// Detaches whatever is mounted at this absolute path.
///
/// # Errors
/// [`DetachRefusal`].
pub fn detach(mountpoint: &Path, how: Detach) -> Result<(), DetachRefusal> {
    // A lazy unmount detaches the name at once, and the file system when its last user is done.
    let lazily = if how == Detach::Lazily { UnmountFlags::DETACH } else { UnmountFlags::empty() };
    match rustix::mount::unmount(mountpoint, UnmountFlags::NOFOLLOW | lazily) {
        Ok(()) => Ok(()),
        Err(Errno::PERM) => detach_with_helper(mountpoint, how),
        Err(Errno::BUSY) => Err(DetachRefusal::Busy),
        Err(Errno::INVAL) => Err(DetachRefusal::Other("nothing is mounted here".into())),
        Err(error) => {
            Err(DetachRefusal::Other(format!("the kernel refuses to unmount: {}", std::io::Error::from(error))))
        }
    }
}

fn detach_with_helper(mountpoint: &Path, how: Detach) -> Result<(), DetachRefusal> {
    let helper = attach::fusermount().ok_or_else(|| {
        DetachRefusal::Other(
            "unmounting without being root needs the program fusermount3; install the package fuse3 (`sudo apt-get \
             install fuse3`)"
                .into(),
        )
    })?;
    let output = Command::new(&helper)
        .arg(if how == Detach::Lazily { "-uz" } else { "-u" })
        .arg("--")
        .arg(mountpoint)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| DetachRefusal::Other(format!("cannot run {}: {error}", helper.display())))?;
    if output.status.success() {
        return Ok(());
    }
    let complaint = attach::complaint(&output.stderr);
    Err(if complaint.contains("busy") { DetachRefusal::Busy } else { DetachRefusal::Other(complaint) })
}

/// Describes the processes that use a mount: `bash (process 123), od (process 456)`. Processes of other users are not
/// visible.
pub fn users(mountpoint: &Path) -> String {
    in_words(&processes_in(mountpoint))
}

/// Returns the ids and names of the processes that use a mount.
fn processes_in(mountpoint: &Path) -> Vec<(u32, String)> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut users: Vec<(u32, String)> = processes
        .filter_map(|entry| {
            let id: u32 = entry.file_name().to_str()?.parse().ok()?;
            works_in(&entry.path(), mountpoint).then(|| {
                let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
                (id, name.trim().to_owned())
            })
        })
        .collect();
    users.sort_unstable();
    users
}

fn in_words(users: &[(u32, String)]) -> String {
    let more = users.len().saturating_sub(MAX_NAMED);
    let mut names: Vec<String> =
        users.iter().take(MAX_NAMED).map(|(id, name)| format!("{name} (process {id})")).collect();
    match (names.len(), more) {
        (0, _) => "a process that cannot be seen from here".into(),
        (_, 0) => names.join(", "),
        _ => {
            names.push(format!("and {more} more"));
            names.join(", ")
        }
    }
}

/// Returns whether a process has its working folder, root, program, an open file or a mapping in a mount. Only reads
/// links in /proc and makes no request to the mount, which may hang.
fn works_in(process: &Path, mountpoint: &Path) -> bool {
    let within = |link: PathBuf| fs::read_link(link).is_ok_and(|target| target.starts_with(mountpoint));
    ["cwd", "root", "exe"].iter().any(|link| within(process.join(link)))
        || ["fd", "map_files"].iter().any(|links| {
            fs::read_dir(process.join(links)).into_iter().flatten().flatten().any(|entry| within(entry.path()))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_mounts_are_left_alone() {
        let reason = unmount(Path::new("/proc"), Detach::Lazily).unwrap_err().to_string();
        assert!(reason.contains("of type proc"), "{reason}");
        let folder = tempfile::tempdir().unwrap();
        let reason = unmount(folder.path(), Detach::WhenIdle).unwrap_err().to_string();
        assert!(reason.ends_with("nothing is mounted here"), "{reason}");
        assert!(unmount(Path::new("/nonexistent/folder"), Detach::WhenIdle).is_err());
    }

    #[test]
    fn a_process_with_an_open_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(folder.path()).unwrap();
        assert_eq!(users(&path), "a process that cannot be seen from here");
        let _open = fs::File::create(path.join("file")).unwrap();
        assert!(users(&path).contains(&format!("(process {})", std::process::id())));
    }
}
