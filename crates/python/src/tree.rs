//! The files of a tree, without a mount: what `tilefs cat` and `tilefs ls` show.

use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use lru::LruCache;
use pyo3::exceptions::PyIsADirectoryError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tilefs::tree::suggest::suggestion;
use tilefs::tree::{EntryKind, File, Folder, MountedTree, Node, Tree as _};
use tilefs_export::Content;
use tilefs_format::error::Result;
use tilefs_reader::storage::is_object_uri;

use crate::fork::Kept;
use crate::options::Options;
use crate::{call, errors, open};

/// Maximum number of recently used nodes that are kept.
const MAX_NODES: NonZeroUsize = NonZeroUsize::MIN.saturating_add(511);

/// Maximum number of recently used files that are kept open.
const MAX_OPEN: NonZeroUsize = NonZeroUsize::MIN.saturating_add(127);

/// The tree of an array, a group or a folder of these.
#[pyclass(frozen, module = "tilefs._tilefs")]
pub struct Tree {
    nodes: Kept<Nodes>,
    /// Whether reads may wait for a network.
    is_far: bool,
}

/// The nodes of a tree by path. Memory: at most [`MAX_NODES`] nodes and [`MAX_OPEN`] open files.
struct Nodes {
    tree: MountedTree,
    recent: Mutex<Recent>,
}

struct Recent {
    nodes: LruCache<String, Node>,
    open: LruCache<String, Arc<dyn Content>>,
}

/// A file or folder: the size of a file, `None` for a folder, and the time of the last commit in seconds since 1970.
type NodeOutline = (Option<u64>, f64);

/// A node, or the reason why there is none.
enum Found {
    Node(Node),
    Absent(String),
}

#[pymethods]
impl Tree {
    #[new]
    fn new(py: Python<'_>, uri: PathBuf, options: &Options) -> PyResult<Self> {
        let mut options = options.0.clone();
        options.is_watched = true;
        let is_far = uri.to_str().is_some_and(is_object_uri);
        let nodes = call::run_long(py, || {
            let tree = MountedTree::new(open::stored(uri, &options)?, &options)?;
            let recent = Recent { nodes: LruCache::new(MAX_NODES), open: LruCache::new(MAX_OPEN) };
            Ok(Nodes { tree, recent: Mutex::new(recent) })
        })?;
        Ok(Tree { nodes: Kept::new(nodes), is_far })
    }

    /// Returns the size and time of a path.
    fn info(&self, py: Python<'_>, path: &str) -> PyResult<NodeOutline> {
        self.with(py, path, |node| outline(&node))
    }

    /// Returns the name, the size and the time of each entry of a folder; `None` for a file.
    fn list(&self, py: Python<'_>, path: &str) -> PyResult<Option<Vec<(String, NodeOutline)>>> {
        self.with(py, path, |node| {
            let Node::Folder(folder) = node else { return Ok(None) };
            let mut entries = Vec::new();
            for entry in folder.list()? {
                // It may have gone since.
                let Some(node) = folder.lookup(&entry.name)? else { continue };
                entries.push((entry.name, outline(&node)?));
            }
            Ok(Some(entries))
        })
    }

    /// Returns the names of the entries of a folder, and whether each is a folder; `None` for a file.
    fn names(&self, py: Python<'_>, path: &str) -> PyResult<Option<Vec<(String, bool)>>> {
        self.with(py, path, |node| {
            let Node::Folder(folder) = node else { return Ok(None) };
            Ok(Some(folder.list()?.into_iter().map(|entry| (entry.name, entry.kind == EntryKind::Folder)).collect()))
        })
    }

