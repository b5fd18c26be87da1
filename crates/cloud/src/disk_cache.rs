//! Disk cache of stored bytes in a local folder, shared by processes.
//!
//! An object is divided into segments of [`SEGMENT_BLOCKS`] blocks. Each segment is a file with a header, which
//! identifies the object and has a checksum per cached block, followed by space for all blocks; missing blocks are
//! holes. A block is written before its checksum, and concurrent writers of a block write the same bytes: torn, lost,
//! forged or foreign data fails its checksum and counts as missing.
//!
//! Problems with the folder make reads slower, but never fail one.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use sha2::{Digest as _, Sha256};
use tilefs_base::error::{Error, Result};
use tilefs_base::hex::hex;
use tilefs_storage::bounded_folder::BoundedFolder;
use tilefs_storage::cache_folder::{CacheFolder, TAG, note_use};

/// Suffix of the cache's file names; no other file is ever removed.
const SUFFIX: &str = ".tilefs-cache";

/// Size of a block in bytes, the unit of caching.
pub const BLOCK: u64 = 64 << 10;

/// Blocks per segment file.
const SEGMENT_BLOCKS: u64 = 64;

/// Size of a file's header: layout, identity of the object, and checksums. Blocks follow it.
const HEADER: u64 = 4096;
const MAGIC: &[u8; 8] = b"tilefs\x02\n";
const CHECKSUMS: usize = 64;

/// A folder of cached blocks. Memory: one block per concurrent read.
#[derive(Debug)]
pub struct DiskCache {
    folder: BoundedFolder,
}

/// The identity of a version of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectVersion([u8; 32]);

impl ObjectVersion {
    /// Identifies the object with this URI, ETag and length at this endpoint, because two stores may have buckets of
    /// the same name.
    pub fn new(endpoint: &str, uri: &str, tag: &str, length: u64) -> Self {
        ObjectVersion(Sha256::digest(format!("{endpoint}\n{uri}\n{tag}\n{length}")).into())
    }
}

impl DiskCache {
    /// Opens the folder, creating it private to its owner if missing, and evicts down to `most` bytes. A full disk is
    /// only a warning.
    ///
    /// # Errors
    /// [`Error::Usage`] if it can be neither created nor opened, or if others could plant data in it.
    pub fn open(folder: &Path, most: u64) -> Result<Self> {
        let failed = |reason: String| Error::usage(format!("--disk-cache {}: {reason}", folder.display()));
        let folder = BoundedFolder::new("the disk cache", folder, SUFFIX, most).require().map_err(failed)?;
        folder.make_room();
        Ok(DiskCache { folder })
    }

    /// Passes each cached block among `blocks`, with its number, to `take`; returns the numbers of the missing blocks.
    /// `length` is the length of the object in bytes.
    pub fn read(
        &self,
        owner: &ObjectVersion,
        length: u64,
        blocks: &[u64],
        mut take: impl FnMut(u64, &[u8]),
    ) -> Vec<u64> {
        let mut missing = Vec::new();
        let Some(entered) = self.folder.entered() else { return blocks.to_vec() };
        let (seal, mut buffer) = (entered.seal(&owner.0), vec![0; BLOCK as usize]);
        for group in blocks.chunk_by(|a, b| a / SEGMENT_BLOCKS == b / SEGMENT_BLOCKS) {
            let segment = group[0] / SEGMENT_BLOCKS;
            let Some((file, header)) = open_segment(&entered, owner, segment) else {
                missing.extend_from_slice(group);
                continue;
            };
            for &block in group {
                let bytes = &mut buffer[..block_length(block, length)];
                let place = HEADER + block % SEGMENT_BLOCKS * BLOCK;
                let is_there = checksum_of(&header, block) != [0; TAG]
                    && file.read_exact_at(bytes, place).is_ok()
                    && seal.tag(block, bytes) == Some(checksum_of(&header, block));
                if is_there { take(block, bytes) } else { missing.push(block) }
            }
        }
        missing
    }

    /// Caches a block. If the disk is full or the folder vanished, warns once and pauses caching.
    pub fn write(&self, owner: &ObjectVersion, block: u64, bytes: &[u8]) {
        self.folder.write(bytes.len() as u64, |entered| try_write(entered, owner, block, bytes));
    }
}

