//! A [`CacheFolder`] with a maximum size: the least recently used files are evicted. Several processes may use it
//! concurrently.
//!
//! A failure of the folder loses nothing but its contents: if the disk is full or the folder is gone, this is logged,
//! and nothing is stored for a while.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::cache_folder::{CacheFolder, OpenError};

/// How long nothing is stored after the disk was full, or the folder gone.
const PAUSE: Duration = Duration::from_secs(60);

/// The size of the folder is computed after this process has added 1 / `COUNTED_EVERY` of the maximum. Eviction leaves
/// the fraction `LEFT` of the maximum.
const COUNTED_EVERY: u64 = 16;
const LEFT: (u64, u64) = (7, 8);

/// A folder of files with the same suffix. No other file is ever removed.
#[derive(Debug)]
pub struct BoundedFolder {
    /// The name of the folder in log messages.
    name: &'static str,
    path: PathBuf,
    suffix: &'static str,
    most: u64,
    /// The level at which failures are logged.
    level: log::Level,
    state: Mutex<FolderState>,
}

#[derive(Debug, Default)]
struct FolderState {
    /// `None` if the folder was not entered yet, could not be entered, or was removed.
    entered: Option<Arc<CacheFolder>>,
    /// Bytes that this process has added since the folder's size was computed.
    added: u64,
    /// The time until which this process stores nothing.
    paused_until: Option<Instant>,
    has_warned: bool,
}

impl BoundedFolder {
    /// Creates a folder of at most `most` bytes, which it may exceed a little for a while. It is entered on first use.
    pub fn new(name: &'static str, path: &Path, suffix: &'static str, most: u64) -> Self {
        BoundedFolder { name, path: path.to_owned(), suffix, most, level: log::Level::Info, state: Mutex::default() }
    }

    /// Enters the folder now, and creates it if it does not exist, accessible by its owner only. From now on, failures
    /// such as a full disk are logged as warnings.
    ///
    /// # Errors
    /// The reason if the folder can be neither created nor read, or if other users could write to it.
    pub fn require(mut self) -> Result<Self, String> {
        self.level = log::Level::Warn;
        match CacheFolder::enter(&self.path) {
            Ok(entered) => self.lock().entered = Some(Arc::new(entered)),
            Err(OpenError::Failed(error)) if is_full(&error) => self.pause(&error),
            Err(error) => return Err(error.reason()),
        }
        Ok(self)
    }

    /// Returns the folder.
    #[cfg(any(test, feature = "testing"))]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the maximum size in bytes.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// Returns the folder, if it can be used.
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

    /// Calls `write`, which stores `bytes` bytes in the folder. Logs its failure.
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

    /// Evicts the least recently used files if the folder is too large. Other processes may do so at the same time, and
    /// may be reading an evicted file.
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

    /// Returns the folder. If it is gone, enters the one that has its path now.
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

    /// Ends a pause now.
    #[cfg(any(test, feature = "testing"))]
    pub fn end_pause(&self) {
        self.lock().paused_until = None;
    }

    /// Returns whether a failure has been logged.
    #[cfg(any(test, feature = "testing"))]
    pub fn has_warned(&self) -> bool {
        self.lock().has_warned
    }

    fn lock(&self) -> MutexGuard<'_, FolderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FolderState {
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
