//! An inode: a name that the kernel knows by its number.

use std::collections::HashMap;
use std::iter;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::SystemTime;

use crate::node::{Changed, EntryKind, File, Folder, Node};

/// Approximate bytes of an inode without its name, including the remains of its node.
const INODE: usize = 450;

/// A name that the kernel knows by its number. Memory: about 250 bytes and the name, and the remains of a dropped node,
/// under 200 bytes.
pub struct Inode {
    pub number: u64,
    /// The folder in which the inode was found; `None` for the root.
    pub(super) parent: Option<Arc<Inode>>,
    /// The name of the inode in that folder; empty for the root.
    pub(super) name: Box<str>,
    pub kind: EntryKind,
    /// Identifies a file for file handles, together with the number; 0 for a folder, which no refresh replaces.
    pub handle_generation: u64,
    size: AtomicU64,
    /// Identifies the stored object from which the node was made: see [`Folder::source`].
    pub(super) source: AtomicU64,
    /// Whether the inode's name may lead to another file now. Never set for folders.
    pub(super) is_outdated: AtomicBool,
    last_lookup: Mutex<LookupState>,
}

/// The state of an inode at its last lookup.
struct LookupState {
    node: WeakNode,
    /// The time of the last commit.
    modified: SystemTime,
    /// Number of refreshes of the tree before that lookup.
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
    pub(super) fn new(
        number: u64,
        parent: Option<Arc<Inode>>,
        name: &str,
        node: &Node,
        size: u64,
        changes: &ChangeTimes,
    ) -> Self {
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

    pub(super) fn source(&self) -> u64 {
        self.source.load(Ordering::Relaxed)
    }

    pub(super) fn is_outdated(&self) -> bool {
        self.is_outdated.load(Ordering::Acquire)
    }

    /// Updates the inode after another lookup.
    pub(super) fn renew(&self, node: &Node, generation: u64) {
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

    /// Returns the folder in which the inode was found, and the inode's name there; `None` for the root.
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

    /// Returns the numbers of the inode's ancestors, innermost first.
    pub(super) fn folders(&self) -> impl Iterator<Item = u64> {
        iter::successors(self.parent.as_deref(), |inode| inode.parent.as_deref()).map(|inode| inode.number)
    }

    /// Returns whether a name leads to this inode.
    pub(super) fn is(&self, parent: u64, name: &str) -> bool {
        self.parent() == parent && *self.name == *name && !self.is_outdated()
    }

    /// Returns the inode's approximate memory in bytes.
    pub(super) fn memory(&self) -> usize {
        INODE + self.name.len()
    }

    fn last_lookup(&self) -> MutexGuard<'_, LookupState> {
        self.last_lookup.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the node of the last lookup, if it is still alive.
    pub(super) fn node(&self) -> Option<Node> {
        self.last_lookup().node.upgrade()
    }

    /// Returns whether this is a folder whose last lookup came before `generation`. Files are never stale.
    pub(super) fn is_stale(&self, generation: u64) -> bool {
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

/// The refreshes at which stored data changed. Memory: two numbers for each array that has changed.
#[derive(Default)]
pub struct ChangeTimes {
    /// Number of refreshes of the tree.
    pub(super) latest: u64,
    /// The last refresh that may have changed everything.
    of_all: u64,
    /// The last refresh that changed each [source](Folder::source), if that refresh came after `of_all`.
    of_sources: HashMap<u64, u64>,
}

impl ChangeTimes {
    /// Returns the last refresh at which the data of a source may have changed.
    fn last_change_of(&self, source: u64) -> u64 {
        self.of_sources.get(&source).copied().unwrap_or(self.of_all)
    }

    pub(super) fn add(&mut self, changed: &Changed) {
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
