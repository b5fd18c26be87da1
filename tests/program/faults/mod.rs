//! A disk that fails for a while: whatever operation fails, and however, what is read meanwhile is right or an error, and
//! what is read afterwards is right, by the same mount, server or Python object.
//!
//! The disk is a file system of this test (`support::faulty`), below the local storage and the kernel.

mod programs;
mod served;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use support::faulty::{Fault, Faulty, How, Operation};
use support::shown::{Files, files_of};
use support::skip::can_mount;
use support::stored::stored;
use tilefs_base::error::Result;
use tilefs_storage::simulated::FaultKind;
use tilefs_storage::{MemoryStorage, SimulatedStorage, StoreKey};
use tilefs_tree::{self as tree, TreeOptions};
use tilefs_vfs::Folder;

/// The time within which reads must succeed again after a fault, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

fn options() -> TreeOptions {
    let reading = tilefs_reader::ReaderOptions { threads: 1, cache_size: 4 << 20, ..Default::default() };
    TreeOptions { reading, ..TreeOptions::default() }
}

fn open(path: &Path) -> Result<Arc<dyn Folder>> {
    tree::open(path, &options())
}

/// Something that is stored where it can fail.
trait Failing {
    type Fault: std::fmt::Debug + Copy;

    /// Opens it with a storage that knows nothing of before.
    fn open(&self) -> Result<Arc<dyn Folder>>;

    /// Lets operations fail from now on: after `spared`, the next `count`.
    fn fail(&self, fault: Self::Fault, spared: usize, count: usize);

    /// Ends the fault. Returns how many operations failed.
    fn recover(&self) -> usize;
}

/// Fails unless what was read is right.
#[track_caller]
fn assert_right(read: &Files, right: &Files, when: &str) {
    if read == right {
        return;
    }
    let names = |shown: &Files| shown.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(read), names(right), "{when}");
    let (name, _) = read.iter().zip(right).find(|(a, b)| a != b).expect("something differs").0;
    panic!("{when}: other bytes in {name}");
}

