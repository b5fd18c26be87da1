//! The file of `--log-file`. Programs of other users may have put something else in its place: their links are not
//! followed, and nothing waits for a reader of a pipe.

use std::collections::VecDeque;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path};

use rustix::fs::{FileType, Mode, OFlags, PROC_SUPER_MAGIC, fstat, fstatfs, open, openat, readlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

/// Maximum number of links on the way to a file, as for the kernel.
const MAX_LINKS: usize = 40;

/// Opens a file to append to; makes it, readable only by its owner, if it does not exist.
///
/// # Errors
/// As for opening it; if a link on the way belongs to a user who is neither this one nor root, or if it is a pipe that
/// nobody reads.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    let mut rest = names(path);
    let start = if path.is_absolute() { "/" } else { "." };
    let mut folder = open(start, FOLDER, Mode::empty())?;
    let mut links = 0;
    while let Some(name) = rest.pop_front() {
        let found = if rest.is_empty() { append(&folder, &name)? } else { enter(&folder, &name)? };
        match found {
            AtName::File(file) => return Ok(file),
            AtName::Folder(inner) => folder = inner,
            AtName::Link(target) => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Errno::LOOP.into());
                }
                let target = Path::new(&target);
                if target.is_absolute() {
                    folder = open("/", FOLDER, Mode::empty())?;
                }
                let mut ahead = names(target);
                ahead.extend(rest);
                rest = ahead;
            }
        }
    }
    Err(Errno::ISDIR.into())
}

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A write to a pipe that is full fails, too: messages are lost, and nothing waits.
const APPEND: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::APPEND)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// What is at a name.
enum AtName {
    File(File),
    Folder(OwnedFd),
    /// A link of this user or root, with its target.
    Link(OsString),
}

/// Returns the names in a path, without its root.
fn names(path: &Path) -> VecDeque<OsString> {
    let names = path.components().filter(|name| !matches!(name, Component::RootDir | Component::CurDir));
    names.map(|name| name.as_os_str().to_owned()).collect()
}

fn enter(folder: &OwnedFd, name: &OsStr) -> io::Result<AtName> {
    match link(folder, name)? {
        Some(target) => Ok(AtName::Link(target)),
        // If another user puts a link here now, it is no folder.
        None => Ok(AtName::Folder(openat(folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?)),
    }
}

fn append(folder: &OwnedFd, name: &OsStr) -> io::Result<AtName> {
    // Links of /proc, as that behind /dev/stderr, lead to files that are open, and only the kernel can make them.
    let is_proc = fstatfs(folder)?.f_type == PROC_SUPER_MAGIC;
    let flags = if is_proc { APPEND } else { APPEND | OFlags::NOFOLLOW };
    match openat(folder, name, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(AtName::File(file.into())),
        Err(Errno::LOOP) if !is_proc => link(folder, name)?.map(AtName::Link).ok_or_else(|| Errno::LOOP.into()),
        Err(Errno::NXIO) => Err(io::Error::other("it is a pipe that nobody reads")),
        Err(error) => Err(error.into()),
    }
}

/// Returns the target of a link; `None` if the name is none.
fn link(folder: &OwnedFd, name: &OsStr) -> io::Result<Option<OsString>> {
    let entry = openat(folder, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let facts = fstat(&entry)?;
    if FileType::from_raw_mode(facts.st_mode) != FileType::Symlink {
        return Ok(None);
    }
    if ![0, geteuid().as_raw()].contains(&facts.st_uid) {
        let name = Path::new(name).display();
        return Err(io::Error::other(format!("{name} is a link of the user {}, which is not followed", facts.st_uid)));
    }
    let target: CString = readlinkat(entry.as_fd(), c"", Vec::new())?;
    Ok(Some(OsString::from_vec(target.into_bytes())))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Read, Write};
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

    use rustix::fs::{CWD, mknodat};
    use support::skip::{Need, skipped};

    use super::*;

    #[test]
    fn files_and_own_links_are_appended_to() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("real")).unwrap();
        symlink("real", at("folder")).unwrap();
        symlink(at("folder/target"), at("link")).unwrap();
        symlink("loop", at("loop")).unwrap();
        for name in ["new", "new", "folder/../real/./deep", "link", "link"] {
            open_to_append(&at(name)).unwrap().write_all(b"line\n").unwrap();
        }
        assert_eq!(fs::read(at("new")).unwrap(), b"line\nline\n");
        assert_eq!(fs::read(at("real/target")).unwrap(), b"line\nline\n");
        assert_eq!(fs::metadata(at("real/deep")).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(open_to_append(&at("loop")).unwrap_err().raw_os_error(), Some(Errno::LOOP.raw_os_error()));
        for wrong in ["", "real", "none/log", "new/log"] {
            assert!(open_to_append(&at(wrong)).is_err(), "{wrong}");
        }
        open_to_append(Path::new("/dev/null")).unwrap().write_all(b"line\n").unwrap();
        assert!(open_to_append(Path::new("/dev/stderr")).is_ok());
    }

    #[test]
    fn links_of_other_users_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        symlink("target", at("link")).unwrap();
        fs::create_dir(at("real")).unwrap();
        symlink("real", at("folder")).unwrap();
        if lchown(at("link"), Some(1600), None).is_err() || lchown(at("folder"), Some(1600), None).is_err() {
            return skipped(Need::Root, "only root can give its files away");
        }
        for name in ["link", "folder/log", "folder/../log"] {
            let error = open_to_append(&at(name)).unwrap_err().to_string();
            assert!(error.contains("is a link of the user 1600"), "{name}: {error}");
        }
        assert!(!at("target").exists() && !at("real/log").exists() && !at("log").exists());
    }

    #[test]
    fn a_pipe_is_never_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(open_to_append(&pipe).unwrap_err().to_string().contains("nobody reads"));
        let mut reader = File::from(open(&pipe, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).unwrap());
        let mut log = open_to_append(&pipe).unwrap();
        log.write_all(b"line\n").unwrap();
        let mut bytes = [0; 5];
        reader.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"line\n");
        // Nobody reads these.
        while log.write_all(&[b'x'; 4096]).is_ok() {}
    }
}
