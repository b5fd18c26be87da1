//! Stored files on the local file system.

use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use lru::LruCache;
use rustix::fs::{Dir, FileType, OFlags};

use super::descriptors;
use super::paths::{Links, Paths};
use super::{Listed, Storage, StoredFile};
use crate::error::{Error, Locate, Result};

/// Files kept open, so that an array of many thousand fragments stays well below the usual limit of
/// 1024 descriptors a process.
const OPEN_FILES: u64 = 256;

/// So few are kept open where the limit is low.
const LEAST_OPEN_FILES: u64 = 8;

/// Descriptors that are something else: connections with the kernel, files being looked at once.
const OTHER_FILES: u64 = 64;

/// Where there are no descriptors left, how long to wait, once more each time, until others have closed theirs.
const WAITS_MS: [u64; 6] = [0, 1, 4, 16, 64, 128];

/// The beginning of the names that TileDB gives; others may be in its folders too.
const OF_TILEDB: &str = "__";

/// The local file system. Memory is bounded by [`OPEN_FILES`] paths and descriptors.
pub struct LocalStorage {
    paths: Paths,
    open_files: Mutex<LruCache<PathBuf, Arc<LocalFile>>>,
}

/// Raises this process's limit of open files where it is lower than [`LocalStorage`] needs and may be raised, and has the
/// kernel make room for them; how many files may be kept open. Takes some milliseconds unless it is done before there
/// are other threads.
pub fn make_room_for_files() -> u64 {
    let limit = descriptors::raise_limit(OPEN_FILES + OTHER_FILES);
    let most = limit.saturating_sub(OTHER_FILES).clamp(LEAST_OPEN_FILES, OPEN_FILES);
    descriptors::make_room((most + OTHER_FILES) as u16);
    most
}

impl LocalStorage {
    /// Follows links wherever they lead.
    pub fn new() -> Self {
        Self::with_links(Links::Anywhere)
    }

    /// Follows links as far as they may lead.
    pub fn with_links(links: Links) -> Self {
        let most = make_room_for_files();
        let capacity = NonZeroUsize::new(most as usize).unwrap_or(NonZeroUsize::MIN);
        LocalStorage { paths: Paths::new(links), open_files: Mutex::new(LruCache::new(capacity)) }
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<PathBuf, Arc<LocalFile>>> {
        self.open_files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens something; where there are no descriptors left, closes the files kept open and tries again.
    fn making_room<T>(&self, attempt: impl Fn() -> io::Result<T>) -> io::Result<T> {
        for wait in WAITS_MS {
            match attempt() {
                Err(error) if is_out_of_descriptors(&error) => {
                    self.lock().clear();
                    thread::sleep(Duration::from_millis(wait));
                }
                done => return done,
            }
        }
        attempt()
    }

    fn open_file(&self, path: &Path) -> Result<LocalFile> {
        let opened = self.making_room(|| self.paths.open(path, OFlags::empty()));
        let file = match opened {
            Ok(file) => fs::File::from(file),
            // What a socket says, and a device that is not there.
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {
                return Err(Error::damaged("a socket or a device where a file is expected").in_file(path));
            }
            Err(error) => return Err(Error::io(&error).in_file(path)),
        };
        let metadata = file.metadata().map_err(|error| Error::io(&error).in_file(path))?;
        let kind = metadata.file_type();
        if !kind.is_file() {
            let what = if kind.is_dir() {
                "a folder"
            } else if kind.is_fifo() {
                "a FIFO"
            } else {
                "a device"
            };
            return Err(Error::damaged(format!("{what} where a file is expected")).in_file(path));
        }
        Ok(LocalFile { file, length: metadata.len() })
    }

    /// The names in a folder; `None` where there is no folder.
    fn entries(&self, folder: &Path) -> io::Result<Option<Vec<Listed>>> {
        let opened = match self.making_room(|| self.paths.open(folder, OFlags::DIRECTORY)) {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return match fs::symlink_metadata(folder) {
                    Ok(link) if link.is_symlink() => Err(io::Error::other("a symbolic link that leads nowhere")),
                    _ => Ok(None),
                };
            }
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in Dir::new(opened)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if matches!(name, "." | "..") {
                continue;
            }
            let is_folder = match entry.file_type() {
                FileType::Directory => true,
                FileType::Symlink | FileType::Unknown => leads_to_folder(&folder.join(name), name)?,
                _ => false,
            };
            names.push(Listed { name: name.to_owned(), is_folder });
        }
        names.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Some(names))
    }
}

impl Default for LocalStorage {
    fn default() -> Self {
        Self::new()
    }
}

impl Storage for LocalStorage {
    fn allow(&self, folder: &Path) {
        self.paths.allow(folder);
    }

