//! The files of a tree, without a mount: what `tilefs cat` and `tilefs ls` show.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::exceptions::PyIsADirectoryError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_threads::PerProcess;
use tilefs_threads::cancellation;
use tilefs_tree::MountedTree;
use tilefs_vfs::node::recent::{Lookup, RecentFiles, RecentNodes};
use tilefs_vfs::{EntryKind, Node, ServedTree as _};

use crate::call::Cancellation;
use crate::context::ProcessContext;
use crate::options::Options;
use crate::{call, errors, open};

/// The tree of an array, a group or a folder of these.
#[pyclass(frozen, name = "Tree", module = "tilefs._tilefs")]
pub struct PythonTree {
    context: Arc<ProcessContext>,
    nodes: PerProcess<Nodes>,
}

/// A tree, and the recently used nodes and files since its last change.
struct Nodes {
    tree: MountedTree,
    recent: Mutex<Arc<RecentlyRead>>,
}

struct RecentlyRead {
    nodes: RecentNodes,
    files: RecentFiles<dyn Content>,
}

/// A file or folder: the size of a file, `None` for a folder, and the time of the last commit in seconds since 1970.
type NodeOutline = (Option<u64>, f64);

#[pymethods]
impl PythonTree {
    #[new]
    fn new(py: Python<'_>, uri: PathBuf, options: &Options) -> PyResult<Self> {
        let mut options = options.0.clone();
        options.is_watched = true;
        call::run(py, || {
            let stored = open::stored(uri, &options)?;
            let context = ProcessContext::of(&stored, &options);
            let nodes = PerProcess::of(Nodes::new(MountedTree::new(stored, &options)?));
            Ok(PythonTree { context, nodes })
        })
    }

    /// Returns the size and time of a path.
    fn info(&self, py: Python<'_>, path: &str) -> PyResult<NodeOutline> {
        self.with(py, None, path, |node, _| outline(&node))
    }

    /// Returns the name, the size and the time of each entry of a folder; `None` for a file.
    fn list(&self, py: Python<'_>, path: &str) -> PyResult<Option<Vec<(String, NodeOutline)>>> {
        self.with(py, None, path, |node, _| {
            let Node::Folder(folder) = node else { return Ok(None) };
            let mut entries = Vec::new();
            for entry in folder.list()? {
                cancellation::check()?;
                // The entry may have disappeared since it was listed.
                let Some(node) = folder.lookup(&entry.name)? else { continue };
                entries.push((entry.name, outline(&node)?));
            }
            Ok(Some(entries))
        })
    }

    /// Returns the names of the entries of a folder, and whether each is a folder; `None` for a file.
    fn names(&self, py: Python<'_>, path: &str) -> PyResult<Option<Vec<(String, bool)>>> {
        self.with(py, None, path, |node, _| {
            let Node::Folder(folder) = node else { return Ok(None) };
            Ok(Some(folder.list()?.into_iter().map(|entry| (entry.name, entry.kind == EntryKind::Folder)).collect()))
        })
    }

    /// Returns the path of the group whose members are in a folder, the same for all names of the group; `None` for other
    /// folders and for files.
    fn group(&self, py: Python<'_>, path: &str) -> PyResult<Option<String>> {
        self.with(py, None, path, |node, _| {
            let Node::Folder(folder) = node else { return Ok(None) };
            folder.list()?;
            Ok(folder.place().map(|place| String::from_utf8_lossy(&place).into_owned()))
        })
    }

    /// Reads the bytes of a file from `start` up to `end`, clipped to the file. Negative numbers count from its end.
    #[pyo3(signature = (path, start=None, end=None, cancellation=None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        start: Option<i64>,
        end: Option<i64>,
        cancellation: Option<Bound<'py, Cancellation>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let cancellation = cancellation.as_ref().map(Bound::get);
        let content = self.with(py, cancellation, path, |node, recent| match node {
            Node::File(file) => recent.files.get_or_open(path, &*file, |file| file.open()).map(Some),
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
        PyBytes::new_with(py, count, |bytes| call::run_under(py, cancellation, || content.read_at(start, bytes)))
    }

    /// Looks for changes; returns whether there are any. Files that are read afterwards show them.
    fn refresh(&self, py: Python<'_>) -> PyResult<bool> {
        call::run(py, || {
            let nodes = self.here()?;
            let is_changed = nodes.tree.refresh()?.is_some();
            if is_changed {
                nodes.forget();
            }
            Ok(is_changed)
        })
    }
}

impl PythonTree {
    /// Returns the nodes of this process.
    fn here(&self) -> Result<&Nodes> {
        self.nodes.get_or_make(|parents| {
            let parents = parents.ok_or_else(|| Error::internal("a tree that no process has opened"))?;
            Ok(Nodes::new(parents.tree.in_context(self.context.get()?.clone())?))
        })
    }

    /// Runs `work` with the node at a path.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        cancellation: Option<&Cancellation>,
        path: &str,
        work: impl FnOnce(Node, &RecentlyRead) -> Result<T> + Send,
    ) -> PyResult<T> {
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        let done = call::run_under(py, cancellation, || {
            let recent = self.here()?.recent();
            match recent.nodes.find(&names)? {
                Lookup::Found(found) => work(found.node, &recent).map(Ok),
                Lookup::Absent(reason) => Ok(Err(reason)),
            }
        })?;
        done.map_err(|reason| {
            let reason = reason.unwrap_or_else(|| "no such file".to_owned());
            errors::absent(py, &format!("{path}: {reason}"))
        })
    }
}

impl Nodes {
    fn new(tree: MountedTree) -> Self {
        let recent = Mutex::new(RecentlyRead::new(&tree));
        Nodes { tree, recent }
    }

    fn recent(&self) -> Arc<RecentlyRead> {
        self.lock().clone()
    }

    fn forget(&self) {
        let recent = RecentlyRead::new(&self.tree);
        let before = std::mem::replace(&mut *self.lock(), recent);
        // Dropped after the lock is released: dropping nodes may be expensive.
        drop(before);
    }

    fn lock(&self) -> MutexGuard<'_, Arc<RecentlyRead>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecentlyRead {
    fn new(tree: &MountedTree) -> Arc<Self> {
        Arc::new(RecentlyRead { nodes: RecentNodes::new(tree.root()), files: RecentFiles::default() })
    }
}

fn outline(node: &Node) -> Result<NodeOutline> {
    let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    Ok(match node {
        Node::Folder(folder) => (None, seconds(folder.modified())),
        Node::File(file) => (Some(file.len()?), seconds(file.modified())),
    })
}
