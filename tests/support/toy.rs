//! A tree without an array: files that are computed, slow, damaged or huge, and folders with many names.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::output::Output;
use tilefs_threads::cancellation;
use tilefs_vfs::{Entry, EntryKind, File, Folder, Node};

/// The modification time of everything in the tree, in milliseconds since the Unix epoch.
pub const MODIFIED_MS: u64 = 1_706_696_100_500;

/// The length of `big.u64`: much more than memory.
pub const BIG: u64 = 100 << 30;

/// The length of `memory.bin`, for measurements.
pub const MEMORY: u64 = 1 << 30;

/// The duration of each read of `slow.bin`.
pub const SLOW: Duration = Duration::from_millis(200);

/// The offset from which `damaged.bin` cannot be read.
pub const DAMAGED_FROM: u64 = 1 << 20;

/// The offset from which reads of `stuck.bin` do not end.
pub const STUCK_FROM: u64 = 1 << 20;

/// The number of names in `many/`.
pub const MANY: u64 = 100_000;

/// Counts of calls to the tree, for tests.
#[derive(Default)]
pub struct Counters {
    pub lengths: AtomicU64,
    pub prepared: AtomicU64,
    pub live_slices: AtomicU64,
    pub gate: Gate,
    /// Reads of `endless.bin` and `stuck.bin` that have begun and not ended.
    pub endless: AtomicU64,
}

/// A gate: reads of `gated.bin` wait until it is open.
#[derive(Default)]
pub struct Gate {
    /// Whether the gate is open, and the number of waiting reads.
    state: Mutex<(bool, usize)>,
    opened: Condvar,
}

impl Gate {
    pub fn open(&self) {
        self.state.lock().expect("no thread panics").0 = true;
        self.opened.notify_all();
    }

    pub fn waiting(&self) -> usize {
        self.state.lock().expect("no thread panics").1
    }

    fn pass(&self) {
        let mut state = self.state.lock().expect("no thread panics");
        state.1 += 1;
        let mut state = self.opened.wait_while(state, |state| !state.0).expect("no thread panics");
        state.1 -= 1;
    }
}

/// Returns the root folder.
pub fn root(counters: &Arc<Counters>) -> Arc<dyn Folder> {
    Arc::new(Root(Arc::clone(counters)))
}

struct Root(Arc<Counters>);

const FILES: [(&str, Kind); 9] = [
    ("hello.txt", Kind::Hello),
    ("empty.bin", Kind::Empty),
    ("big.u64", Kind::Big),
    ("memory.bin", Kind::Memory),
    ("slow.bin", Kind::Slow),
    ("decoded.bin", Kind::Decoded),
    ("damaged.bin", Kind::Damaged),
    ("panics.bin", Kind::Panics),
    ("lengthless.bin", Kind::Lengthless),
];

#[derive(Clone, Copy)]
enum Kind {
    Hello,
    Empty,
    Big,
    Memory,
    Slow,
    /// Reads wait until the gate is open.
    Gated,
    /// Reads end when they are cancelled.
    Endless,
    /// The same from [`STUCK_FROM`] on.
    Stuck,
    /// The first read of each MiB takes 2 ms, as if it had to be decoded; prefetching it counts as a read.
    Decoded,
    Damaged,
    Panics,
    Lengthless,
}

