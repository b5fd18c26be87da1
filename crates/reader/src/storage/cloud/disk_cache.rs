//! Stored bytes of objects, kept in a folder of this machine for later reads, also by other processes.
//!
//! An object is cut into segments of [`SEGMENT_BLOCKS`] blocks. Each segment is one file with a head, which says whose it
//! is and has a checksum for each block that is there, and room for all of its blocks; those that nobody read are holes.
//! A block is written before its checksum, and two processes that write the same one write the same bytes: whatever is
//! torn, lost, forged or of another object does not have its checksum, and is as good as not there.
//!
//! Whatever happens to the folder makes reads slower, and never fails one.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use sha2::{Digest as _, Sha256};
use tilefs_format::error::{Error, Result};

use super::cache_folder::{CacheFolder, Closed, SUFFIX, TAG};

/// Bytes that are read and kept together.
pub const BLOCK: u64 = 64 << 10;

/// Blocks of a file.
pub const SEGMENT_BLOCKS: u64 = 64;

/// What a file begins with: the layout, whose it is, and the checksums. Blocks begin behind it.
const HEAD: u64 = 4096;
const MAGIC: &[u8; 8] = b"tilefs\x02\n";
const CHECKSUMS: usize = 64;

/// The time of a file's last use is noted no more often.
const NOTED_EVERY: Duration = Duration::from_secs(60);

/// How long nothing is kept after the disk was full, or the folder gone.
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
    /// `None` where it could not be entered, or was removed.
    entered: Option<Arc<CacheFolder>>,
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
    /// The object of this URI that has this tag and length, where requests go to this endpoint: two stores may have
    /// buckets of one name.
    pub fn new(endpoint: &str, uri: &str, tag: &str, length: u64) -> Self {
        Owner(Sha256::digest(format!("{endpoint}\n{uri}\n{tag}\n{length}")).into())
    }
}

impl DiskCache {
    /// Makes the folder, for its owner alone, where there is none, and brings it down to `most` bytes. Where the disk is
    /// full that is a warning.
    ///
    /// # Errors
    /// [`Error::Usage`] where it can be neither made nor looked into, or where others could put there what is read.
    pub fn open(folder: &Path, most: u64) -> Result<Self> {
        let failed = |reason: String| Error::usage(format!("--disk-cache {}: {reason}", folder.display()));
        let (entered, full) = match CacheFolder::enter(folder) {
            Ok(entered) => (Some(Arc::new(entered)), None),
            Err(Closed::Refused(reason)) => return Err(failed(reason)),
            Err(Closed::Failed(error)) if is_full(&error) => (None, Some(error)),
            Err(Closed::Failed(error)) => return Err(failed(error.to_string())),
        };
        let state = Mutex::new(State { entered, added: 0, paused_until: None, has_warned: false });
        let cache = DiskCache { folder: folder.to_owned(), most, state };
        full.iter().for_each(|error| cache.pause(error));
        cache.make_room();
        Ok(cache)
    }

    /// Gives those of these blocks of an object that are there to `take`, with their numbers; the numbers of the others.
    /// `length` is that of the object.
    pub fn read(&self, owner: &Owner, length: u64, blocks: &[u64], mut take: impl FnMut(u64, &[u8])) -> Vec<u64> {
        let mut missing = Vec::new();
        let Some(entered) = self.entered() else { return blocks.to_vec() };
        let (seal, mut room) = (entered.seal(&owner.0), vec![0; BLOCK as usize]);
        for group in blocks.chunk_by(|a, b| a / SEGMENT_BLOCKS == b / SEGMENT_BLOCKS) {
            let segment = group[0] / SEGMENT_BLOCKS;
            let Some((file, head)) = open_segment(&entered, owner, segment) else {
                missing.extend_from_slice(group);
                continue;
            };
            for &block in group {
                let bytes = &mut room[..block_length(block, length)];
                let place = HEAD + block % SEGMENT_BLOCKS * BLOCK;
                let is_there = checksum_of(&head, block) != [0; TAG]
                    && file.read_exact_at(bytes, place).is_ok()
                    && seal.tag(block, bytes) == Some(checksum_of(&head, block));
                match is_there {
                    true => take(block, bytes),
                    false => missing.push(block),
                }
            }
        }
        missing
    }

    /// Keeps a block of an object. Where the disk is full or the folder gone that is a warning, once, and nothing is kept
    /// for a while.
    pub fn write(&self, owner: &Owner, block: u64, bytes: &[u8]) {
        if self.lock().paused_until.is_some_and(|end| Instant::now() < end) {
            return;
        }
        match self.enter_again().and_then(|entered| try_write(&entered, owner, block, bytes)) {
            Ok(()) => {
                let mut state = self.lock();
                state.added += bytes.len() as u64;
                let is_due = state.added > self.most / COUNTED_EVERY;
                drop(state);
                if is_due {
                    self.make_room();
                }
            }
            Err(error) => self.pause(&error),
        }
    }

