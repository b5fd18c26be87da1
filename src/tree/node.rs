//! What the tree is made of: folders that look names up, and files that open to a [`Content`].
//!
//! Nodes are made on lookup and cost little until they are read, so a folder may have more names than
//! could ever be listed (slices, times).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::SystemTime;

use tilefs_export::{Content, Forward};
use tilefs_format::error::Result;
use tilefs_reader::statistics::Statistic;

/// Bytes of memory that a node takes, about, with its name in its folder and in the descriptions of that.
pub const NODE: usize = 640;

/// What can be mounted.
pub trait Tree: Send + Sync {
    /// The folder around all of it.
    fn root(&self) -> Arc<dyn Folder>;

    /// Looks whether what is stored has changed since the root was made, and makes another one if so. What was opened
    /// before stays as it was.
    ///
    /// # Errors
    /// Where it cannot be looked at; the root is then the one it was.
    fn refresh(&self) -> Result<Option<Refreshed>> {
        Ok(None)
    }

    /// What was counted while it was read from.
    fn statistics(&self) -> Vec<Statistic> {
        Vec::new()
    }
}

/// A tree as it is now.
pub struct Refreshed {
    pub root: Arc<dyn Folder>,
    pub changed: Changed,
}

/// What may be other than it was: names, sizes, times and bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    All,
    /// What is in folders with these [sources](Folder::source), and has no other source.
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

/// A tree that is what it is.
impl Tree for Arc<dyn Folder> {
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

    /// As [`Folder::memory`].
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

/// A folder of the tree.
pub trait Folder: Send + Sync {
    /// The node of a name, listed or not; `None` where there is no such name.
    fn lookup(&self, name: &str) -> Result<Option<Node>>;

    /// Why there is no node of this name, in a line, where there is more to say than that.
    fn why_absent(&self, _name: &str) -> Option<String> {
        None
    }

    /// The names that `ls` shows, in the order in which it should show them.
    fn list(&self) -> Result<Vec<Entry>>;

    /// Paths in this folder that are known without reading anything, for suggestions: names, listed or not, and those in
    /// folders of formats. Where there are too many to name, none.
    fn known_paths(&self) -> Vec<String> {
        Vec::new()
    }

    /// The time of the last commit to what this shows.
    fn modified(&self) -> SystemTime;

    /// A number for what is stored that this is made of, where it is something else than the folder around it is.
    fn source(&self) -> Option<u64> {
        None
    }

    /// Bytes of memory that this and the nodes it owns take at present, about, so that whoever keeps it can tell.
    fn memory(&self) -> usize {
        NODE
    }

    /// Extended attributes, by their full names (`user.tiledb.…`).
    fn extended_attributes(&self) -> Vec<(String, Vec<u8>)> {
        Vec::new()
    }
}

/// A file of the tree.
#[expect(clippy::len_without_is_empty, reason = "the length can fail; whoever wants to know asks for it")]
pub trait File: Send + Sync {
    /// The exact length in bytes. May have to read metadata the first time.
    fn len(&self) -> Result<u64>;

    /// The bytes. An opened content never changes.
    fn open(&self) -> Result<Arc<dyn Content>>;

    /// Whether the bytes are others each time it is opened, of the same length.
    fn is_live(&self) -> bool {
        false
    }

    /// Whether the bytes may be others the next time it is opened, and of another length.
    fn may_change(&self) -> bool {
        false
    }

    /// The same bytes from the first on, where opening takes a pass over all of them; `None` where it does not.
    fn forward(&self) -> Result<Option<Box<dyn Forward>>> {
        Ok(None)
    }

    /// The time of the last commit to what this shows.
    fn modified(&self) -> SystemTime;

    /// Extended attributes, by their full names (`user.tiledb.…`).
    fn extended_attributes(&self) -> Vec<(String, Vec<u8>)> {
        Vec::new()
    }
}
