//! Refreshes a served tree periodically and on demand, on a thread of its own, because storage may hang.

use std::io;
use std::sync::Weak;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::Duration;

use tilefs_reader::threads;

use super::site::Site;

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
    pub fn trigger(&self) {
        // Fails if one is pending already, or if the server has ended.
        let _ = self.0.try_send(());
    }
}

/// Creates the trigger, and what receives it.
pub fn channel() -> (RefreshTrigger, Receiver<()>) {
    let (sender, triggers) = mpsc::sync_channel(1);
    (RefreshTrigger(sender), triggers)
}

/// Starts the thread, which refreshes on demand and, if an interval is given, after each interval. It ends with the
/// site.
///
/// # Errors
/// If the system refuses a thread.
pub fn start(site: Weak<Site>, triggers: Receiver<()>, interval: Option<Duration>) -> io::Result<()> {
    threads::start("refresh", move || refresh_until_end(&site, &triggers, interval)).map(drop)
}

fn refresh_until_end(site: &Weak<Site>, triggers: &Receiver<()>, interval: Option<Duration>) {
    let mut retry: Option<Duration> = None;
    loop {
        let received = match interval.into_iter().chain(retry).min() {
            Some(wait) => triggers.recv_timeout(wait),
            None => triggers.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let Some(site) = site.upgrade().filter(|_| received != Err(RecvTimeoutError::Disconnected)) else { return };
        retry = match site.refresh() {
            Ok(()) => None,
            Err(_) => Some(retry.map_or(RETRY, |before| (2 * before).min(MAX_RETRY))),
        };
        drop(site);
        thread::sleep(PAUSE);
        if retry.is_some() {
            // The failed refresh itself may have triggered another.
            let _ = triggers.try_recv();
        }
    }
}
