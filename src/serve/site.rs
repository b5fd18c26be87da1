//! The served data: the tree as of the last refresh, its recently used nodes, and the state that all requests share.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::SystemTime;

use tilefs_base::error::{Error, Result};
use tilefs_base::statistics::{Statistic, Value};
use tilefs_threads::cancellation;
use tilefs_vfs::node::recent::{Found, Lookup, RecentFiles, RecentNodes, is_fixed};
use tilefs_vfs::read_ahead::ReadAhead;
use tilefs_vfs::refresh::RefreshTrigger;
use tilefs_vfs::reports::{ErrorLog, OwnFolder, RootWithOwn, reason_of_panic};
use tilefs_vfs::{Changed, File, Folder, Node, ServedTree};

use super::connection::buffers::Buffers;
use super::connection::connections::Connections;
use super::connection::counts::Counts;
use super::http::host_paths::HostPaths;
use super::http::refusal::{NodeFailure, Refusal};
use super::http::validators;
use super::served_file::ServedFile;

/// A tree and everything that its requests share.
pub struct Site {
    tree: Arc<dyn ServedTree>,
    own: Arc<OwnFolder>,
    snapshot: RwLock<Arc<Snapshot>>,
    pub read_ahead: Arc<ReadAhead>,
    /// Whether files that are read as a whole are prefetched from the first byte.
    pub expects_whole_reads: bool,
    /// Buffers of pieces of files.
    pub buffers: Arc<Buffers>,
    pub errors: ErrorLog,
    pub counts: Arc<Counts>,
    /// Removes paths of this machine from texts for clients.
    pub host_paths: HostPaths,
    connections: Arc<Connections>,
    /// Triggered when stored data is missing, if the tree is refreshed periodically: it may have been vacuumed.
    missing: Option<RefreshTrigger>,
}

/// The tree as of one refresh. Memory: that of [`RecentNodes`] and [`RecentFiles`]; a few bytes for each array that has
/// changed.
pub struct Snapshot {
    versions: Versions,
    nodes: RecentNodes,
    files: RecentFiles<ServedFile>,
}

/// Counts how often the stored data have changed.
#[derive(Clone)]
struct Versions {
    /// Random, and so different in each run.
    run: [u8; 16],
    all: u64,
    by_source: HashMap<u64, u64>,
}

impl Site {
    /// Creates the site of a tree.
    pub fn new(
        tree: Arc<dyn ServedTree>,
        read_ahead: ReadAhead,
        expects_whole_reads: bool,
        connections: Arc<Connections>,
        missing: Option<RefreshTrigger>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|site: &Weak<Site>| {
            let site = site.clone();
            let errors = ErrorLog::default();
            let statistics = move || site.upgrade().map_or(Vec::new(), |site| site.statistics());
            let own = Arc::new(OwnFolder::new(errors.recent().clone(), statistics));
            let versions = Versions { run: random(), all: 0, by_source: HashMap::new() };
            let root = Arc::new(RootWithOwn::new(tree.root(), own.clone()));
            Site {
                host_paths: HostPaths::new(tree.path().as_deref()),
                tree,
                own,
                snapshot: RwLock::new(Arc::new(Snapshot::new(root, versions))),
                read_ahead: Arc::new(read_ahead),
                expects_whole_reads,
                buffers: Arc::default(),
                errors,
                counts: Arc::default(),
                connections,
                missing,
            }
        })
    }

    /// Returns the name of what is served: that of its folder, without the path to it.
    pub fn title(&self) -> String {
        let path = self.tree.path().unwrap_or_default();
        path.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("tilefs").to_owned()
    }

    /// Returns the tree as of the last refresh. A request uses one snapshot from its beginning to its end.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Refreshes the tree to the stored data.
    ///
    /// # Errors
    /// If the stored data cannot be opened. The reason is logged, and the previous state stays visible.
    pub fn refresh(&self) -> std::result::Result<(), Refusal> {
        let refreshed = self.attempt(|| "refreshing".to_owned(), || Ok(self.tree.refresh()?))?;
        let Some(refreshed) = refreshed else { return Ok(()) };
        let versions = self.snapshot().versions.after(&refreshed.changed);
        let root = Arc::new(RootWithOwn::new(refreshed.root, self.own.clone()));
        let snapshot = Arc::new(Snapshot::new(root, versions));
        let before = std::mem::replace(&mut *self.snapshot.write().unwrap_or_else(PoisonError::into_inner), snapshot);
        // Dropping the nodes may be expensive, so the lock is released first.
        drop(before);
        self.counts.refresh();
        log::info!("refreshed: the current state is visible");
        Ok(())
    }

    /// Returns all statistics, of this module and those below.
    pub fn statistics(&self) -> Vec<Statistic> {
        let now = |name, help, count: usize| Statistic::new(name, help, Value::Now(count as u64));
        let (nodes, files) = self.snapshot().kept();
        let mut statistics = self.counts.statistics();
        statistics.extend([
            now("connections", "Connections that are open", self.connections.count()),
            now("names", "Recently used files and folders that are kept", nodes),
            now("open_files", "Recently read files that are kept open", files),
        ]);
        statistics.extend(self.read_ahead.statistics());
        statistics.extend(self.tree.statistics());
        statistics
    }

    /// Records a remark about a file for `errors.txt`, under its folder, whose files mostly have the same one.
    pub fn note(&self, path: &str, remark: &str) {
        self.errors.recent().remark(path.rsplit_once('/').map_or("", |(folder, _)| folder), remark);
    }

    /// Runs the work of a request. Converts errors and panics to a refusal, and writes them to the log.
    ///
    /// # Errors
    /// The refusal.
    pub fn attempt<T>(
        &self,
        doing: impl Fn() -> String,
        work: impl FnOnce() -> std::result::Result<T, NodeFailure>,
    ) -> std::result::Result<T, Refusal> {
        let work = || {
            let done = work()?;
            // Cancelled work may have a wrong result.
            cancellation::check()?;
            Ok(done)
        };
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(NodeFailure::Absent(reason))) => {
                let reason = reason.map(|reason| self.host_paths.hide(&reason));
                if let Some(reason) = &reason {
                    self.errors.recent().remark(&doing(), reason);
                }
                Err(Refusal::Absent(reason))
            }
            Ok(Err(NodeFailure::Error(Error::Cancelled))) => Err(Refusal::Cancelled),
            Ok(Err(NodeFailure::Error(error @ (Error::NotFound { .. } | Error::Usage { .. })))) => {
                Err(Refusal::Absent(Some(self.host_paths.hide_in_error(&error))))
            }
            Ok(Err(NodeFailure::Error(error))) => {
                if let (Error::Missing { .. }, Some(trigger)) = (&error, &self.missing) {
                    trigger.trigger();
                }
                Err(self.failed(&doing(), &error))
            }
            Err(panic) => Err(self.failed(&doing(), &Error::internal(reason_of_panic(&*panic)))),
        }
    }

    /// Counts an error and logs it. Returns the refusal, which does not say where on this machine the data are.
    fn failed(&self, doing: &str, error: &Error) -> Refusal {
        self.counts.errors.add(error.kind());
        let shown = self.host_paths.hide_in_error(error);
        self.errors.report_as(doing, &error.to_string(), &shown);
        Refusal::Failed(shown)
    }
}