fn try_write(entered: &CacheFolder, owner: &ObjectVersion, block: u64, bytes: &[u8]) -> io::Result<()> {
    let segment = block / SEGMENT_BLOCKS;
    let file = entered.open_or_make(&name_of(owner, segment))?;
    let mut header = [0; CHECKSUMS];
    if file.read_exact_at(&mut header, 0).is_err() || header != header_of(owner, segment) {
        // The file is new, or has another layout.
        file.set_len(0)?;
        file.set_len(HEADER)?;
        file.write_all_at(&header_of(owner, segment), 0)?;
    }
    let tag = entered.seal(&owner.0).tag(block, bytes).ok_or_else(|| io::Error::other("a block has no checksum"))?;
    let number = block % SEGMENT_BLOCKS;
    file.write_all_at(bytes, HEADER + number * BLOCK)?;
    file.write_all_at(&tag, CHECKSUMS as u64 + TAG as u64 * number)
}

/// Opens the file of a segment and reads its header; `None` if missing or not of that segment.
fn open_segment(entered: &CacheFolder, owner: &ObjectVersion, segment: u64) -> Option<(File, [u8; HEADER as usize])> {
    let file = entered.open(&name_of(owner, segment)).ok()?;
    let mut header = [0; HEADER as usize];
    file.read_exact_at(&mut header, 0).ok()?;
    if header[..CHECKSUMS] != header_of(owner, segment) {
        return None;
    }
    note_use(&file);
    Some((file, header))
}

/// Returns the file name of a segment.
fn name_of(owner: &ObjectVersion, segment: u64) -> String {
    format!("{}-{segment}{SUFFIX}", hex(&owner.0[..16]))
}

/// Returns the length of a block in an object of `length` bytes.
pub fn block_length(block: u64, length: u64) -> usize {
    length.saturating_sub(block.saturating_mul(BLOCK)).min(BLOCK) as usize
}

/// Returns the start of a file's header, before the checksums.
fn header_of(owner: &ObjectVersion, segment: u64) -> [u8; CHECKSUMS] {
    let mut header = [0; CHECKSUMS];
    header[..8].copy_from_slice(MAGIC);
    header[8..40].copy_from_slice(&owner.0);
    header[40..48].copy_from_slice(&segment.to_le_bytes());
    header
}

