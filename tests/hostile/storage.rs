//! Arrays in memory, which cost nothing to damage.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use tilefs::error::{Error, Locate, Result};
use tilefs::storage::{Listed, Storage, StoredFile};

/// A file: some bytes, and zeros behind them up to its length, as a file with a hole has.
#[derive(Clone)]
pub struct Stored {
    pub bytes: Arc<Vec<u8>>,
    pub length: u64,
}

impl Stored {
    pub fn new(bytes: Vec<u8>) -> Self {
        Stored { length: bytes.len() as u64, bytes: Arc::new(bytes) }
    }
}

/// The files of an array by their paths.
#[derive(Clone, Default)]
pub struct MemoryStorage {
    pub files: BTreeMap<PathBuf, Stored>,
}

impl MemoryStorage {
    /// The files of a folder on disk, under the path `root`.
    pub fn load(folder: &Path, root: &Path) -> Self {
        let mut storage = MemoryStorage::default();
        storage.load_folder(folder, root);
        storage
    }

    fn load_folder(&mut self, folder: &Path, root: &Path) {
        for entry in std::fs::read_dir(folder).expect("a fixture is listed") {
            let path = entry.expect("a fixture is listed").path();
            let to = root.join(path.file_name().expect("a file has a name"));
            match path.is_dir() {
                true => self.load_folder(&path, &to),
                false => {
                    self.files.insert(to, Stored::new(std::fs::read(&path).expect("a fixture is read")));
                }
            }
        }
    }
}

/// The same path without `.`.
fn plain(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

impl Storage for MemoryStorage {
    fn list(&self, folder: &Path) -> Result<Vec<Listed>> {
        let folder = plain(folder);
        let mut names: BTreeMap<String, bool> = BTreeMap::new();
        let below = self.files.range(folder.clone()..).take_while(|(path, _)| path.starts_with(&folder));
        for rest in below.filter_map(|(path, _)| path.strip_prefix(&folder).ok()) {
            let mut parts = rest.components();
            let Some(name) = parts.next().and_then(|part| part.as_os_str().to_str()) else { continue };
            let is_folder = parts.next().is_some();
            *names.entry(name.to_owned()).or_default() |= is_folder;
        }
        Ok(names.into_iter().map(|(name, is_folder)| Listed { name, is_folder }).collect())
    }

    fn open(&self, file: &Path) -> Result<Arc<dyn StoredFile>> {
        match self.files.get(&plain(file)) {
            Some(stored) => Ok(Arc::new(stored.clone())),
            None => Err(Error::io(&std::io::ErrorKind::NotFound.into()).in_file(file)),
        }
    }

    fn canonical(&self, path: &Path) -> PathBuf {
        plain(path)
    }
}

impl StoredFile for Stored {
    fn len(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        if offset.checked_add(buf.len() as u64).is_none_or(|end| end > self.length) {
            return Err(Error::damaged(format!("the file ends at {}", self.length)).at(offset));
        }
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
        let there = &self.bytes[start..self.bytes.len().min(start.saturating_add(buf.len()))];
        let (front, hole) = buf.split_at_mut(there.len());
        front.copy_from_slice(there);
        hole.fill(0);
        Ok(())
    }
}
