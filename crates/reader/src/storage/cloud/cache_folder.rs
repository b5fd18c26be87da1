//! The folder of the disk cache: this user's alone, entered once, with the key that its checksums are made with.
//!
//! What is in it is taken for what the store has. So nobody else may be able to write to it, names are resolved in the
//! folder that was looked at, whatever takes its place, no link is followed, and what somebody else made all the same does
//! not have the checksum.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime};

use aes_gcm::aead::inout::InOutBuf;
use aes_gcm::{AeadInOut, Aes256Gcm, KeyInit};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, openat, statat, unlinkat};
use rustix::process::geteuid;
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest as _, Sha256};

/// What the names of our files end in; no other file is ever removed.
pub const SUFFIX: &str = ".tilefs-cache";

/// The file of the key.
const KEY: &str = "key.tilefs";
const KEY_BYTES: usize = 32;

/// How long a key may be on its way to its file, and how often to look.
const KEY_LOOKS: (u32, Duration) = (50, Duration::from_millis(2));

/// Permissions of others to write.
const WRITABLE: u32 = 0o022;

/// Bytes of a checksum.
pub const TAG: usize = 16;

/// The folder, and its key.
#[derive(Debug)]
pub struct CacheFolder {
    folder: OwnedFd,
    key: Key,
}

/// Not shown.
struct Key([u8; KEY_BYTES]);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

/// Why a folder cannot be a cache.
#[derive(Debug)]
pub enum Closed {
    /// It must not be one, as others could put there what is read.
    Refused(String),
    /// The system does not let it, now.
    Failed(io::Error),
}

impl From<io::Error> for Closed {
    fn from(error: io::Error) -> Self {
        Closed::Failed(error)
    }
}

impl From<rustix::io::Errno> for Closed {
    fn from(error: rustix::io::Errno) -> Self {
        Closed::Failed(error.into())
    }
}

/// A file of the cache.
pub struct CacheFile {
    pub name: String,
    pub used: SystemTime,
    /// Bytes on the disk.
    pub size: u64,
}

impl CacheFolder {
    /// Enters the folder; makes it, for its owner alone, where there is none, and its key.
    ///
    /// # Errors
    /// [`Closed::Refused`] where it is a link, another user's or writable by others, or its key is not a file of this
    /// user alone.
    pub fn enter(path: &Path) -> Result<Self, Closed> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        if fs::symlink_metadata(path)?.is_symlink() {
            return Err(Closed::Refused("it is a symbolic link; give the folder that it leads to".to_owned()));
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path, flags, Mode::empty())?;
        let found = fstat(&folder)?;
        if found.st_uid != geteuid().as_raw() {
            let reason = format!("it belongs to the user {}, who could put there what is read", found.st_uid);
            return Err(Closed::Refused(reason));
        }
        if found.st_mode & WRITABLE != 0 {
            let mode = found.st_mode & 0o7777;
            let reason = format!("others can write to it ({mode:04o}) and put there what is read; chmod go-w helps");
            return Err(Closed::Refused(reason));
        }
        let key = key_of(&folder)?;
        Ok(CacheFolder { folder, key })
    }

    /// Opens a file for reading and writing, a regular one of this user.
    ///
    /// # Errors
    /// Those of the system; `InvalidData` for anything else of that name.
    pub fn open(&self, name: &str) -> io::Result<File> {
        open_own(&self.folder, name, OFlags::RDWR)
    }

    /// As [`CacheFolder::open`]; makes the file where there is none.
    ///
    /// # Errors
    /// As there.
    pub fn open_or_make(&self, name: &str) -> io::Result<File> {
        match self.open(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        match make(&self.folder, name) {
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.open(name),
            made => made,
        }
    }

    /// The files of the cache that are there.
    ///
    /// # Errors
    /// Where the folder cannot be listed.
    pub fn files(&self) -> io::Result<Vec<CacheFile>> {
        let mut files = Vec::new();
        for entry in Dir::read_from(&self.folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if !name.ends_with(SUFFIX) {
                continue;
            }
            // Another process may have removed it.
            let Ok(found) = statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            if FileType::from_raw_mode(found.st_mode) == FileType::RegularFile {
                let used = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(found.st_mtime).unwrap_or(0));
                let size = u64::try_from(found.st_blocks).unwrap_or(0).saturating_mul(512);
                files.push(CacheFile { name: name.to_owned(), used, size });
            }
        }
        Ok(files)
    }

    /// Removes a file, if it is there.
    pub fn remove(&self, name: &str) {
        let _ = unlinkat(&self.folder, name, AtFlags::empty());
    }

    /// Whether the folder was removed.
    pub fn is_gone(&self) -> bool {
        fstat(&self.folder).is_ok_and(|found| found.st_nlink == 0)
    }

    /// What makes the checksums of an object's blocks.
    pub fn seal(&self, owner: &[u8; 32]) -> Seal {
        let mut key = Sha256::new();
        key.update(self.key.0);
        key.update(owner);
        Seal(Aes256Gcm::new(&key.finalize()))
    }
}

