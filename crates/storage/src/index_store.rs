//! Results of passes over arrays, saved in a local folder for later mounts and for other processes: bytes under a key,
//! each entry in a file of its own.
//!
//! A file gets its name once it is complete. Its head contains its key, and a checksum that only this user can compute:
//! a file that is truncated, altered or has another key counts as missing. A failure of the folder costs nothing but
//! time.

use std::io::{self, Read as _};
use std::path::Path;

use tilefs_base::entry_key::EntryKey;
use tilefs_base::error::{Error, Result};
use tilefs_base::hex::hex;

use super::bounded_folder::BoundedFolder;
use super::cache_folder::{CacheFolder, TAG, note_use, unique};

/// The suffix of the files.
const SUFFIX: &str = ".tilefs-index";

/// The head of a file: the layout, the key, a nonce, and the checksum of the rest.
const MAGIC: &[u8; 8] = b"tilefsi\x01";
const HEAD: usize = 8 + KEY + 8 + TAG;
const KEY: usize = 32;

/// The maximum size of an entry, because entries are read in one piece.
pub const MOST_ENTRY: usize = 64 << 20;

/// The folder's size is computed about once in this many entries, however many processes write them.
const COUNTED_EVERY: u8 = 64;

fn file_name(key: &EntryKey) -> String {
    hex(key.digest()) + SUFFIX
}

/// A folder of entries. Memory: one entry while it is read or written.
#[derive(Debug)]
pub struct IndexStore {
    folder: BoundedFolder,
}

impl IndexStore {
    /// Creates a store of about `most` bytes. Its folder is entered, and created if it does not exist, on first use; if
    /// that fails, nothing is stored.
    pub fn new(folder: &Path, most: u64) -> Self {
        IndexStore { folder: BoundedFolder::new("the folder of indexes", folder, SUFFIX, most) }
    }

    /// As [`IndexStore::new`], for a folder that the user has requested: failures are errors or warnings.
    ///
    /// # Errors
    /// [`Error::Usage`] if it can be neither created nor read, or if other users could write to it.
    pub fn open(folder: &Path, most: u64) -> Result<Self> {
        let failed = |reason: String| Error::usage(format!("--index-dir {}: {reason}", folder.display()));
        Ok(IndexStore { folder: Self::new(folder, most).folder.require().map_err(failed)? })
    }

    /// Returns the maximum size in bytes.
    pub fn most(&self) -> u64 {
        self.folder.most()
    }

    /// Returns the entry of a key, if there is one and it is intact.
    pub fn read(&self, key: &EntryKey) -> Option<Vec<u8>> {
        try_read(&*self.folder.entered()?, key)
    }

    /// Returns whether there is an entry of a key, intact or not.
    pub fn has(&self, key: &EntryKey) -> bool {
        self.folder.entered().is_some_and(|entered| entered.open(&file_name(key)).is_ok())
    }

    /// Stores an entry, and replaces an existing one. Ignores entries of more than [`MOST_ENTRY`] bytes.
    pub fn write(&self, key: &EntryKey, bytes: &[u8]) {
        if bytes.len() > MOST_ENTRY {
            return;
        }
        self.folder.write((HEAD + bytes.len()) as u64, |entered| try_write(entered, key, bytes));
        // Without this, processes that each write little would never evict anything.
        if key.digest()[KEY - 1].is_multiple_of(COUNTED_EVERY) {
            self.folder.make_room();
        }
    }
}

fn try_read(entered: &CacheFolder, key: &EntryKey) -> Option<Vec<u8>> {
    let mut file = entered.open(&file_name(key)).ok()?;
    let mut head = [0; HEAD];
    file.read_exact(&mut head).ok()?;
    let (magic, rest) = head.split_first_chunk::<8>()?;
    let (owner, rest) = rest.split_first_chunk::<KEY>()?;
    let (nonce, tag) = rest.split_first_chunk::<8>()?;
    if magic != MAGIC || owner != key.digest() {
        return None;
    }
    let mut bytes = Vec::new();
    (&file).take(MOST_ENTRY as u64 + 1).read_to_end(&mut bytes).ok()?;
    let is_whole = bytes.len() <= MOST_ENTRY
        && entered.seal(key.digest()).tag(u64::from_le_bytes(*nonce), &bytes).is_some_and(|made| made == tag);
    if is_whole {
        note_use(&file);
    }
    is_whole.then_some(bytes)
}

