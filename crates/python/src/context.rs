//! The storage, caches, threads and key of objects that were opened together. A forked child makes its own.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use tilefs_base::error::Result;
use tilefs_reader::array::Context;
use tilefs_threads::{self as threads, PerProcess};
use tilefs_tree::{Stored, TreeOptions};

/// The context of objects that were opened together, in each process that uses them.
pub struct ProcessContext {
    options: TreeOptions,
    /// The absolute path or the URI that was opened.
    root: PathBuf,
    context: PerProcess<Arc<Context>>,
}

impl ProcessContext {
    /// Takes the context of an object that this process has just opened.
    pub fn of(stored: &Stored, options: &TreeOptions) -> Arc<Self> {
        let root = PathBuf::from(OsStr::from_bytes(stored.path().as_bytes()));
        let context = PerProcess::of(stored.context().clone());
        Arc::new(ProcessContext { options: options.clone(), root, context })
    }

    /// Returns the context of this process. In a forked child, the first call makes it and starts threads.
    ///
    /// # Errors
    /// Fails if the child cannot start a thread, or cannot use a folder that the options name.
    pub fn get(&self) -> Result<&Arc<Context>> {
        self.context.get_or_make(|parents| {
            let reading = &self.options.reading;
            threads::start_team(reading.threads);
            let (storage, folder) = reading.storage_of(&self.root)?;
            // The key may have come through a pipe, which is empty now.
            let key = parents.and_then(|parents| parents.key.clone());
            let context = reading.context_with_key(storage, key)?;
            context.storage.allow(&folder);
            if self.options.is_watched {
                context.watch.begin();
            }
            Ok(context)
        })
    }
}
