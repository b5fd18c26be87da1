//! Keeping a mount until it ends: by a signal, by `umount`, or by the kernel.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use super::detach::{self, Detach, Refusal};
use super::mount::Mount;
use super::sys;
use crate::error::{Error, Result};

/// What asks a mount to end: `kill`, ctrl-C, a closed terminal.
const SIGNALS: [c_int; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// The signals that end a mount, held back from the threads of this process so that [`serve`] can take them.
#[derive(Debug)]
pub struct Signals(());

impl Signals {
    /// Holds the signals back. To be called before any thread is started; they wait until [`serve`] takes them.
    ///
    /// # Errors
    /// [`Error::Usage`] if the system refuses, which it has no reason to.
    pub fn hold() -> Result<Signals> {
        match sys::block_signals(&SIGNALS) {
            Ok(()) => Ok(Signals(())),
            Err(error) => Err(Error::usage(format!("cannot hold signals back: {error}"))),
        }
    }
}

enum Event {
    Signal,
    Ended(Result<()>),
}

/// Serves until the mount is gone. The first signal unmounts; where the mount is in use it is taken away lazily,
/// and serving goes on for those who still use it. The second signal ends that at once. Nothing is left mounted.
///
/// # Errors
/// [`Error::Mount`] where the mount cannot be taken away, or the connection to the kernel broke.
pub fn serve(mount: Mount, _held: Signals) -> Result<()> {
    let mount = Arc::new(mount);
    let (sender, events) = mpsc::channel();
    let failed = |error: std::io::Error| mount.error(format!("cannot start a thread: {error}"));
    let signalled = sender.clone();
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || while sys::wait_for_signal(&SIGNALS).is_ok() && signalled.send(Event::Signal).is_ok() {})
        .map_err(failed)?;
    let waited_for = Arc::clone(&mount);
    thread::Builder::new()
        .name("mount-end".into())
        .spawn(move || sender.send(Event::Ended(waited_for.wait())))
        .map_err(failed)?;

    let mut signals = 0;
    loop {
        match events.recv() {
            Ok(Event::Signal) => {
                signals += 1;
                if signals > 1 {
                    log::warn!("second signal: leaving at once");
                    return finish(&mount, Ok(()));
                }
                take_away(&mount)?;
            }
            Ok(Event::Ended(result)) => return finish(&mount, result),
            // Both senders gone without a word: their threads died.
            Err(_) => return finish(&mount, Err(mount.error("internal error while waiting".into()))),
        }
    }
}

fn take_away(mount: &Mount) -> Result<()> {
    let path = mount.mountpoint();
    match mount.detach(Detach::WhenIdle) {
        Ok(()) => Ok(()),
        Err(Refusal::Busy) => {
            log::warn!(
                "{} is in use by {}: its name is taken away now, and it ends when they let go; a second signal ends it \
                 at once",
                path.display(),
                detach::users(path)
            );
            finish(mount, Ok(()))
        }
        Err(Refusal::Other(reason)) => {
            log::warn!("{}: {reason}; trying again lazily", path.display());
            finish(mount, Ok(()))
        }
    }
}

/// Makes sure that nothing is left mounted. After the kernel broke the connection the dead name is still there.
fn finish(mount: &Mount, result: Result<()>) -> Result<()> {
    match mount.detach(Detach::Lazily) {
        Ok(()) => result,
        Err(Refusal::Busy) => result.and(Err(mount.error("in use, and cannot be unmounted".into()))),
        Err(Refusal::Other(reason)) => result.and(Err(mount.error(reason))),
    }
}