    fn pause(&self, error: &io::Error) {
        let mut state = self.lock();
        state.paused_until = Some(Instant::now() + PAUSE);
        if !std::mem::replace(&mut state.has_warned, true) {
            log::warn!("the disk cache {} takes nothing for now: {error}", self.folder.display());
        }
    }

    fn entered(&self) -> Option<Arc<CacheFolder>> {
        self.lock().entered.clone()
    }

    /// The folder; the one that has its path now where the one that was entered is gone.
    fn enter_again(&self) -> io::Result<Arc<CacheFolder>> {
        if let Some(entered) = self.entered().filter(|entered| !entered.is_gone()) {
            return Ok(entered);
        }
        self.lock().entered = None;
        let entered = CacheFolder::enter(&self.folder).map(Arc::new).map_err(|closed| match closed {
            Closed::Refused(reason) => io::Error::other(reason),
            Closed::Failed(error) => error,
        })?;
        self.lock().entered = Some(entered.clone());
        Ok(entered)
    }

    /// Removes what was not used for the longest time, where there is more than there may be. Others may do so at the same
    /// time, and read what is removed.
    fn make_room(&self) {
        self.lock().added = 0;
        let Some(entered) = self.entered() else { return };
        let Ok(mut files) = entered.files() else { return };
        let mut total: u64 = files.iter().map(|file| file.size).sum();
        if total <= self.most {
            return;
        }
        files.sort_unstable_by_key(|file| file.used);
        for file in files {
            if total <= self.most / LEFT.1 * LEFT.0 {
                break;
            }
            entered.remove(&file.name);
            total -= file.size;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EROFS))
}

fn try_write(entered: &CacheFolder, owner: &Owner, block: u64, bytes: &[u8]) -> io::Result<()> {
    let segment = block / SEGMENT_BLOCKS;
    let file = entered.open_or_make(&name_of(owner, segment))?;
    let mut head = [0; CHECKSUMS];
    if file.read_exact_at(&mut head, 0).is_err() || head != head_of(owner, segment) {
        // New, or no file of this layout.
        file.set_len(0)?;
        file.set_len(HEAD)?;
        file.write_all_at(&head_of(owner, segment), 0)?;
    }
    let tag = entered.seal(&owner.0).tag(block, bytes).ok_or_else(|| io::Error::other("a block has no checksum"))?;
    let number = block % SEGMENT_BLOCKS;
    file.write_all_at(bytes, HEAD + number * BLOCK)?;
    file.write_all_at(&tag, CHECKSUMS as u64 + TAG as u64 * number)
}

/// The file of a segment and its head, if it is there and is that segment's.
fn open_segment(entered: &CacheFolder, owner: &Owner, segment: u64) -> Option<(File, [u8; HEAD as usize])> {
    let file = entered.open(&name_of(owner, segment)).ok()?;
    let mut head = [0; HEAD as usize];
    file.read_exact_at(&mut head, 0).ok()?;
    if head[..CHECKSUMS] != head_of(owner, segment) {
        return None;
    }
    let used = file.metadata().and_then(|metadata| metadata.modified()).ok()?;
    // Where the clock was set back, files are of the future.
    if used.elapsed().map_or(true, |since| since > NOTED_EVERY) {
        // Else it only seems older than it is.
        let _ = file.set_modified(SystemTime::now());
    }
    Some((file, head))
}

