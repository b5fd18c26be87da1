//! The tree of an array or a group while it is mounted: its root is remade after a commit.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tilefs_base::error::Result;
use tilefs_base::statistics::Statistic;
use tilefs_reader::array::Context;
use tilefs_reader::group::changes::{Changes, changes};
use tilefs_storage::StoreKey;
use tilefs_threads::cancellation::Turn;
use tilefs_vfs::node::{Changed, Folder, Refreshed, ServedTree};

use crate::group::OpenedFolder;
use crate::objects::opened_later::source_of;
use crate::open::{Stored, open_in, opened_folder};
use crate::options::TreeOptions;

/// An array or a group with its tree.
pub struct MountedTree {
    context: Arc<Context>,
    path: StoreKey,
    options: Arc<TreeOptions>,
    /// Never locked during I/O: requests for the root do not wait for a refresh.
    state: Mutex<CurrentRoot>,
    /// The time as of which the root was opened, in milliseconds since 1970.
    time: AtomicU64,
    /// One refresh at a time.
    refreshing: Turn,
}

struct CurrentRoot {
    root: OpenedFolder,
    /// Whether the last attempt to open changed data failed.
    is_behind: bool,
}

impl MountedTree {
    /// Creates the tree of a stored object that was opened with these options.
    ///
    /// # Errors
    /// As for [`root`](crate::root).
    pub fn new(stored: Stored, options: &TreeOptions) -> Result<Self> {
        let (context, path, options) = (stored.context().clone(), stored.path().clone(), Arc::new(options.clone()));
        let time = AtomicU64::new(stored.window().end);
        let root = opened_folder(stored, &options)?;
        let state = Mutex::new(CurrentRoot { root, is_behind: false });
        Ok(MountedTree { context, path, options, state, time, refreshing: Turn::new() })
    }

    /// Opens the same tree as of the same time in another context. Uses only what has no locks of this one, so that a
    /// forked child can call it with a context of its own.
    ///
    /// # Errors
    /// As for [`open_stored`](crate::open_stored).
    pub fn in_context(&self, context: Arc<Context>) -> Result<Self> {
        let mut as_of_then = (*self.options).clone();
        as_of_then.reading.at = Some(self.time.load(Ordering::Relaxed));
        let tree = Self::new(open_in(context, &self.path, &as_of_then)?, &self.options)?;
        // Commits since then are in the folders that were just listed, so they will not look like changes.
        tree.state().is_behind = true;
        Ok(tree)
    }

    fn state(&self) -> MutexGuard<'_, CurrentRoot> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reopens everything; also returns the time that the tree shows.
    fn reopen(&self) -> Result<(OpenedFolder, u64)> {
        self.context.watch.forget(None);
        let stored = open_in(self.context.clone(), &self.path, &self.options)?;
        let time = stored.window().end;
        Ok((opened_folder(stored, &self.options)?, time))
    }
}

impl ServedTree for MountedTree {
    fn root(&self) -> Arc<dyn Folder> {
        self.state().root.folder()
    }

    fn path(&self) -> Option<String> {
        Some(self.path.to_string())
    }

    /// Costs a few listings of each array and group that was opened. Arrays of a group that have not changed stay open.
    fn refresh(&self) -> Result<Option<Refreshed>> {
        let _alone = self.refreshing.take()?;
        let changes = changes(&self.context)?;
        let (was_behind, group) = {
            let mut state = self.state();
            if !state.is_behind && changes == Changes::OfArrays(Vec::new()) {
                return Ok(None);
            }
            let group = match &state.root {
                OpenedFolder::Group(group) => Some(group.clone()),
                OpenedFolder::OfGroup(_) | OpenedFolder::Other(_) => None,
            };
            (std::mem::replace(&mut state.is_behind, true), group)
        };
        let (root, time, changed) = match (group, changes) {
            (Some(group), Changes::OfArrays(mut arrays)) if !was_behind => {
                arrays.extend(group.depending_on_others());
                let watch = &self.context.watch;
                watch.forget(Some(&arrays));
                // The texts of a group also describe its members.
                let sources = arrays.iter().chain(&watch.groups()).map(source_of).collect();
                let arrays: HashSet<StoreKey> = arrays.into_iter().collect();
                let window = self.options.reading.window();
                let group = group.refreshed(&arrays, window)?;
                (OpenedFolder::Group(Arc::new(group)), window.end, Changed::Sources(sources))
            }
            _ => {
                let (root, time) = self.reopen()?;
                (root, time, Changed::All)
            }
        };
        let folder = root.folder();
        self.time.store(time, Ordering::Relaxed);
        *self.state() = CurrentRoot { root, is_behind: false };
        Ok(Some(Refreshed { root: folder, changed }))
    }

    fn statistics(&self) -> Vec<Statistic> {
        self.context.statistics()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use tilefs_storage::simulated::FaultKind;
    use tilefs_storage::{MemoryStorage, SimulatedStorage};

    use super::*;
    use crate::open::open_stored_in;

    /// Another thread gets the root while the storage is asked what has changed.
    #[test]
    fn a_refresh_keeps_nobody_from_the_root() {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/demo");
        let key = StoreKey::from("s3://bucket/array");
        let objects = MemoryStorage::load(&fixture, &key).unwrap();
        let storage = Arc::new(SimulatedStorage::new(Arc::new(objects), Duration::ZERO));
        let options = TreeOptions { is_watched: true, ..TreeOptions::default() };
        let stored = open_stored_in(storage.clone(), &key, &options).unwrap();
        let tree = Arc::new(MountedTree::new(stored, &options).unwrap());
        let (asked, answered) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let counts = (tree.clone(), asked.clone(), answered.clone());
        storage.fail(FaultKind::Transient, move |_| {
            let (tree, asked, answered) = counts.clone();
            asked.fetch_add(1, Ordering::Relaxed);
            let (answer, answers) = mpsc::channel();
            thread::spawn(move || {
                let _root = tree.root();
                answer.send(())
            });
            answered.fetch_add(usize::from(answers.recv_timeout(Duration::from_secs(10)).is_ok()), Ordering::Relaxed);
            false
        });
        assert!(tree.refresh().unwrap().is_none());
        storage.recover();
        let [asked, answered] = [asked, answered].map(|count| count.load(Ordering::Relaxed));
        assert!(asked > 0 && answered == asked, "{answered} of {asked}");
    }
}
