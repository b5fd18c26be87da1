//! Refreshing a mount: asks the tree for changes, replaces the root, and invalidates names, sizes and listings in the
//! kernel.
//!
//! Runs on its own thread, started on demand, because an invalidation may wait for requests in the same folder, and
//! storage may hang.

use std::io;
use std::sync::{Mutex, PoisonError, Weak};
use std::time::Duration;

use fuser::{INodeNo, Notifier};
use tilefs_threads as threads;

use super::inodes::Outdated;
use super::server::FuseServer;
use crate::refresh::{RefreshOutcome, RefreshTrigger, Triggered};

/// Refreshes a mount on demand and periodically.
pub struct Refresher {
    /// `None` once started.
    worker: Mutex<Option<RefreshWorker>>,
    trigger: RefreshTrigger,
}

struct RefreshWorker {
    triggered: Triggered,
    server: Weak<FuseServer>,
    notifier: Notifier,
}

impl Refresher {
    /// Creates a refresher for this server; it does nothing before it is started.
    pub fn new(trigger: RefreshTrigger, triggered: Triggered, server: Weak<FuseServer>, notifier: Notifier) -> Self {
        Refresher { worker: Mutex::new(Some(RefreshWorker { triggered, server, notifier })), trigger }
    }

    /// Starts refreshing on demand and after each `interval`, until the mount ends.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn start(&self, interval: Option<Duration>) -> io::Result<()> {
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(worker) = worker {
            threads::start("refresh", move || worker.run(interval))?;
        }
        Ok(())
    }

    /// Refreshes soon; starts the thread if necessary.
    pub fn now(&self) {
        self.trigger.trigger();
        if let Err(error) = self.start(None) {
            log::error!("cannot refresh, because a thread cannot be started: {error}");
        }
    }
}

impl RefreshWorker {
    fn run(self, interval: Option<Duration>) {
        let RefreshWorker { triggered, server, notifier } = self;
        // Hold the server only during its refresh.
        let refresh = || server.upgrade().map(|server| server.refresh());
        triggered.run(interval, || match refresh() {
            Some(Ok(outdated)) => {
                outdated.iter().for_each(|outdated| tell_the_kernel(&notifier, outdated));
                RefreshOutcome::Done
            }
            Some(Err(_)) => RefreshOutcome::Failed,
            None => RefreshOutcome::Ended,
        });
    }
}

/// Invalidates the names and folders that a refresh found outdated. Errors mean that the kernel no longer knows the
/// name or folder, which is fine.
fn tell_the_kernel(notifier: &Notifier, outdated: &Outdated) {
    for (folder, name) in &outdated.files {
        let _ = notifier.inval_entry(INodeNo(*folder), name.as_ref().as_ref());
    }
    for folder in &outdated.folders {
        let _ = notifier.inval_inode(INodeNo(*folder), 0, 0);
    }
    log::info!(
        "refreshed: the current state is visible; {} files and {} folders in use may have changed",
        outdated.files.len(),
        outdated.folders.len()
    );
}
