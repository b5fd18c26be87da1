//! Storage in the local file system.

mod descriptors;
pub(crate) mod entries;
mod interrupted;
mod paths;
#[cfg(test)]
mod tests;

use std::fs;
use std::io::{self, IoSliceMut};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use lru::LruCache;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat};
use rustix::io::preadv;
use tilefs_base::error::{Error, Locate, Result};
use tilefs_threads::cancellation;

use crate::ranges::{Coalescing, ReadRange, coalesce};
use crate::{FolderIdentity, KnownFolder, Listed, ListedKind, Storage, StoreKey, no_folder, past_end};

use entries::for_each_entry;
use interrupted::retry_interrupted;
pub use paths::Links;
use paths::Paths;

/// Maximum number of files kept open, so that an array of many thousand fragments stays well below the usual limit of
/// 1024 descriptors per process.
const OPEN_FILES: u64 = 256;

/// Number of files kept open even if the limit of descriptors is lower.
const LEAST_OPEN_FILES: u64 = 8;

/// Descriptors reserved for other uses: connections to the kernel, files opened once.
const OTHER_FILES: u64 = 64;

/// Pauses between attempts when descriptors run out, in which others may close files.
const RETRY_DELAYS_MS: [u64; 6] = [0, 1, 4, 16, 64, 128];

