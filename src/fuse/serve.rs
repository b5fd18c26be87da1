//! Keeping a mount until it ends: by a signal, by `umount`, or by the kernel.

use std::ffi::c_int;
use std::fs::File;
use std::process;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tilefs_format::error::{Error, Result};
use tilefs_reader::threads;

use super::background;
use super::detach::{self, Detach, Refusal};
use super::mount::Mount;
use super::sys;

/// What asks a mount to end: `kill`, ctrl-C.
const ENDING: [c_int; 2] = [libc::SIGTERM, libc::SIGINT];

/// A closed terminal, which ends a mount in its foreground too; where there is none it asks for a refresh, as it does of
/// other servers.
const HANG_UP: c_int = libc::SIGHUP;

/// What asks for a line in the log with what was counted.
const STATISTICS: c_int = libc::SIGUSR1;

/// All of them.
const SIGNALS: [c_int; 4] = [ENDING[0], ENDING[1], HANG_UP, STATISTICS];

/// How long a mount that was asked to end waits for a request that does not.
const PATIENCE: Duration = Duration::from_secs(3);

/// How often it looks whether there is one.
const LOOK: Duration = Duration::from_millis(100);

/// What a shell adds to the number of the signal that ended a program.
const ENDED_BY_SIGNAL: i32 = 128;

/// The signals that a mount takes, held back from the threads of this process so that [`serve`] can take them.
pub struct Signals {
    events: Receiver<Event>,
    sender: Sender<Event>,
    /// Whether a signal only becomes an event, instead of the end of this process.
    wait: Arc<Mutex<bool>>,
}

enum Event {
    /// One of [`ENDING`], or a closed terminal.
    End,
    Refresh,
    Statistics,
    Ended(Result<()>),
}

impl Signals {
    /// Holds the signals back. To be called before any other thread is started. Until [`Signals::wait`] one of those
    /// that end a mount ends this process at once, even where it hangs on a disk that does not answer.
    ///
    /// # Errors
    /// [`Error::Usage`] if the system refuses, or lets us have no thread.
    pub fn hold() -> Result<Signals> {
        sys::block_signals(&SIGNALS).map_err(|error| Error::usage(format!("cannot hold signals back: {error}")))?;
        let (sender, events) = mpsc::channel();
        let wait = Arc::new(Mutex::new(false));
        let (taken, may_wait) = (sender.clone(), Arc::clone(&wait));
        let take = move || {
            while let Ok(signal) = sys::wait_for_signal(&SIGNALS) {
                // Held while this process ends, so that nothing is mounted meanwhile.
                let wait = may_wait.lock().unwrap_or_else(PoisonError::into_inner);
                let event = match signal {
                    STATISTICS => Event::Statistics,
                    // Nothing to be refreshed yet.
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

    /// From now on signals wait until [`serve`] takes them. To be called before there is something to be unmounted.
    pub fn wait(&self) {
        *self.wait.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }
}

/// Serves until the mount is gone. The first signal unmounts; where the mount is in use it is taken away lazily,
/// and serving goes on for those who still use it. That ends with the second signal, or when a request does not end
/// within a few seconds, whatever the thread that should answer it is waiting for. Nothing is left mounted.
///
/// # Errors
/// [`Error::Mount`] where the mount cannot be taken away, or the connection to the kernel broke.
pub fn serve(mount: Mount, signals: Signals) -> Result<()> {
    signals.wait();
    let Signals { events, sender, .. } = signals;
    let mount = Arc::new(mount);
    let waited_for = Arc::clone(&mount);
    threads::start("mount-end", move || sender.send(Event::Ended(waited_for.wait())))
        .map_err(|error| mount.error(format!("cannot start a thread: {error}")))?;

    // Since when it should end, and whether it should at once since nobody uses it.
    let mut leaving: Option<(Instant, bool)> = None;
    loop {
        let event = match leaving {
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(_) => events.recv_timeout(LOOK),
        };
        match (event, leaving) {
            (Ok(Event::Statistics), _) => mount.log_statistics(),
            (Ok(Event::Refresh), _) => mount.refresh(),
            (Ok(Event::End), None) => leaving = Some((Instant::now(), take_away(&mount)?)),
            (Ok(Event::End), Some(_)) => {
                log::warn!("second signal: leaving at once");
                return leave(&mount);
            }
            (Ok(Event::Ended(result)), _) => return finish(&mount, result),
            (Err(RecvTimeoutError::Timeout), Some((since, is_unused))) => {
                let is_late = is_unused && since.elapsed() >= PATIENCE;
                if is_late || mount.oldest_request() >= PATIENCE {
                    log::warn!("a thread does not come back from what it is waiting for: leaving without it");
                    return leave(&mount);
                }
            }
            // Both senders gone without a word: their threads died.
            (Err(_), _) => return finish(&mount, Err(mount.error("internal error while waiting".into()))),
        }
    }
}

/// Whether this process belongs to a terminal.
fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
}

/// Takes the name of the mount away; whether nobody used it.
fn take_away(mount: &Mount) -> Result<bool> {
    let path = mount.mountpoint();
    match mount.detach(Detach::WhenIdle) {
        Ok(()) => return Ok(true),
        Err(Refusal::Busy) => log::warn!(
            "{} is in use by {}: its name is taken away now, and it ends when they let go; a second signal ends it at \
             once",
            path.display(),
            detach::users(path)
        ),
        Err(Refusal::Other(reason)) => log::warn!("{}: {reason}; trying again lazily", path.display()),
    }
    finish(mount, Ok(())).map(|()| false)
}

/// Leaves those who still use the mount with an error.
fn leave(mount: &Mount) -> Result<()> {
    let result = finish(mount, Ok(()));
    mount.abort();
    result
}

/// Makes sure that nothing is left mounted. After the kernel broke the connection the dead name is still there.
fn finish(mount: &Mount, result: Result<()>) -> Result<()> {
    match mount.detach(Detach::Lazily) {
        Ok(()) => result,
        Err(Refusal::Busy) => result.and(Err(mount.error("in use, and cannot be unmounted".into()))),
        Err(Refusal::Other(reason)) => result.and(Err(mount.error(reason))),
    }
}
