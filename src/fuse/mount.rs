//! A tree attached to a folder: mounting it, serving it on threads of its own, and taking it away again.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, Weak, mpsc};
use std::time::{Duration, Instant};

use fuser::{Config, INodeNo, Notifier, Session, SessionACL};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{getgid, getuid};
use tilefs_format::error::{Error, Result};
use tilefs_reader::address_space;
use tilefs_reader::statistics;
use tilefs_reader::threads::{self, Probe};

use super::attach::{self, Access};
use super::detach::{self, Detach, Refusal};
use super::filesystem::{Alarms, Server, TreeFilesystem};
use super::needs::Needs;
use super::refresh::{self, Refreshing};
use super::requests::Requests;
use super::working_folders::working_folders;
use super::{mount_table, mountpoint, requester};
use crate::read_ahead::{self, ReadAhead};
use crate::tree::Tree;

/// How far the kernel reads ahead, where we may tell it; its default is 128. Enough that a reader seldom waits for a
/// request: more is no faster, since we read ahead ourselves, and makes random reads of mapped files slower, for which
/// the kernel then fetches this much as well.
const KERNEL_READ_AHEAD_KIB: u64 = 512;

/// Threads of a session that take no requests: one waits for those that do, one for the end, one has names forgotten,
/// one looks whether readers have given up.
const OTHER_THREADS: usize = 4;

/// One more where the tree is refreshed from time to time.
const REFRESHING: usize = 1;

/// One that takes requests and one that does what they need.
const LEAST_THREADS: usize = 2;

/// How long a dropped mount waits for its threads.
const PATIENCE: Duration = Duration::from_secs(5);

/// How to mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountOptions {
    /// What is mounted, as the mount table shall name it: the absolute path of the array or group.
    pub source: PathBuf,
    /// Who may use the mount.
    pub access: Access,
    /// Whom its files belong to.
    pub ownership: Ownership,
    /// Options with labels for SELinux, given to the kernel where it has that.
    pub selinux_labels: Vec<OsString>,
    /// Have the kernel keep no file contents. Single large reads get faster, everything else slower.
    pub direct_io: bool,
    /// Refuse whatever this process itself asks of the mount: where it does nothing but serve, only an array that leads
    /// back into the mount can make it ask, and wait for itself for ever.
    pub only_others: bool,
    /// How often to look for changes of what is stored, and show them; `None` where only who asks for it is shown them.
    pub refresh: Option<Duration>,
    /// How many requests are served at the same time; fewer where the system does not let us have the threads.
    pub threads: usize,
    /// The budget of the tree's cache in bytes, which must fit into a limited address space beside the threads.
    pub cache_size: u64,
    /// How many pieces are read ahead at the same time.
    pub read_ahead_workers: usize,
    /// How many bytes all open files together are read ahead; well below the budget of the cache.
    pub read_ahead_window: u64,
}

impl MountOptions {
    /// The usual options.
    pub fn new(source: impl Into<PathBuf>) -> Self {
        let cores = threads::cores();
        MountOptions {
            source: source.into(),
            access: Access::Owner,
            ownership: Ownership::own(),
            selinux_labels: Vec::new(),
            direct_io: false,
            only_others: false,
            refresh: None,
            threads: default_threads(cores),
            cache_size: 0,
            read_ahead_workers: cores.min(16),
            read_ahead_window: read_ahead::MAX_WINDOW,
        }
    }
}

/// Whom files and folders belong to, and the permissions that are taken from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ownership {
    pub user: u32,
    pub group: u32,
    pub umask: u16,
}

impl Ownership {
    /// Those of this process; everybody may read what the mount lets them.
    pub fn own() -> Self {
        Ownership { user: getuid().as_raw(), group: getgid().as_raw(), umask: 0 }
    }
}

/// Has the kernel forget the names that it was told of first, whenever there are too many; until the session ends.
/// A folder that somebody works in keeps its name: without it the process could not say where it is.
///
/// On a thread of its own: the kernel may wait for requests in the same folder to be answered.
fn forget_names(server: &Weak<Server>, notifier: &Notifier, told: &mpsc::Receiver<()>) {
    while told.recv().is_ok() {
        let Some(server) = server.upgrade() else { return };
        for (folder, name) in server.inodes().crowd(&working_folders()) {
            // It may have forgotten the name meanwhile, or be using it.
            let _ = notifier.inval_entry(INodeNo(folder), name.as_ref().as_ref());
        }
    }
}