    /// Reads the bytes of a file from `start` up to `end`, clipped to the file. Negative numbers count from its end.
    #[pyo3(signature = (path, start=None, end=None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        start: Option<i64>,
        end: Option<i64>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let content = self.with(py, path, |node| match node {
            Node::File(file) => self.nodes.open(path, &*file).map(Some),
            Node::Folder(_) => Ok(None),
        })?;
        let Some(content) = content else {
            let error = io::Error::from(io::ErrorKind::IsADirectory);
            return Err(PyIsADirectoryError::new_err(format!("{path}: {error}")));
        };
        let length = content.len();
        let place = |at: i64| match u64::try_from(at) {
            Ok(at) => at.min(length),
            Err(_) => length.saturating_sub(at.unsigned_abs()),
        };
        let (start, end) = (start.map_or(0, place), end.map_or(length, place));
        let count = usize::try_from(end.saturating_sub(start))?;
        PyBytes::new_with(py, count, |bytes| {
            call::run_for(py, self.is_far || count >= call::LONG, || content.read_at(start, bytes))
        })
    }

    /// Looks for changes; returns whether there are any. Files that are read afterwards show them.
    fn refresh(&self, py: Python<'_>) -> PyResult<bool> {
        call::run_long(py, || {
            let is_changed = self.nodes.tree.refresh()?.is_some();
            if is_changed {
                self.nodes.forget();
            }
            Ok(is_changed)
        })
    }
}

impl Tree {
    /// Runs `work` with the node at a path.
    fn with<T: Send>(&self, py: Python<'_>, path: &str, work: impl FnOnce(Node) -> Result<T> + Send) -> PyResult<T> {
        let done = call::run_for(py, self.is_far, || match self.nodes.find(path)? {
            Found::Node(node) => work(node).map(Ok),
            Found::Absent(reason) => Ok(Err(reason)),
        })?;
        done.map_err(|reason| errors::absent(py, &format!("{path}: {reason}")))
    }
}

impl Nodes {
    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self) {
        let mut recent = self.recent();
        recent.nodes.clear();
        recent.open.clear();
    }

    /// Returns the node at a path; names are separated by slashes.
    fn find(&self, path: &str) -> Result<Found> {
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        let (mut node, depth) = self.nearest(&names);
        for (number, name) in names.iter().enumerate().skip(depth) {
            let Node::Folder(folder) = &node else { return Ok(Found::Absent("no such file".to_owned())) };
            let Some(next) = folder.lookup(name)? else {
                return Ok(Found::Absent(self.why_absent(&**folder, name, path)));
            };
            node = next;
            let so_far = names.get(..=number).unwrap_or_default().join("/");
            // Dropped after the lock is released: dropping a node may be expensive.
            let _gone = self.recent().nodes.push(so_far, node.clone());
        }
        Ok(Found::Node(node))
    }

    /// Returns the last node on the way to a path that is kept, and its depth.
    fn nearest(&self, names: &[&str]) -> (Node, usize) {
        let mut recent = self.recent();
        for depth in (1..=names.len()).rev() {
            if let Some(node) = recent.nodes.get(&names.get(..depth).unwrap_or_default().join("/")) {
                return (node.clone(), depth);
            }
        }
        (Node::Folder(self.tree.root()), 0)
    }

    fn why_absent(&self, folder: &dyn Folder, name: &str, path: &str) -> String {
        folder.why_absent(name).unwrap_or_else(|| match suggestion(&*self.tree.root(), path) {
            Some(meant) => format!("no such file; did you mean {meant}?"),
            None => "no such file".to_owned(),
        })
    }

    /// Opens a file. Those whose bytes never change are kept open.
    fn open(&self, path: &str, file: &dyn File) -> Result<Arc<dyn Content>> {
        let is_kept = !file.is_live() && !file.may_change();
        if let Some(open) = self.recent().open.get(path).filter(|_| is_kept) {
            return Ok(open.clone());
        }
        let content = file.open()?;
        if is_kept {
            let _gone = self.recent().open.push(path.to_owned(), content.clone());
        }
        Ok(content)
    }
}

fn outline(node: &Node) -> Result<NodeOutline> {
    let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    Ok(match node {
        Node::Folder(folder) => (None, seconds(folder.modified())),
        Node::File(file) => (Some(file.len()?), seconds(file.modified())),
    })
}
