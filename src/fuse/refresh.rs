//! Refreshing a mount: asks the tree for changes, replaces the root, and invalidates names, sizes and listings in the
//! kernel.
//!
//! Runs on its own thread, started on demand, because an invalidation may wait for requests in the same folder, and
//! storage may hang.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use fuser::{INodeNo, Notifier};
use tilefs_reader::threads;

use super::filesystem::Server;
use super::inodes::Outdated;

/// Minimum interval between refreshes.
const PAUSE: Duration = Duration::from_millis(100);

/// Delay after a failed refresh, doubled after each further failure. While an array is being replaced, it does not
/// exist for a moment.
const RETRY: Duration = Duration::from_millis(200);

/// Maximum retry delay.
const MAX_RETRY: Duration = Duration::from_secs(10);

/// Triggers refreshes. Triggers that arrive while one is pending are merged with it.
#[derive(Debug, Clone)]
pub struct RefreshTrigger(SyncSender<()>);

impl RefreshTrigger {
    /// Triggers a refresh. It stays pending until the [`Refresher`] is started.
    pub fn trigger(&self) {
        // Fails if one is pending already, or if the mount has ended.
        let _ = self.0.try_send(());
    }
}

/// Refreshes a mount on demand and periodically.
pub struct Refresher {
    /// `None` once started.
    worker: Mutex<Option<RefreshWorker>>,
    trigger: RefreshTrigger,
}

struct RefreshWorker {
    requests: Receiver<()>,
    server: Weak<Server>,
    notifier: Notifier,
}

/// Creates the trigger and the receiver of refresh requests.
pub fn channel() -> (RefreshTrigger, Receiver<()>) {
    let (sender, requests) = mpsc::sync_channel(1);
    (RefreshTrigger(sender), requests)
}

impl Refresher {
    /// Creates a refresher for this server; it does nothing before it is started.
    pub fn new(trigger: RefreshTrigger, requests: Receiver<()>, server: Weak<Server>, notifier: Notifier) -> Self {
        Refresher { worker: Mutex::new(Some(RefreshWorker { requests, server, notifier })), trigger }
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
        let mut retry = None;
        loop {
            let received = match interval.into_iter().chain(retry).min() {
                Some(interval) => self.requests.recv_timeout(interval),
                None => self.requests.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let Some(server) = self.server.upgrade() else { return };
            if received == Err(RecvTimeoutError::Disconnected) {
                return;
            }
            let refreshed = server.refresh();
            drop(server);
            retry = match refreshed {
                Ok(outdated) => {
                    outdated.iter().for_each(|outdated| self.tell_the_kernel(outdated));
                    None
                }
                Err(_) => Some(retry.map_or(RETRY, |before| (2 * before).min(MAX_RETRY))),
            };
            thread::sleep(PAUSE);
            if retry.is_some() {
                // The failed refresh itself may have triggered another.
                let _ = self.requests.try_recv();
            }
        }
    }

    /// Errors mean that the kernel no longer knows the name or folder, which is fine.
    fn tell_the_kernel(&self, outdated: &Outdated) {
        for (folder, name) in &outdated.files {
            let _ = self.notifier.inval_entry(INodeNo(*folder), name.as_ref().as_ref());
        }
        for folder in &outdated.folders {
            let _ = self.notifier.inval_inode(INodeNo(*folder), 0, 0);
        }
        log::info!(
            "refreshed: the current state is visible; {} files and {} folders in use may have changed",
            outdated.files.len(),
            outdated.folders.len()
        );
    }
}
