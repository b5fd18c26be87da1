//! Inode numbers: what the kernel means by a number, for as long as it remembers the number.
//!
//! A number is a hash of the path, so that it is the same in every mount of an array and hard links or copies are
//! not suspected by programs that compare numbers. The kernel counts its references; when it forgets the last one
//! the inode goes.
//!
//! The kernel remembers names for as long as it has memory, and a slice with all its files takes more than a name. So
//! an inode is only a name and what was told of it. Its node lives while somebody has it: its folder, whoever has it
//! open, or [`RecentNodes`]. After that it is looked up in its folder again when it is wanted.
//!
//! Where the tree is refreshed, each folder keeps its number and is looked up again when it is wanted. A file that may
//! have changed is outdated: those who have it open keep it and its pages in the kernel, and its name gets another
//! number, as if another file had been put in its place.

use std::collections::{HashMap, HashSet, VecDeque};
use std::iter;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::SystemTime;

use tilefs_format::error::Result;

use super::recent::RecentNodes;
use crate::tree::{EntryKind, File, Folder, Node, Refreshed};

/// How much memory the names may take, about, that the kernel remembers. It remembers them for as long as it has
/// memory, which is more than ours: beyond this it is told to forget those that it was told of first.
const MOST_BYTES: usize = 12 << 20;

/// What an inode takes besides its name, and what is left of its node.
const INODE: usize = 450;

/// The number of the root, fixed by the protocol.
pub const ROOT: u64 = 1;

/// A name that the kernel knows by its number. Memory: about 250 bytes and the name, and what is left of a node that
/// is gone, under 200 bytes.
pub struct Inode {
    pub number: u64,
    /// The folder it was found in; `None` for the root.
    parent: Option<Arc<Inode>>,
    /// Its name there; empty for the root.
    name: Box<str>,
    pub kind: EntryKind,
    size: AtomicU64,
    /// What is stored that it is made of: see [`Folder::source`].
    source: AtomicU64,
    /// Whether its name may lead to another file now. Never so of folders.
    is_outdated: AtomicBool,
    found: Mutex<Found>,
}

/// What an inode was when it was looked up last.
struct Found {
    node: WeakNode,
    /// The time of the last commit.
    modified: SystemTime,
    /// How often the tree had been refreshed.
    generation: u64,
}

impl Found {
    fn new(node: &Node, generation: u64) -> Self {
        let modified = match node {
            Node::Folder(folder) => folder.modified(),
            Node::File(file) => file.modified(),
        };
        Found { node: WeakNode::of(node), modified, generation }
    }
}

/// A node that may be gone.
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
    fn new(number: u64, parent: Option<Arc<Inode>>, name: &str, node: &Node, size: u64, generation: u64) -> Self {
        let source = source_of(node, parent.as_deref());
        Inode {
            number,
            parent,
            name: name.into(),
            kind: node.kind(),
            size: AtomicU64::new(size),
            source: AtomicU64::new(source),
            is_outdated: AtomicBool::new(false),
            found: Mutex::new(Found::new(node, generation)),
        }
    }

    /// The time of the last commit, when it was looked up.
    pub fn modified(&self) -> SystemTime {
        self.found().modified
    }

    fn source(&self) -> u64 {
        self.source.load(Ordering::Relaxed)
    }

    fn is_outdated(&self) -> bool {
        self.is_outdated.load(Ordering::Acquire)
    }

    /// It was looked up again.
    fn renew(&self, node: &Node, generation: u64) {
        self.source.store(source_of(node, self.parent.as_deref()), Ordering::Relaxed);
        *self.found() = Found::new(node, generation);
    }

    /// The exact length of a file in bytes; 0 for a folder.
    pub fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    /// Corrects the length; whether it was another one.
    pub fn resize(&self, size: u64) -> bool {
        self.size.swap(size, Ordering::Relaxed) != size
    }

    /// The number of the folder it was found in; the root is its own parent.
    pub fn parent(&self) -> u64 {
        self.parent.as_ref().map_or(self.number, |parent| parent.number)
    }

    /// The path from the root, for messages.
    pub fn path(&self) -> String {
        let upwards = iter::successors(Some(self), |inode| inode.parent.as_deref());
        let mut names: Vec<&str> = upwards.map(|inode| &*inode.name).collect();
        // The root has no name.
        names.pop();
        names.reverse();
        names.join("/")
    }

    /// The numbers of the folders it is in, from the inside out.
    fn folders(&self) -> impl Iterator<Item = u64> {
        iter::successors(self.parent.as_deref(), |inode| inode.parent.as_deref()).map(|inode| inode.number)
    }

    /// Whether this is what a name leads to.
    fn is(&self, parent: u64, name: &str) -> bool {
        self.parent() == parent && *self.name == *name && !self.is_outdated()
    }

    /// Bytes of memory that this takes, about.
    fn memory(&self) -> usize {
        INODE + self.name.len()
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a folder was looked up before the tree was refreshed so often. What a file is does not change.
    fn is_behind(&self, generation: u64) -> bool {
        self.kind == EntryKind::Folder && self.found().generation != generation
    }
}

