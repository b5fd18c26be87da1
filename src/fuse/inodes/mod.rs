//! The inode table: maps inode numbers to names for as long as the kernel remembers them.
//!
//! A number is a hash of the path, so that it is the same in every mount of an array, and programs that compare numbers
//! do not suspect hard links or copies. The kernel counts its references; when it forgets the last one, the inode is
//! dropped.
//!
//! The kernel remembers names for as long as it has memory, and a slice with all its files takes more memory than a
//! name. So an inode holds only a name and attributes. Its node lives while its folder, an open file or [`RecentNodes`]
//! holds it. After that it is looked up in its folder again on demand.
//!
//! When the tree is refreshed, each folder keeps its number and is looked up again on demand. A file that may have
//! changed becomes outdated: processes that have it open keep it and its cached pages, and its name gets a new number,
//! as if another file had replaced it.
//!
//! File handles hold a number and a *handle generation*, and outlive what the kernel remembers. So forgotten names are
//! kept for a while ([`ForgottenNames`]), and are looked up again when the kernel asks for their numbers. A refresh gives
//! files that may have changed another handle generation: a handle never means another file than it was made for.

use std::collections::{HashMap, HashSet, VecDeque};
use std::iter;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::SystemTime;

use tilefs_format::error::Result;

use super::forgotten::{ForgottenName, ForgottenNames};
use super::recent::RecentNodes;
use tilefs_tree::{Changed, EntryKind, File, Folder, Node, Refreshed};

/// Approximate limit for the memory of names that the kernel remembers. The kernel keeps names while it has memory,
/// which is more than ours, so beyond this limit we make it forget the oldest.
const MOST_BYTES: usize = 12 << 20;

/// Approximate bytes of an inode without its name, including the remains of its node.
const INODE: usize = 450;

/// The longest path, in names, to a number that the kernel has forgotten; longer paths do not exist.
const MAX_DEPTH: usize = 256;

/// The number of the root, fixed by the protocol.
pub const ROOT: u64 = 1;

/// A name that the kernel knows by its number. Memory: about 250 bytes and the name, and the remains of a dropped node,
/// under 200 bytes.
pub struct Inode {
    pub number: u64,
    /// The folder it was found in; `None` for the root.
    parent: Option<Arc<Inode>>,
    /// Its name there; empty for the root.
    name: Box<str>,
    pub kind: EntryKind,
    /// With the number, identifies a file for file handles; 0 for a folder, which stays the same folder.
    pub handle_generation: u64,
    size: AtomicU64,
    /// Identifies the stored object it was made from: see [`Folder::source`].
    source: AtomicU64,
    /// Whether its name may lead to another file now. Never set for folders.
    is_outdated: AtomicBool,
    last_lookup: Mutex<LookupState>,
}

/// The state of an inode at its last lookup.
struct LookupState {
    node: WeakNode,
    /// The time of the last commit.
    modified: SystemTime,
    /// Number of refreshes of the tree until then.
    generation: u64,
}

impl LookupState {
    fn new(node: &Node, generation: u64) -> Self {
        let modified = match node {
            Node::Folder(folder) => folder.modified(),
            Node::File(file) => file.modified(),
        };
        LookupState { node: WeakNode::of(node), modified, generation }
    }
}

/// A weak reference to a node.
enum WeakNode {
    Folder(Weak<dyn Folder>),
    File(Weak<dyn File>),
}

impl WeakNode {
    fn of(node: &Node) -> Self {
        match node {
            Node::Folder(folder) => WeakNode::Folder(Arc::downgrade(folder)),
            Node::File(file) => WeakNode::File(Arc::downgrade(file)),
        }
    }

    fn upgrade(&self) -> Option<Node> {
        match self {
            WeakNode::Folder(folder) => folder.upgrade().map(Node::Folder),
            WeakNode::File(file) => file.upgrade().map(Node::File),
        }
    }
}

