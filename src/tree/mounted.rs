//! The tree of an array or a group for as long as it is mounted.

use std::sync::Arc;

use super::node::{Folder, Tree};
use super::open::{Stored, root};
use super::options::OpenOptions;
use crate::array::Context;
use crate::error::Result;
use crate::statistics::Statistic;

/// An array or a group with its tree.
pub struct MountedTree {
    context: Arc<Context>,
    root: Arc<dyn Folder>,
}

impl MountedTree {
    /// The tree of what was opened.
    ///
    /// # Errors
    /// As [`root`].
    pub fn new(stored: Stored, options: &OpenOptions) -> Result<Self> {
        let context = stored.context().clone();
        Ok(MountedTree { context, root: root(stored, options)? })
    }
}

impl Tree for MountedTree {
    fn root(&self) -> Arc<dyn Folder> {
        self.root.clone()
    }

    fn statistics(&self) -> Vec<Statistic> {
        self.context.statistics()
    }
}
