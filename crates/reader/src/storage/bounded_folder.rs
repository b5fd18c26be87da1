//! A [`CacheFolder`] that is kept to a size: files that were not used for the longest time are removed. Several processes may
//! use it at once.
//!
//! Whatever happens to the folder, nothing but what is kept in it is lost: where the disk is full or the folder is gone, that
//! is a line in the log, and nothing is kept for a while.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::cache_folder::{CacheFolder, OpenError};

/// How long nothing is kept after the disk was full, or the folder gone.
const PAUSE: Duration = Duration::from_secs(60);

/// What the folder holds is counted when so much was added, as a part of what it may hold; and how much is left then.
const COUNTED_EVERY: u64 = 16;
const LEFT: (u64, u64) = (7, 8);

/// A folder of files whose names end alike. No other file is ever removed.
#[derive(Debug)]
pub struct BoundedFolder {
    /// In the words of the log.
    name: &'static str,
    path: PathBuf,
    suffix: &'static str,
    most: u64,
    /// How the log takes that nothing can be kept.
    level: log::Level,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// `None` where it was not entered yet, could not be, or was removed.
    entered: Option<Arc<CacheFolder>>,
    /// Bytes that this process added since the folder was counted.
    added: u64,
    /// Nothing is kept before.
    paused_until: Option<Instant>,
    has_warned: bool,
}

impl BoundedFolder {
    /// A folder of at most `most` bytes, or little more for a while. It is entered when it is first wanted.
    pub fn new(name: &'static str, path: &Path, suffix: &'static str, most: u64) -> Self {
        BoundedFolder { name, path: path.to_owned(), suffix, most, level: log::Level::Info, state: Mutex::default() }
    }

    /// Enters the folder now, and makes it, for its owner alone, where there is none. From now on it is a warning where
    /// nothing can be kept, such as that the disk is full.
    ///
    /// # Errors
    /// A sentence about a folder that can be neither made nor looked into, or where others could put there what is read.
    pub fn require(mut self) -> Result<Self, String> {
        self.level = log::Level::Warn;
        match CacheFolder::enter(&self.path) {
            Ok(entered) => self.lock().entered = Some(Arc::new(entered)),
            Err(OpenError::Failed(error)) if is_full(&error) => self.pause(&error),
            Err(error) => return Err(error.reason()),
        }
        Ok(self)
    }

    #[cfg(test)]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes that it may hold.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// The folder, if it can be used.
    pub fn entered(&self) -> Option<Arc<CacheFolder>> {
        let state = self.lock();
        if state.entered.is_some() {
            return state.entered.clone();
        }
        if state.is_paused() {
            return None;
        }
        drop(state);
        self.enter().inspect_err(|error| self.pause(error)).ok()
    }

    /// Has `write` keep so many bytes in the folder.
    pub fn write(&self, bytes: u64, write: impl FnOnce(&CacheFolder) -> io::Result<()>) {
        if self.lock().is_paused() {
            return;
        }
        match self.enter_again().and_then(|entered| write(&entered)) {
            Ok(()) => {
                let mut state = self.lock();
                state.added += bytes;
                let is_due = state.added > self.most / COUNTED_EVERY;
                drop(state);
                if is_due {
                    self.make_room();
                }
            }
            Err(error) => self.pause(&error),
        }
    }

    /// Removes what was not used for the longest time, where there is more than there may be. Others may do so at the same
    /// time, and read what is removed.
    pub fn make_room(&self) {
        self.lock().added = 0;
        let Some(entered) = self.entered() else { return };
        let Ok(mut files) = entered.files(self.suffix) else { return };
        let mut total: u64 = files.iter().map(|file| file.size).sum();
        if total <= self.most {
            return;
        }
        files.sort_unstable_by_key(|file| file.used);
        for file in files {
            if total <= self.most / LEFT.1 * LEFT.0 {
                break;
            }
            entered.remove(&file.name);
            total -= file.size;
        }
    }

    fn pause(&self, error: &io::Error) {
        let mut state = self.lock();
        state.paused_until = Some(Instant::now() + PAUSE);
        if !std::mem::replace(&mut state.has_warned, true) {
            log::log!(self.level, "{} {} takes nothing for now: {error}", self.name, self.path.display());
        }
    }

    /// The folder; the one that has its path now where the one that was entered is gone.
    fn enter_again(&self) -> io::Result<Arc<CacheFolder>> {
        let entered = self.lock().entered.clone();
        match entered.filter(|entered| !entered.is_gone()) {
            Some(entered) => Ok(entered),
            None => self.enter(),
        }
    }

    fn enter(&self) -> io::Result<Arc<CacheFolder>> {
        self.lock().entered = None;
        let entered = CacheFolder::enter(&self.path).map(Arc::new).map_err(|error| match error {
            OpenError::Refused(reason) => io::Error::other(reason),
            OpenError::Failed(error) => error,
        })?;
        self.lock().entered = Some(entered.clone());
        Ok(entered)
    }

    /// Tries again at once, as after a pause.
    #[cfg(test)]
    pub fn end_pause(&self) {
        self.lock().paused_until = None;
    }

    /// Whether the log was told that nothing can be kept.
    #[cfg(test)]
    pub fn has_warned(&self) -> bool {
        self.lock().has_warned
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_paused(&self) -> bool {
        self.paused_until.is_some_and(|end| Instant::now() < end)
    }
}

impl OpenError {
    fn reason(self) -> String {
        match self {
            OpenError::Refused(reason) => reason,
            OpenError::Failed(error) => error.to_string(),
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EROFS))
}