impl Inode {
    fn new(number: u64, parent: Option<Arc<Inode>>, name: &str, node: &Node, size: u64, changes: &ChangeTimes) -> Self {
        let source = source_of(node, parent.as_deref());
        let (kind, generation) = (node.kind(), changes.latest);
        Inode {
            number,
            parent,
            name: name.into(),
            kind,
            handle_generation: if kind == EntryKind::File { changes.last_change_of(source) } else { 0 },
            size: AtomicU64::new(size),
            source: AtomicU64::new(source),
            is_outdated: AtomicBool::new(false),
            last_lookup: Mutex::new(LookupState::new(node, generation)),
        }
    }

    /// Returns the time of the last commit as of the lookup.
    pub fn modified(&self) -> SystemTime {
        self.last_lookup().modified
    }

    fn source(&self) -> u64 {
        self.source.load(Ordering::Relaxed)
    }

    fn is_outdated(&self) -> bool {
        self.is_outdated.load(Ordering::Acquire)
    }

    /// Updates the inode after another lookup.
    fn renew(&self, node: &Node, generation: u64) {
        self.source.store(source_of(node, self.parent.as_deref()), Ordering::Relaxed);
        *self.last_lookup() = LookupState::new(node, generation);
    }

    /// Returns the exact length of a file in bytes; 0 for a folder.
    pub fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    /// Corrects the length; returns whether it changed.
    pub fn resize(&self, size: u64) -> bool {
        self.size.swap(size, Ordering::Relaxed) != size
    }

    /// Returns the number of the parent folder; the root is its own parent.
    pub fn parent(&self) -> u64 {
        self.parent.as_ref().map_or(self.number, |parent| parent.number)
    }

    /// Returns the folder that it was found in, and its name there; `None` for the root.
    pub fn place(&self) -> Option<(&Arc<Inode>, &str)> {
        Some((self.parent.as_ref()?, &*self.name))
    }

    /// Returns the path from the root, for messages.
    pub fn path(&self) -> String {
        let upwards = iter::successors(Some(self), |inode| inode.parent.as_deref());
        let mut names: Vec<&str> = upwards.map(|inode| &*inode.name).collect();
        // The root has no name.
        names.pop();
        names.reverse();
        names.join("/")
    }

    /// Returns the numbers of its ancestors, innermost first.
    fn folders(&self) -> impl Iterator<Item = u64> {
        iter::successors(self.parent.as_deref(), |inode| inode.parent.as_deref()).map(|inode| inode.number)
    }

    /// Returns whether a name leads to this inode.
    fn is(&self, parent: u64, name: &str) -> bool {
        self.parent() == parent && *self.name == *name && !self.is_outdated()
    }

    /// Returns its approximate memory in bytes.
    fn memory(&self) -> usize {
        INODE + self.name.len()
    }

    fn last_lookup(&self) -> MutexGuard<'_, LookupState> {
        self.last_lookup.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether this is a folder looked up before the given generation. Files do not change.
    fn is_stale(&self, generation: u64) -> bool {
        self.kind == EntryKind::Folder && self.last_lookup().generation != generation
    }
}

/// Returns the identifier of the stored object that a node in a folder is made from.
fn source_of(node: &Node, folder: Option<&Inode>) -> u64 {
    let own = match node {
        Node::Folder(folder) => folder.source(),
        Node::File(_) => None,
    };
    own.unwrap_or_else(|| folder.map_or(0, Inode::source))
}

/// All inodes that the kernel remembers, and the root.
pub struct Inodes {
    root: Mutex<Node>,
    /// Number of refreshes of the tree.
    generation: AtomicU64,
    table: Mutex<Table>,
    recent: RecentNodes,
    forgotten: ForgottenNames,
    hash: Hash,
}

#[derive(Default)]
struct Table {
    changes: ChangeTimes,
    inodes: HashMap<u64, InodeEntry>,
    /// Approximate memory of the inodes in bytes.
    bytes: usize,
    /// Numbers in the order in which they were assigned; some of them are gone.
    order: VecDeque<u64>,
}

/// The refreshes at which stored data changed. Memory: two numbers for each array that has changed.
#[derive(Default)]
struct ChangeTimes {
    /// Number of refreshes of the tree.
    latest: u64,
    /// The last refresh that may have changed everything.
    of_all: u64,
    /// The last refresh that changed a [source](Folder::source), if it came after that.
    of_sources: HashMap<u64, u64>,
}