/// Threads mostly wait, for the kernel or for a decode that all cores share. There are more than cores, so that a
/// few slow reads leave threads for requests that need no work, but not many more: they get in each other's way.
fn default_threads(cores: usize) -> usize {
    (2 * cores).clamp(4, 32)
}

/// How many threads shall take requests: as many as wanted, or as the limits of this process allow. With those that
/// showed it, which are to be gone before others start.
///
/// # Errors
/// In one line, where there can be too few.
fn threads_for(options: &MountOptions) -> std::result::Result<(usize, Probe), String> {
    // One of them only takes requests; see there.
    let wanted = options.threads.max(1) + 1;
    let others = OTHER_THREADS + if options.refresh.is_some() { REFRESHING } else { 0 };
    let needs = Needs { other_threads: others + options.read_ahead_workers, cache_size: options.cache_size };
    let left = address_space::left().unwrap_or(u64::MAX);
    let affordable = needs.affordable_threads(wanted, left);
    if affordable < LEAST_THREADS {
        return Err(format!(
            "serving needs {} MiB of address space, {} of it for the cache, and {} are left; raise the limit \
             (`ulimit -v`) or give a smaller --cache-size",
            needs.with_threads(LEAST_THREADS).div_ceil(1 << 20),
            options.cache_size >> 20,
            left >> 20
        ));
    }
    // A session whose threads start only in part cannot be ended.
    let probe = Probe::new(affordable + others);
    let threads = probe.threads().saturating_sub(others);
    if threads < LEAST_THREADS {
        let reason = "the system does not let this process have enough threads; raise its limit of processes \
                      (`ulimit -u`)";
        return Err(reason.to_owned());
    }
    if threads < wanted {
        log::warn!("only {} threads instead of {} can be started", threads - 1, wanted - 1);
    }
    Ok((threads, probe))
}

/// A mounted tree. Dropping it unmounts, lazily where it is in use.
pub struct Mount {
    mountpoint: PathBuf,
    /// The device number in the mount table; `None` where there is no table to be read.
    device: Option<String>,
    session: Arc<SessionEnd>,
    requests: Arc<Requests>,
    /// What answers, as long as the session lasts.
    server: OnceLock<Weak<Server>>,
    refreshing: OnceLock<Refreshing>,
    /// What breaks the connection with the kernel when it is written to, if there is such a file. Opened beforehand: once
    /// the connection has ended, another file may be in its place, but this one does nothing.
    abort: Option<File>,
}

/// Where the threads of a session say that they have ended.
#[derive(Default)]
struct SessionEnd {
    result: Mutex<Option<std::result::Result<(), String>>>,
    reached: Condvar,
}