/// The name of the file of a segment.
fn name_of(owner: &Owner, segment: u64) -> String {
    let name: String = owner.0[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{name}-{segment}{SUFFIX}")
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

/// The checksum that a head has for a block; zeros where the block is not there.
fn checksum_of(head: &[u8; HEAD as usize], block: u64) -> [u8; TAG] {
    let start = CHECKSUMS + TAG * (block % SEGMENT_BLOCKS) as usize;
    head[start..].first_chunk().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::geteuid;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

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

    /// The files of the cache, and its key.
    fn files(folder: &Path) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    fn path_of(cache: &DiskCache, owner: &Owner, segment: u64) -> PathBuf {
        cache.folder.join(name_of(owner, segment))
    }

    /// A folder of this user alone.
    fn own_folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        folder
    }

    #[test]
    fn what_was_kept_is_there_for_others_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/cache");
        let cache = DiskCache::open(&path, 1 << 30).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        let owner = Owner::new("", "s3://b/a", "tag", LENGTH);
        for block in [0, 3, 63, 64, 70] {
            cache.write(&owner, block, &bytes(block));
        }
        let other = DiskCache::open(&path, 1 << 30).unwrap();
        assert_eq!(found(&other, &owner), [0, 3, 63, 64, 70]);
        let strangers = [("", "s3://b/a", "new"), ("", "s3://b/b", "tag"), ("http://other", "s3://b/a", "tag")];
        for (endpoint, uri, tag) in strangers {
            let stranger = Owner::new(endpoint, uri, tag, LENGTH);
            assert_eq!(found(&other, &stranger), [0; 0]);
        }
        assert_eq!(files(&path).len(), 3);
        assert!(files(&path).iter().all(|file| fs::metadata(file).unwrap().mode() & 0o777 == 0o600));
    }

    #[test]
    fn what_is_torn_or_of_another_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache::open(folder.path(), 1 << 30).unwrap();
        let (owner, stranger) = (Owner::new("", "s3://b/a", "1", LENGTH), Owner::new("", "s3://b/a", "2", LENGTH));
        (0..4).for_each(|block| cache.write(&owner, block, &bytes(block)));
        let path = path_of(&cache, &owner, 0);
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
        fs::write(path_of(&cache, &stranger, 0), &whole).unwrap();
        assert_eq!(found(&cache, &stranger), [0; 0]);
        let mut swapped = whole.clone();
        swapped.copy_within(HEAD as usize..(HEAD + BLOCK) as usize, (HEAD + BLOCK) as usize);
        swapped.copy_within(CHECKSUMS..CHECKSUMS + TAG, CHECKSUMS + TAG);
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
        let owners: Vec<Owner> =
            (0..16).map(|number| Owner::new("", "s3://b/a", &number.to_string(), LENGTH)).collect();
        let now = SystemTime::now();
        for (number, owner) in owners.iter().enumerate() {
            cache.write(owner, 0, &bytes(0));
            let file = File::options().write(true).open(path_of(&cache, owner, 0)).unwrap();
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
        let around = folder.path().join("around");
        let cache = DiskCache::open(&around.join("cache"), 1 << 30).unwrap();
        let owner = Owner::new("", "s3://b/a", "1", LENGTH);
        fs::remove_dir_all(&around).unwrap();
        fs::write(&around, "").unwrap();
        cache.write(&owner, 0, &bytes(0));
        fs::remove_file(&around).unwrap();
        cache.write(&owner, 0, &bytes(0));
        assert_eq!(found(&cache, &owner), [0; 0]);
        assert!(cache.lock().has_warned);
        // A while later it is made again.
        cache.lock().paused_until = None;
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
        let owner = Owner::new("", "s3://b/a", "1", LENGTH);
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, path_of(&cache, &owner, 0)).unwrap();
        cache.write(&owner, 0, &bytes(0));
        assert_eq!((fs::read(&victim).unwrap(), found(&cache, &owner)), (b"precious".to_vec(), vec![]));
        // Blocks with the checksums of somebody who has another key.
        let other = DiskCache::open(&folder.path().join("other"), 1 << 30).unwrap();
        other.write(&owner, 3, &bytes(3));
        assert_eq!(found(&other, &owner), [3]);
        fs::remove_file(path_of(&cache, &owner, 0)).unwrap();
        fs::copy(path_of(&other, &owner, 0), path_of(&cache, &owner, 0)).unwrap();
        assert_eq!(found(&cache, &owner), [0; 0]);
    }

    /// Several that use one folder, which is removed and made again all the time: what is found is right.
    #[test]
    fn a_shared_folder_may_be_removed_at_any_time() {
        let folder = own_folder();
        let path = folder.path().join("cache");
        let end = Instant::now() + Duration::from_millis(500);
        std::thread::scope(|scope| {
            for number in 0..3 {
                let path = &path;
                scope.spawn(move || {
                    while Instant::now() < end {
                        // Where the folder is removed at the same moment that is an error, of the start.
                        let Ok(cache) = DiskCache::open(path, 20 * BLOCK) else { continue };
                        for round in 0..20 {
                            let owner = Owner::new("", "s3://b/a", &(round % 3).to_string(), LENGTH);
                            cache.write(&owner, (number + round) % 71, &bytes((number + round) % 71));
                            found(&cache, &owner);
                            cache.lock().paused_until = None;
                        }
                    }
                });
            }
            while Instant::now() < end {
                let _ = fs::remove_dir_all(&path);
                std::thread::sleep(Duration::from_millis(7));
            }
        });
    }
}
