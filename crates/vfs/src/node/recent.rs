//! The recently used nodes and open files of a tree, by path, for callers that come with whole paths.

use std::sync::Arc;

use tilefs_base::error::Result;
use tilefs_base::lru_cache::LruCache;
use tilefs_threads::cancellation;

use crate::node::suggest::suggestion;
use crate::node::{File, Folder, Node, why_absent};

/// Maximum number of names in a path; longer paths do not exist.
const MAX_DEPTH: usize = 256;

/// Maximum number of recently used nodes.
const MAX_NODES: usize = 512;

/// Approximate maximum of their memory in bytes. One node is always kept, whatever its size.
const MAX_BYTES: usize = 32 << 20;

/// Maximum number of recently used files that are kept open.
const MAX_OPEN: usize = 128;

/// The recently used nodes of a tree. Memory: at most `MAX_NODES` nodes, of approximately `MAX_BYTES`.
pub struct RecentNodes {
    root: Arc<dyn Folder>,
    /// By path; each with its memory when it was found.
    kept: LruCache<String, Found>,
}

/// A node of the tree.
#[derive(Clone)]
pub struct Found {
    pub node: Node,
    /// The nearest [source](Folder::source) of stored data on the way to it.
    pub source: Option<u64>,
}

/// The outcome of looking for a path.
pub enum Lookup {
    Found(Found),
    /// There is no such path, with the reason if there is a specific one.
    Absent(Option<String>),
}

/// Recently used files that are kept open, if their bytes never change. Memory: at most `MAX_OPEN` files.
pub struct RecentFiles<T: ?Sized>(LruCache<String, Arc<T>>);

impl RecentNodes {
    /// Creates the nodes of the tree with this root.
    pub fn new(root: Arc<dyn Folder>) -> Self {
        RecentNodes { root, kept: LruCache::with_bytes(MAX_NODES, MAX_BYTES) }
    }

    pub fn root(&self) -> &Arc<dyn Folder> {
        &self.root
    }

    /// Looks for the node at a path, from the nearest kept node on. If there is none, the reason names the nearest path
    /// that exists, if any is near.
    ///
    /// # Errors
    /// As for [`Folder::lookup`].
    pub fn find<S: AsRef<str>>(&self, names: &[S]) -> Result<Lookup> {
        if names.len() > MAX_DEPTH {
            return Ok(Lookup::Absent(None));
        }
        let mut path = String::new();
        let ends: Vec<usize> = names.iter().map(|name| push_name(&mut path, name.as_ref())).collect();
        let (mut found, depth) = self.nearest(&path, &ends);
        for (number, (name, end)) in names.iter().zip(&ends).enumerate().skip(depth) {
            let Node::Folder(folder) = &found.node else { return Ok(Lookup::Absent(None)) };
            let Some(node) = folder.lookup(name.as_ref())? else {
                let near = || suggestion(&*self.root, &path).map(|near| format!("no such file; did you mean {near}?"));
                let rest: Vec<&str> = names.iter().skip(number).map(AsRef::as_ref).collect();
                return Ok(Lookup::Absent(why_absent(&**folder, &rest).or_else(near)));
            };
            // A cancelled lookup may have returned incomplete data.
            cancellation::check()?;
            let source = match &node {
                Node::Folder(folder) => folder.source(),
                Node::File(_) => None,
            };
            found = Found { node, source: source.or(found.source) };
            self.kept.change(|kept| kept.put(path[..*end].to_owned(), found.clone(), found.node.memory()));
        }
        Ok(Lookup::Found(found))
    }

    /// Returns the number of nodes that are kept.
    pub fn count(&self) -> usize {
        self.kept.count()
    }

    /// Returns the last node on the way to a path that is kept, and its depth. `ends` are the ends of the names.
    fn nearest(&self, path: &str, ends: &[usize]) -> (Found, usize) {
        let nearest = ends.iter().enumerate().rev();
        let nearest = nearest.map(|(before, end)| Some((self.kept.get(&path[..*end])?, before + 1)));
        let root = || (Found { node: Node::Folder(self.root.clone()), source: self.root.source() }, 0);
        nearest.flatten().next().unwrap_or_else(root)
    }
}

/// Appends a name to a path. Returns the end of the path.
fn push_name(path: &mut String, name: &str) -> usize {
    if !path.is_empty() {
        path.push('/');
    }
    path.push_str(name);
    path.len()
}

impl<T: ?Sized> Default for RecentFiles<T> {
    fn default() -> Self {
        RecentFiles(LruCache::new(MAX_OPEN))
    }
}

impl<T: ?Sized> RecentFiles<T> {
    /// Returns the open file of a path, or opens it.
    ///
    /// # Errors
    /// Those of `open`.
    pub fn get_or_open(
        &self,
        path: &str,
        file: &dyn File,
        open: impl FnOnce(&dyn File) -> Result<Arc<T>>,
    ) -> Result<Arc<T>> {
        if !is_fixed(file) {
            return open(file);
        }
        self.0.get_or_make(path.to_owned(), || {
            let opened = open(file)?;
            // A cancelled pass may have measured the file wrongly.
            cancellation::check()?;
            Ok(opened)
        })
    }

    /// Returns the number of files that are kept open.
    pub fn count(&self) -> usize {
        self.0.count()
    }
}

/// Returns whether the bytes of a file change only with a refresh.
pub fn is_fixed(file: &dyn File) -> bool {
    !file.is_live() && !file.may_change()
}