/// What is stored that a node in a folder is made of.
fn source_of(node: &Node, folder: Option<&Inode>) -> u64 {
    let own = match node {
        Node::Folder(folder) => folder.source(),
        Node::File(_) => None,
    };
    own.unwrap_or_else(|| folder.map_or(0, Inode::source))
}

/// All the inodes that the kernel remembers, and the root.
pub struct Inodes {
    root: Mutex<Node>,
    /// How often the tree was refreshed.
    generation: AtomicU64,
    table: Mutex<Table>,
    recent: RecentNodes,
    hash: Hash,
}

#[derive(Default)]
struct Table {
    inodes: HashMap<u64, InodeEntry>,
    /// Bytes of memory that the inodes take, about.
    bytes: usize,
    /// The numbers in the order in which they were given, some of them gone since.
    order: VecDeque<u64>,
}

struct InodeEntry {
    inode: Arc<Inode>,
    /// How many lookups the kernel has not forgotten yet.
    lookups: u64,
}

/// What the kernel should know no more after a refresh.
#[derive(Debug, Default)]
pub struct Outdated {
    /// Names that may lead to other files, by the numbers of their folders.
    pub files: Vec<(u64, Box<str>)>,
    /// Folders whose attributes and listings may be others, by their numbers.
    pub folders: Vec<u64>,
}

/// The number of a name in a folder; the attempt counts up when a number is taken by another path.
type Hash = fn(parent: u64, name: &str, attempt: u64) -> u64;

impl Inodes {
    /// The table of a fresh mount, which has only a root.
    pub fn new(root: Arc<dyn Folder>) -> Self {
        Self::with_hash(root, hash)
    }

    fn with_hash(root: Arc<dyn Folder>, hash: Hash) -> Self {
        let root = Node::Folder(root);
        let inode = Arc::new(Inode::new(ROOT, None, "", &root, 0, 0));
        let mut table = Table::default();
        table.inodes.insert(ROOT, InodeEntry { inode, lookups: 1 });
        Inodes {
            root: Mutex::new(root),
            generation: AtomicU64::new(0),
            table: Mutex::new(table),
            recent: RecentNodes::new(),
            hash,
        }
    }

    /// How often the tree was refreshed: what is looked up from now on is of this generation or a later one.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Whether what was found out of an inode is to be found out again.
    pub fn is_behind(&self, inode: &Inode) -> bool {
        inode.is_behind(self.generation())
    }

