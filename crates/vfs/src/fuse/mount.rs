//! A mounted tree: mounts it, serves it on threads of its own, and unmounts it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak, mpsc};
use std::time::Duration;

use tilefs_base::statistics;
use tilefs_threads::address_space;
use tilefs_threads::{self as threads, Probe};

use crate::node::ServedTree;
use fuser::{Config, INodeNo, Notifier, Session, SessionACL};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::error::MountError;
use super::filesystem::TreeFilesystem;
use super::mounting::attach::{self, Access};
use super::mounting::detach::{self, Detach, DetachRefusal};
use super::mounting::needs::Needs;
use super::mounting::working_folders::working_folders;
use super::mounting::{mount_table, mountpoint};
use super::refresh::Refresher;
use super::requester;
use super::requests::Requests;
use super::server::{BackgroundTriggers, FuseServer, Ownership};
use super::session_end::SessionEnd;
use crate::read_ahead::{ReadAhead, Window};
use crate::refresh::channel;
use crate::reports::ASKED_FOR;

/// Read-ahead of the kernel, if we may set it; the kernel's default is 128. Large enough that a reader seldom waits for
/// a request. More is no faster, because tilefs prefetches itself, and slows random reads of mapped files, for which
/// the kernel then also fetches this much.
const KERNEL_READ_AHEAD_KIB: u64 = 512;

/// Session threads that take no requests: one joins the request threads, one waits for the end, one invalidates names,
/// and one watches for readers that gave up.
const OTHER_THREADS: usize = 4;

/// One more thread if the tree is refreshed periodically.
const REFRESHING: usize = 1;

/// One thread that takes requests and one that does the work.
const LEAST_THREADS: usize = 2;

/// Time limit for a dropped mount to wait for its threads.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Options of a mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountOptions {
    /// The source in the mount table: the absolute path of the array or group.
    pub source: PathBuf,
    /// Users who may access the mount.
    pub access: Access,
    /// Owner of the files.
    pub ownership: Ownership,
    /// SELinux label options, passed to the kernel if it has SELinux.
    pub selinux_labels: Vec<OsString>,
    /// Disables the kernel's page cache. Single large reads get faster, everything else slower.
    pub direct_io: bool,
    /// Rejects requests of this process itself. If it only serves, such a request means that an array leads back into
    /// the mount, and would deadlock.
    pub only_others: bool,
    /// Interval of automatic refreshes; `None` to refresh only on demand.
    pub refresh: Option<Duration>,
    /// Maximum number of concurrent requests; fewer if the system limits threads.
    pub threads: usize,
    /// Cache budget of the tree in bytes, which must fit into a limited address space together with the threads.
    pub cache_size: u64,
    /// Number of prefetch threads.
    pub read_ahead_workers: usize,
    /// Limits of prefetching for all open files together; well below the cache budget.
    pub read_ahead_window: Window,
}

impl MountOptions {
    /// Creates the default options.
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
            read_ahead_window: Window::LOCAL,
        }
    }
}

/// Makes the kernel forget its oldest names whenever it remembers too many, until the session ends. The working folder
/// of a process keeps its name, without which getcwd(3) would fail.
///
/// Runs on its own thread, because the kernel may first wait for requests in the same folder.
fn forget_names(server: &Weak<FuseServer>, notifier: &Notifier, requests: &mpsc::Receiver<()>) {
    while requests.recv().is_ok() {
        let Some(server) = server.upgrade() else { return };
        for (folder, name) in server.inodes().names_to_forget(&working_folders()) {
            // The kernel may have forgotten the name already, or be using it.
            let _ = notifier.inval_entry(INodeNo(folder), name.as_ref().as_ref());
        }
    }
}

/// Returns the default number of request threads. They mostly wait, for the kernel or for decoding that all cores
/// share. There are more threads than cores, so that a few slow reads leave threads for cheap requests, but not many
/// more, because they compete.
fn default_threads(cores: usize) -> usize {
    (2 * cores).clamp(4, 32)
}

