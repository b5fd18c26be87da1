//! Stored files on the local file system.

use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;

use super::descriptors::make_room;
use super::{Listed, Storage, StoredFile};
use crate::error::{Error, Locate, Result};

/// Files kept open, so that an array of many thousand fragments stays well below the usual limit of
/// 1024 descriptors a process.
const OPEN_FILES: usize = 256;

/// Descriptors that are something else: connections with the kernel, files being looked at once.
const OTHER_FILES: u16 = 64;

/// The local file system. Memory is bounded by [`OPEN_FILES`] paths and descriptors.
pub struct LocalStorage {
    open_files: Mutex<LruCache<PathBuf, Arc<LocalFile>>>,
}

impl LocalStorage {
    pub fn new() -> Self {
        make_room(OPEN_FILES as u16 + OTHER_FILES);
        let capacity = NonZeroUsize::new(OPEN_FILES).unwrap_or(NonZeroUsize::MIN);
        LocalStorage { open_files: Mutex::new(LruCache::new(capacity)) }
    }
}

impl Default for LocalStorage {
    fn default() -> Self {
        Self::new()
    }
}

impl Storage for LocalStorage {
    fn list(&self, folder: &Path) -> Result<Vec<Listed>> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(Error::io(&error).in_file(folder)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| Error::io(&error).in_file(folder))?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            // Links are followed: people link arrays together from several disks.
            let is_folder = match entry.file_type() {
                Ok(kind) if kind.is_symlink() => entry.path().is_dir(),
                Ok(kind) => kind.is_dir(),
                Err(_) => false,
            };
            names.push(Listed { name, is_folder });
        }
        names.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(names)
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn StoredFile>> {
        if let Some(file) = self.lock().get(path) {
            return Ok(file.clone());
        }
        let file = Arc::new(LocalFile::open(path).map_err(|error| Error::io(&error).in_file(path))?);
        self.lock().put(path.to_owned(), file.clone());
        Ok(file)
    }

    fn read_end(&self, path: &Path, most: usize) -> Result<(Vec<u8>, u64)> {
        let file = LocalFile::open(path).map_err(|error| Error::io(&error).in_file(path))?;
        let mut end = vec![0; usize::try_from(file.length).map_or(most, |length| length.min(most))];
        file.read_at(file.length - end.len() as u64, &mut end).in_file(path)?;
        Ok((end, file.length))
    }

    fn canonical(&self, path: &Path) -> PathBuf {
        fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
    }
}

impl LocalStorage {
    fn lock(&self) -> std::sync::MutexGuard<'_, LruCache<PathBuf, Arc<LocalFile>>> {
        self.open_files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct LocalFile {
    file: fs::File,
    length: u64,
}

impl LocalFile {
    fn open(path: &Path) -> io::Result<Self> {
        let file = fs::File::open(path)?;
        let length = file.metadata()?.len();
        Ok(LocalFile { file, length })
    }
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
        assert!(storage.read(&folder.path().join("b"), 5).is_err());
        for (most, end) in [(0, &b""[..]), (3, b"789"), (10, b"0123456789"), (99, b"0123456789")] {
            assert_eq!(storage.read_end(&folder.path().join("b"), most).unwrap(), (end.to_vec(), 10));
        }
    }
}
