//! The elements of the tree: folders that look names up, and files that open to a [`Content`].
//!
//! Nodes are made on lookup and are cheap until they are read, so a folder may have more names than could ever be
//! listed (slices, times).

pub mod lazy;
pub mod listing;
pub mod named;
pub mod quoting;
pub mod recent;
pub mod suggest;

use std::any::Any;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::SystemTime;

use tilefs_base::content::{Content, Forward};
use tilefs_base::error::Result;
use tilefs_base::statistics::Statistic;

/// What a folder shows. Only who makes the tree knows its type.
pub type Subject = Arc<dyn Any + Send + Sync>;

/// Approximate memory in bytes of a node, including its name in its folder and in descriptions.
pub const NODE: usize = 640;

/// The extended attributes of a node: full names and values.
pub type ExtendedAttributes = Vec<(String, Vec<u8>)>;

/// A tree that can be mounted.
pub trait ServedTree: Send + Sync {
    /// Returns the root folder.
    fn root(&self) -> Arc<dyn Folder>;

    /// Checks whether the stored data have changed since the root was made, and if so makes a new root. Nodes opened
    /// before are unaffected.
    ///
    /// # Errors
    /// Fails if the data cannot be examined; the root is then unchanged.
    fn refresh(&self) -> Result<Option<Refreshed>> {
        Ok(None)
    }

    /// Returns the path of the stored data, if they are in a folder.
    fn path(&self) -> Option<String> {
        None
    }

    /// Returns the counters of reads from it.
    fn statistics(&self) -> Vec<Statistic> {
        Vec::new()
    }
}

/// A refreshed tree.
pub struct Refreshed {
    pub root: Arc<dyn Folder>,
    pub changed: Changed,
}

/// The part of a tree that may have changed: names, sizes, times and bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    All,
    /// Everything in folders with these [sources](Folder::source), except parts with a source of their own.
    Sources(HashSet<u64>),
}

impl Changed {
    pub fn has(&self, source: u64) -> bool {
        match self {
            Changed::All => true,
            Changed::Sources(sources) => sources.contains(&source),
        }
    }
}

/// A tree that never changes.
impl ServedTree for Arc<dyn Folder> {
    fn root(&self) -> Arc<dyn Folder> {
        Arc::clone(self)
    }
}

/// A folder or a file.
#[derive(Clone)]
pub enum Node {
    Folder(Arc<dyn Folder>),
    File(Arc<dyn File>),
}

impl Node {
    pub fn kind(&self) -> EntryKind {
        match self {
            Node::Folder(_) => EntryKind::Folder,
            Node::File(_) => EntryKind::File,
        }
    }

    /// Returns the bytes of a file, or of the listed files in a folder, as far as their lengths are known.
    pub fn known_bytes(&self) -> u64 {
        match self {
            Node::Folder(folder) => folder.known_bytes(),
            Node::File(file) => file.known_len().unwrap_or(0),
        }
    }

    /// Returns the memory that the node takes, in bytes: for a folder, [`Folder::memory`].
    pub fn memory(&self) -> usize {
        match self {
            Node::Folder(folder) => folder.memory(),
            Node::File(_) => NODE,
        }
    }
}

/// Whether a listed name is a folder or a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    Folder,
    File,
}

/// One line of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub kind: EntryKind,
}

impl Entry {
    pub fn folder(name: impl Into<String>) -> Self {
        Entry { name: name.into(), kind: EntryKind::Folder }
    }

    pub fn file(name: impl Into<String>) -> Self {
        Entry { name: name.into(), kind: EntryKind::File }
    }
}

/// A folder of the tree.
pub trait Folder: Send + Sync {
    /// Returns the node of a name, listed or not; `None` if there is no such name.
    fn lookup(&self, name: &str) -> Result<Option<Node>>;

    /// Returns the folder that this one shows with changes, if it is known without reading anything. It gives all answers
    /// but those of `lookup`, `list` and `modified`, unless this one gives its own.
    fn inner(&self) -> Option<&dyn Folder> {
        None
    }