/// Limits for coalescing ranges into one system call. Reading a gap of some pages costs as much as another call. A call
/// has at most as many buffers as the kernel accepts (`IOV_MAX`), gaps included.
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
    pub fn with_links(links: Links) -> Self {
        let most = make_room_for_files();
        let capacity = NonZeroUsize::new(most as usize).unwrap_or(NonZeroUsize::MIN);
        LocalStorage { paths: Paths::new(links), open_files: Mutex::new(LruCache::new(capacity)) }
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<StoreKey, Arc<LocalFile>>> {
        self.open_files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens something. If descriptors run out, closes the files kept open and retries.
    fn with_free_descriptors<T>(&self, attempt: impl Fn() -> io::Result<T>) -> io::Result<T> {
        let attempt = || retry_interrupted(&attempt);
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

    /// Opens a file and keeps it open.
    fn open(&self, key: &StoreKey) -> Result<Arc<LocalFile>> {
        let file = Arc::new(self.open_once(key)?);
        self.lock().put(key.clone(), file.clone());
        Ok(file)
    }

    /// Calls `read` with an open file. If `read` fails on a file that was kept open, opens the file again and retries:
    /// the file may have grown since it was opened, or its disk may have been away.
    fn with_open<T>(&self, key: &StoreKey, mut read: impl FnMut(&LocalFile) -> Result<T>) -> Result<T> {
        let kept = self.lock().get(key).cloned();
        if let Some(done) = kept.and_then(|file| read(&file).ok()) {
            return Ok(done);
        }
        cancellation::check()?;
        let done = self.open(key).and_then(|file| read(&file).in_file(key));
        if done.is_err() {
            self.forget(key);
        }
        done
    }

    /// Opens a file without keeping it open.
    fn open_once(&self, key: &StoreKey) -> Result<LocalFile> {
        let opened = self.with_free_descriptors(|| self.paths.open(key.as_path(), OFlags::empty()));
        let file = match opened {
            Ok(file) => fs::File::from(file),
            // open(2) returns ENXIO for a socket, and for the node of an absent device.
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {
                return Err(Error::damaged("a socket or a device where a file is expected").in_file(key));
            }
            // A reader continues with the array as it was when opened, so its folder may be gone.
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_folder_gone(key.as_path()) => {
                let reason = "its folder is gone too: vacuumed since the array was opened, or removed";
                return Err(Error::missing(reason).in_file(key));
            }
            Err(error) => return Err(Error::stored(error).in_file(key)),
        };
        let metadata = retry_interrupted(|| file.metadata()).map_err(|error| Error::io(error).in_file(key))?;
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

    /// Lists a folder; `None` if there is certainly no folder.
    fn entries(&self, folder: &Path) -> io::Result<Option<Vec<Listed>>> {
        match self.with_free_descriptors(|| self.paths.open(folder, OFlags::DIRECTORY)) {
            Ok(opened) => names_of(opened).map(Some),
            Err(error) if is_absence(&error) => self.check_absence(folder, error).map(|()| None),
            Err(error) => Err(error),
        }
    }

    /// Confirms that a folder does not exist, after opening it failed with `error`. Fails otherwise: a name that is
    /// stale, or gone for a moment, must not pass for a folder that never existed.
    fn check_absence(&self, folder: &Path, error: io::Error) -> io::Result<()> {
        match retry_interrupted(|| fs::symlink_metadata(folder)) {
            Ok(found) if found.is_dir() => Err(error),
            Ok(found) if found.is_symlink() => match retry_interrupted(|| fs::metadata(folder)) {
                Ok(target) if target.is_dir() => Err(error),
                Ok(_) => Ok(()),
                Err(_) => Err(leads_nowhere()),
            },
            Ok(_) => Ok(()),
            Err(again) if is_absence(&again) => match self.is_listed(folder)? {
                true => Err(error),
                false => Ok(()),
            },
            Err(again) => Err(again),
        }
    }

    /// Returns whether the innermost folder that exists around a path lists the next name of the path, although that
    /// name cannot be opened. A folder that may be entered but not listed counts as empty.
    fn is_listed(&self, path: &Path) -> io::Result<bool> {
        for within in path.ancestors() {
            let (Some(around), Some(name)) = (within.parent(), within.file_name()) else { return Ok(false) };
            match self.with_free_descriptors(|| self.paths.open(around, OFlags::DIRECTORY)) {
                Ok(around) => {
                    let mut is_listed = false;
                    for_each_entry(around, |entry, _| {
                        is_listed |= entry.to_bytes() == name.as_bytes();
                        Ok(())
                    })?;
                    return Ok(is_listed);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
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

    /// Returns whether `opened`, which was opened by its whole path under the link policy, is the object at `path` in
    /// the folder `entered`. Another folder may have replaced `entered` in between.
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
        let entries = self.entries(folder.as_path()).map_err(|error| Error::stored(error).in_file(folder))?;
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
        let list_error = |error: io::Error| Error::stored(error).in_file(&folder);
        if path.is_empty() {
            return names_of(entered.into()).map(Some).map_err(list_error);
        }
        match self.with_free_descriptors(|| self.paths.open(folder.as_path(), OFlags::DIRECTORY)) {
            Ok(opened) => {
                let opened = fs::File::from(opened);
                if !self.is_below(&entered, path, &opened).map_err(io_error)? {
                    return Err(root.replaced());
                }
                names_of(opened.into()).map(Some).map_err(list_error)
            }
            Err(error) if is_absence(&error) => {
                // Check what the entered folder itself has there.
                let found = retry_interrupted(|| Ok(statat(&entered, path, AtFlags::SYMLINK_NOFOLLOW)?));
                match found {
                    Ok(found) => match FileType::from_raw_mode(found.st_mode) {
                        FileType::Directory => Err(root.replaced()),
                        FileType::Symlink if error.kind() == io::ErrorKind::NotFound => Err(io_error(leads_nowhere())),
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
        file.read_whole(most).in_file(key)
    }

    fn absence(&self, folder: &StoreKey) -> Option<String> {
        match folder.as_path().metadata() {
            Err(error) => Some(format!("cannot open it: {error}")),
            Ok(metadata) => (!metadata.is_dir()).then(|| "not a TileDB array: an array is a folder".to_owned()),
        }
    }

    /// Opens the file again: its length may have changed since it was first opened.
    fn length(&self, key: &StoreKey) -> Result<u64> {
        Ok(self.open(key)?.length)
    }

    fn forget(&self, key: &StoreKey) {
        self.lock().pop(key);
    }

    fn read_ranges(&self, key: &StoreKey, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        cancellation::check()?;
        self.with_open(key, |file| match ranges {
            // Most reads are small: headers of chunks.
            [range] => file.read_exact(range),
            _ => coalesce(ranges, COALESCING).into_iter().try_for_each(|run| file.read_run(run)),
        })
    }

    fn read_from(&self, key: &StoreKey, offset: u64, most: usize) -> Result<(Vec<u8>, u64)> {
        cancellation::check()?;
        self.with_open(key, |file| file.read_part(offset, most))
    }

    /// Opens the file anew, because it is read once.
    fn read(&self, key: &StoreKey, most: u64) -> Result<Vec<u8>> {
        cancellation::check()?;
        self.open_once(key)?.read_whole(most).in_file(key)
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
    for_each_entry(&folder, |name, kind| {
        let Ok(name) = name.to_str() else { return Ok(()) };
        let is_folder = match kind {
            FileType::Directory => true,
            FileType::Symlink | FileType::Unknown => leads_to_folder(&folder, name)?,
            _ => false,
        };
        // A stat of each file would take longer than the listing.
        let kind = if is_folder { ListedKind::Folder } else { ListedKind::Object { length: None } };
        names.push(Listed { name: name.to_owned(), kind });
        Ok(())
    })?;
    names.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(names)
}

fn identity_of(opened: &fs::File) -> io::Result<FolderIdentity> {
    Ok(FolderIdentity::of(&retry_interrupted(|| opened.metadata())?))
}

/// Returns whether opening a folder failed because there seems to be none.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn leads_nowhere() -> io::Error {
    io::Error::other("a symbolic link that leads nowhere")
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
    let look = |flags| retry_interrupted(|| Ok(statat(&folder, name, flags)?));
    let is = |wanted, mode| FileType::from_raw_mode(mode) == wanted;
    match look(AtFlags::empty()) {
        Ok(found) => Ok(is(FileType::Directory, found.st_mode)),
        Err(error) if name.starts_with(TILEDB_PREFIX) => {
            Err(io::Error::other(format!("the symbolic link {name} cannot be followed: {error}")))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // If the entry is no link, or its target exists after all, the name was only gone for a moment.
            let is_link = look(AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|found| is(FileType::Symlink, found.st_mode));
            let again = look(AtFlags::empty());
            let is_gone = again.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
            Ok(!(is_link && is_gone) && again.map_or(true, |found| is(FileType::Directory, found.st_mode)))
        }
        Err(_) => Ok(true),
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
        if range.into.is_empty() {
            return Ok(());
        }
        self.fill(range.offset, &mut [IoSliceMut::new(range.into)])
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
            match retry_interrupted(|| Ok(preadv(&self.file, buffers, offset)?)) {
                Ok(0) => return Err(self.shortened(offset)),
                Ok(read) => {
                    IoSliceMut::advance_slices(&mut buffers, read);
                    offset += read as u64;
                }
                Err(error) => return Err(Error::io(error).at(offset)),
            }
        }
        Ok(())
    }

    /// Returns the error for a file that was truncated since it was opened.
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

    /// Reads the whole file, of at most `most` bytes. Fails if the file does not end at its length, which may be stale.
    fn read_whole(&self, most: u64) -> Result<Vec<u8>> {
        if self.length > most {
            return Err(Error::damaged(format!("{} bytes where at most {most} are plausible", self.length)));
        }
        let (bytes, length) = self.read_part(0, usize::try_from(most).unwrap_or(usize::MAX))?;
        match retry_interrupted(|| self.file.read_at(&mut [0], length)) {
            Ok(0) => Ok(bytes),
            Ok(_) => Err(Error::io(io::Error::other(format!("the file has {length} bytes, and more behind them")))),
            Err(error) => Err(Error::io(error).at(length)),
        }
    }
}