fn try_write(entered: &CacheFolder, key: &EntryKey, bytes: &[u8]) -> io::Result<()> {
    let nonce = unique()?;
    let tag =
        entered.seal(key.digest()).tag(nonce, bytes).ok_or_else(|| io::Error::other("an entry has no checksum"))?;
    let temporary = format!("new-{nonce:016x}{SUFFIX}");
    entered.replace(&file_name(key), &temporary, &[MAGIC, key.digest(), &nonce.to_le_bytes(), &tag, bytes])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use tilefs_base::entry_key::KeyWriter;

    fn key(text: &str) -> EntryKey {
        let mut writer = KeyWriter::new();
        writer.part(text);
        writer.finish()
    }

    fn store() -> (tempfile::TempDir, IndexStore) {
        let folder = tempfile::tempdir().unwrap();
        let store = IndexStore::open(&folder.path().join("new/index"), 1 << 20).unwrap();
        (folder, store)
    }

    #[test]
    fn entries_are_there_for_others_too_and_are_replaced() {
        let (_folder, store) = store();
        assert_eq!(store.read(&key("a")), None);
        store.write(&key("a"), b"one");
        store.write(&key("b"), b"");
        store.write(&key("a"), b"two");
        let other = IndexStore::new(store.folder.path(), 1 << 20);
        assert_eq!(
            [other.read(&key("a")), other.read(&key("b")), other.read(&key("c"))],
            [Some(b"two".to_vec()), Some(Vec::new()), None]
        );
        for entry in fs::read_dir(store.folder.path()).unwrap() {
            let entry = entry.unwrap();
            assert_eq!(entry.metadata().unwrap().mode() & 0o777, 0o600, "{:?}", entry.file_name());
            assert!(!entry.file_name().to_str().unwrap().starts_with("new-"));
        }
    }

    #[test]
    fn the_longest_unused_go_first() {
        let (_folder, store) = store();
        for number in 0..300 {
            store.write(&key(&number.to_string()), &[7; 16 << 10]);
        }
        store.folder.make_room();
        let total: u64 = fs::read_dir(store.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().blocks() * 512)
            .sum();
        assert!(total <= 1 << 20, "{total}");
        assert!((0..300).any(|number| store.read(&key(&number.to_string())).is_some()));
    }

    #[test]
    fn folders_and_files_of_others_are_refused() {
        let (folder, store) = store();
        let path = store.folder.path().to_owned();
        store.write(&key("a"), b"one");
        // A link, and the entry of somebody who has another key.
        let foreign = IndexStore::open(&folder.path().join("other"), 1 << 20).unwrap();
        foreign.write(&key("a"), b"forged");
        let file = path.join(file_name(&key("a")));
        fs::copy(foreign.folder.path().join(file_name(&key("a"))), &file).unwrap();
        assert_eq!(store.read(&key("a")), None);
        fs::remove_file(&file).unwrap();
        symlink(foreign.folder.path().join(file_name(&key("a"))), &file).unwrap();
        assert_eq!(store.read(&key("a")), None);
        // Writing replaces the link, not the file to which it leads.
        store.write(&key("a"), b"two");
        assert_eq!((store.read(&key("a")), foreign.read(&key("a"))), (Some(b"two".to_vec()), Some(b"forged".to_vec())));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let error = IndexStore::open(&path, 1 << 20).unwrap_err();
        assert!(matches!(error, Error::Usage { .. }) && error.to_string().contains("--index-dir"), "{error}");
        // A folder that the user did not request is silently not used.
        let unasked = IndexStore::new(&path, 1 << 20);
        unasked.write(&key("b"), b"one");
        assert_eq!((unasked.read(&key("b")), unasked.read(&key("a"))), (None, None));
    }

    #[test]
    fn a_folder_may_be_removed_at_any_time() {
        let (_folder, store) = store();
        store.write(&key("a"), b"one");
        fs::remove_dir_all(store.folder.path()).unwrap();
        assert_eq!(store.read(&key("a")), None);
        store.write(&key("a"), b"two");
        assert_eq!(store.read(&key("a")), Some(b"two".to_vec()));
        fs::remove_dir_all(store.folder.path()).unwrap();
        fs::write(store.folder.path(), "a file").unwrap();
        store.write(&key("a"), b"three");
        assert_eq!(store.read(&key("a")), None);
        assert!(store.folder.has_warned());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn altered_entries_are_not_there(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            at in any::<prop::sample::Index>(),
            change in 1u8..,
            cut in any::<prop::sample::Index>(),
        ) {
            let (_folder, store) = store();
            store.write(&key("a"), &bytes);
            prop_assert_eq!(store.read(&key("a")), Some(bytes));
            let path = store.folder.path().join(file_name(&key("a")));
            let whole = fs::read(&path).unwrap();
            let mut altered = whole.clone();
            altered[at.index(whole.len())] ^= change;
            fs::write(&path, &altered).unwrap();
            prop_assert_eq!(store.read(&key("a")), None);
            fs::write(&path, &whole[..cut.index(whole.len())]).unwrap();
            prop_assert_eq!(store.read(&key("a")), None);
            fs::write(&path, [&whole[..], b"x"].concat()).unwrap();
            prop_assert_eq!(store.read(&key("a")), None);
            // Under the name of another key.
            fs::write(store.folder.path().join(file_name(&key("b"))), &whole).unwrap();
            prop_assert_eq!(store.read(&key("b")), None);
        }
    }
}
