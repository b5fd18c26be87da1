//! Serves a mount until it ends: by a signal, by `umount`, or by the kernel.

use std::ffi::c_int;
use std::fs::File;
use std::io::{self, Read};
use std::process;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tilefs_base::error::Error;
use tilefs_threads as threads;

use super::background;
use super::error::MountError;
use super::mount::FuseMount;
use super::mounting::detach::{self, Detach, DetachRefusal};
use super::sys;

/// Signals that end a mount: `kill`, ctrl-C.
const ENDING: [c_int; 2] = [libc::SIGTERM, libc::SIGINT];

/// Sent when the terminal closes, which ends a foreground mount; without a terminal it triggers a refresh, as in other
/// servers.
const HANG_UP: c_int = libc::SIGHUP;

/// Signal that logs the statistics.
const STATISTICS: c_int = libc::SIGUSR1;

/// All handled signals.
const SIGNALS: [c_int; 4] = [ENDING[0], ENDING[1], HANG_UP, STATISTICS];

/// After a request to end, how long a stuck request may delay the exit.
const STUCK_REQUEST_TIMEOUT: Duration = Duration::from_secs(3);

/// Interval for checking for stuck requests.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Shells report a program ended by a signal with this plus the signal's number.
const ENDED_BY_SIGNAL: i32 = 128;

/// The signals that a mount handles, blocked in all threads of this process so that [`serve`] receives them.
pub struct Signals {
    events: Receiver<Event>,
    sender: Sender<Event>,
    /// Whether ending signals are queued as events instead of ending this process.
    wait: Arc<Mutex<bool>>,
}

enum Event {
    /// One of [`ENDING`], or a closed terminal.
    End,
    Refresh,
    Statistics,
    Ended(Result<(), MountError>),
}

impl Signals {
    /// Blocks the signals. Must be called before any other thread starts. Until [`Signals::wait`], a signal that ends a
    /// mount ends this process at once, even if it hangs on storage.
    ///
    /// # Errors
    /// [`Error::Usage`] if the system refuses to block them or to start a thread.
    pub fn hold() -> Result<Signals, Error> {
        sys::block_signals(&SIGNALS).map_err(|error| Error::usage(format!("cannot hold signals back: {error}")))?;
        let (sender, events) = mpsc::channel();
        let wait = Arc::new(Mutex::new(false));
        let (taken, may_wait) = (sender.clone(), Arc::clone(&wait));
        let take = move || {
            while let Ok(signal) = sys::wait_for_signal(&SIGNALS) {
                // Keep the lock during exit, so that nothing is mounted meanwhile.
                let wait = may_wait.lock().unwrap_or_else(PoisonError::into_inner);
                let event = match signal {
                    STATISTICS => Event::Statistics,
                    // There is nothing to refresh yet.
                    HANG_UP if *wait && !has_terminal() => Event::Refresh,
                    _ => Event::End,
                };
                if !*wait && matches!(event, Event::End) {
                    let status = ENDED_BY_SIGNAL + signal;
                    if background::is_server() {
                        background::report_failure(status as u8, "ended by a signal before it was mounted");
                    }
                    process::exit(status);
                }
                drop(wait);
                if taken.send(event).is_err() {
                    return;
                }
            }
        };
        threads::start("signals", take).map_err(|error| Error::usage(format!("cannot start a thread: {error}")))?;
        Ok(Signals { events, sender, wait })
    }

    /// Queues signals from now on until [`serve`] handles them. Must be called before there is something to unmount.
    pub fn wait(&self) {
        *self.wait.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }
}

impl Signals {
    /// Handles the end of `input` as a signal that ends the mount. An error of reading it is its end, too.
    ///
    /// # Errors
    /// [`Error::Usage`] if the system refuses to start a thread.
    pub fn end_with(&self, mut input: impl Read + Send + 'static) -> Result<(), Error> {
        let (sender, may_wait) = (self.sender.clone(), Arc::clone(&self.wait));
        let watch = move || {
            let _ = io::copy(&mut input, &mut io::sink());
            let wait = may_wait.lock().unwrap_or_else(PoisonError::into_inner);
            if !*wait {
                process::exit(ENDED_BY_SIGNAL + libc::SIGTERM);
            }
            drop(wait);
            // Without a receiver, the mount has ended.
            let _ = sender.send(Event::End);
        };
        threads::start("end-of-input", watch)
            .map_err(|error| Error::usage(format!("cannot start a thread: {error}")))?;
        Ok(())
    }

