//! Unmounting: by umount2(2) where this process may, else by the helper `fusermount3`; and who is in the way.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use tilefs_format::error::{Error, Result};

use super::{attach, mount_table, mountpoint};

/// How long to wait for an unmounted name to leave the mount table.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long nobody who can be seen may be in the way: who asks of what kind a mount is, and a program that just started
/// another one while it had a file open, use it for so long that it is busy.
const MOMENT: Duration = Duration::from_millis(500);

/// How many processes in the way are named.
const MAX_NAMED: usize = 5;

/// What to do with a mount that is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detach {
    /// Fail.
    WhenIdle,
    /// Take its name away at once, and the rest when the last user lets go.
    Lazily,
}

/// Why a file system could not be detached.
#[derive(Debug)]
pub enum Refusal {
    /// Some process works in it.
    Busy,
    /// Anything else, in one line.
    Other(String),
}

/// Unmounts what `tilefs` mounted here, perhaps long ago by a process that is dead, and waits until it is gone.
///
/// # Errors
/// [`Error::Mount`] where nothing of ours is mounted here, or it is in use, with the processes that use it.
pub fn unmount(mountpoint: &Path, how: Detach) -> Result<()> {
    let fail = |reason: String| Error::Mount { mountpoint: mountpoint.display().to_string(), reason };
    let path = mountpoint::absolute(mountpoint).map_err(|error| fail(error.to_string()))?;
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
            (Refusal::Busy, processes) if processes.is_empty() && start.elapsed() < MOMENT => {
                thread::sleep(Duration::from_millis(10));
                continue;
            }
            (Refusal::Busy, processes) => format!(
                "in use by {}; let go of it, or take the mount away under it with `tilefs umount --lazy`",
                in_words(&processes)
            ),
            (Refusal::Other(reason), _) => reason,
        };
        return Err(fail(reason));
    }
    let start = Instant::now();
    while mount_table::holds(&path, &mounted.device) {
        if start.elapsed() > PATIENCE {
            return Err(fail("it was unmounted but does not go away".into()));
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// Detaches whatever is mounted at this absolute path.
///
/// # Errors
/// [`Refusal`].
pub fn detach(mountpoint: &Path, how: Detach) -> std::result::Result<(), Refusal> {
    // A lazy one takes the name away at once and the file system when its last user lets go.
    let lazily = if how == Detach::Lazily { UnmountFlags::DETACH } else { UnmountFlags::empty() };
    match rustix::mount::unmount(mountpoint, UnmountFlags::NOFOLLOW | lazily) {
        Ok(()) => Ok(()),
        Err(Errno::PERM) => detach_with_helper(mountpoint, how),
        Err(Errno::BUSY) => Err(Refusal::Busy),
        Err(Errno::INVAL) => Err(Refusal::Other("nothing is mounted here".into())),
        Err(error) => Err(Refusal::Other(format!("the kernel refuses to unmount: {}", std::io::Error::from(error)))),
    }
}

fn detach_with_helper(mountpoint: &Path, how: Detach) -> std::result::Result<(), Refusal> {
    let helper = attach::fusermount().ok_or_else(|| {
        Refusal::Other(
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
        .map_err(|error| Refusal::Other(format!("cannot run {}: {error}", helper.display())))?;
    if output.status.success() {
        return Ok(());
    }
    let complaint = attach::complaint(&output.stderr);
    Err(if complaint.contains("busy") { Refusal::Busy } else { Refusal::Other(complaint) })
}

/// The processes that work in a mount, in words: `bash (process 123), od (process 456)`. Those of other users
/// cannot be seen.
pub fn users(mountpoint: &Path) -> String {
    in_words(&processes_in(mountpoint))
}

/// The processes that work in a mount, by their numbers, with their names.
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

/// Whether a process has its folder, its program, an open file or a mapping in a mount. Only reads links, and so
/// asks nothing of the mount itself, which may hang.
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
    fn what_is_not_ours_is_left_alone() {
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