impl Mount {
    /// Mounts a tree on an empty folder. When this returns, the mount answers.
    ///
    /// # Errors
    /// [`Error::Mount`], in one line with what to do; nothing is left mounted then.
    pub fn new(tree: impl Tree + 'static, mountpoint: &Path, options: &MountOptions) -> Result<Mount> {
        let fail = |reason: String| Error::Mount { mountpoint: mountpoint.display().to_string(), reason };
        let (threads, probe) = threads_for(options).map_err(fail)?;
        let path = mountpoint::prepare(mountpoint, &options.source)?;
        let device = attach::attach(&path, &source_name(&options.source), options.access, &options.selinux_labels)
            .map_err(fail)?;
        // From here on every way out unmounts: by the drop of this.
        let number = mount_table::at(&path).filter(mount_table::Mounted::is_tilefs).map(|mounted| mounted.device);
        let mount = Mount {
            abort: number.as_deref().and_then(open_abort),
            device: number,
            mountpoint: path,
            session: Arc::default(),
            requests: Arc::new(Requests::new(threads)),
            server: OnceLock::new(),
            refreshing: OnceLock::new(),
        };
        drop(probe);
        let read_ahead = ReadAhead::new(options.read_ahead_workers, options.read_ahead_window);
        let requests = Arc::clone(&mount.requests);
        let (crowded, told) = mpsc::sync_channel(1);
        let (asking, asked) = refresh::channel();
        let filesystem = TreeFilesystem::new(
            Arc::new(tree),
            Alarms { crowded, missing: options.refresh.map(|_| asking.clone()) },
            requests,
            read_ahead,
            options.ownership,
            options.direct_io,
            options.only_others,
        );
        let server = mount.server.get_or_init(|| Arc::downgrade(filesystem.server())).clone();
        let mut config = Config::default();
        config.n_threads = Some(threads);
        config.acl = match options.access {
            Access::Owner => SessionACL::Owner,
            Access::OwnerAndRoot => SessionACL::RootAndOwner,
            Access::Everyone => SessionACL::All,
        };
        let acl = config.acl;
        let session = Session::from_fd(filesystem, device, acl, config)
            .map_err(|error| fail(format!("the kernel does not answer: {error}")))?;
        let end = Arc::clone(&mount.session);
        let notifier = session.notifier();
        let refreshing = Refreshing::new(asking, asked, server.clone(), notifier.clone());
        let refreshing = mount.refreshing.get_or_init(|| refreshing);
        // Without this thread the kernel forgets names when it wants to, and only memory is lost.
        let _ = threads::start("forget", move || forget_names(&server, &notifier, &told));
        // Without this thread readers are let go when they are answered.
        let _ = session.as_fd().try_clone_to_owned().and_then(|device| look_after(&mount.requests, device));
        let requests = Arc::clone(&mount.requests);
        let started = threads::start("mount", move || {
            let result = session.run();
            requests.end();
            end.set(ended(result));
        });
        if let Err(error) = started {
            mount.requests.end();
            mount.session.set(Ok(()));
            return Err(fail(format!("cannot start a thread: {error}")));
        }
        if let Some(interval) = options.refresh {
            refreshing
                .start(Some(interval))
                .map_err(|error| fail(format!("cannot start the thread that refreshes: {error}")))?;
        }
        if let Some(device) = &mount.device {
            raise_kernel_read_ahead(device);
        }
        Ok(mount)
    }

    /// Where it is mounted: an absolute path without links.
    pub fn mountpoint(&self) -> &Path {
        &self.mountpoint
    }

    /// Waits until the mount is gone, whoever unmounted it.
    ///
    /// # Errors
    /// [`Error::Mount`] where the connection to the kernel broke.
    pub fn wait(&self) -> Result<()> {
        let mut result = self.session.result.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(result) = &*result {
                return result.clone().map_err(|reason| self.error(reason));
            }
            result = self.session.reached.wait(result).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether a file system with our device number is attached at our place.
    fn is_attached(&self) -> bool {
        match &self.device {
            Some(device) => mount_table::holds(&self.mountpoint, device),
            None => self.session.result().is_none(),
        }
    }

    /// Takes the mount away. Does nothing where it is gone already, even if something else is mounted there now.
    ///
    /// # Errors
    /// [`Refusal`] where it is in use, or the system does not let us.
    pub(super) fn detach(&self, how: Detach) -> std::result::Result<(), Refusal> {
        // Once the session has ended the kernel gives its device number to the next file system, which may be a new
        // mount on this same folder. Of ours only a dead name can be left, where the connection was aborted.
        // Whose threads failed it is still ours.
        let ours = self.is_attached()
            && match self.session.result() {
                None | Some(Err(_)) => true,
                Some(Ok(())) => mountpoint::is_dead(&self.mountpoint),
            };
        if ours { detach::detach(&self.mountpoint, how) } else { Ok(()) }
    }

    /// For how long a request has been under way, as [`Requests::oldest`].
    pub(super) fn oldest_request(&self) -> Duration {
        self.requests.oldest()
    }

    /// Has what is stored now shown soon.
    pub(super) fn refresh(&self) {
        if let Some(refreshing) = self.refreshing.get() {
            refreshing.now();
        }
    }

    /// Writes to the log what was counted up to now.
    pub(super) fn log_statistics(&self) {
        if let Some(server) = self.server.get().and_then(Weak::upgrade) {
            // Somebody asked for it, and would miss it at a lower level.
            log::warn!("statistics: {}", statistics::line(&server.statistics()));
        }
    }

    /// Breaks the connection with the kernel: everybody who waits for an answer gets an error, threads of this process
    /// too. Where the system does not let us, the end of this process does that.
    pub(super) fn abort(&self) {
        self.requests.end();
        if let Some(mut abort) = self.abort.as_ref() {
            // Then the end of this process has to do.
            let _ = abort.write_all(b"1");
        }
    }

    pub(super) fn error(&self, reason: String) -> Error {
        Error::Mount { mountpoint: self.mountpoint.display().to_string(), reason }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.detach(Detach::WhenIdle).is_ok() {
            // The threads of the session still hold the tree; what its owner drops next may rely on their end.
            self.session.wait_for(PATIENCE);
        } else if let Err(refusal) = self.detach(Detach::Lazily) {
            log::error!("cannot unmount {}: {refusal:?}", self.mountpoint.display());
        }
    }
}

impl SessionEnd {
    fn set(&self, result: std::result::Result<(), String>) {
        self.result.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(result);
        self.reached.notify_all();
    }