    /// Handles signals without a mount until one asks to end: a hang-up without a terminal calls `refresh`, SIGUSR1
    /// calls `log_statistics`.
    pub fn until_end(self, refresh: impl Fn(), log_statistics: impl Fn()) {
        self.wait();
        // The thread that sends the events ends with this process.
        while let Ok(event) = self.events.recv() {
            match event {
                Event::Refresh => refresh(),
                Event::Statistics => log_statistics(),
                Event::End | Event::Ended(_) => return,
            }
        }
    }
}

/// Serves until the mount is gone. The first signal unmounts; if the mount is in use it is detached lazily and serving
/// continues for its users. The second signal ends that, as does a request that is stuck for a few seconds. Nothing is
/// left mounted.
///
/// # Errors
/// [`MountError`] if unmounting fails, or the connection to the kernel broke.
pub fn serve(mount: FuseMount, signals: Signals) -> Result<(), MountError> {
    signals.wait();
    let Signals { events, sender, .. } = signals;
    let mount = Arc::new(mount);
    let waited_for = Arc::clone(&mount);
    threads::start("mount-end", move || sender.send(Event::Ended(waited_for.wait())))
        .map_err(|error| mount.error(format!("cannot start a thread: {error}")))?;

    // The time at which ending began, and whether the mount was unused then.
    let mut leaving: Option<(Instant, bool)> = None;
    loop {
        let event = match leaving {
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(_) => events.recv_timeout(POLL_INTERVAL),
        };
        match (event, leaving) {
            (Ok(Event::Statistics), _) => mount.log_statistics(),
            (Ok(Event::Refresh), _) => mount.refresh(),
            // Another process unmounts. For programs that use the mount until then, the connection ends with this
            // process.
            (Ok(Event::End), None) if mount.is_inherited() => return abort(&mount),
            (Ok(Event::End), None) => leaving = Some((Instant::now(), unmount_or_detach(&mount)?)),
            (Ok(Event::End), Some(_)) => {
                log::warn!("second signal: exiting at once");
                return abort(&mount);
            }
            (Ok(Event::Ended(result)), _) => return finish(&mount, result),
            (Err(RecvTimeoutError::Timeout), Some((since, is_unused))) => {
                let is_late = is_unused && since.elapsed() >= STUCK_REQUEST_TIMEOUT;
                if is_late || mount.oldest_request() >= STUCK_REQUEST_TIMEOUT {
                    log::warn!("a thread is stuck in a request: exiting without it");
                    return abort(&mount);
                }
            }
            // Both senders are gone without an event, so their threads died.
            (Err(_), _) => return finish(&mount, Err(mount.error("internal error while waiting".into()))),
        }
    }
}

/// Returns whether this process has a terminal.
fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
}

/// Unmounts, or detaches lazily if in use; returns whether it was unused.
fn unmount_or_detach(mount: &FuseMount) -> Result<bool, MountError> {
    let path = mount.mountpoint();
    match mount.detach(Detach::WhenIdle) {
        Ok(()) => return Ok(true),
        Err(DetachRefusal::Busy) => log::warn!(
            "{} is in use by {}: detached now, and it ends when they are done; a second signal ends it at once",
            path.display(),
            detach::users(path)
        ),
        Err(DetachRefusal::Other(reason)) => log::warn!("{}: {reason}; trying again lazily", path.display()),
    }
    finish(mount, Ok(())).map(|()| false)
}

/// Aborts: remaining users get an error.
fn abort(mount: &FuseMount) -> Result<(), MountError> {
    let result = finish(mount, Ok(()));
    mount.abort();
    result
}

/// Makes sure that nothing is left mounted. After the kernel broke the connection, the dead mount point remains.
fn finish(mount: &FuseMount, result: Result<(), MountError>) -> Result<(), MountError> {
    match mount.detach(Detach::Lazily) {
        Ok(()) => result,
        Err(DetachRefusal::Busy) => result.and(Err(mount.error("in use, and cannot be unmounted".into()))),
        Err(DetachRefusal::Other(reason)) => result.and(Err(mount.error(reason))),
    }
}
