//! Storage in the local file system.

use std::fs;
use std::io::{self, IoSliceMut};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use lru::LruCache;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};
use rustix::io::{preadv, retry_on_intr};
use tilefs_format::error::{Error, Locate, Result};

use super::descriptors;
use super::paths::{Links, Paths};
use super::ranges::{Coalescing, ReadRange, coalesce};
use super::{FolderIdentity, KnownFolder, Listed, ListedKind, Storage, StoreKey, no_folder, past_end};
use crate::threads::cancellation;

/// Maximum number of files kept open, so that an array of many thousand fragments stays well below the usual limit of
/// 1024 descriptors per process.
const OPEN_FILES: u64 = 256;

/// The number kept open under a low limit.
const LEAST_OPEN_FILES: u64 = 8;

/// Descriptors reserved for other uses: connections to the kernel, files opened once.
const OTHER_FILES: u64 = 64;

/// Waits between attempts when descriptors run out, for others to close theirs.
const RETRY_DELAYS_MS: [u64; 6] = [0, 1, 4, 16, 64, 128];

/// Ranges coalesced into one system call. Reading a gap of some pages costs as much as another call. A call has as many
/// buffers as the kernel accepts (`IOV_MAX`), gaps included.
const COALESCING: Coalescing = Coalescing { gap: 8 << 10, wide_gap: 8 << 10, most: 64 << 20, most_ranges: 512 };

/// Prefix of all names that TileDB gives; other files may be in its folders too.
const TILEDB_PREFIX: &str = "__";

/// The local file system. Memory is bounded by `OPEN_FILES` paths and descriptors.
pub struct LocalStorage {
    paths: Paths,
    open_files: Mutex<LruCache<StoreKey, Arc<LocalFile>>>,
}

/// Raises the limit of open files if it is lower than [`LocalStorage`] needs, and enlarges the kernel's descriptor
/// table. Returns how many files may be kept open. Takes some milliseconds unless called before other threads exist.
pub fn make_room_for_files() -> u64 {
    let limit = descriptors::raise_limit(OPEN_FILES + OTHER_FILES);
    let most = limit.saturating_sub(OTHER_FILES).clamp(LEAST_OPEN_FILES, OPEN_FILES);
    descriptors::grow_table((most + OTHER_FILES) as u16);
    most
}

impl LocalStorage {
    /// Creates a storage that follows all links.
    pub fn new() -> Self {
        Self::with_links(Links::Anywhere)
    }