    /// How it ended, if it has.
    fn result(&self) -> Option<std::result::Result<(), String>> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn wait_for(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        let mut result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        while result.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            result = self.reached.wait_timeout(result, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Has requests cancelled whose readers have given up, and all where the connection with the kernel is broken, as by
/// `umount --force`.
///
/// # Errors
/// Where there can be no other thread.
fn look_after(requests: &Arc<Requests>, device: OwnedFd) -> io::Result<()> {
    let requests = Arc::clone(requests);
    let is_connected = move || {
        let mut device = [PollFd::new(&device, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut device, Some(&now)).is_err() || !device[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
    };
    threads::start("readers", move || requests.watch(is_connected, requester::has_given_up)).map(drop)
}

/// What breaks the connection of the mount with this device number.
fn open_abort(device: &str) -> Option<File> {
    let (_, minor) = device.split_once(':')?;
    File::options().write(true).open(format!("/sys/fs/fuse/connections/{minor}/abort")).ok()
}

/// How a session ended. A request that was just being taken when the kernel tore the connection down gives an error
/// of its own, which is no more than the end.
fn ended(result: io::Result<()>) -> std::result::Result<(), String> {
    match result {
        Err(error) if error.raw_os_error() != Some(libc::ECONNABORTED) => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// The name of the source in the mount table. It must not look like a device, which systemd would wait for and
/// then unmount.
fn source_name(source: &Path) -> OsString {
    if source.starts_with("/dev") {
        let mut name = OsString::from("tilefs:");
        name.push(source);
        name
    } else {
        source.as_os_str().to_owned()
    }
}

/// Has the kernel read further ahead, if we may.
fn raise_kernel_read_ahead(device: &str) {
    let path = format!("/sys/class/bdi/{device}/read_ahead_kb");
    let current = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse::<u64>().ok());
    if current.is_some_and(|current| current < KERNEL_READ_AHEAD_KIB) {
        match fs::write(&path, KERNEL_READ_AHEAD_KIB.to_string()) {
            Ok(()) => log::debug!("kernel read-ahead raised to {KERNEL_READ_AHEAD_KIB} KiB"),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => log::debug!("{path}: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_torn_down_is_a_good_end() {
        assert_eq!(ended(Ok(())), Ok(()));
        assert_eq!(ended(Err(io::Error::from_raw_os_error(libc::ECONNABORTED))), Ok(()));
        assert!(ended(Err(io::Error::from_raw_os_error(libc::EINVAL))).is_err());
    }

    #[test]
    fn no_source_looks_like_a_device() {
        assert_eq!(source_name(Path::new("/dev/shm/array")), "tilefs:/dev/shm/array");
        assert_eq!(source_name(Path::new("/data/a,b")), "/data/a,b");
    }

    #[test]
    fn there_are_threads_to_spare() {
        assert_eq!(default_threads(1), 4);
        assert_eq!(default_threads(12), 24);
        assert_eq!(default_threads(128), 32);
    }
}
