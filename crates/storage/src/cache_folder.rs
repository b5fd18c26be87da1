//! A folder of files that later processes trust: private to this user and opened once, with its checksum key.
//! [`BoundedFolder`](super::bounded_folder::BoundedFolder) limits the size of one.
//!
//! Nobody else may be able to write to it; names are resolved relative to the opened folder, whatever replaces its path;
//! links are not followed; and files that somebody else planted nevertheless lack valid checksums.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime};

use aes_gcm::aead::inout::InOutBuf;
use aes_gcm::{AeadInOut, Aes256Gcm, KeyInit};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, renameat, statat, unlinkat};
use rustix::process::geteuid;
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest as _, Sha256};

use super::local::entries::for_each_entry;

/// Name of the key file.
const KEY: &str = "key.tilefs";
const KEY_BYTES: usize = 32;

/// Number of attempts and delay while another process is writing the key.
const KEY_POLLS: (u32, Duration) = (50, Duration::from_millis(2));

/// Write permissions of others.
const WRITABLE: u32 = 0o022;

/// Bytes of a checksum.
pub const TAG: usize = 16;

/// Minimum interval between updates of a file's last-use time.
const TOUCH_INTERVAL: Duration = Duration::from_secs(60);

/// The opened folder and its key.
#[derive(Debug)]
pub struct CacheFolder {
    folder: OwnedFd,
    key: HiddenKey,
}

/// Hides the key in debug output.
struct HiddenKey([u8; KEY_BYTES]);

impl std::fmt::Debug for HiddenKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

/// Reasons why a folder cannot be the cache.
#[derive(Debug)]
pub enum OpenError {
    /// Unsafe, because others could plant data.
    Refused(String),
    /// A system error, possibly transient.
    Failed(io::Error),
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        OpenError::Failed(error)
    }
}

impl From<rustix::io::Errno> for OpenError {
    fn from(error: rustix::io::Errno) -> Self {
        OpenError::Failed(error.into())
    }
}

/// A file of the cache.
pub struct CacheFile {
    /// Its name in the folder.
    pub name: String,
    /// When it was last used.
    pub used: SystemTime,
    /// Bytes on disk.
    pub size: u64,
}

impl CacheFolder {
    /// Opens the folder. Creates it and its key, private to the owner, if they do not exist.
    ///
    /// # Errors
    /// [`OpenError::Refused`] if it is a link, another user's or writable by others, or if its key is not a private
    /// file of this user.
    pub fn enter(path: &Path) -> Result<Self, OpenError> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        if fs::symlink_metadata(path)?.is_symlink() {
            return Err(OpenError::Refused("it is a symbolic link; give the folder that it leads to".to_owned()));
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path, flags, Mode::empty())?;
        let found = fstat(&folder)?;
        if found.st_uid != geteuid().as_raw() {
            let reason = format!("it belongs to the user {}, who could plant data in it", found.st_uid);
            return Err(OpenError::Refused(reason));
        }
        if found.st_mode & WRITABLE != 0 {
            let mode = found.st_mode & 0o7777;
            let reason = format!("others can write to it ({mode:04o}) and put there what is read; chmod go-w helps");
            return Err(OpenError::Refused(reason));
        }
        let key = key_of(&folder)?;
        Ok(CacheFolder { folder, key })
    }

    /// Opens a regular file of this user for reading and writing.
    ///
    /// # Errors
    /// The errors of the system; `InvalidData` for anything else of that name.
    pub fn open(&self, name: &str) -> io::Result<File> {
        open_own(&self.folder, name, OFlags::RDWR)
    }

    /// As [`CacheFolder::open`], but creates the file if it does not exist.
    ///
    /// # Errors
    /// As [`CacheFolder::open`].
    pub fn open_or_make(&self, name: &str) -> io::Result<File> {
        match self.open(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        match make(&self.folder, name) {
            // Another process created it first.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.open(name),
            made => made,
        }
    }

    /// Writes a file atomically: the name appears once all bytes are written, and replaces an existing file. No other
    /// process may use the name `temporary`.
    ///
    /// # Errors
    /// If the system fails to write, or to rename.
    pub fn replace(&self, name: &str, temporary: &str, parts: &[&[u8]]) -> io::Result<()> {
        let mut file = make(&self.folder, temporary)?;
        let written = parts.iter().try_for_each(|part| file.write_all(part));
        let written = written.and_then(|()| Ok(renameat(&self.folder, temporary, &self.folder, name)?));
        if written.is_err() {
            self.remove(temporary);
        }
        written
    }

    /// Lists the files whose names end with `suffix`.
    ///
    /// # Errors
    /// If the folder cannot be listed.
    pub fn files(&self, suffix: &str) -> io::Result<Vec<CacheFile>> {
        let mut files = Vec::new();
        // A descriptor of its own: the listing moves its position.
        let folder = openat(&self.folder, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        for_each_entry(&folder, |name, _| {
            let Some(name) = name.to_str().ok().filter(|name| name.ends_with(suffix)) else { return Ok(()) };
            // Another process may have removed it.
            let Ok(found) = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) else { return Ok(()) };
            if FileType::from_raw_mode(found.st_mode) == FileType::RegularFile {
                let used = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(found.st_mtime).unwrap_or(0));
                let size = u64::try_from(found.st_blocks).unwrap_or(0).saturating_mul(512);
                files.push(CacheFile { name: name.to_owned(), used, size });
            }
            Ok(())
        })?;
        Ok(files)
    }

    /// Removes a file if it exists.
    pub fn remove(&self, name: &str) {
        let _ = unlinkat(&self.folder, name, AtFlags::empty());
    }

    /// Returns whether the folder was removed.
    pub fn is_gone(&self) -> bool {
        fstat(&self.folder).is_ok_and(|found| found.st_nlink == 0)
    }

    /// Returns the checksum function for the entries of one owner.
    pub fn seal(&self, owner: &[u8; 32]) -> Seal {
        let mut key = Sha256::new();
        key.update(self.key.0);
        key.update(owner);
        Seal(Aes256Gcm::new(&key.finalize()))
    }
}