    fn list(&self, folder: &Path) -> Result<Vec<Listed>> {
        let entries = self.entries(folder).map_err(|error| Error::io(&error).in_file(folder))?;
        Ok(entries.unwrap_or_default())
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn StoredFile>> {
        if let Some(file) = self.lock().get(path) {
            return Ok(file.clone());
        }
        let file = Arc::new(self.open_file(path)?);
        self.lock().put(path.to_owned(), file.clone());
        Ok(file)
    }

    fn read_end(&self, path: &Path, most: usize) -> Result<(Vec<u8>, u64)> {
        let file = self.open_file(path)?;
        let mut end = vec![0; usize::try_from(file.length).map_or(most, |length| length.min(most))];
        file.read_at(file.length - end.len() as u64, &mut end).in_file(path)?;
        Ok((end, file.length))
    }

    fn canonical(&self, path: &Path) -> PathBuf {
        fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Whether a name in a folder is that of a folder, or of a link to one. What a link leads to is only looked at, not
/// opened.
///
/// A link that cannot be followed is an error where its name is one of TileDB's: what is committed would be left out.
/// Of other names it is a file where there is nothing, else a folder, whose listing tells why there is none.
fn leads_to_folder(path: &Path, name: &str) -> io::Result<bool> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(metadata.is_dir()),
        Err(error) if name.starts_with(OF_TILEDB) => {
            Err(io::Error::new(error.kind(), format!("the symbolic link {name} cannot be followed: {error}")))
        }
        Err(error) => Ok(error.kind() != io::ErrorKind::NotFound),
    }
}

struct LocalFile {
    file: fs::File,
    length: u64,
}

impl StoredFile for LocalFile {
    fn len(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(buf, offset).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                Error::damaged(format!("the file ends at {}, {} bytes wanted", self.length, buf.len())).at(offset)
            }
            _ => Error::io(&error).at(offset),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn lists_in_byte_order_and_reads_ranges() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("b"), b"0123456789").unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        let storage = LocalStorage::new();
        let names = storage.list(folder.path()).unwrap();
        assert_eq!(
            names,
            [Listed { name: "a".into(), is_folder: true }, Listed { name: "b".into(), is_folder: false }]
        );
        let file = storage.open(&folder.path().join("b")).unwrap();
        let mut four = [0; 4];
        file.read_at(3, &mut four).unwrap();
        assert_eq!(&four, b"3456");
        let error = file.read_at(8, &mut four).unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
        assert!(storage.list(&folder.path().join("none")).unwrap().is_empty());
        assert!(storage.list(&folder.path().join("b")).unwrap().is_empty());
        assert!(storage.read(&folder.path().join("b"), 5).is_err());
        for (most, end) in [(0, &b""[..]), (3, b"789"), (10, b"0123456789"), (99, b"0123456789")] {
            assert_eq!(storage.read_end(&folder.path().join("b"), most).unwrap(), (end.to_vec(), 10));
        }
    }

    #[test]
    fn what_is_no_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("fifo"),
            FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o644),
            rustix::fs::makedev(0, 0),
        )
        .unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        symlink("/dev/null", at("device")).unwrap();
        symlink("/dev/tty", at("terminal")).unwrap();
        fs::create_dir(at("folder")).unwrap();
        let storage = LocalStorage::new();
        for (name, what) in [("fifo", "FIFO"), ("socket", "socket"), ("device", "device"), ("folder", "a folder")] {
            for error in [storage.open(&at(name)).err(), storage.read_end(&at(name), 9).err()] {
                let error = error.unwrap();
                assert!(matches!(error, Error::Damaged { .. }), "{error}");
                let text = error.to_string();
                assert!(text.contains(what) && text.contains(&format!("/{name})")), "{text}");
            }
        }
        assert!(storage.open(&at("terminal")).is_err());
    }

    #[test]
    fn links_that_lead_nowhere_are_no_empty_folders() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        symlink(at("none"), at("other")).unwrap();
        assert!(!storage_lists(&folder.path().join("")).unwrap()[0].is_folder);
        let error = storage_lists(&at("other")).unwrap_err().to_string();
        assert!(error.contains("leads nowhere"), "{error}");
        symlink(at("none"), at("__commits")).unwrap();
        let error = storage_lists(folder.path()).unwrap_err().to_string();
        assert!(error.contains("__commits"), "{error}");
        // One that leads in a circle is there, and yet cannot be looked at.
        fs::remove_file(at("__commits")).unwrap();
        symlink(at("circle"), at("circle")).unwrap();
        let listed = storage_lists(folder.path()).unwrap();
        assert_eq!(listed[0], Listed { name: "circle".into(), is_folder: true });
        assert!(storage_lists(&at("circle")).is_err());
    }

    fn storage_lists(folder: &Path) -> Result<Vec<Listed>> {
        LocalStorage::new().list(folder)
    }

    #[test]
    fn files_kept_open_make_room_for_others() {
        let folder = tempfile::tempdir().unwrap();
        let storage = LocalStorage::new();
        for number in 0..10 {
            fs::write(folder.path().join(number.to_string()), b"x").unwrap();
            storage.open(&folder.path().join(number.to_string())).unwrap();
        }
        let attempts = std::cell::Cell::new(0);
        let kept = storage.making_room(|| {
            attempts.set(attempts.get() + 1);
            let kept = storage.lock().len();
            if kept > 0 { Err(io::Error::from_raw_os_error(libc::EMFILE)) } else { Ok(kept) }
        });
        assert_eq!((kept.unwrap(), attempts.get()), (0, 2));
        let never = storage.making_room(|| Err::<(), _>(io::Error::from_raw_os_error(libc::ENFILE)));
        assert_eq!(never.unwrap_err().raw_os_error(), Some(libc::ENFILE));
        let once = storage.making_room(|| Err::<(), _>(io::Error::from_raw_os_error(libc::EACCES)));
        assert_eq!(once.unwrap_err().raw_os_error(), Some(libc::EACCES));
    }
}