/// Returns the stored checksum of a block; zeros if the block is missing.
fn checksum_of(header: &[u8; HEADER as usize], block: u64) -> [u8; TAG] {
    let start = CHECKSUMS + TAG * (block % SEGMENT_BLOCKS) as usize;
    header[start..].first_chunk().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::geteuid;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant, SystemTime};

    const LENGTH: u64 = 70 * BLOCK + 5;

    fn bytes(block: u64) -> Vec<u8> {
        (0..block_length(block, LENGTH)).map(|byte| (byte as u64 * 7 + block) as u8).collect()
    }

    /// Returns the cached blocks, after checking their bytes.
    fn found(cache: &DiskCache, owner: &ObjectVersion) -> Vec<u64> {
        let blocks: Vec<u64> = (0..71).collect();
        let mut found = Vec::new();
        let missing = cache.read(owner, LENGTH, &blocks, |block, got| {
            assert!(got == bytes(block), "{block}");
            found.push(block);
        });
        assert_eq!(missing, blocks.into_iter().filter(|block| !found.contains(block)).collect::<Vec<_>>());
        found
    }

    /// Lists the files of the cache and its key.
    fn files(folder: &Path) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    fn path_of(cache: &DiskCache, owner: &ObjectVersion, segment: u64) -> PathBuf {
        cache.folder.path().join(name_of(owner, segment))
    }

    /// Creates a folder private to this user.
    fn own_folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        folder
    }

    #[test]
    fn cached_blocks_are_shared() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/cache");
        let cache = DiskCache::open(&path, 1 << 30).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        let owner = ObjectVersion::new("", "s3://b/a", "tag", LENGTH);
        for block in [0, 3, 63, 64, 70] {
            cache.write(&owner, block, &bytes(block));
        }
        let other = DiskCache::open(&path, 1 << 30).unwrap();
        assert_eq!(found(&other, &owner), [0, 3, 63, 64, 70]);
        let strangers = [("", "s3://b/a", "new"), ("", "s3://b/b", "tag"), ("http://other", "s3://b/a", "tag")];
        for (endpoint, uri, tag) in strangers {
            let stranger = ObjectVersion::new(endpoint, uri, tag, LENGTH);
            assert_eq!(found(&other, &stranger), [0; 0]);
        }
        assert_eq!(files(&path).len(), 3);
        assert!(files(&path).iter().all(|file| fs::metadata(file).unwrap().mode() & 0o777 == 0o600));
    }

    #[test]
    fn what_is_torn_or_of_another_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache::open(folder.path(), 1 << 30).unwrap();
        let (owner, stranger) =
            (ObjectVersion::new("", "s3://b/a", "1", LENGTH), ObjectVersion::new("", "s3://b/a", "2", LENGTH));
        (0..4).for_each(|block| cache.write(&owner, block, &bytes(block)));
        let path = path_of(&cache, &owner, 0);
        let whole = fs::read(&path).unwrap();
        // Corrupt some bytes of the file.
        for at in (0..whole.len()).step_by(997) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            fs::write(&path, &damaged).unwrap();
            assert!(found(&cache, &owner).len() >= if at < CHECKSUMS { 0 } else { 3 }, "{at}");
        }
        // Truncate to some lengths.
        for length in (0..whole.len()).step_by(9973) {
            fs::write(&path, &whole[..length]).unwrap();
            let there = found(&cache, &owner).len();
            assert_eq!(there as u64, (length as u64).saturating_sub(HEADER) / BLOCK, "{length}");
        }
        // A file under another's name, and a block in another's place.
        fs::write(path_of(&cache, &stranger, 0), &whole).unwrap();
        assert_eq!(found(&cache, &stranger), [0; 0]);
        let mut swapped = whole.clone();
        swapped.copy_within(HEADER as usize..(HEADER + BLOCK) as usize, (HEADER + BLOCK) as usize);
        swapped.copy_within(CHECKSUMS..CHECKSUMS + TAG, CHECKSUMS + TAG);
        fs::write(&path, &swapped).unwrap();
        assert_eq!(found(&cache, &owner), [0, 2, 3]);
        // The cache repairs itself.
        fs::write(&path, b"no such file").unwrap();
        cache.write(&owner, 1, &bytes(1));
        assert_eq!(found(&cache, &owner), [1]);
    }

    #[test]
    fn least_recently_used_files_are_evicted_first() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("mine"), vec![0; 1 << 20]).unwrap();
        let most = 8 * (BLOCK + HEADER);
        let cache = DiskCache::open(folder.path(), most).unwrap();
        let owners: Vec<ObjectVersion> =
            (0..16).map(|number| ObjectVersion::new("", "s3://b/a", &number.to_string(), LENGTH)).collect();
        let now = SystemTime::now();
        for (number, owner) in owners.iter().enumerate() {
            cache.write(owner, 0, &bytes(0));
            let file = File::options().write(true).open(path_of(&cache, owner, 0)).unwrap();
            file.set_modified(now - Duration::from_secs(3600 - 60 * number as u64)).unwrap();
        }
        // Using the oldest remaining file makes it the most recent.
        let first = owners.iter().position(|owner| found(&cache, owner) == [0]).unwrap();
        DiskCache::open(folder.path(), most / 2).unwrap();
        assert_eq!(found(&cache, &owners[first]), [0]);
        assert_eq!(found(&cache, &owners[first + 1]), [0; 0]);
        let kept = owners.iter().filter(|owner| found(&cache, owner) == [0]).count();
        assert!((2..=4).contains(&kept), "{kept}");
        assert!(folder.path().join("mine").exists());
    }

    #[test]
    fn an_impossible_folder_is_a_usage_error() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), b"").unwrap();
        let error = DiskCache::open(&folder.path().join("file/cache"), 1).unwrap_err();
        assert!(matches!(error, Error::Usage { .. }) && error.to_string().contains("--disk-cache"), "{error}");
    }

    #[test]
    fn unwritable_folders_cache_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let around = folder.path().join("around");
        let cache = DiskCache::open(&around.join("cache"), 1 << 30).unwrap();
        let owner = ObjectVersion::new("", "s3://b/a", "1", LENGTH);
        fs::remove_dir_all(&around).unwrap();
        fs::write(&around, "").unwrap();
        cache.write(&owner, 0, &bytes(0));
        fs::remove_file(&around).unwrap();
        cache.write(&owner, 0, &bytes(0));
        assert_eq!(found(&cache, &owner), [0; 0]);
        assert!(cache.folder.has_warned());
        // After a pause the folder is created again.
        cache.folder.end_pause();
        cache.write(&owner, 0, &bytes(0));
        assert_eq!(found(&cache, &owner), [0]);
    }

    #[test]
    fn folders_that_others_can_write_to_are_refused() {
        let folder = own_folder();
        let path = folder.path().join("cache");
        let refusal = |path: &Path| match DiskCache::open(path, 1 << 20) {
            Err(error @ Error::Usage { .. }) => error.to_string(),
            other => panic!("{other:?}"),
        };
        fs::create_dir(&path).unwrap();
        for mode in [0o770, 0o702, 0o777, 0o1777] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(refusal(&path).contains("others can write to it"), "{mode:o}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        DiskCache::open(&path, 1 << 20).unwrap();
        symlink(&path, folder.path().join("link")).unwrap();
        assert!(refusal(&folder.path().join("link")).contains("a symbolic link"));
        if geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(1), None).unwrap();
            assert!(refusal(&path).contains("belongs to the user 1"));
            std::os::unix::fs::chown(&path, Some(0), None).unwrap();
        }
        let key = path.join("key.tilefs");
        assert_eq!(fs::metadata(&key).unwrap().mode() & 0o777, 0o600);
        fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(refusal(&path).contains("key.tilefs"));
        fs::remove_file(&key).unwrap();
        symlink("/dev/zero", &key).unwrap();
        assert!(refusal(&path).contains("key.tilefs"));
    }

    #[test]
    fn planted_files_are_neither_followed_nor_believed() {
        let folder = own_folder();
        let (path, victim) = (folder.path().join("cache"), folder.path().join("victim"));
        let cache = DiskCache::open(&path, 1 << 30).unwrap();
        let owner = ObjectVersion::new("", "s3://b/a", "1", LENGTH);
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, path_of(&cache, &owner, 0)).unwrap();
        cache.write(&owner, 0, &bytes(0));
        assert_eq!((fs::read(&victim).unwrap(), found(&cache, &owner)), (b"precious".to_vec(), vec![]));
        // Blocks with checksums of another key.
        let other = DiskCache::open(&folder.path().join("other"), 1 << 30).unwrap();
        other.write(&owner, 3, &bytes(3));
        assert_eq!(found(&other, &owner), [3]);
        fs::remove_file(path_of(&cache, &owner, 0)).unwrap();
        fs::copy(path_of(&other, &owner, 0), path_of(&cache, &owner, 0)).unwrap();
        assert_eq!(found(&cache, &owner), [0; 0]);
    }

    /// Several processes use a folder that is repeatedly removed and recreated: every hit is right.
    #[test]
    fn a_shared_folder_may_be_removed_at_any_time() {
        let folder = own_folder();
        let path = folder.path().join("cache");
        let end = Instant::now() + Duration::from_millis(500);
        let hits = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for number in 0..3 {
                let (path, hits) = (&path, &hits);
                scope.spawn(move || {
                    while Instant::now() < end {
                        // If the folder is removed during opening, opening fails.
                        let Ok(cache) = DiskCache::open(path, 20 * BLOCK) else { continue };
                        for round in 0..20 {
                            let owner = ObjectVersion::new("", "s3://b/a", &(round % 3).to_string(), LENGTH);
                            cache.write(&owner, (number + round) % 71, &bytes((number + round) % 71));
                            hits.fetch_add(found(&cache, &owner).len(), Ordering::Relaxed);
                            cache.folder.end_pause();
                        }
                    }
                });
            }
            while Instant::now() < end {
                let _ = fs::remove_dir_all(&path);
                std::thread::sleep(Duration::from_millis(7));
            }
        });
        assert!(hits.into_inner() > 0, "nothing was found, so nothing was compared");
    }
}