/// Reads until there is no error: damage may be remembered for a moment.
#[track_caller]
fn read_in_the_end(root: &dyn Folder, when: &str) -> Files {
    let begin = Instant::now();
    loop {
        match files_of(root) {
            Ok(read) => return read,
            Err(error) => assert!(begin.elapsed() < PATIENCE, "{when}: {error}"),
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Reads a stored object while a fault lasts, and afterwards. Returns how many operations failed.
fn survives<F: Failing>(
    stored: &F,
    right: &Files,
    fault: F::Fault,
    (spared, count): (usize, usize),
    is_open_before: bool,
) -> usize {
    let when = format!("{fault:?} of {count} operations after {spared}, opened before: {is_open_before}");
    let before = is_open_before.then(|| stored.open().expect("nothing fails yet"));
    stored.fail(fault, spared, count);
    let opened = before.map_or_else(|| stored.open(), Ok);
    let during = opened.as_ref().map_or_else(|error| Err(error.clone()), |root| files_of(&**root));
    let failures = stored.recover();
    if let Ok(read) = &during {
        assert_right(read, right, &format!("{when}, during"));
    }
    if let Ok(root) = &opened {
        assert_right(&read_in_the_end(&**root, &when), right, &format!("{when}, afterwards"));
    }
    failures
}

/// Lets each operation fail, the later ones only in part: once, and from then on.
fn survives_everywhere<F: Failing>(stored: &F, name: &str, fault: F::Fault) {
    survives_counts(stored, name, fault, &[1, usize::MAX]);
}

/// Lets each operation fail, the later ones only in part, and so many of those that follow.
fn survives_counts<F: Failing>(stored: &F, name: &str, fault: F::Fault, counts: &[usize]) {
    let right = files_of(&*stored.open().unwrap()).unwrap();
    assert!(!right.is_empty(), "{name}");
    for &count in counts {
        for is_open_before in [false, true] {
            let mut spared = 0;
            while survives(stored, &right, fault, (spared, count), is_open_before) > 0 {
                spared += 1 + spared / 8;
            }
        }
    }
}

/// Arrays and groups of each kind.
const STORED: [&str; 5] =
    ["dense/metadata_consolidated", "dense/labels", "sparse/deletes", "sparse/consolidated", "groups/experiment"];

impl Failing for Faulty {
    type Fault = (Operation, How);

    fn open(&self) -> Result<Arc<dyn Folder>> {
        open(self.path())
    }

    fn fail(&self, (operation, how): (Operation, How), spared: usize, count: usize) {
        Faulty::fail(self, Fault { operation, how, spared, count });
    }

    fn recover(&self) -> usize {
        Faulty::recover(self)
    }
}

fn disks_survive(operations: &[Operation], ways: &[How]) {
    if !can_mount() {
        return;
    }
    for name in STORED {
        let faulty = Faulty::mount(&stored(name));
        for &operation in operations {
            ways.iter().for_each(|&how| survives_everywhere(&faulty, name, (operation, how)));
        }
    }
}

#[test]
fn a_name_that_is_gone_for_a_while_hides_nothing() {
    disks_survive(&Operation::ALL, &[How::With(libc::ENOENT)]);
}

#[test]
fn errors_of_a_disk_pass() {
    disks_survive(&Operation::ALL, &[libc::EIO, libc::ESTALE, libc::EINTR].map(How::With));
}

#[test]
fn short_reads_and_late_answers_change_nothing() {
    disks_survive(&[Operation::Read], &[How::HalfRead, How::Late]);
    disks_survive(&[Operation::ListFolder], &[How::Late]);
}

#[test]
fn files_that_were_short_are_read_once_they_are_whole() {
    if !can_mount() {
        return;
    }
    // Few, because the damage that is found is remembered for a second.
    for name in STORED {
        let faulty = Faulty::mount(&stored(name));
        let right = files_of(&*open(faulty.path()).unwrap()).unwrap();
        for how in [How::HalfThere, How::HalfTheSize] {
            for is_open_before in [false, true] {
                for spared in [0, 40] {
                    survives(&faulty, &right, (Operation::Read, how), (spared, usize::MAX), is_open_before);
                }
            }
        }
    }
}

#[test]
fn entries_that_a_listing_lacks_are_missed() {
    if !can_mount() {
        return;
    }
    // Other arrays have metadata or several schemas, of which only a listing tells. And if the listing of fragments
    // lacks one, that of commits must have it.
    let name = "dense/overlap";
    let faulty = Faulty::mount(&stored(name));
    for number in 0..6 {
        survives_counts(&faulty, name, (Operation::OpenFolder, How::Without(number)), &[1]);
    }
}

/// Objects of a remote storage that fails.
struct Remote {
    storage: Mutex<Arc<SimulatedStorage>>,
    memory: Arc<MemoryStorage>,
    requests: Arc<AtomicUsize>,
    spared: AtomicUsize,
}

impl Remote {
    fn of(name: &str) -> Self {
        let memory = Arc::new(MemoryStorage::load(&stored(name), &key()).unwrap());
        let storage = Mutex::new(Arc::new(SimulatedStorage::new(memory.clone(), Duration::ZERO)));
        Remote { storage, memory, requests: Arc::default(), spared: AtomicUsize::new(0) }
    }

    fn storage(&self) -> Arc<SimulatedStorage> {
        self.storage.lock().unwrap().clone()
    }
}

fn key() -> StoreKey {
    "/stored".into()
}

impl Failing for Remote {
    type Fault = FaultKind;

    fn open(&self) -> Result<Arc<dyn Folder>> {
        let storage = self.storage();
        tree::root(tree::open_stored_in(storage, &key(), &options())?, &options())
    }

    fn fail(&self, fault: FaultKind, spared: usize, count: usize) {
        self.requests.store(0, Ordering::Relaxed);
        self.spared.store(spared, Ordering::Relaxed);
        let requests = self.requests.clone();
        self.storage().fail_some(fault, spared, count, move |_| {
            requests.fetch_add(1, Ordering::Relaxed);
            true
        });
    }

    fn recover(&self) -> usize {
        self.storage().recover();
        *self.storage.lock().unwrap() = Arc::new(SimulatedStorage::new(self.memory.clone(), Duration::ZERO));
        self.requests.load(Ordering::Relaxed).saturating_sub(self.spared.load(Ordering::Relaxed))
    }
}

#[test]
fn requests_that_fail_for_a_while_hide_nothing() {
    for name in STORED {
        let remote = Remote::of(name);
        for fault in [FaultKind::Transient, FaultKind::Missing, FaultKind::CutShort] {
            survives_everywhere(&remote, name, fault);
        }
    }
}
