//! Stored bytes of objects, kept in a folder of this machine for later reads, also by other processes.
//!
//! An object is cut into segments of [`SEGMENT_BLOCKS`] blocks, each segment one file with a head, in which is whose it is
//! and a checksum for each block that is there, and room for all of its blocks, of which those that nobody read are holes.
//! A block is written before its checksum, and two processes that write the same one write the same bytes: whatever is torn,
//! lost or of another object does not have its checksum, and is as good as not there.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crc_fast::{CrcAlgorithm, Digest};
use sha2::{Digest as _, Sha256};

use crate::error::{Error, Result};

/// Bytes that are read and kept together.
pub const BLOCK: u64 = 64 << 10;

/// Blocks of a file.
pub const SEGMENT_BLOCKS: u64 = 64;

/// What a file begins with: the layout, whose it is, and the checksums. Blocks begin behind it.
const HEAD: u64 = 4096;
const MAGIC: &[u8; 8] = b"tilefs\x01\n";
const CHECKSUMS: usize = 64;

/// What the names of our files end in; no other file is ever removed.
const SUFFIX: &str = ".tilefs-cache";

/// The time of a file's last use is noted no more often.
const NOTED_EVERY: Duration = Duration::from_secs(60);

/// How long nothing is kept after the disk was full.
const PAUSE: Duration = Duration::from_secs(60);

/// What the folder holds is counted when so much was added, as a part of what it may hold; and how much is left then.
const COUNTED_EVERY: u64 = 16;
const LEFT: (u64, u64) = (7, 8);

/// A folder of stored bytes. Memory: a block for each read.
#[derive(Debug)]
pub struct DiskCache {
    folder: PathBuf,
    most: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Bytes that this process added since the folder was counted.
    added: u64,
    /// Nothing is kept before.
    paused_until: Option<Instant>,
    has_warned: bool,
}

/// Whose blocks: an object as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner([u8; 32]);

impl Owner {
    /// The object of this URI that has this tag and length.
    pub fn new(uri: &str, tag: &str, length: u64) -> Self {
        Owner(Sha256::digest(format!("{uri}\n{tag}\n{length}")).into())
    }
}

impl DiskCache {
    /// Makes the folder, for its owner alone, where there is none, and brings it down to `most` bytes.
    ///
    /// # Errors
    /// [`Error::Usage`] where it can be neither made nor looked into.
    pub fn open(folder: &Path, most: u64) -> Result<Self> {
        let failed = |error: io::Error| Error::usage(format!("--disk-cache {}: {error}", folder.display()));
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        fs::read_dir(folder).map_err(failed)?;
        let state = Mutex::new(State { added: 0, paused_until: None, has_warned: false });
        let cache = DiskCache { folder: folder.to_owned(), most, state };
        cache.make_room();
        Ok(cache)
    }

    /// Gives those of these blocks of an object that are there to `take`, with their numbers; the numbers of the others.
    /// `length` is that of the object.
    pub fn read(&self, owner: &Owner, length: u64, blocks: &[u64], mut take: impl FnMut(u64, &[u8])) -> Vec<u64> {
        let mut missing = Vec::new();
        let mut room = vec![0; BLOCK as usize];
        for group in blocks.chunk_by(|a, b| a / SEGMENT_BLOCKS == b / SEGMENT_BLOCKS) {
            let segment = group[0] / SEGMENT_BLOCKS;
            let Some((file, head)) = self.open_segment(owner, segment) else {
                missing.extend_from_slice(group);
                continue;
            };
            for &block in group {
                let bytes = &mut room[..block_length(block, length)];
                let place = HEAD + block % SEGMENT_BLOCKS * BLOCK;
                let is_there = checksum_of(&head, block) != 0
                    && file.read_exact_at(bytes, place).is_ok()
                    && checksum_of(&head, block) == checksum(owner, block, bytes);
                match is_there {
                    true => take(block, bytes),
                    false => missing.push(block),
                }
            }
        }
        missing
    }

    /// Keeps a block of an object. Where the disk is full that is a warning, and nothing is kept for a while.
    pub fn write(&self, owner: &Owner, block: u64, bytes: &[u8]) {
        let now = Instant::now();
        if self.lock().paused_until.is_some_and(|end| now < end) {
            return;
        }
        match self.try_write(owner, block, bytes) {
            Ok(()) => {
                let mut state = self.lock();
                state.added += bytes.len() as u64;
                let is_due = state.added > self.most / COUNTED_EVERY;
                drop(state);
                if is_due {
                    self.make_room();
                }
            }
            Err(error) => {
                let mut state = self.lock();
                state.paused_until = Some(now + PAUSE);
                if !std::mem::replace(&mut state.has_warned, true) {
                    log::warn!("the disk cache {} takes nothing more: {error}", self.folder.display());
                }
            }
        }
    }