/// Returns the number of request threads: as many as wanted, or as the limits of this process allow. Also returns the
/// probe threads, which must end before others start.
///
/// # Errors
/// One line, if too few are possible.
fn threads_for(options: &MountOptions) -> Result<(usize, Probe), String> {
    // One of the threads does no work: see [`Requests`].
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
    // A session that starts only some of its threads cannot be ended, so test the limit first.
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

/// Mounts on an empty folder. Returns its path, and the device that the kernel's requests come from.
fn attached(mountpoint: &Path, options: &MountOptions) -> Result<(PathBuf, OwnedFd), MountError> {
    let path = mountpoint::prepare(mountpoint, &options.source)?;
    let device = attach::attach(&path, &source_name(&options.source), options.access, &options.selinux_labels);
    Ok((path, device.map_err(|reason| MountError::new(mountpoint, reason))?))
}

/// A mounted tree. Dropping it unmounts, lazily if it is in use.
pub struct FuseMount {
    mountpoint: PathBuf,
    /// The device number in the mount table; `None` if the table cannot be read.
    device: Option<String>,
    /// Whether another process mounted and passed on the device. That process also unmounts.
    is_inherited: bool,
    session: Arc<SessionEnd>,
    requests: Arc<Requests>,
    /// The server, as long as the session lasts.
    server: OnceLock<Weak<FuseServer>>,
    refresher: OnceLock<Refresher>,
    /// The file that aborts the FUSE connection when written to, if it exists. Opened in advance: after the connection
    /// has ended, its path may belong to another connection, but this file does nothing.
    abort: Option<File>,
}

impl FuseMount {
    /// Mounts a tree on an empty folder, or serves the mount whose device was inherited as the descriptor N of the path
    /// `/dev/fd/N`. When this returns, the mount answers.
    ///
    /// # Errors
    /// [`MountError`], in one line with advice; nothing is left mounted then.
    pub fn new(
        tree: impl ServedTree + 'static,
        mountpoint: &Path,
        options: &MountOptions,
    ) -> Result<FuseMount, MountError> {
        let fail = |reason: String| MountError::new(mountpoint, reason);
        let (threads, probe) = threads_for(options).map_err(fail)?;
        let inherited = mountpoint::descriptor(mountpoint);
        let (path, device) = match inherited {
            Some(number) => (mountpoint.to_owned(), attach::inherited(number).map_err(fail)?),
            None => attached(mountpoint, options)?,
        };
        // From here on, dropping `mount` unmounts on every return.
        let number = match inherited {
            Some(_) => None,
            None => mount_table::at(&path).filter(mount_table::Mounted::is_tilefs).map(|mounted| mounted.device),
        };
        let mount = FuseMount {
            abort: number.as_deref().and_then(open_abort),
            device: number,
            mountpoint: path,
            is_inherited: inherited.is_some(),
            session: Arc::default(),
            requests: Arc::new(Requests::new(threads)),
            server: OnceLock::new(),
            refresher: OnceLock::new(),
        };
        drop(probe);
        let (too_many_names, forget_requests) = mpsc::sync_channel(1);
        let (trigger, refresh_requests) = channel();
        let filesystem = TreeFilesystem::new(
            Arc::new(tree),
            BackgroundTriggers { too_many_names, missing: options.refresh.map(|_| trigger.clone()) },
            Arc::clone(&mount.requests),
            ReadAhead::new(options.read_ahead_workers, options.read_ahead_window),
            options.ownership,
            options.direct_io,
            options.only_others,
        );
        let server = mount.server.get_or_init(|| Arc::downgrade(filesystem.server())).clone();
        let config = mount.config(threads, options.access);
        let session = Session::from_fd(filesystem, device, config.acl, config)
            .map_err(|error| fail(unanswered(&error, mount.is_inherited)))?;
        let notifier = session.notifier();
        let refresher = Refresher::new(trigger, refresh_requests, server.clone(), notifier.clone());
        let refresher = mount.refresher.get_or_init(|| refresher);
        // If this thread cannot start, the kernel forgets names at its own pace and only memory is lost.
        let _ = threads::start("forget", move || forget_names(&server, &notifier, &forget_requests));
        mount.run(session).map_err(|error| fail(format!("cannot start a thread: {error}")))?;
        if let Some(interval) = options.refresh {
            refresher
                .start(Some(interval))
                .map_err(|error| fail(format!("cannot start the thread that refreshes: {error}")))?;
        }
        if let Some(device) = &mount.device {
            raise_kernel_read_ahead(device);
        }
        Ok(mount)
    }

    /// Returns the settings of the session.
    fn config(&self, threads: usize, access: Access) -> Config {
        let mut config = Config::default();
        config.n_threads = Some(threads);
        config.acl = match access {
            // The kernel enforces the access that the mounting process has chosen.
            _ if self.is_inherited => SessionACL::All,
            Access::Owner => SessionACL::Owner,
            Access::OwnerAndRoot => SessionACL::RootAndOwner,
            Access::Everyone => SessionACL::All,
        };
        config
    }

    /// Starts the threads that answer requests.
    ///
    /// # Errors
    /// If the system refuses another thread.
    fn run(&self, session: Session<TreeFilesystem>) -> io::Result<()> {
        // If this thread cannot start, killed readers are released only when their requests are answered.
        let _ = session.as_fd().try_clone_to_owned().and_then(|device| start_watcher(&self.requests, device));
        let (requests, end) = (Arc::clone(&self.requests), Arc::clone(&self.session));
        let started = threads::start("mount", move || {
            let result = session.run();
            requests.end();
            end.set(ended(result));
        });
        started.map(drop).inspect_err(|_| {
            self.requests.end();
            self.session.set(Ok(()));
        })
    }

    /// Returns the mount point: an absolute path without links.
    pub fn mountpoint(&self) -> &Path {
        &self.mountpoint
    }

    /// Waits until the mount is gone, whoever unmounted it.
    ///
    /// # Errors
    /// [`MountError`] if the connection to the kernel broke.
    pub fn wait(&self) -> Result<(), MountError> {
        self.session.wait().map_err(|reason| self.error(reason))
    }

    /// Returns whether a file system with our device number is mounted at our mount point.
    fn is_attached(&self) -> bool {
        match &self.device {
            Some(device) => mount_table::holds(&self.mountpoint, device),
            None => self.session.result().is_none(),
        }
    }

    /// Returns whether another process mounted, and will unmount.
    pub(super) fn is_inherited(&self) -> bool {
        self.is_inherited
    }

    /// Unmounts. Does nothing if the mount is gone, even if something else is mounted there now, or if another process
    /// unmounts.
    ///
    /// # Errors
    /// [`DetachRefusal`] if it is in use, or the system rejects it.
    pub(super) fn detach(&self, how: Detach) -> Result<(), DetachRefusal> {
        // After the session ended normally, the kernel may reuse its device number for a new mount on the same folder.
        // Only a dead mount can then still be ours, left after the connection was aborted. After the session's threads
        // failed, the mount is still ours.
        let ours = !self.is_inherited
            && self.is_attached()
            && match self.session.result() {
                None | Some(Err(_)) => true,
                Some(Ok(())) => mountpoint::is_dead(&self.mountpoint),
            };
        if ours { detach::detach(&self.mountpoint, how) } else { Ok(()) }
    }

    /// Returns the age of the oldest active request, as [`Requests::oldest`].
    pub(super) fn oldest_request(&self) -> Duration {
        self.requests.oldest()
    }

    /// Triggers a refresh.
    pub(super) fn refresh(&self) {
        if let Some(refresher) = self.refresher.get() {
            refresher.now();
        }
    }

    /// Logs the current statistics.
    pub(super) fn log_statistics(&self) {
        if let Some(server) = self.server.get().and_then(Weak::upgrade) {
            log::info!(target: ASKED_FOR, "statistics: {}", statistics::line(&server.statistics()));
        }
    }

    /// Aborts the FUSE connection: everybody who waits for a reply gets an error, including threads of this process. If
    /// the system does not allow it, the connection breaks when this process exits.
    pub(super) fn abort(&self) {
        self.requests.end();
        if let Some(mut abort) = self.abort.as_ref() {
            // If this fails, the exit of this process aborts the connection.
            let _ = abort.write_all(b"1");
        }
    }

    pub(super) fn error(&self, reason: String) -> MountError {
        MountError::new(&self.mountpoint, reason)
    }
}

impl Drop for FuseMount {
    fn drop(&mut self) {
        if self.is_inherited {
            // The mount ends with this process, or when the other process unmounts it.
            self.requests.end();
        } else if self.detach(Detach::WhenIdle).is_ok() {
            // The session's threads still hold the tree, and what the owner drops next may rely on their having ended.
            self.session.wait_for(SHUTDOWN_TIMEOUT);
        } else if let Err(refusal) = self.detach(Detach::Lazily) {
            log::error!("cannot unmount {}: {refusal:?}", self.mountpoint.display());
        }
    }
}

/// Starts the thread that cancels requests whose readers have given up, and all requests if the connection is broken,
/// as by `umount --force`.
///
/// # Errors
/// If the system refuses another thread.
fn start_watcher(requests: &Arc<Requests>, device: OwnedFd) -> io::Result<()> {
    let requests = Arc::clone(requests);
    let is_connected = move || {
        let mut device = [PollFd::new(&device, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut device, Some(&now)).is_err() || !device[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
    };
    threads::start("readers", move || requests.watch(is_connected, requester::has_given_up)).map(drop)
}

/// Opens the file that aborts the connection of the mount with this device number.
fn open_abort(device: &str) -> Option<File> {
    let (_, minor) = device.split_once(':')?;
    File::options().write(true).open(format!("/sys/fs/fuse/connections/{minor}/abort")).ok()
}

/// Returns the reason why a session did not begin.
fn unanswered(error: &io::Error, is_inherited: bool) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM) if is_inherited => "this descriptor is not mounted; mount it before passing it on".to_owned(),
        _ => format!("the kernel does not answer: {error}"),
    }
}

/// Interprets the result of a session. A request that is being read when the kernel tears the connection down fails
/// with ECONNABORTED, which is a normal end.
fn ended(result: io::Result<()>) -> Result<(), String> {
    match result {
        Err(error) if error.raw_os_error() != Some(libc::ECONNABORTED) => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// Returns the source name for the mount table. It must not look like a device, because systemd would wait for the
/// device and then unmount.
fn source_name(source: &Path) -> OsString {
    if source.starts_with("/dev") {
        let mut name = OsString::from("tilefs:");
        name.push(source);
        name
    } else {
        source.as_os_str().to_owned()
    }
}

/// Raises the kernel's read-ahead, if we may.
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
    fn an_aborted_connection_is_a_normal_end() {
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
    fn there_are_spare_threads() {
        assert_eq!(default_threads(1), 4);
        assert_eq!(default_threads(12), 24);
        assert_eq!(default_threads(128), 32);
    }
}
