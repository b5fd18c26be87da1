//! The tree of an array or a group while it is mounted: its root is remade after a commit.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tilefs_format::error::Result;
use tilefs_reader::array::Context;
use tilefs_reader::group::changes::{Changes, changes};
use tilefs_reader::statistics::Statistic;
use tilefs_reader::storage::StoreKey;

use super::array::array_folder;
use super::directory::DirectoryFolder;
use super::group::{GroupFolder, source_of};
use super::node::{Changed, Folder, Refreshed, Tree};
use super::open::{Stored, open_in};
use super::options::OpenOptions;

/// An array or a group with its tree.
pub struct MountedTree {
    context: Arc<Context>,
    path: StoreKey,
    options: Arc<OpenOptions>,
    state: Mutex<CurrentRoot>,
}

struct CurrentRoot {
    root: Root,
    /// Whether the last attempt to open changed data failed.
    is_behind: bool,
}

enum Root {
    Array(Arc<dyn Folder>),
    Group(Arc<GroupFolder>),
    Directory(Arc<dyn Folder>),
}

impl Root {
    fn new(stored: Stored, options: &Arc<OpenOptions>) -> Result<Self> {
        Ok(match stored {
            Stored::Array(array) => Root::Array(Arc::new(array_folder(array, options.clone())?)),
            Stored::Group(group) => Root::Group(Arc::new(GroupFolder::new(group, options.clone())?)),
            Stored::Directory(directory) => Root::Directory(Arc::new(DirectoryFolder::new(directory, options.clone()))),
        })
    }

    fn folder(&self) -> Arc<dyn Folder> {
        match self {
            Root::Array(folder) | Root::Directory(folder) => folder.clone(),
            Root::Group(folder) => folder.clone(),
        }
    }
}

impl MountedTree {
    /// Creates the tree of a stored object that was opened with these options.
    ///
    /// # Errors
    /// As for [`root`](super::root).
    pub fn new(stored: Stored, options: &OpenOptions) -> Result<Self> {
        let (context, path, options) = (stored.context().clone(), stored.path().clone(), Arc::new(options.clone()));
        let root = Root::new(stored, &options)?;
        Ok(MountedTree { context, path, options, state: Mutex::new(CurrentRoot { root, is_behind: false }) })
    }

    fn state(&self) -> MutexGuard<'_, CurrentRoot> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reopens everything.
    fn reopen(&self) -> Result<Root> {
        self.context.watch.forget(None);
        Root::new(open_in(self.context.clone(), &self.path, &self.options)?, &self.options)
    }
}

impl Tree for MountedTree {
    fn root(&self) -> Arc<dyn Folder> {
        self.state().root.folder()
    }

    /// Costs a few listings of each array and group that was opened. Arrays of a group that have not changed stay open.
    fn refresh(&self) -> Result<Option<Refreshed>> {
        let mut state = self.state();
        let changes = changes(&self.context)?;
        if !state.is_behind && changes == Changes::OfArrays(Vec::new()) {
            return Ok(None);
        }
        let was_behind = std::mem::replace(&mut state.is_behind, true);
        let (root, changed) = match (&state.root, changes) {
            (Root::Group(group), Changes::OfArrays(arrays)) if !was_behind => {
                let watch = &self.context.watch;
                watch.forget(Some(&arrays));
                // The texts of a group also describe its members.
                let sources = arrays.iter().chain(&watch.groups()).map(source_of).collect();
                let arrays: HashSet<StoreKey> = arrays.into_iter().collect();
                let group = group.refreshed(&arrays, self.options.reading().window())?;
                (Root::Group(Arc::new(group)), Changed::Sources(sources))
            }
            _ => (self.reopen()?, Changed::All),
        };
        *state = CurrentRoot { root, is_behind: false };
        Ok(Some(Refreshed { root: state.root.folder(), changed }))
    }

    fn statistics(&self) -> Vec<Statistic> {
        self.context.statistics()
    }
}
