//! Refreshing a mount: the tree is asked what has changed, its new root is put in the place of the old one, and the
//! kernel forgets the names, sizes and listings that may be others.
//!
//! On a thread of its own, which starts when it is wanted: the kernel may wait for requests in the same folder to be
//! answered, and the disk may not answer.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use fuser::{INodeNo, Notifier};
use tilefs_reader::threads;

use super::filesystem::Server;
use super::inodes::Outdated;

/// From one refresh to the next at least, whoever asks for it.
const PAUSE: Duration = Duration::from_millis(100);

/// After a refresh that failed, the next one comes so soon, and after each further failure twice as late: an array that
/// another one takes the place of is not there for a moment.
const RETRY: Duration = Duration::from_millis(200);

/// It comes no later than this.
const MOST_RETRY: Duration = Duration::from_secs(10);

/// Asks for refreshes. A request that is made while another one waits is that one.
#[derive(Debug, Clone)]
pub struct Asking(SyncSender<()>);

impl Asking {
    /// Asks for one, if there is a [`Refreshing`] that is started; else when it is.
    pub fn ask(&self) {
        // There is one waiting already, or the mount has ended.
        let _ = self.0.try_send(());
    }
}

/// What refreshes a mount when it is asked to, and by itself.
pub struct Refreshing {
    /// `None` once it was started.
    waiting: Mutex<Option<Waiting>>,
    asking: Asking,
}

struct Waiting {
    asked: Receiver<()>,
    server: Weak<Server>,
    notifier: Notifier,
}

/// Where refreshes are asked for, and where that is heard.
pub fn channel() -> (Asking, Receiver<()>) {
    let (sender, asked) = mpsc::sync_channel(1);
    (Asking(sender), asked)
}

impl Refreshing {
    /// Refreshes what this server shows. Does nothing before it is started.
    pub fn new(asking: Asking, asked: Receiver<()>, server: Weak<Server>, notifier: Notifier) -> Self {
        Refreshing { waiting: Mutex::new(Some(Waiting { asked, server, notifier })), asking }
    }

    /// From now on refreshes when it is asked to, and after each `interval`; until the mount ends.
    ///
    /// # Errors
    /// Where the system lets us have no thread.
    pub fn start(&self, interval: Option<Duration>) -> io::Result<()> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waiting) = waiting {
            threads::start("refresh", move || waiting.run(interval))?;
        }
        Ok(())
    }

    /// Refreshes soon, started or not.
    pub fn now(&self) {
        self.asking.ask();
        if let Err(error) = self.start(None) {
            log::error!("cannot refresh, as a thread cannot be started: {error}");
        }
    }
}

impl Waiting {
    fn run(self, interval: Option<Duration>) {
        let mut retry = None;
        loop {
            let asked = match interval.into_iter().chain(retry).min() {
                Some(interval) => self.asked.recv_timeout(interval),
                None => self.asked.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let Some(server) = self.server.upgrade() else { return };
            if asked == Err(RecvTimeoutError::Disconnected) {
                return;
            }
            let refreshed = server.refresh();
            drop(server);
            retry = match refreshed {
                Ok(outdated) => {
                    outdated.iter().for_each(|outdated| self.tell_the_kernel(outdated));
                    None
                }
                Err(_) => Some(retry.map_or(RETRY, |before| (2 * before).min(MOST_RETRY))),
            };
            thread::sleep(PAUSE);
            if retry.is_some() {
                // The failure itself may have asked for one.
                let _ = self.asked.try_recv();
            }
        }
    }

    /// Of each, the kernel may know nothing any more; then there is nothing to be done.
    fn tell_the_kernel(&self, outdated: &Outdated) {
        for (folder, name) in &outdated.files {
            let _ = self.notifier.inval_entry(INodeNo(*folder), name.as_ref().as_ref());
        }
        for folder in &outdated.folders {
            let _ = self.notifier.inval_inode(INodeNo(*folder), 0, 0);
        }
        log::info!(
            "refreshed: what was committed shows, {} files and {} folders that were in use may be others",
            outdated.files.len(),
            outdated.folders.len()
        );
    }
}