/// Makes checksums that only those who have the key can make: the tags of AES-GCM, by a key for each object and with the
/// number of the block as nonce, so that no two blocks share both. One of 64 KiB takes some 25 µs, twice as long as reading
/// the block from memory that the kernel has of it.
pub struct Seal(Aes256Gcm);

impl Seal {
    /// The checksum of a block; never all zeros.
    pub fn tag(&self, block: u64, bytes: &[u8]) -> Option<[u8; TAG]> {
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&block.to_le_bytes());
        let nothing: &mut [u8] = &mut [];
        // Fails of more bytes than memory has.
        let tag = self.0.encrypt_inout_detached(&nonce.into(), bytes, InOutBuf::from(nothing)).ok()?;
        Some(tag.into()).filter(|tag| *tag != [0; TAG])
    }
}

fn open_own(folder: &OwnedFd, name: &str, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = openat(folder, name, flags, Mode::empty())?;
    let found = fstat(&opened)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile || found.st_uid != geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{name} is no file of this user")));
    }
    Ok(File::from(opened))
}

fn make(folder: &OwnedFd, name: &str) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(openat(folder, name, flags, Mode::from_raw_mode(0o600))?))
}

/// The key of the folder; a new one where there is none, or where whoever made it was stopped while they did.
fn key_of(folder: &OwnedFd) -> Result<Key, Closed> {
    for _ in 0..KEY_LOOKS.0 {
        match read_key(folder)? {
            Some(Some(key)) => return Ok(key),
            Some(None) => thread::sleep(KEY_LOOKS.1),
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

/// The key, where it has one: none without a file, nor in a file that is not whole.
fn read_key(folder: &OwnedFd) -> Result<Option<Option<Key>>, Closed> {
    let file = match open_own(folder, KEY, OFlags::RDONLY) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData || error.raw_os_error() == Some(libc::ELOOP) => {
            return Err(Closed::Refused(format!("{KEY} in it is no file of this user")));
        }
        opened => opened?,
    };
    let mode = fstat(&file)?.st_mode & 0o7777;
    if mode & 0o077 != 0 {
        return Err(Closed::Refused(format!("others can use {KEY} in it ({mode:04o}); remove it")));
    }
    let mut bytes = Vec::with_capacity(KEY_BYTES);
    file.take(KEY_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(Some(bytes.try_into().ok().map(Key)))
}

fn write_key(folder: &OwnedFd, mut file: File) -> Result<Key, Closed> {
    let mut key = [0; KEY_BYTES];
    let written = match getrandom(&mut key, GetRandomFlags::empty())? {
        KEY_BYTES => file.write_all(&key),
        _ => Err(io::Error::other("the system has too few random bytes")),
    };
    match written {
        Ok(()) => Ok(Key(key)),
        Err(error) => {
            let _ = unlinkat(folder, KEY, AtFlags::empty());
            Err(error.into())
        }
    }
}