impl Folder for Root {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        if name == "many" {
            return Ok(Some(Node::Folder(Arc::new(Many(Arc::clone(&self.0))))));
        }
        if name == "slice" {
            return Ok(Some(Node::Folder(Arc::new(Slices(Arc::clone(&self.0))))));
        }
        if name == "unlistable" {
            return Ok(Some(Node::Folder(Arc::new(Unlistable(Arc::clone(&self.0))))));
        }
        if name == "unsupported" {
            return Err(Error::unsupported("format version 99").in_array("/data/toy"));
        }
        let listed = FILES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
        // Not listed, so that a reader of all listed files does not block.
        let unlisted = [("gated.bin", Kind::Gated), ("endless.bin", Kind::Endless), ("stuck.bin", Kind::Stuck)];
        let kind = listed.or_else(|| unlisted.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind));
        Ok(kind.map(|kind| Node::File(Arc::new(Computed { kind, counters: Arc::clone(&self.0) }))))
    }

    fn list(&self) -> Result<Vec<Entry>> {
        let files = FILES.iter().map(|(name, _)| entry(name, EntryKind::File));
        let folders = ["many", "slice"].map(|name| entry(name, EntryKind::Folder));
        // The last entry is not a valid name. It must not break the listing.
        Ok(files.chain(folders).chain([entry("not/a/name", EntryKind::File)]).collect())
    }

    fn modified(&self) -> SystemTime {
        modified()
    }

    fn extended_attributes(&self) -> Vec<(String, Vec<u8>)> {
        vec![("user.tiledb.kind".to_owned(), b"toy".to_vec()), ("user.tiledb.long".to_owned(), vec![b'x'; 5000])]
    }
}

fn entry(name: &str, kind: EntryKind) -> Entry {
    Entry { name: name.to_owned(), kind }
}

fn modified() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(MODIFIED_MS)
}

struct Computed {
    kind: Kind,
    counters: Arc<Counters>,
}

impl File for Computed {
    fn len(&self) -> Result<u64> {
        self.counters.lengths.fetch_add(1, Ordering::Relaxed);
        match self.kind {
            Kind::Hello => Ok(6),
            Kind::Empty => Ok(0),
            Kind::Big => Ok(BIG),
            Kind::Memory | Kind::Decoded => Ok(MEMORY),
            Kind::Slow | Kind::Gated | Kind::Endless | Kind::Stuck | Kind::Damaged | Kind::Panics => Ok(4 << 20),
            Kind::Lengthless => Err(Error::damaged("the offsets end early").in_file("a0.tdb")),
        }
    }

    fn open(&self) -> Result<Arc<dyn Content>> {
        if let Kind::Hello = self.kind {
            return Ok(Arc::new(b"hello\n".to_vec()));
        }
        Ok(Arc::new(Opened {
            kind: self.kind,
            length: self.len()?,
            decoded: (0..MEMORY >> 20).map(|_| AtomicU64::new(0)).collect(),
            counters: Arc::clone(&self.counters),
        }))
    }

    fn modified(&self) -> SystemTime {
        modified()
    }
}

struct Opened {
    kind: Kind,
    length: u64,
    /// For each MiB of `decoded.bin`, 1 if it is decoded.
    decoded: Vec<AtomicU64>,
    counters: Arc<Counters>,
}

impl Opened {
    fn decode(&self, offset: u64, length: u64) {
        for block in offset >> 20..(offset + length).div_ceil(1 << 20) {
            if self.decoded[block as usize].swap(1, Ordering::Relaxed) == 0 {
                let start = std::time::Instant::now();
                while start.elapsed() < Duration::from_millis(2) {
                    thread::sleep(Duration::from_micros(200));
                }
            }
        }
    }

    fn wait_for_cancellation(&self) -> Result<()> {
        self.counters.endless.fetch_add(1, Ordering::Relaxed);
        let mut checked = cancellation::check();
        while checked.is_ok() {
            thread::sleep(Duration::from_millis(5));
            checked = cancellation::check();
        }
        self.counters.endless.fetch_sub(1, Ordering::Relaxed);
        checked
    }
}

impl Content for Opened {
    fn len(&self) -> u64 {
        self.length
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let buf = match out {
            Output::Into(buf) => buf,
            Output::Ahead(length) => {
                self.counters.prepared.fetch_add(length, Ordering::Relaxed);
                if let Kind::Decoded = self.kind {
                    self.decode(offset, length);
                }
                return Ok(());
            }
        };
        match self.kind {
            Kind::Slow => thread::sleep(SLOW),
            Kind::Gated => self.counters.gate.pass(),
            Kind::Decoded => self.decode(offset, buf.len() as u64),
            Kind::Endless => return self.wait_for_cancellation(),
            Kind::Stuck if offset + buf.len() as u64 > STUCK_FROM => return self.wait_for_cancellation(),
            Kind::Damaged if offset + buf.len() as u64 > DAMAGED_FROM => {
                return Err(Error::damaged("the checksum does not match").at(77).in_file("a0.tdb").in_fragment("__1"));
            }
            Kind::Panics => panic!("this file always panics"),
            Kind::Memory => {
                buf.copy_from_slice(&MEMORY_PATTERN[offset as usize & 0xfff..][..buf.len()]);
                return Ok(());
            }
            _ => {}
        }
        fill(offset, buf);
        Ok(())
    }
}