/// Updates the last-use time of a file, so that others are evicted first. If that fails, the file only seems older.
pub fn note_use(file: &File) {
    let used = file.metadata().and_then(|metadata| metadata.modified());
    // After the clock was set back, files may be from the future.
    if used.is_ok_and(|used| used.elapsed().map_or(true, |since| since > TOUCH_INTERVAL)) {
        let _ = file.set_modified(SystemTime::now());
    }
}

/// Returns a random number that no other process has.
///
/// # Errors
/// If the system has no random bytes.
pub fn unique() -> io::Result<u64> {
    let mut bytes = [0; 8];
    match getrandom(&mut bytes, GetRandomFlags::empty())? {
        8 => Ok(u64::from_le_bytes(bytes)),
        _ => Err(io::Error::other(TOO_FEW_RANDOM_BYTES)),
    }
}

const TOO_FEW_RANDOM_BYTES: &str = "the system has too few random bytes";

/// Computes checksums that only holders of the key can compute: AES-GCM tags under a key per owner, with a nonce that no two
/// entries of one owner share. A block of 64 KiB takes some 25 µs, twice as long as reading it from the page cache.
pub struct Seal(Aes256Gcm);

impl Seal {
    /// Returns the checksum of some bytes, which is never all zeros.
    pub fn tag(&self, nonce_of_owner: u64, bytes: &[u8]) -> Option<[u8; TAG]> {
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&nonce_of_owner.to_le_bytes());
        let nothing: &mut [u8] = &mut [];
        // Fails only for more bytes than memory holds.
        let tag = self.0.encrypt_inout_detached(&nonce.into(), bytes, InOutBuf::from(nothing)).ok()?;
        Some(tag.into()).filter(|tag| *tag != [0; TAG])
    }
}

fn open_own(folder: &OwnedFd, name: &str, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = openat(folder, name, flags, Mode::empty())?;
    let found = fstat(&opened)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile || found.st_uid != geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{name} is not a file of this user")));
    }
    Ok(File::from(opened))
}

fn make(folder: &OwnedFd, name: &str) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(openat(folder, name, flags, Mode::from_raw_mode(0o600))?))
}

/// Returns the folder's key. Creates one if it is missing, or if its writer was stopped before it finished.
fn key_of(folder: &OwnedFd) -> Result<HiddenKey, OpenError> {
    for _ in 0..KEY_POLLS.0 {
        match read_key(folder)? {
            Some(Some(key)) => return Ok(key),
            Some(None) => thread::sleep(KEY_POLLS.1),
            None => match make(folder, KEY) {
                Ok(file) => return write_key(folder, file),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error.into()),
            },
        }
    }
    let _ = unlinkat(folder, KEY, AtFlags::empty());
    write_key(folder, make(folder, KEY)?)
}

/// Reads the key: `None` without a file, `Some(None)` if the file is incomplete.
fn read_key(folder: &OwnedFd) -> Result<Option<Option<HiddenKey>>, OpenError> {
    let file = match open_own(folder, KEY, OFlags::RDONLY) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData || error.raw_os_error() == Some(libc::ELOOP) => {
            return Err(OpenError::Refused(format!("{KEY} in it is not a file of this user")));
        }
        opened => opened?,
    };
    let mode = fstat(&file)?.st_mode & 0o7777;
    if mode & 0o077 != 0 {
        return Err(OpenError::Refused(format!("others can use {KEY} in it ({mode:04o}); remove it")));
    }
    let mut bytes = Vec::with_capacity(KEY_BYTES);
    file.take(KEY_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(Some(bytes.try_into().ok().map(HiddenKey)))
}

fn write_key(folder: &OwnedFd, mut file: File) -> Result<HiddenKey, OpenError> {
    let mut key = [0; KEY_BYTES];
    let written = match getrandom(&mut key, GetRandomFlags::empty())? {
        KEY_BYTES => file.write_all(&key),
        _ => Err(io::Error::other(TOO_FEW_RANDOM_BYTES)),
    };
    match written {
        Ok(()) => Ok(HiddenKey(key)),
        Err(error) => {
            let _ = unlinkat(folder, KEY, AtFlags::empty());
            Err(error.into())
        }
    }
}