    /// Creates a storage with a policy for links.
    pub(crate) fn with_links(links: Links) -> Self {
        let most = make_room_for_files();
        let capacity = NonZeroUsize::new(most as usize).unwrap_or(NonZeroUsize::MIN);
        LocalStorage { paths: Paths::new(links), open_files: Mutex::new(LruCache::new(capacity)) }
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<StoreKey, Arc<LocalFile>>> {
        self.open_files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens something. If descriptors run out, closes the files kept open and retries.
    fn with_free_descriptors<T>(&self, attempt: impl Fn() -> io::Result<T>) -> io::Result<T> {
        for wait in RETRY_DELAYS_MS {
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

    /// Opens a file, or returns it from the open files.
    fn open(&self, key: &StoreKey) -> Result<Arc<LocalFile>> {
        if let Some(file) = self.lock().get(key) {
            return Ok(file.clone());
        }
        let file = Arc::new(self.open_once(key)?);
        self.lock().put(key.clone(), file.clone());
        Ok(file)
    }

    /// Opens a file without keeping it open.
    fn open_once(&self, key: &StoreKey) -> Result<LocalFile> {
        let opened = self.with_free_descriptors(|| self.paths.open(key.as_path(), OFlags::empty()));
        let file = match opened {
            Ok(file) => fs::File::from(file),
            // open(2) says so for a socket, and for the node of an absent device.
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {
                return Err(Error::damaged("a socket or a device where a file is expected").in_file(key));
            }
            // A reader goes on with the array as of when it was opened.
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_folder_gone(key.as_path()) => {
                let reason = "its folder is gone too: vacuumed since the array was opened, or removed";
                return Err(Error::missing(reason).in_file(key));
            }
            Err(error) => return Err(Error::stored(error).in_file(key)),
        };
        let metadata = file.metadata().map_err(|error| Error::io(error).in_file(key))?;
        let kind = metadata.file_type();
        if !kind.is_file() {
            let what = if kind.is_dir() {
                "a folder"
            } else if kind.is_fifo() {
                "a FIFO"
            } else {
                "a device"
            };
            return Err(Error::damaged(format!("{what} where a file is expected")).in_file(key));
        }
        Ok(LocalFile { file, length: metadata.len() })
    }

    /// Lists a folder; `None` if there is no folder.
    fn entries(&self, folder: &Path) -> io::Result<Option<Vec<Listed>>> {
        let opened = match self.with_free_descriptors(|| self.paths.open(folder, OFlags::DIRECTORY)) {
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
        names_of(opened).map(Some)
    }

    /// Opens a known folder and checks its identity.
    fn enter(&self, root: &KnownFolder) -> Result<fs::File> {
        let opened = self.with_free_descriptors(|| self.paths.open(root.key.as_path(), OFlags::DIRECTORY));
        let opened = opened.map(fs::File::from).map_err(|error| Error::stored(error).in_file(&root.key))?;
        let identity = identity_of(&opened).map_err(|error| Error::io(error).in_file(&root.key))?;
        if root.identity.is_some_and(|known| known != identity) {
            return Err(root.replaced());
        }
        Ok(opened)
    }

    /// Returns whether `opened`, which was opened by its whole path with the link policy, is what `entered` has at
    /// `path`. Another folder may have replaced the entered one in between.
    fn is_below(&self, entered: &fs::File, path: &str, opened: &fs::File) -> io::Result<bool> {
        let looked_at =
            self.with_free_descriptors(|| Ok(openat(entered, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?));
        match looked_at {
            Ok(found) => Ok(identity_of(&fs::File::from(found))? == identity_of(opened)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Default for LocalStorage {
    fn default() -> Self {
        Self::new()
    }
}

impl Storage for LocalStorage {
    fn allow(&self, folder: &StoreKey) {
        self.paths.allow(folder.as_path());
    }

    fn list(&self, folder: &StoreKey) -> Result<Vec<Listed>> {
        cancellation::check()?;
        let entries = self.entries(folder.as_path()).map_err(|error| Error::io(error).in_file(folder))?;
        Ok(entries.unwrap_or_default())
    }

    fn know(&self, folder: &StoreKey) -> Result<KnownFolder> {
        let entered = self.enter(&KnownFolder { key: folder.clone(), identity: None })?;
        let identity = identity_of(&entered).map_err(|error| Error::io(error).in_file(folder))?;
        Ok(KnownFolder { key: folder.clone(), identity: Some(identity) })
    }

    fn list_in(&self, root: &KnownFolder, path: &str) -> Result<Option<Vec<Listed>>> {
        let entered = self.enter(root)?;
        let folder = root.key.join(path);
        let io_error = |error: io::Error| Error::io(error).in_file(&folder);
        if path.is_empty() {
            return names_of(entered.into()).map(Some).map_err(io_error);
        }
        match self.with_free_descriptors(|| self.paths.open(folder.as_path(), OFlags::DIRECTORY)) {
            Ok(opened) => {
                let opened = fs::File::from(opened);
                if !self.is_below(&entered, path, &opened).map_err(io_error)? {
                    return Err(root.replaced());
                }
                names_of(opened.into()).map(Some).map_err(io_error)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                // Check what the entered folder itself has there.
                match statat(&entered, path, AtFlags::SYMLINK_NOFOLLOW).map_err(io::Error::from) {
                    Ok(found) => match FileType::from_raw_mode(found.st_mode) {
                        FileType::Directory => Err(root.replaced()),
                        FileType::Symlink if error.kind() == io::ErrorKind::NotFound => {
                            Err(io_error(io::Error::other("a symbolic link that leads nowhere")))
                        }
                        _ => Err(no_folder(&folder)),
                    },
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                    Err(error) => Err(io_error(error)),
                }
            }
            Err(error) => Err(io_error(error)),
        }
    }

    /// Opens the file anew: a file kept open may belong to a replaced folder.
    fn read_in(&self, root: &KnownFolder, path: &str, most: u64) -> Result<Vec<u8>> {
        let (entered, key) = (self.enter(root)?, root.key.join(path));
        let file = self.open_once(&key)?;
        if !self.is_below(&entered, path, &file.file).map_err(|error| Error::io(error).in_file(&key))? {
            return Err(root.replaced());
        }
        if file.length > most {
            let reason = format!("{} bytes where at most {most} are plausible", file.length);
            return Err(Error::damaged(reason).in_file(key));
        }
        Ok(file.read_part(0, usize::try_from(most).unwrap_or(usize::MAX)).in_file(key)?.0)
    }

    fn absence(&self, folder: &StoreKey) -> Option<String> {
        match folder.as_path().metadata() {
            Err(error) => Some(format!("cannot open it: {error}")),
            Ok(metadata) => (!metadata.is_dir()).then(|| "not a TileDB array: an array is a folder".to_owned()),
        }
    }

    fn length(&self, key: &StoreKey) -> Result<u64> {
        Ok(self.open(key)?.length)
    }

    fn read_ranges(&self, key: &StoreKey, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        cancellation::check()?;
        let file = self.open(key)?;
        let outcome = match ranges {
            // Most reads are small: headers of chunks.
            [range] => file.read_exact(range),
            _ => coalesce(ranges, COALESCING).into_iter().try_for_each(|run| file.read_run(run)),
        };
        outcome.in_file(key)
    }

    fn read_from(&self, key: &StoreKey, offset: u64, most: usize) -> Result<(Vec<u8>, u64)> {
        cancellation::check()?;
        self.open(key)?.read_part(offset, most).in_file(key)
    }

    fn read_end(&self, key: &StoreKey, most: usize) -> Result<(Vec<u8>, u64)> {
        cancellation::check()?;
        let file = self.open_once(key)?;
        file.read_part(file.length.saturating_sub(most as u64), most).in_file(key)
    }

    fn canonical(&self, key: &StoreKey) -> StoreKey {
        fs::canonicalize(key.as_path()).map_or_else(|_| key.clone(), StoreKey::from)
    }
}

/// Lists an opened folder in byte order.
fn names_of(folder: OwnedFd) -> io::Result<Vec<Listed>> {
    let mut names = Vec::new();
    let mut folder = Dir::new(folder)?;
    while let Some(entry) = folder.read() {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        if matches!(name, "." | "..") {
            continue;
        }
        let is_folder = match entry.file_type() {
            FileType::Directory => true,
            FileType::Symlink | FileType::Unknown => leads_to_folder(folder.fd()?, name)?,
            _ => false,
        };
        // A stat of each file would take longer than the listing.
        let kind = if is_folder { ListedKind::Folder } else { ListedKind::Object { length: None } };
        names.push(Listed { name: name.to_owned(), kind });
    }
    names.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(names)
}

fn identity_of(opened: &fs::File) -> io::Result<FolderIdentity> {
    Ok(FolderIdentity::of(&opened.metadata()?))
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Returns whether the parent folder of a file does not exist.
fn is_folder_gone(file: &Path) -> bool {
    let gone = |folder: &Path| fs::symlink_metadata(folder).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    file.parent().is_some_and(gone)
}

/// Returns whether an entry is a folder, or a link to one. The target of a link is only examined, not opened.
///
/// A link that cannot be followed is an error if its name is one of TileDB's, because committed data would be omitted.
/// With another name it counts as a file if its target does not exist, otherwise as a folder, so that listing it
/// reports the reason.
fn leads_to_folder(folder: impl AsFd, name: &str) -> io::Result<bool> {
    match statat(folder, name, AtFlags::empty()).map_err(io::Error::from) {
        Ok(found) => Ok(FileType::from_raw_mode(found.st_mode) == FileType::Directory),
        Err(error) if name.starts_with(TILEDB_PREFIX) => {
            Err(io::Error::new(error.kind(), format!("the symbolic link {name} cannot be followed: {error}")))
        }
        Err(error) => Ok(error.kind() != io::ErrorKind::NotFound),
    }
}

struct LocalFile {
    file: fs::File,
    length: u64,
}

impl LocalFile {
    /// Fills one range; an empty range is valid at any offset.
    fn read_exact(&self, range: &mut ReadRange<'_>) -> Result<()> {
        if range.end() > self.length && !range.into.is_empty() {
            return Err(past_end(self.length, range));
        }
        self.file.read_exact_at(range.into, range.offset).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => self.shortened(range.offset),
            _ => Error::io(error).at(range.offset),
        })
    }

    /// Fills near ranges, sorted by offset, with as few system calls as possible.
    fn read_run(&self, run: &mut [ReadRange<'_>]) -> Result<()> {
        if let [range] = run {
            return self.read_exact(range);
        }
        let Some(start) = run.first().map(|range| range.offset) else { return Ok(()) };
        if let Some(past) = run.iter().find(|range| range.end() > self.length) {
            return Err(past_end(self.length, past));
        }
        let gaps = run.windows(2).map(|pair| pair[1].offset - pair[0].end());
        let mut skipped = vec![0; gaps.sum::<u64>() as usize];
        let (mut skipped, mut at) = (skipped.as_mut_slice(), start);
        let mut buffers = Vec::with_capacity(2 * run.len());
        for range in run.iter_mut() {
            let (gap, rest) = std::mem::take(&mut skipped).split_at_mut((range.offset - at) as usize);
            skipped = rest;
            if !gap.is_empty() {
                buffers.push(IoSliceMut::new(gap));
            }
            at = range.end();
            buffers.push(IoSliceMut::new(range.into));
        }
        self.fill(start, &mut buffers)
    }

    fn fill(&self, mut offset: u64, mut buffers: &mut [IoSliceMut<'_>]) -> Result<()> {
        while !buffers.is_empty() {
            match retry_on_intr(|| preadv(&self.file, buffers, offset)) {
                Ok(0) => return Err(self.shortened(offset)),
                Ok(read) => {
                    IoSliceMut::advance_slices(&mut buffers, read);
                    offset += read as u64;
                }
                Err(error) => return Err(Error::io(error.into()).at(offset)),
            }
        }
        Ok(())
    }

    /// Error for a file that was truncated since it was opened.
    fn shortened(&self, offset: u64) -> Error {
        Error::damaged(format!("the file had {} bytes and has fewer", self.length)).at(offset)
    }

    /// Reads up to `most` bytes from `offset`; returns them and the length of the file.
    fn read_part(&self, offset: u64, most: usize) -> Result<(Vec<u8>, u64)> {
        let available = self.length.checked_sub(offset);
        let available = available.ok_or_else(|| past_end(self.length, &ReadRange { offset, into: &mut [] }))?;
        let mut bytes = vec![0; usize::try_from(available).map_or(most, |available| available.min(most))];
        if !bytes.is_empty() {
            self.read_exact(&mut ReadRange { offset, into: &mut bytes })?;
        }
        Ok((bytes, self.length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn file(name: &str) -> Listed {
        Listed { name: name.into(), kind: ListedKind::Object { length: None } }
    }

    fn folder(name: &str) -> Listed {
        Listed { name: name.into(), kind: ListedKind::Folder }
    }

    #[test]
    fn lists_in_byte_order_and_reads_parts() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("b"), b"0123456789").unwrap();
        fs::create_dir(root.path().join("a")).unwrap();
        let (storage, root) = (LocalStorage::new(), StoreKey::from(root.path()));
        assert_eq!(storage.list(&root).unwrap(), [folder("a"), file("b")]);
        assert!(storage.list(&root.join("none")).unwrap().is_empty());
        let key = root.join("b");
        assert!(storage.list(&key).unwrap().is_empty());
        assert_eq!(storage.length(&key).unwrap(), 10);
        let mut four = [0; 4];
        storage.read_at(&key, 3, &mut four).unwrap();
        assert_eq!(&four, b"3456");
        for offset in [8, 10, u64::MAX - 2, u64::MAX] {
            let error = storage.read_at(&key, offset, &mut four).unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, Error::Damaged { .. }), "{text}");
            assert!(text.contains("the file ends at 10, 4 bytes wanted") && text.contains("/b"), "{text}");
            assert!(text.contains(&format!("offset {offset}")), "{text}");
        }
        assert!(storage.read(&key, 5).is_err());
        assert_eq!(storage.read(&key, 10).unwrap(), b"0123456789");
        for (most, end) in [(0, &b""[..]), (3, b"789"), (10, b"0123456789"), (99, b"0123456789")] {
            assert_eq!(storage.read_end(&key, most).unwrap(), (end.to_vec(), 10));
            assert_eq!(storage.read_from(&key, 10 - end.len() as u64, most).unwrap(), (end.to_vec(), 10));
        }
        assert!(storage.read_from(&key, 11, 1).is_err());
        assert!(matches!(storage.read_end(&root.join("none"), 1), Err(Error::Missing { .. })));
    }

    #[test]
    fn many_ranges_read_as_each_alone() {
        let root = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..3_000_000u32).map(|at| (at % 251) as u8).collect();
        fs::write(root.path().join("b"), &bytes).unwrap();
        let (storage, key) = (LocalStorage::new(), StoreKey::from(root.path()).join("b"));
        // More buffers than one call accepts, small and large gaps, an overlap, and no order.
        let mut places: Vec<(usize, usize)> = (0..1500).map(|at| (at * 1999, 1 + at % 7)).collect();
        places.extend([(5, 100_000), (2_999_999, 1), (1_000_000, 0), (2_000_000, 999_999)]);
        places.reverse();
        let mut room: Vec<Vec<u8>> = places.iter().map(|&(_, length)| vec![0; length]).collect();
        let mut ranges: Vec<ReadRange<'_>> = places
            .iter()
            .zip(&mut room)
            .map(|(&(offset, _), into)| ReadRange { offset: offset as u64, into })
            .collect();
        storage.read_ranges(&key, &mut ranges).unwrap();
        for (&(offset, length), read) in places.iter().zip(&room) {
            assert!(*read == bytes[offset..offset + length], "{offset}");
        }
    }

    #[test]
    fn a_truncated_file_is_damaged() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("b");
        fs::write(&path, b"0123456789").unwrap();
        let (storage, key) = (LocalStorage::new(), StoreKey::from(&path));
        assert_eq!(storage.length(&key).unwrap(), 10);
        fs::File::options().write(true).open(&path).unwrap().set_len(5).unwrap();
        let error = storage.read_at(&key, 2, &mut [0; 6]).unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
    }

    #[test]
    fn special_files_are_refused_without_blocking() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let key = |name: &str| StoreKey::from(at(name));
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
            for error in [storage.length(&key(name)).err(), storage.read_end(&key(name), 9).err()] {
                let error = error.unwrap();
                assert!(matches!(error, Error::Damaged { .. }), "{error}");
                let text = error.to_string();
                assert!(text.contains(what) && text.contains(&format!("/{name})")), "{text}");
            }
        }
        assert!(storage.length(&key("terminal")).is_err());
    }

    #[test]
    fn dangling_links_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        symlink(at("none"), at("other")).unwrap();
        assert!(!storage_lists(&folder.path().join("")).unwrap()[0].is_folder());
        let error = storage_lists(&at("other")).unwrap_err().to_string();
        assert!(error.contains("leads nowhere"), "{error}");
        symlink(at("none"), at("__commits")).unwrap();
        let error = storage_lists(folder.path()).unwrap_err().to_string();
        assert!(error.contains("__commits"), "{error}");
        // A link cycle exists, but cannot be resolved.
        fs::remove_file(at("__commits")).unwrap();
        symlink(at("circle"), at("circle")).unwrap();
        let listed = storage_lists(folder.path()).unwrap();
        assert_eq!(listed[0], self::folder("circle"));
        assert!(storage_lists(&at("circle")).is_err());
    }

    fn storage_lists(folder: &Path) -> Result<Vec<Listed>> {
        LocalStorage::new().list(&folder.into())
    }

    #[test]
    fn cached_files_are_closed_when_descriptors_run_out() {
        let folder = tempfile::tempdir().unwrap();
        let storage = LocalStorage::new();
        for number in 0..10 {
            fs::write(folder.path().join(number.to_string()), b"x").unwrap();
            storage.length(&folder.path().join(number.to_string()).into()).unwrap();
        }
        let attempts = std::cell::Cell::new(0);
        let kept = storage.with_free_descriptors(|| {
            attempts.set(attempts.get() + 1);
            let kept = storage.lock().len();
            if kept > 0 { Err(io::Error::from_raw_os_error(libc::EMFILE)) } else { Ok(kept) }
        });
        assert_eq!((kept.unwrap(), attempts.get()), (0, 2));
        let never = storage.with_free_descriptors(|| Err::<(), _>(io::Error::from_raw_os_error(libc::ENFILE)));
        assert_eq!(never.unwrap_err().raw_os_error(), Some(libc::ENFILE));
        let once = storage.with_free_descriptors(|| Err::<(), _>(io::Error::from_raw_os_error(libc::EACCES)));
        assert_eq!(once.unwrap_err().raw_os_error(), Some(libc::EACCES));
    }
}