    fn try_write(&self, owner: &Owner, block: u64, bytes: &[u8]) -> io::Result<()> {
        let segment = block / SEGMENT_BLOCKS;
        let path = self.path(owner, segment);
        let file = File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        let mut head = [0; CHECKSUMS];
        if file.read_exact_at(&mut head, 0).is_err() || head != head_of(owner, segment) {
            // New, or no file of this layout.
            file.set_len(0)?;
            file.set_len(HEAD)?;
            file.write_all_at(&head_of(owner, segment), 0)?;
        }
        let number = block % SEGMENT_BLOCKS;
        file.write_all_at(bytes, HEAD + number * BLOCK)?;
        file.write_all_at(&checksum(owner, block, bytes).to_le_bytes(), CHECKSUMS as u64 + 8 * number)
    }

    /// The file of a segment and its head, if it is there and is that segment's.
    fn open_segment(&self, owner: &Owner, segment: u64) -> Option<(File, [u8; HEAD as usize])> {
        let file = File::options().read(true).write(true).open(self.path(owner, segment)).ok()?;
        let mut head = [0; HEAD as usize];
        file.read_exact_at(&mut head, 0).ok()?;
        if head[..CHECKSUMS] != head_of(owner, segment) {
            return None;
        }
        let used = file.metadata().and_then(|metadata| metadata.modified()).ok()?;
        if used.elapsed().is_ok_and(|since| since > NOTED_EVERY) {
            // Else it only seems older than it is.
            let _ = file.set_modified(SystemTime::now());
        }
        Some((file, head))
    }

