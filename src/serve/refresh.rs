//! Refreshes a served tree periodically and on demand, on a thread of its own, because storage may hang.

use std::io;
use std::sync::Weak;
use std::time::Duration;

use tilefs_threads as threads;
use tilefs_vfs::refresh::{RefreshOutcome, Triggered};

use super::site::Site;

/// Starts the thread, which refreshes on demand and, if an interval is given, after each interval. It ends with the
/// site.
///
/// # Errors
/// If the system refuses a thread.
pub fn start(site: Weak<Site>, triggered: Triggered, interval: Option<Duration>) -> io::Result<()> {
    let refresh = move || match site.upgrade().map(|site| site.refresh()) {
        Some(Ok(())) => RefreshOutcome::Done,
        Some(Err(_)) => RefreshOutcome::Failed,
        None => RefreshOutcome::Ended,
    };
    threads::start("refresh", move || triggered.run(interval, refresh)).map(drop)
}