/// A pattern of 1 MiB and a page. Its bytes depend only on the offset within a page.
static MEMORY_PATTERN: LazyLock<Vec<u8>> =
    LazyLock::new(|| (0..(1 << 20) + 4096).map(|place| (place % 4096 % 251) as u8).collect());

/// Fills `buf` with the bytes at `offset` of every computed file but `hello.txt` and `memory.bin`: little-endian u64,
/// each the square of its index.
pub fn fill(offset: u64, buf: &mut [u8]) {
    let mut rest = buf;
    let mut place = offset;
    while !rest.is_empty() {
        let word = (place / 8).wrapping_mul(place / 8).to_le_bytes();
        let from = (place % 8) as usize;
        let length = rest.len().min(8 - from);
        let (now, later) = rest.split_at_mut(length);
        now.copy_from_slice(&word[from..from + length]);
        rest = later;
        place += length as u64;
    }
}

/// A folder with more names than fit one reply.
struct Many(Arc<Counters>);

impl Folder for Many {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        let number = name.strip_prefix("file-").and_then(|number| number.parse::<u64>().ok());
        let file = || Computed { kind: Kind::Hello, counters: Arc::clone(&self.0) };
        Ok(number.filter(|&number| number < MANY).map(|_| Node::File(Arc::new(file()))))
    }

    fn list(&self) -> Result<Vec<Entry>> {
        Ok((0..MANY).map(|number| entry(&format!("file-{number}"), EntryKind::File)).collect())
    }

    fn modified(&self) -> SystemTime {
        modified()
    }
}

/// A folder that looks like that of an array and cannot be listed.
struct Unlistable(Arc<Counters>);

impl Folder for Unlistable {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        let file = || Computed { kind: Kind::Hello, counters: Arc::clone(&self.0) };
        Ok((name == "schema.json").then(|| Node::File(Arc::new(file()))))
    }

    fn list(&self) -> Result<Vec<Entry>> {
        Err(Error::damaged("the names end early").in_array("/data/toy"))
    }

    fn modified(&self) -> SystemTime {
        modified()
    }
}

/// A folder that lists nothing and in which every number is a name, as in folders of slices.
struct Slices(Arc<Counters>);

impl Folder for Slices {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        if name == "wrong" {
            return Err(Error::usage("a selection that does not parse"));
        }
        Ok(name.parse::<u64>().ok().map(|_| Node::Folder(Arc::new(Slice::new(&self.0)))))
    }

    fn list(&self) -> Result<Vec<Entry>> {
        Ok(Vec::new())
    }

    fn modified(&self) -> SystemTime {
        modified()
    }
}

/// A folder that counts its live instances.
struct Slice(Arc<Counters>);

impl Slice {
    fn new(counters: &Arc<Counters>) -> Self {
        counters.live_slices.fetch_add(1, Ordering::Relaxed);
        Slice(Arc::clone(counters))
    }
}

impl Drop for Slice {
    fn drop(&mut self) {
        self.0.live_slices.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Folder for Slice {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        let file = || Computed { kind: Kind::Hello, counters: Arc::clone(&self.0) };
        Ok((name == "value.txt").then(|| Node::File(Arc::new(file()))))
    }

    fn list(&self) -> Result<Vec<Entry>> {
        Ok(vec![entry("value.txt", EntryKind::File)])
    }

    fn modified(&self) -> SystemTime {
        modified()
    }
}