    fn path(&self, owner: &Owner, segment: u64) -> PathBuf {
        let name: String = owner.0[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(format!("{name}-{segment}{SUFFIX}"))
    }

    /// Removes what was not used for the longest time, where there is more than there may be. Others may do so at the same
    /// time, and read what is removed.
    fn make_room(&self) {
        self.lock().added = 0;
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
            .flatten()
            .filter(|entry| entry.file_name().as_encoded_bytes().ends_with(SUFFIX.as_bytes()))
            .filter_map(|entry| {
                let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
                Some((metadata.modified().ok()?, 512 * metadata.blocks(), entry.path()))
            })
            .collect();
        let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
        if total <= self.most {
            return;
        }
        files.sort_unstable();
        for (_, size, path) in files {
            if total <= self.most / LEFT.1 * LEFT.0 {
                break;
            }
            let _ = fs::remove_file(path);
            total -= size;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes of a block of an object of `length` bytes.
pub fn block_length(block: u64, length: u64) -> usize {
    length.saturating_sub(block.saturating_mul(BLOCK)).min(BLOCK) as usize
}

/// What a file begins with before the checksums.
fn head_of(owner: &Owner, segment: u64) -> [u8; CHECKSUMS] {
    let mut head = [0; CHECKSUMS];
    head[..8].copy_from_slice(MAGIC);
    head[8..40].copy_from_slice(&owner.0);
    head[40..48].copy_from_slice(&segment.to_le_bytes());
    head
}

/// The checksum that a head has for a block; 0 where the block is not there.
fn checksum_of(head: &[u8; HEAD as usize], block: u64) -> u64 {
    let start = CHECKSUMS + 8 * (block % SEGMENT_BLOCKS) as usize;
    head[start..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Of a block, of whose it is and where: never 0.
fn checksum(owner: &Owner, block: u64, bytes: &[u8]) -> u64 {
    let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
    digest.update(&owner.0);
    digest.update(&block.to_le_bytes());
    digest.update(bytes);
    digest.finalize().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: u64 = 70 * BLOCK + 5;

    fn bytes(block: u64) -> Vec<u8> {
        (0..block_length(block, LENGTH)).map(|byte| (byte as u64 * 7 + block) as u8).collect()
    }

    /// The blocks that are there, each checked for its bytes.
    fn found(cache: &DiskCache, owner: &Owner) -> Vec<u64> {
        let blocks: Vec<u64> = (0..71).collect();
        let mut found = Vec::new();
        let missing = cache.read(owner, LENGTH, &blocks, |block, got| {
            assert!(got == bytes(block), "{block}");
            found.push(block);
        });
        assert_eq!(missing, blocks.into_iter().filter(|block| !found.contains(block)).collect::<Vec<_>>());
        found
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    #[test]
    fn what_was_kept_is_there_for_others_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/cache");
        let cache = DiskCache::open(&path, 1 << 30).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        let owner = Owner::new("s3://b/a", "tag", LENGTH);
        for block in [0, 3, 63, 64, 70] {
            cache.write(&owner, block, &bytes(block));
        }
        let other = DiskCache::open(&path, 1 << 30).unwrap();
        assert_eq!(found(&other, &owner), [0, 3, 63, 64, 70]);
        for stranger in [Owner::new("s3://b/a", "new", LENGTH), Owner::new("s3://b/b", "tag", LENGTH)] {
            assert_eq!(found(&other, &stranger), [0; 0]);
        }
        assert_eq!(files(&path).len(), 2);
        assert!(files(&path).iter().all(|file| fs::metadata(file).unwrap().mode() & 0o777 == 0o600));
    }

    #[test]
    fn what_is_torn_or_of_another_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache::open(folder.path(), 1 << 30).unwrap();
        let (owner, stranger) = (Owner::new("s3://b/a", "1", LENGTH), Owner::new("s3://b/a", "2", LENGTH));
        (0..4).for_each(|block| cache.write(&owner, block, &bytes(block)));
        let path = cache.path(&owner, 0);
        let whole = fs::read(&path).unwrap();
        // Each of some bytes of the file wrong.
        for at in (0..whole.len()).step_by(997) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            fs::write(&path, &damaged).unwrap();
            assert!(found(&cache, &owner).len() >= if at < CHECKSUMS { 0 } else { 3 }, "{at}");
        }
        // Each of some lengths.
        for length in (0..whole.len()).step_by(9973) {
            fs::write(&path, &whole[..length]).unwrap();
            let there = found(&cache, &owner).len();
            assert_eq!(there as u64, (length as u64).saturating_sub(HEAD) / BLOCK, "{length}");
        }
        // The file of one under the name of another, and a block at the place of another.
        fs::write(cache.path(&stranger, 0), &whole).unwrap();
        assert_eq!(found(&cache, &stranger), [0; 0]);
        let mut swapped = whole.clone();
        swapped.copy_within(HEAD as usize..(HEAD + BLOCK) as usize, (HEAD + BLOCK) as usize);
        swapped.copy_within(CHECKSUMS..CHECKSUMS + 8, CHECKSUMS + 8);
        fs::write(&path, &swapped).unwrap();
        assert_eq!(found(&cache, &owner), [0, 2, 3]);
        // And it mends.
        fs::write(&path, b"no such file").unwrap();
        cache.write(&owner, 1, &bytes(1));
        assert_eq!(found(&cache, &owner), [1]);
    }

    #[test]
    fn the_longest_unused_go_first_and_nothing_else_goes() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("mine"), vec![0; 1 << 20]).unwrap();
        let most = 8 * (BLOCK + HEAD);
        let cache = DiskCache::open(folder.path(), most).unwrap();
        let owners: Vec<Owner> = (0..16).map(|number| Owner::new("s3://b/a", &number.to_string(), LENGTH)).collect();
        let now = SystemTime::now();
        for (number, owner) in owners.iter().enumerate() {
            cache.write(owner, 0, &bytes(0));
            let file = File::options().write(true).open(cache.path(owner, 0)).unwrap();
            file.set_modified(now - Duration::from_secs(3600 - 60 * number as u64)).unwrap();
        }
        // The oldest that is left is used, and so no longer the oldest.
        let first = owners.iter().position(|owner| found(&cache, owner) == [0]).unwrap();
        DiskCache::open(folder.path(), most / 2).unwrap();
        assert_eq!(found(&cache, &owners[first]), [0]);
        assert_eq!(found(&cache, &owners[first + 1]), [0; 0]);
        let kept = owners.iter().filter(|owner| found(&cache, owner) == [0]).count();
        assert!((2..=4).contains(&kept), "{kept}");
        assert!(folder.path().join("mine").exists());
    }

    #[test]
    fn a_folder_that_cannot_be_is_wrong_usage() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), b"").unwrap();
        let error = DiskCache::open(&folder.path().join("file/cache"), 1).unwrap_err();
        assert!(matches!(error, Error::Usage { .. }) && error.to_string().contains("--disk-cache"), "{error}");
    }

    #[test]
    fn where_nothing_can_be_written_nothing_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache::open(&folder.path().join("cache"), 1 << 30).unwrap();
        let owner = Owner::new("s3://b/a", "1", LENGTH);
        fs::remove_dir(folder.path().join("cache")).unwrap();
        cache.write(&owner, 0, &bytes(0));
        fs::create_dir(folder.path().join("cache")).unwrap();
        cache.write(&owner, 0, &bytes(0));
        assert_eq!(found(&cache, &owner), [0; 0]);
        assert!(cache.lock().has_warned);
    }
}