    /// Returns the reason why there is no node of this name, in one line, if there is a specific one.
    fn why_absent(&self, name: &str) -> Option<String> {
        self.inner()?.why_absent(name)
    }

    /// Returns the reason why there is nothing at a path that begins with an absent name and goes on with `below`, which
    /// is not empty: that for the name, unless the folder knows which names it would have.
    fn why_absent_below(&self, name: &str, below: &[&str]) -> Option<String> {
        self.inner().map_or_else(|| self.why_absent(name), |inner| inner.why_absent_below(name, below))
    }

    /// Returns the names that `ls` shows, in the preferred order.
    fn list(&self) -> Result<Vec<Entry>>;

    /// Returns paths in this folder that are known without reading anything, for suggestions: names, listed or not, and
    /// those in folders of formats. Empty if there are too many.
    fn known_paths(&self) -> Vec<String> {
        self.inner().map(Folder::known_paths).unwrap_or_default()
    }

    /// Returns the time of the last commit to the data shown.
    fn modified(&self) -> SystemTime;

    /// Returns the canonical path of what the folder shows, if other folders of the tree may show the same, once it has been
    /// listed. A walk enters each such place once: folders that name each other twice would have a path for each choice.
    fn place(&self) -> Option<Arc<[u8]>> {
        self.inner()?.place()
    }

    /// Returns a number that identifies the stored data, if they differ from those of the surrounding folder.
    fn source(&self) -> Option<u64> {
        self.inner()?.source()
    }

    /// Returns the approximate memory in bytes that this node and the nodes it owns take now, so that caches can
    /// account for it.
    fn memory(&self) -> usize {
        self.inner().map_or(NODE, Folder::memory)
    }

    /// Returns the bytes of the listed files in it, of those whose lengths are known without reading anything.
    fn known_bytes(&self) -> u64 {
        self.inner().map_or(0, Folder::known_bytes)
    }

    /// Returns the extended attributes, by full name (`user.…`).
    fn extended_attributes(&self) -> ExtendedAttributes {
        self.inner().map(Folder::extended_attributes).unwrap_or_default()
    }

    /// Returns what the folder shows, for a program that knows its type.
    fn subject(&self) -> Option<Subject> {
        self.inner()?.subject()
    }
}

/// Returns the reason why there is nothing at a path in a folder that has no node of the first name, if there is a
/// specific one.
pub fn why_absent(folder: &dyn Folder, path: &[&str]) -> Option<String> {
    match path {
        [] => None,
        [name] => folder.why_absent(name),
        [name, below @ ..] => folder.why_absent_below(name, below),
    }
}

/// A file of the tree.
#[expect(clippy::len_without_is_empty, reason = "reading the length can fail")]
pub trait File: Send + Sync {
    /// Returns the exact length in bytes. May read metadata the first time.
    fn len(&self) -> Result<u64>;

    /// Returns the length, if it is known without reading anything.
    fn known_len(&self) -> Option<u64> {
        None
    }

    /// Returns the bytes. An opened content never changes.
    fn open(&self) -> Result<Arc<dyn Content>>;

    /// Returns whether the bytes differ each time it is opened, with the same length.
    fn is_live(&self) -> bool {
        false
    }

    /// Returns whether the bytes and the length may differ the next time it is opened.
    fn may_change(&self) -> bool {
        false
    }

    /// Returns the same bytes in sequence, if opening takes a pass over all of them; `None` otherwise.
    fn forward(&self) -> Result<Option<Box<dyn Forward>>> {
        Ok(None)
    }

    /// Returns a remark for whoever reads the file, in one line: for example why its selection has no records. It is known
    /// once the length is, or all bytes were read in sequence.
    fn remark(&self) -> Option<String> {
        None
    }

    /// Returns the time of the last commit to the data shown.
    fn modified(&self) -> SystemTime;

    /// Returns the extended attributes, by full name (`user.…`).
    fn extended_attributes(&self) -> ExtendedAttributes {
        Vec::new()
    }
}
