//! The inode table: maps inode numbers to names for as long as the kernel remembers them.
//!
//! A number is a hash of the path. So it is the same in every mount of an array, and programs that compare numbers do
//! not suspect hard links or copies. The kernel counts its references; when it forgets the last reference, the inode is
//! dropped.
//!
//! The kernel remembers names for as long as it has memory, and a slice with all its files takes more memory than a
//! name. So an inode holds only a name and attributes. Its node lives while its folder, an open file or [`KeptNodes`]
//! holds it. After that it is looked up in its folder again on demand.
//!
//! When the tree is refreshed, each folder keeps its number and is looked up again on demand. A file that may have
//! changed becomes outdated: processes that have it open keep it and its cached pages, and its name gets a new number,
//! as if another file had replaced it.
//!
//! File handles hold a number and a *handle generation*, and outlive what the kernel remembers. So forgotten names are
//! kept for a while ([`ForgottenNames`]), and are looked up again when the kernel asks for their numbers. A refresh
//! gives files that may have changed another handle generation, so a handle never leads to a file other than its own.

mod forgotten;
mod inode;
mod recent;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tilefs_base::error::Result;

use crate::node::{EntryKind, Folder, Node, Refreshed};
use forgotten::{ForgottenName, ForgottenNames};
use inode::ChangeTimes;
pub use inode::Inode;
use recent::KeptNodes;

/// Approximate limit for the memory of names that the kernel remembers. The kernel keeps names while it has memory,
/// which is more than ours, so beyond this limit we make it forget the oldest.
const MOST_BYTES: usize = 12 << 20;

/// The most names on the path from a remembered folder to a forgotten number; longer paths do not exist.
const MAX_DEPTH: usize = 256;

/// The number of the root, fixed by the protocol.
pub const ROOT: u64 = 1;

/// All inodes that the kernel remembers, and the root.
pub struct Inodes {
    root: Mutex<Node>,
    /// Number of refreshes of the tree.
    generation: AtomicU64,
    table: Mutex<InodeTable>,
    recent: KeptNodes,
    forgotten: ForgottenNames,
    hash: Hash,
}

#[derive(Default)]
struct InodeTable {
    changes: ChangeTimes,
    inodes: HashMap<u64, InodeEntry>,
    /// Approximate memory of the inodes in bytes.
    bytes: usize,
    /// Numbers in the order in which they were assigned, including some of dropped inodes.
    order: VecDeque<u64>,
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

/// A hash of a name in a folder. The attempt increases while the number belongs to another path.
type Hash = fn(parent: u64, name: &str, attempt: u64) -> u64;

impl Inodes {
    /// Creates the table of a fresh mount, which has only a root.
    pub fn new(root: Arc<dyn Folder>) -> Self {
        Self::with_hash(root, hash)
    }

    fn with_hash(root: Arc<dyn Folder>, hash: Hash) -> Self {
        let root = Node::Folder(root);
        let mut table = InodeTable::default();
        let inode = Arc::new(Inode::new(ROOT, None, "", &root, 0, &table.changes));
        table.inodes.insert(ROOT, InodeEntry { inode, lookups: 1 });
        Inodes {
            root: Mutex::new(root),
            generation: AtomicU64::new(0),
            table: Mutex::new(table),
            recent: KeptNodes::new(),
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
        // Publish the tree last: a thread that finds something in it must see which files are outdated.
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
        let alive = if inode.is_stale(generation) { None } else { inode.node() };
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

    /// Returns the path to a number that the kernel has forgotten: the innermost folder on the path that the kernel
    /// knows, and the names below that folder. `None` if the number was forgotten too long ago.
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

    /// Returns the number of names that the kernel has forgotten and this table still keeps.
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
                // No handle may lead to a file that another file has replaced.
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

    /// Returns the first number in a path's probe sequence that is free or belongs to the path already.
    fn number(&self, table: &InodeTable, parent: u64, name: &str) -> u64 {
        (0..)
            .map(|attempt| (self.hash)(parent, name, attempt))
            .filter(|&number| number > ROOT)
            .find(|number| table.inodes.get(number).is_none_or(|taken| taken.inode.is(parent, name)))
            .unwrap_or(ROOT)
    }

    fn lock(&self) -> MutexGuard<'_, InodeTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InodeTable {
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

/// Returns FNV-1a with the finaliser of MurmurHash3, which mixes all bits well. 63 bits, because some programs keep
/// inode numbers in a signed integer.
fn hash(parent: u64, name: &str, attempt: u64) -> u64 {
    let bytes = parent.to_le_bytes().into_iter().chain(attempt.to_le_bytes()).chain(name.bytes());
    let mut hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    for factor in [0xff51_afd7_ed55_8ccd_u64, 0xc4ce_b9fe_1a85_ec53] {
        hash = (hash ^ (hash >> 33)).wrapping_mul(factor);
    }
    (hash ^ (hash >> 33)) >> 1
}