impl ChangeTimes {
    /// Returns the last refresh at which the data of a source may have changed.
    fn last_change_of(&self, source: u64) -> u64 {
        self.of_sources.get(&source).copied().unwrap_or(self.of_all)
    }

    fn add(&mut self, changed: &Changed) {
        self.latest += 1;
        match changed {
            Changed::All => {
                self.of_all = self.latest;
                self.of_sources.clear();
            }
            Changed::Sources(sources) => self.of_sources.extend(sources.iter().map(|source| (*source, self.latest))),
        }
    }
}

struct InodeEntry {
    inode: Arc<Inode>,
    /// Number of lookups that the kernel has not forgotten yet.
    lookups: u64,
}

/// Kernel state to invalidate after a refresh.
#[derive(Debug, Default)]
pub struct Outdated {
    /// Names that may lead to other files, with the numbers of their folders.
    pub files: Vec<(u64, Box<str>)>,
    /// Numbers of folders whose attributes and listings may have changed.
    pub folders: Vec<u64>,
}

/// Hashes a name in a folder; the attempt increases if a number is taken by another path.
type Hash = fn(parent: u64, name: &str, attempt: u64) -> u64;

impl Inodes {
    /// Creates the table of a fresh mount, which has only a root.
    pub fn new(root: Arc<dyn Folder>) -> Self {
        Self::with_hash(root, hash)
    }

    fn with_hash(root: Arc<dyn Folder>, hash: Hash) -> Self {
        let root = Node::Folder(root);
        let mut table = Table::default();
        let inode = Arc::new(Inode::new(ROOT, None, "", &root, 0, &table.changes));
        table.inodes.insert(ROOT, InodeEntry { inode, lookups: 1 });
        Inodes {
            root: Mutex::new(root),
            generation: AtomicU64::new(0),
            table: Mutex::new(table),
            recent: RecentNodes::new(),
            forgotten: ForgottenNames::new(),
            hash,
        }
    }

    /// Returns the number of refreshes: a later lookup is of this generation or a newer one.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Returns whether an inode must be looked up again.
    pub fn is_stale(&self, inode: &Inode) -> bool {
        inode.is_stale(self.generation())
    }

    /// Replaces the tree.
    pub fn refresh(&self, refreshed: Refreshed) -> Outdated {
        let Refreshed { root, changed } = refreshed;
        let root = Node::Folder(root);
        let mut outdated = Outdated::default();
        let mut table = self.lock();
        table.changes.add(&changed);
        let generation = table.changes.latest;
        for InodeEntry { inode, .. } in table.inodes.values().filter(|entry| changed.has(entry.inode.source())) {
            match inode.kind {
                EntryKind::Folder => outdated.folders.push(inode.number),
                // Files that are outdated already have no name any more.
                EntryKind::File if inode.is_outdated() => {}
                EntryKind::File => {
                    inode.is_outdated.store(true, Ordering::Release);
                    outdated.files.push((inode.parent(), inode.name.clone()));
                }
            }
        }
        if let Some(InodeEntry { inode, .. }) = table.inodes.get(&ROOT) {
            inode.renew(&root, generation);
        }
        // Publish the tree last: whoever finds something in it must see which files are outdated.
        *self.root.lock().unwrap_or_else(PoisonError::into_inner) = root;
        self.generation.store(generation, Ordering::Release);
        drop(table);
        self.recent.clear();
        outdated
    }