    /// Puts another tree in the place of the one that is shown.
    pub fn refresh(&self, refreshed: Refreshed) -> Outdated {
        let Refreshed { root, changed } = refreshed;
        let root = Node::Folder(root);
        let mut outdated = Outdated::default();
        let table = self.lock();
        let generation = self.generation() + 1;
        for InodeEntry { inode, .. } in table.inodes.values().filter(|entry| changed.has(entry.inode.source())) {
            match inode.kind {
                EntryKind::Folder => outdated.folders.push(inode.number),
                // Those that are outdated already have no name any more.
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
        // Whoever finds something in the new tree sees what is outdated.
        *self.root.lock().unwrap_or_else(PoisonError::into_inner) = root;
        self.generation.store(generation, Ordering::Release);
        drop(table);
        self.recent.clear();
        outdated
    }

    /// What the kernel means by a number.
    pub fn get(&self, number: u64) -> Option<Arc<Inode>> {
        self.lock().inodes.get(&number).map(|remembered| Arc::clone(&remembered.inode))
    }

    /// The node of an inode; `None` where its folder does not have it any more.
    ///
    /// # Errors
    /// As [`Folder::lookup`], where it or a folder on the way to it has to be looked up again.
    pub fn node(&self, inode: &Inode) -> Result<Option<Node>> {
        let generation = self.generation();
        let Some(parent) = &inode.parent else {
            return Ok(Some(self.root.lock().unwrap_or_else(PoisonError::into_inner).clone()));
        };
        let alive = if inode.is_behind(generation) { None } else { inode.found().node.upgrade() };
        let node = match alive {
            Some(node) => node,
            None => {
                let Some(Node::Folder(folder)) = self.node(parent)? else { return Ok(None) };
                let Some(node) = folder.lookup(&inode.name)?.filter(|node| node.kind() == inode.kind) else {
                    return Ok(None);
                };
                // In a tree that was refreshed meanwhile it may be another file.
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

    /// The inode of a name that is remembered already, and that need not be looked up again; counts as one lookup.
    pub fn look_up(&self, parent: u64, name: &str) -> Option<Arc<Inode>> {
        let mut table = self.lock();
        let number = self.number(&table, parent, name);
        let generation = self.generation();
        let remembered = table.inodes.get_mut(&number).filter(|entry| !entry.inode.is_behind(generation))?;
        remembered.lookups += 1;
        Some(Arc::clone(&remembered.inode))
    }

    /// Remembers a node that was looked up in this generation; counts as one lookup. Where another thread was faster, its
    /// inode is given. `None` where the tree was refreshed meanwhile: the node may be an old one.
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
                // A file in the place of a folder, or the reverse.
                inode.is_outdated.store(true, Ordering::Release);
                number = self.number(&guard, parent.number, name);
            } else if inode.is_behind(generation) {
                inode.renew(node, generation);
            }
        }
        let table = &mut *guard;
        let remembered = table.inodes.entry(number).or_insert_with(|| {
            let inode = Arc::new(Inode::new(number, Some(Arc::clone(parent)), name, node, size, generation));
            table.bytes += inode.memory();
            table.order.push_back(number);
            InodeEntry { inode, lookups: 0 }
        });
        remembered.lookups += 1;
        let inode = Arc::clone(&remembered.inode);
        drop(guard);
        self.recent.keep(number, node, inode.folders());
        Some(inode)
    }

    /// Takes back lookups; with the last one the inode goes. The root stays.
    pub fn forget(&self, number: u64, lookups: u64) {
        if number == ROOT {
            return;
        }
        let mut table = self.lock();
        if let Some(remembered) = table.inodes.get_mut(&number) {
            remembered.lookups = remembered.lookups.saturating_sub(lookups);
            if remembered.lookups == 0 {
                table.remove(number);
                drop(table);
                self.recent.forget(number);
            }
        }
    }

    /// How many names the kernel remembers, and how much memory they take, about.
    pub fn remembered(&self) -> (usize, usize) {
        let table = self.lock();
        // The root has no name.
        (table.inodes.len() - 1, table.bytes)
    }

    /// Whether the kernel remembers more names than it should.
    pub fn is_crowded(&self) -> bool {
        self.lock().bytes > MOST_BYTES
    }

    /// Names that the kernel should forget, by the numbers of their folders: those it was told of first, so many that
    /// the others take less than [`MOST_BYTES`]. Folders of which it remembers names stay, and the numbers that are
    /// `spared`.
    pub fn crowd(&self, spared: &HashSet<u64>) -> Vec<(u64, Box<str>)> {
        let mut guard = self.lock();
        let table = &mut *guard;
        let goal = MOST_BYTES - MOST_BYTES / 8;
        let mut left = if table.bytes > MOST_BYTES { table.bytes } else { 0 };
        let mut crowd = Vec::new();
        for _ in 0..table.order.len() {
            if left <= goal {
                break;
            }
            let Some(number) = table.order.pop_front() else { break };
            let Some(InodeEntry { inode, .. }) = table.inodes.get(&number) else { continue };
            // Until the kernel says that it has forgotten it, it is as it was; one that is in use stays longer.
            table.order.push_back(number);
            if Arc::strong_count(inode) == 1 && !spared.contains(&number) {
                left -= inode.memory();
                crowd.push((inode.parent(), inode.name.clone()));
            }
        }
        crowd
    }

    /// The number that a name has or would get, for listings.
    pub fn number_of(&self, parent: u64, name: &str) -> u64 {
        self.number(&self.lock(), parent, name)
    }

    /// The first number, of those this path would try, that is its own or free.
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
    fn remove(&mut self, number: u64) {
        if let Some(gone) = self.inodes.remove(&number) {
            self.bytes -= gone.inode.memory();
        }
        // The numbers of those that are gone are taken out now and then.
        if self.order.len() > 2 * self.inodes.len() + 1000 {
            let inodes = &self.inodes;
            self.order.retain(|number| inodes.contains_key(number));
        }
    }
}

/// FNV-1a with the finaliser of MurmurHash3, whose bits are all good. 63 bits: some programs keep inode numbers in
/// a signed integer.
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
    use crate::fuse::recent::MOST_NODES;
    use crate::tree::lazy::LazyFile;
    use crate::tree::{Changed, Entry};
    use std::sync::atomic::AtomicUsize;

    /// A folder of folders of files, as slices are; it counts those alive and those looked up.
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

    /// Looks a name up as the kernel has it done.
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
    fn inodes_go_with_the_last_reference_of_the_kernel() {
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
        assert!(slices.alive.load(Ordering::Relaxed) <= MOST_NODES);
        assert_eq!(find_all(), numbers);
        // Every file can still be opened, by its old number, and is the same file to all who have it open.
        for (name, (slice, file)) in names.iter().zip(numbers) {
            let inode = inodes.get(file).unwrap();
            let Ok(Some(Node::File(opened))) = inodes.node(&inode) else { panic!("{name} is gone") };
            assert_eq!(opened.len().unwrap(), name.len() as u64);
            inodes.recent.forget(file);
            assert!(matches!(inodes.node(&inode), Ok(Some(Node::File(again))) if Arc::ptr_eq(&again, &opened)));
            assert_eq!(inodes.node(&inodes.get(slice).unwrap()).unwrap().unwrap().kind(), EntryKind::Folder);
        }
        assert!(slices.alive.load(Ordering::Relaxed) <= MOST_NODES);
        assert!(slices.looked_up.load(Ordering::Relaxed) <= 2 * names.len());
    }

    #[test]
    fn what_its_folder_has_no_more_has_no_node() {
        let (inodes, _) = inodes();
        let gone = find(&inodes, ROOT, "gone");
        assert!(inodes.node(&gone).unwrap().is_some());
        inodes.recent.forget(gone.number);
        assert!(inodes.node(&gone).unwrap().is_none());
    }

    #[test]
    fn after_a_refresh_files_are_others_and_folders_are_the_same() {
        let (inodes, _) = inodes();
        let slice = find(&inodes, ROOT, "slice");
        let (file, other) = (find(&inodes, slice.number, "text"), find(&inodes, slice.number, "other"));
        let open = inodes.node(&file).unwrap();
        // Found in the old tree, and put in after the refresh.
        let late = inodes.node(&slice).unwrap().unwrap();
        let generation = inodes.generation();
        let refresh = |changed| inodes.refresh(Refreshed { root: Arc::new(Slices::default()), changed });
        let outdated = refresh(Changed::All);
        assert!(inodes.insert(&inodes.get(ROOT).unwrap(), "late", &late, 0, generation).is_none());
        let mut names: Vec<&str> = outdated.files.iter().map(|(_, name)| &**name).collect();
        names.sort_unstable();
        assert_eq!(names, ["other", "text"]);
        assert_eq!(outdated.folders.len(), 2);
        // Who has it open has it still, by its number; by its name there is another.
        assert!(open.is_some() && inodes.get(file.number).is_some());
        assert!(inodes.node(&file).unwrap().is_none());
        assert!(inodes.look_up(ROOT, "slice").is_none(), "it may be gone");
        assert!(inodes.is_behind(&slice));
        assert_eq!(find(&inodes, ROOT, "slice").number, slice.number);
        assert!(!inodes.is_behind(&slice));
        let new = find(&inodes, slice.number, "text");
        assert_ne!(new.number, file.number);
        assert_eq!(inodes.number_of(slice.number, "text"), new.number);
        assert!(inodes.node(&new).unwrap().is_some());
        // One that nobody has any more leaves its number to the next.
        inodes.forget(other.number, 1);
        assert_eq!(find(&inodes, slice.number, "other").number, other.number);
        // Elsewhere nothing changes.
        let outdated = refresh(Changed::Sources(HashSet::from([7])));
        assert!(outdated.files.is_empty() && outdated.folders.is_empty());
        assert!(inodes.node(&new).unwrap().is_some());
        assert_eq!(find(&inodes, slice.number, "text").number, new.number);
    }

    #[test]
    fn a_crowd_of_names_is_to_be_forgotten_oldest_first() {
        let (inodes, _) = inodes();
        let folder = find(&inodes, ROOT, "slice");
        let name = |number: usize| format!("{number:0850}");
        let spared = HashSet::from([find(&inodes, folder.number, "of somebody").number]);
        let mut told = 0;
        for number in 0..100_000 {
            find(&inodes, folder.number, &name(number));
            if !inodes.is_crowded() {
                assert!(inodes.crowd(&spared).is_empty());
                continue;
            }
            for (parent, forgotten) in inodes.crowd(&spared) {
                assert_eq!((parent, &*forgotten), (folder.number, &*name(told)));
                inodes.forget(inodes.number_of(parent, &forgotten), 1);
                told += 1;
            }
        }
        assert!(told > 80_000 && inodes.lock().bytes <= MOST_BYTES);
        assert!(inodes.look_up(folder.number, &name(99_999)).is_some() && inodes.get(folder.number).is_some());
        assert!(spared.iter().all(|number| inodes.get(*number).is_some()));
        // Whoever uses all of them is asked about each once a time.
        let (in_use, _) = super::tests::inodes();
        for number in 0..20_000 {
            find(&in_use, ROOT, &name(number));
        }
        let count = in_use.crowd(&HashSet::new()).len();
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