impl Versions {
    fn after(&self, changed: &Changed) -> Self {
        let mut versions = self.clone();
        match changed {
            Changed::All => versions.all += 1,
            Changed::Sources(sources) => {
                sources.iter().for_each(|source| *versions.by_source.entry(*source).or_default() += 1)
            }
        }
        versions
    }

    /// Returns bytes that differ whenever data of a source may have changed.
    fn of(&self, source: Option<u64>) -> [u8; 32] {
        let own = source.and_then(|source| self.by_source.get(&source)).copied().unwrap_or(0);
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&self.run);
        bytes[16..24].copy_from_slice(&self.all.to_le_bytes());
        bytes[24..].copy_from_slice(&own.to_le_bytes());
        bytes
    }
}

impl Snapshot {
    fn new(root: Arc<dyn Folder>, versions: Versions) -> Self {
        Snapshot { versions, nodes: RecentNodes::new(root), files: RecentFiles::default() }
    }

    /// Returns the node at a path.
    ///
    /// # Errors
    /// [`NodeFailure::Absent`] if there is none, or the errors of a lookup.
    pub fn find(&self, names: &[String]) -> std::result::Result<Found, NodeFailure> {
        match self.nodes.find(names)? {
            Lookup::Found(found) => Ok(found),
            Lookup::Absent(reason) => Err(NodeFailure::Absent(reason)),
        }
    }

    /// Returns an open file. Those whose bytes never change are kept open.
    ///
    /// # Errors
    /// As for [`File::open`].
    pub fn open(&self, path: &str, file: &Arc<dyn File>, read_ahead: &Arc<ReadAhead>) -> Result<Arc<ServedFile>> {
        let open = |file: &dyn File| Ok(Arc::new(ServedFile::new(file.open()?, read_ahead.clone())));
        self.files.get_or_open(path, &**file, open)
    }

    /// Returns the ETag of a file of this length; `None` if its bytes may change without a commit.
    pub fn etag(&self, path: &str, found: &Found, length: u64) -> Option<String> {
        let Node::File(file) = &found.node else { return None };
        is_fixed(&**file).then(|| validators::etag(&self.versions.of(found.source), path, length, file.modified()))
    }

    /// Returns the ETag of a file in a folder that was found.
    pub fn etag_within(&self, path: &str, folder: &Found, file: &Arc<dyn File>, length: u64) -> Option<String> {
        self.etag(path, &Found { node: Node::File(file.clone()), source: folder.source }, length)
    }

    /// Returns the numbers of cached nodes and open files.
    fn kept(&self) -> (usize, usize) {
        (self.nodes.count(), self.files.count())
    }
}

/// Returns the time that a node shows as its last change.
pub fn modified(node: &Node) -> SystemTime {
    match node {
        Node::Folder(folder) => folder.modified(),
        Node::File(file) => file.modified(),
    }
}

/// Returns random bytes; if there are none, bytes that at least differ in each run.
fn random() -> [u8; 16] {
    use std::hash::{BuildHasher, RandomState};
    let mut bytes = [0; 16];
    // The standard library seeds it from the system.
    let number = |salt: u64| RandomState::new().hash_one((salt, std::process::id(), SystemTime::now())).to_le_bytes();
    bytes[..8].copy_from_slice(&number(0));
    bytes[8..].copy_from_slice(&number(1));
    bytes
}