    /// Returns the root of the current tree.
    pub fn root(&self) -> Node {
        self.root.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the inode of a number.
    pub fn get(&self, number: u64) -> Option<Arc<Inode>> {
        self.lock().inodes.get(&number).map(|remembered| Arc::clone(&remembered.inode))
    }

    /// Returns the node of an inode; `None` if its folder no longer has it.
    ///
    /// # Errors
    /// As for [`Folder::lookup`], if it or an ancestor must be looked up again.
    pub fn node(&self, inode: &Inode) -> Result<Option<Node>> {
        let generation = self.generation();
        let Some(parent) = &inode.parent else {
            return Ok(Some(self.root()));
        };
        let alive = if inode.is_stale(generation) { None } else { inode.last_lookup().node.upgrade() };
        let node = match alive {
            Some(node) => node,
            None => {
                let Some(Node::Folder(folder)) = self.node(parent)? else { return Ok(None) };
                let Some(node) = folder.lookup(&inode.name)?.filter(|node| node.kind() == inode.kind) else {
                    return Ok(None);
                };
                // After a concurrent refresh it may be another file.
                if !inode.is_outdated() {
                    inode.renew(&node, generation);
                }
                node
            }
        };
        if inode.is_outdated() {
            return Ok(None);
        }
        self.recent.keep(inode.number, &node, inode.folders());
        Ok(Some(node))
    }

    /// Returns the inode of a known name that need not be looked up again; counts as one lookup.
    pub fn look_up(&self, parent: u64, name: &str) -> Option<Arc<Inode>> {
        let mut table = self.lock();
        let number = self.number(&table, parent, name);
        let generation = self.generation();
        let remembered = table.inodes.get_mut(&number).filter(|entry| !entry.inode.is_stale(generation))?;
        remembered.lookups += 1;
        Some(Arc::clone(&remembered.inode))
    }

    /// Returns the inode of a number, if the kernel knows it; counts as one lookup.
    pub fn look_up_number(&self, number: u64) -> Option<Arc<Inode>> {
        let mut table = self.lock();
        let remembered = table.inodes.get_mut(&number)?;
        remembered.lookups += 1;
        Some(Arc::clone(&remembered.inode))
    }

    /// Returns the way to a number that the kernel has forgotten: the innermost folder on it that the kernel knows, and
    /// the names below that. `None` if it was forgotten too long ago.
    pub fn way_to(&self, number: u64) -> Option<(Arc<Inode>, Vec<Box<str>>)> {
        let (mut number, mut names) = (number, Vec::new());
        while names.len() < MAX_DEPTH {
            let ForgottenName { folder, name } = self.forgotten.get(number)?;
            names.push(name);
            if let Some(known) = self.get(folder) {
                names.reverse();
                return Some((known, names));
            }
            number = folder;
        }
        None
    }

    /// Returns how many names are kept that the kernel has forgotten.
    pub fn forgotten(&self) -> usize {
        self.forgotten.count()
    }

    /// Adds a node that was looked up in this generation; counts as one lookup. If another thread was faster, returns
    /// its inode. Returns `None` if the tree was refreshed meanwhile, because the node may be outdated.
    pub fn insert(
        &self,
        parent: &Arc<Inode>,
        name: &str,
        node: &Node,
        size: u64,
        generation: u64,
    ) -> Option<Arc<Inode>> {
        let mut guard = self.lock();
        if self.generation() != generation {
            return None;
        }
        let mut number = self.number(&guard, parent.number, name);
        if let Some(InodeEntry { inode, .. }) = guard.inodes.get(&number) {
            if inode.kind != node.kind() {
                // A file replaced a folder, or the reverse.
                inode.is_outdated.store(true, Ordering::Release);
                number = self.number(&guard, parent.number, name);
            } else if inode.is_stale(generation) {
                inode.renew(node, generation);
            }
        }
        let table = &mut *guard;
        let remembered = table.inodes.entry(number).or_insert_with(|| {
            let inode = Arc::new(Inode::new(number, Some(Arc::clone(parent)), name, node, size, &table.changes));
            table.bytes += inode.memory();
            table.order.push_back(number);
            InodeEntry { inode, lookups: 0 }
        });
        remembered.lookups += 1;
        let inode = Arc::clone(&remembered.inode);
        drop(guard);
        self.forgotten.remove(number);
        self.recent.keep(number, node, inode.folders());
        Some(inode)
    }

    /// Subtracts lookups and drops the inode at zero. The root stays.
    pub fn forget(&self, number: u64, lookups: u64) {
        if number == ROOT {
            return;
        }
        let mut table = self.lock();
        if let Some(remembered) = table.inodes.get_mut(&number) {
            remembered.lookups = remembered.lookups.saturating_sub(lookups);
            if remembered.lookups == 0 {
                let inode = table.remove(number);
                drop(table);
                // No handle means a file that another one has replaced.
                if let Some(inode) = inode.filter(|inode| !inode.is_outdated()) {
                    self.forgotten.put(number, ForgottenName { folder: inode.parent(), name: inode.name.clone() });
                }
                self.recent.forget(number);
            }
        }
    }

    /// Returns how many names the kernel remembers, and their approximate memory.
    pub fn remembered(&self) -> (usize, usize) {
        let table = self.lock();
        // The root has no name.
        (table.inodes.len() - 1, table.bytes)
    }

    /// Returns whether the kernel remembers too many names.
    pub fn remembers_too_many(&self) -> bool {
        self.lock().bytes > MOST_BYTES
    }

    /// Returns names that the kernel should forget, with the numbers of their folders: the oldest ones, so that the
    /// rest takes less than [`MOST_BYTES`]. Excludes folders with remembered children, and the numbers in `spared`.
    pub fn names_to_forget(&self, spared: &HashSet<u64>) -> Vec<(u64, Box<str>)> {
        let mut guard = self.lock();
        let table = &mut *guard;
        let goal = MOST_BYTES - MOST_BYTES / 8;
        let mut left = if table.bytes > MOST_BYTES { table.bytes } else { 0 };
        let mut names = Vec::new();
        for _ in 0..table.order.len() {
            if left <= goal {
                break;
            }
            let Some(number) = table.order.pop_front() else { break };
            let Some(InodeEntry { inode, .. }) = table.inodes.get(&number) else { continue };
            // The name stays until the kernel reports that it has forgotten it; a name in use stays longer.
            table.order.push_back(number);
            if Arc::strong_count(inode) == 1 && !spared.contains(&number) {
                left -= inode.memory();
                names.push((inode.parent(), inode.name.clone()));
            }
        }
        names
    }

    /// Returns the number that a name has or would get, for listings.
    pub fn number_of(&self, parent: u64, name: &str) -> u64 {
        self.number(&self.lock(), parent, name)
    }

    /// Returns the first number in the probe sequence of a path that is its own or free.
    fn number(&self, table: &Table, parent: u64, name: &str) -> u64 {
        (0..)
            .map(|attempt| (self.hash)(parent, name, attempt))
            .filter(|&number| number > ROOT)
            .find(|number| table.inodes.get(number).is_none_or(|taken| taken.inode.is(parent, name)))
            .unwrap_or(ROOT)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn remove(&mut self, number: u64) -> Option<Arc<Inode>> {
        let gone = self.inodes.remove(&number)?;
        self.bytes -= gone.inode.memory();
        // Removes dropped numbers from time to time.
        if self.order.len() > 2 * self.inodes.len() + 1000 {
            let inodes = &self.inodes;
            self.order.retain(|number| inodes.contains_key(number));
        }
        Some(gone.inode)
    }
}

/// FNV-1a with the finaliser of MurmurHash3, which mixes all bits well. 63 bits, because some programs keep inode
/// numbers in a signed integer.
fn hash(parent: u64, name: &str, attempt: u64) -> u64 {
    let bytes = parent.to_le_bytes().into_iter().chain(attempt.to_le_bytes()).chain(name.bytes());
    let mut hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    for factor in [0xff51_afd7_ed55_8ccd_u64, 0xc4ce_b9fe_1a85_ec53] {
        hash = (hash ^ (hash >> 33)).wrapping_mul(factor);
    }
    (hash ^ (hash >> 33)) >> 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuse::recent::MAX_NODES;
    use std::sync::atomic::AtomicUsize;
    use tilefs_tree::Entry;
    use tilefs_tree::node::lazy::LazyFile;

    /// A folder of folders of files, like slices; counts live nodes and lookups.
    #[derive(Default)]
    struct Slices {
        alive: Arc<AtomicUsize>,
        looked_up: AtomicUsize,
    }

    struct Slice(Arc<AtomicUsize>);

    impl Drop for Slice {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    impl Folder for Slices {
        fn lookup(&self, name: &str) -> Result<Option<Node>> {
            if name == "gone" && self.looked_up.load(Ordering::Relaxed) > 0 {
                return Ok(None);
            }
            self.looked_up.fetch_add(1, Ordering::Relaxed);
            self.alive.fetch_add(1, Ordering::Relaxed);
            Ok(Some(Node::Folder(Arc::new(Slice(self.alive.clone())))))
        }

        fn list(&self) -> Result<Vec<Entry>> {
            Ok(Vec::new())
        }

        fn modified(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH
        }
    }

    impl Folder for Slice {
        fn lookup(&self, name: &str) -> Result<Option<Node>> {
            let text = name.to_owned();
            Ok(Some(Node::File(Arc::new(LazyFile::text(self.modified(), move || Ok(text.clone()))))))
        }

        fn list(&self) -> Result<Vec<Entry>> {
            Ok(Vec::new())
        }

        fn modified(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH
        }
    }

    fn inodes() -> (Inodes, Arc<Slices>) {
        let slices = Arc::new(Slices::default());
        (Inodes::new(slices.clone()), slices)
    }

    /// Looks a name up as the server does for the kernel.
    fn find(inodes: &Inodes, parent: u64, name: &str) -> Arc<Inode> {
        if let Some(inode) = inodes.look_up(parent, name) {
            return inode;
        }
        let parent = inodes.get(parent).unwrap();
        let Ok(Some(Node::Folder(folder))) = inodes.node(&parent) else { panic!("{} is no folder", parent.path()) };
        let node = folder.lookup(name).unwrap().unwrap();
        inodes.insert(&parent, name, &node, 0, inodes.generation()).unwrap()
    }

    #[test]
    fn numbers_depend_on_nothing_but_the_path() {
        let ((one, _), (other, _)) = (inodes(), inodes());
        let slice = find(&one, ROOT, "slice");
        let deep = find(&one, slice.number, "0..9");
        find(&other, ROOT, "slice");
        assert_eq!(other.number_of(slice.number, "0..9"), deep.number);
        assert_ne!(other.number_of(ROOT, "0..9"), deep.number);
        assert_eq!((deep.path(), deep.parent()), ("slice/0..9".to_owned(), slice.number));
        let root = one.get(ROOT).unwrap();
        assert_eq!((root.path(), root.parent()), (String::new(), ROOT));
        // The hash must never change: backup programs recognise files by these numbers.
        assert_eq!(slice.number, 0x7423_28d3_2d83_3528);
    }

    #[test]
    fn inodes_are_dropped_with_the_kernel_s_last_reference() {
        let (inodes, _) = inodes();
        let number = find(&inodes, ROOT, "a").number;
        let root = inodes.get(ROOT).unwrap();
        let again = inodes.insert(&root, "a", &Node::Folder(Arc::new(Slices::default())), 0, 0);
        assert_eq!(again.unwrap().number, number);
        assert!(inodes.look_up(ROOT, "a").is_some());
        inodes.forget(number, 2);
        assert!(inodes.get(number).is_some());
        inodes.forget(number, 1);
        assert!(inodes.get(number).is_none());
        assert!(inodes.look_up(ROOT, "a").is_none());
        inodes.forget(number, 1);
        inodes.forget(ROOT, 100);
        assert!(inodes.get(ROOT).is_some());
    }

    #[test]
    fn paths_with_the_same_hash_get_different_numbers() {
        let inodes = Inodes::with_hash(Arc::new(Slices::default()), |_, _, attempt| attempt % 5);
        let numbers: Vec<u64> = ["a", "b", "c"].iter().map(|name| find(&inodes, ROOT, name).number).collect();
        assert_eq!(numbers, [2, 3, 4]);
        assert_eq!(inodes.number_of(ROOT, "b"), 3);
        assert_eq!(inodes.look_up(ROOT, "c").map(|inode| inode.path()).as_deref(), Some("c"));
    }

    #[test]
    fn ten_thousand_names_that_the_kernel_remembers_keep_few_nodes() {
        let (inodes, slices) = inodes();
        let names: Vec<String> = (0..10_000).map(|number| number.to_string()).collect();
        let find_all = || -> Vec<(u64, u64)> {
            let find_file = |name: &String| {
                let slice = find(&inodes, ROOT, name);
                (slice.number, find(&inodes, slice.number, name).number)
            };
            names.iter().map(find_file).collect()
        };
        let numbers = find_all();
        assert!(slices.alive.load(Ordering::Relaxed) <= MAX_NODES);
        assert_eq!(find_all(), numbers);
        // Every file can still be opened by its old number, and processes that have it open see the same file.
        for (name, (slice, file)) in names.iter().zip(numbers) {
            let inode = inodes.get(file).unwrap();
            let Ok(Some(Node::File(opened))) = inodes.node(&inode) else { panic!("{name} is gone") };
            assert_eq!(opened.len().unwrap(), name.len() as u64);
            inodes.recent.forget(file);
            assert!(matches!(inodes.node(&inode), Ok(Some(Node::File(again))) if Arc::ptr_eq(&again, &opened)));
            assert_eq!(inodes.node(&inodes.get(slice).unwrap()).unwrap().unwrap().kind(), EntryKind::Folder);
        }
        assert!(slices.alive.load(Ordering::Relaxed) <= MAX_NODES);
        assert!(slices.looked_up.load(Ordering::Relaxed) <= 2 * names.len());
    }

    #[test]
    fn a_name_missing_from_its_folder_has_no_node() {
        let (inodes, _) = inodes();
        let gone = find(&inodes, ROOT, "gone");
        assert!(inodes.node(&gone).unwrap().is_some());
        inodes.recent.forget(gone.number);
        assert!(inodes.node(&gone).unwrap().is_none());
    }

    #[test]
    fn a_refresh_renumbers_files_and_keeps_folders() {
        let (inodes, _) = inodes();
        let slice = find(&inodes, ROOT, "slice");
        let (file, other) = (find(&inodes, slice.number, "text"), find(&inodes, slice.number, "other"));
        let open = inodes.node(&file).unwrap();
        // Looked up in the old tree, and inserted after the refresh.
        let late = inodes.node(&slice).unwrap().unwrap();
        let generation = inodes.generation();
        let refresh = |changed| inodes.refresh(Refreshed { root: Arc::new(Slices::default()), changed });
        let outdated = refresh(Changed::All);
        assert!(inodes.insert(&inodes.get(ROOT).unwrap(), "late", &late, 0, generation).is_none());
        let mut names: Vec<&str> = outdated.files.iter().map(|(_, name)| &**name).collect();
        names.sort_unstable();
        assert_eq!(names, ["other", "text"]);
        assert_eq!(outdated.folders.len(), 2);
        // Open files keep their content by number; the name leads to a new file.
        assert!(open.is_some() && inodes.get(file.number).is_some());
        assert!(inodes.node(&file).unwrap().is_none());
        assert!(inodes.look_up(ROOT, "slice").is_none(), "it may be gone");
        assert!(inodes.is_stale(&slice));
        assert_eq!(find(&inodes, ROOT, "slice").number, slice.number);
        assert!(!inodes.is_stale(&slice));
        let new = find(&inodes, slice.number, "text");
        assert_ne!(new.number, file.number);
        assert_eq!(inodes.number_of(slice.number, "text"), new.number);
        assert!(inodes.node(&new).unwrap().is_some());
        // Once nobody has the file open, its number is free for the next one.
        inodes.forget(other.number, 1);
        assert_eq!(find(&inodes, slice.number, "other").number, other.number);
        // Nothing else changes.
        let outdated = refresh(Changed::Sources(HashSet::from([7])));
        assert!(outdated.files.is_empty() && outdated.folders.is_empty());
        assert!(inodes.node(&new).unwrap().is_some());
        assert_eq!(find(&inodes, slice.number, "text").number, new.number);
    }

    #[test]
    fn numbers_lead_to_names_that_the_kernel_has_forgotten() {
        let (inodes, _) = inodes();
        let slice = find(&inodes, ROOT, "slice");
        let file = find(&inodes, slice.number, "text");
        assert!(inodes.way_to(file.number).is_none() && inodes.way_to(7).is_none());
        assert!(inodes.look_up_number(file.number).is_some_and(|found| Arc::ptr_eq(&found, &file)));
        inodes.forget(file.number, 2);
        let (known, names) = inodes.way_to(file.number).unwrap();
        assert_eq!((known.number, names), (slice.number, vec!["text".into()]));
        inodes.forget(slice.number, 1);
        let (known, names) = inodes.way_to(file.number).unwrap();
        assert_eq!((known.number, names), (ROOT, vec!["slice".into(), "text".into()]));
        assert!(inodes.look_up_number(file.number).is_none());
        assert_eq!(inodes.forgotten(), 2);
        find(&inodes, ROOT, "slice");
        assert_eq!(inodes.forgotten(), 1);
    }

    #[test]
    fn a_file_has_another_handle_generation_once_its_data_have_changed() {
        let (inodes, _) = inodes();
        let generations = |inodes: &Inodes| {
            let slice = find(inodes, ROOT, "slice");
            (slice.handle_generation, find(inodes, slice.number, "text").handle_generation)
        };
        let refresh = |changed| inodes.refresh(Refreshed { root: Arc::new(Slices::default()), changed });
        assert_eq!(generations(&inodes), (0, 0));
        refresh(Changed::Sources(HashSet::from([7])));
        assert_eq!(generations(&inodes), (0, 0));
        let old = find(&inodes, find(&inodes, ROOT, "slice").number, "text");
        refresh(Changed::All);
        assert_eq!(generations(&inodes), (0, 2));
        // An outdated file is not found by its number once it is forgotten.
        inodes.forget(old.number, 100);
        assert!(inodes.way_to(old.number).is_none());
        refresh(Changed::Sources(HashSet::from([0])));
        refresh(Changed::Sources(HashSet::from([7])));
        assert_eq!(generations(&inodes), (0, 3));
    }

    #[test]
    fn the_oldest_names_are_forgotten_first() {
        let (inodes, _) = inodes();
        let folder = find(&inodes, ROOT, "slice");
        let name = |number: usize| format!("{number:0850}");
        let spared = HashSet::from([find(&inodes, folder.number, "of somebody").number]);
        let mut told = 0;
        for number in 0..100_000 {
            find(&inodes, folder.number, &name(number));
            if !inodes.remembers_too_many() {
                assert!(inodes.names_to_forget(&spared).is_empty());
                continue;
            }
            for (parent, forgotten) in inodes.names_to_forget(&spared) {
                assert_eq!((parent, &*forgotten), (folder.number, &*name(told)));
                inodes.forget(inodes.number_of(parent, &forgotten), 1);
                told += 1;
            }
        }
        assert!(told > 80_000 && inodes.lock().bytes <= MOST_BYTES);
        assert!(inodes.look_up(folder.number, &name(99_999)).is_some() && inodes.get(folder.number).is_some());
        assert!(spared.iter().all(|number| inodes.get(*number).is_some()));
        // If all names are in use, each is returned once per round.
        let (in_use, _) = super::tests::inodes();
        for number in 0..20_000 {
            find(&in_use, ROOT, &name(number));
        }
        let count = in_use.names_to_forget(&HashSet::new()).len();
        assert!(count > 0 && count < 20_000 && in_use.lock().order.len() == 20_000);
    }

    #[test]
    fn a_hundred_thousand_slices_that_are_forgotten_leave_nothing_behind() {
        let (inodes, slices) = inodes();
        for number in 0..100_000 {
            let inode = find(&inodes, ROOT, &number.to_string());
            inodes.forget(inode.number, 1);
        }
        assert_eq!(inodes.lock().inodes.len(), 1);
        assert!(inodes.lock().order.len() <= 1002 && inodes.lock().bytes == 0);
        assert_eq!(slices.alive.load(Ordering::Relaxed), 0);
    }
}
