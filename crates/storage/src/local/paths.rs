//! Opens files by path without ever blocking and, if wanted, without following links that lead elsewhere.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, open, openat2};
use rustix::io::Errno;

/// Policy for symbolic links inside an array or group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Links may lead anywhere: people link arrays together from several disks.
    Anywhere,
    /// Links must stay in the same array or group. Otherwise whoever wrote the array could make this process read files
    /// for others that only this process may read.
    Within,
}

/// Retries for a folder that others rename meanwhile.
const ATTEMPTS: usize = 8;

/// Opens files below the folders that the user named. Memory: the paths of these folders, if links must stay within.
pub struct Paths {
    links: Links,
    /// Arrays and groups that may be read, if links must stay within.
    roots: RwLock<BTreeSet<PathBuf>>,
}

impl Paths {
    pub fn new(links: Links) -> Self {
        Paths { links, roots: RwLock::default() }
    }

    /// Allows opening everything below this folder; the folder itself may be a link.
    pub fn allow(&self, folder: &Path) {
        if self.links == Links::Within {
            // Members of groups are opened by either path. Resolved without the lock, which every open takes.
            let resolved = fs::canonicalize(folder);
            let mut roots = self.roots.write().unwrap_or_else(PoisonError::into_inner);
            roots.extend(resolved);
            roots.insert(folder.to_owned());
        }
    }

    /// Opens for reading, with additional flags. Opening never blocks: a FIFO without a writer opens like a file.
    ///
    /// # Errors
    /// As open(2); `PermissionDenied` with its own message for a link that leads out of the allowed folders.
    pub fn open(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        match self.links {
            Links::Anywhere => Ok(open(path, flags, Mode::empty())?),
            Links::Within => {
                let root = self.root_of(path).ok_or_else(leads_out)?;
                match open_below(&root, path, flags, ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS) {
                    // An absolute link may still lead to something below; and kernels before 5.6 have no openat2.
                    Err(Errno::XDEV | Errno::NOSYS | Errno::PERM) => open_canonical(&root, path, flags),
                    opened => Ok(opened?),
                }
            }
        }
    }

    /// Returns the innermost allowed folder that textually contains a path.
    fn root_of(&self, path: &Path) -> Option<PathBuf> {
        let roots = self.roots.read().unwrap_or_else(PoisonError::into_inner);
        path.ancestors().find(|folder| roots.contains(*folder)).map(Path::to_owned)
    }
}

/// Opens a path below `root`; links in the path of `root` itself are followed.
fn open_below(root: &Path, path: &Path, flags: OFlags, resolve: ResolveFlags) -> rustix::io::Result<OwnedFd> {
    let within = path.strip_prefix(root).unwrap_or(path);
    if within.as_os_str().is_empty() {
        return open(path, flags, Mode::empty());
    }
    let folder = open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut opened = Err(Errno::AGAIN);
    for _ in 0..ATTEMPTS {
        opened = openat2(&folder, within, flags, Mode::empty(), resolve);
        // Something on the path was renamed at the same moment.
        if !matches!(opened, Err(Errno::AGAIN)) {
            break;
        }
    }
    opened
}

/// As [`open_below`], but resolves links first and then requires the result to be below `root`.
fn open_canonical(root: &Path, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let (root, path) = (fs::canonicalize(root)?, fs::canonicalize(path)?);
    if !path.starts_with(&root) {
        return Err(leads_out());
    }
    match open_below(&root, &path, flags, ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS) {
        Err(Errno::NOSYS | Errno::PERM) => Ok(rustix::fs::openat(CWD, &path, flags | OFlags::NOFOLLOW, Mode::empty())?),
        Err(Errno::XDEV | Errno::LOOP) => Err(leads_out()),
        opened => Ok(opened?),
    }
}

fn leads_out() -> io::Error {
    let reason = "a symbolic link leads out of the array or group, which only --follow-links allows";
    io::Error::new(io::ErrorKind::PermissionDenied, reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    fn read(paths: &Paths, path: &Path) -> io::Result<String> {
        let mut text = String::new();
        fs::File::from(paths.open(path, OFlags::empty())?).read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn confined_links_cannot_leave_the_array() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("array/inner")).unwrap();
        fs::create_dir(at("outside")).unwrap();
        fs::write(at("outside/secret"), "secret").unwrap();
        fs::write(at("array/inner/file"), "file").unwrap();
        symlink("inner/file", at("array/relative")).unwrap();
        symlink(at("array/inner/file"), at("array/absolute")).unwrap();
        symlink("../outside/secret", at("array/out")).unwrap();
        symlink(at("outside"), at("array/folder")).unwrap();
        symlink(at("outside/secret"), at("array/out2")).unwrap();
        symlink("/proc/self/cwd", at("array/magic")).unwrap();
        symlink("array", at("link")).unwrap();
        let (free, confined) = (Paths::new(Links::Anywhere), Paths::new(Links::Within));
        assert!(read(&confined, &at("array/inner/file")).is_err(), "nothing is allowed yet");
        confined.allow(&at("array"));
        confined.allow(&at("link"));
        for name in ["array/inner/file", "array/relative", "array/absolute", "link/relative", "link/absolute"] {
            assert_eq!(read(&confined, &at(name)).unwrap(), "file", "{name}");
            assert_eq!(read(&free, &at(name)).unwrap(), "file", "{name}");
        }
        for name in ["array/out", "array/out2", "array/folder/secret", "array/../outside/secret", "link/out"] {
            let error = read(&confined, &at(name)).unwrap_err();
            assert!(error.to_string().contains("--follow-links"), "{name}: {error}");
            assert_eq!(read(&free, &at(name)).unwrap(), "secret", "{name}");
        }
        assert!(confined.open(&at("array/magic"), OFlags::DIRECTORY).is_err());
        assert_eq!(read(&confined, &at("array/none")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(confined.open(&at("link"), OFlags::DIRECTORY).is_ok());
    }
}
