//! Answers the kernel's requests from the tree: each handler finds the node, queries it, and replies.
//!
//! Nothing here knows arrays. The kernel may cache names, attributes and pages indefinitely: they change only when the
//! tree is refreshed, and are then invalidated.
//!
//! A lookup waits until the length of a file is known, even if that takes a pass over all of it. The kernel would ask
//! again for attributes that expire, but not in `sendfile` and `splice`, not even for a file opened with direct I/O:
//! too small a length truncates the result, and too large a length appends zeros, because the short read that corrects
//! it may arrive after one that was sent ahead of it.

use std::ffi::OsStr;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Weak};
use std::time::Duration;

use fuser::{
    AccessFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    IoctlFlags, KernelConfig, LockOwner, OpenAccMode, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyIoctl, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyXattr, Request,
};
use tilefs_format::error::Error;
use tilefs_reader::statistics::{Statistic, Value};
use tilefs_reader::threads::cancellation;

use super::counts::{Counts, RequestKind};
use super::handles::Handles;
use super::inodes::{Inode, Inodes, Outdated};
use super::mount::Ownership;
use super::reply_buffers::{ReplyBuffer, ReplyBuffers};
use super::requests::Requests;
use super::sys;
use crate::read_ahead::{ReadAhead, Reader};
use crate::refresh::RefreshTrigger;
use crate::reports::{ErrorLog, OwnFolder, RootWithOwn, reason_of_panic};
use crate::tree::suggest::suggestion_in;
use crate::tree::{EntryKind, Node, Tree};

/// Time for which the kernel may cache names and attributes.
const FOREVER: Duration = Duration::from_secs(24 * 3600);

/// The longest name that every kernel version accepts from a FUSE file system.
const MAX_NAME: usize = 1024;

/// Preferred I/O size reported to programs; `cat` and `cp` read at least this anyway.
const BLOCK_SIZE: u32 = 128 << 10;

/// The largest read the kernel may request, which bounds the reply buffer of each thread.
const MAX_READ: u32 = 1 << 20;

/// Maximum number of concurrent background reads (the kernel's read-ahead).
const MAX_BACKGROUND: u16 = 64;

/// A tree as a FUSE file system.
pub struct TreeFilesystem {
    server: Arc<Server>,
    requests: Arc<Requests>,
    only_others: bool,
}

/// Answers the requests, on any thread.
pub struct Server {
    tree: Arc<dyn Tree>,
    own: Arc<OwnFolder>,
    inodes: Inodes,
    triggers: BackgroundTriggers,
    files: Handles<OpenFile>,
    folders: Handles<Vec<Listed>>,
    read_ahead: ReadAhead,
    replies: ReplyBuffers,
    errors: ErrorLog,
    counts: Counts,
    ownership: Ownership,
    direct_io: bool,
}

/// Triggers for work in the background.
pub struct BackgroundTriggers {
    /// Signalled whenever the kernel remembers too many names: [`Inodes::names_to_forget`] then returns some.
    pub too_many_names: SyncSender<()>,
    /// Triggered when stored data is missing, if the tree is refreshed periodically: it may have been vacuumed.
    pub missing: Option<RefreshTrigger>,
}

/// An open file. It holds its node, so that other openers need not look it up again.
struct OpenFile {
    _node: Node,
    reader: Arc<Reader>,
}

/// An entry of an open folder.
struct Listed {
    number: u64,
    kind: FileType,
    name: String,
}

impl TreeFilesystem {
    /// Serves this tree. With `direct_io` the kernel caches no file contents, and older kernels cannot map files. With
    /// `only_others` requests of this process itself fail.
    pub fn new(
        tree: Arc<dyn Tree>,
        triggers: BackgroundTriggers,
        requests: Arc<Requests>,
        read_ahead: ReadAhead,
        ownership: Ownership,
        direct_io: bool,
        only_others: bool,
    ) -> Self {
        let server = Arc::new_cyclic(|server: &Weak<Server>| {
            let server = server.clone();
            let errors = ErrorLog::default();
            let statistics = move || server.upgrade().map_or(Vec::new(), |server| server.statistics());
            let own = OwnFolder::new(errors.recent().clone(), statistics);
            let own = Arc::new(own);
            let root = RootWithOwn::new(tree.root(), own.clone());
            Server {
                tree,
                own,
                inodes: Inodes::new(Arc::new(root)),
                triggers,
                files: Handles::new(),
                folders: Handles::new(),
                read_ahead,
                replies: ReplyBuffers::default(),
                errors,
                counts: Counts::default(),
                ownership,
                direct_io,
            }
        });
        TreeFilesystem { server, requests, only_others }
    }

    /// Returns the server.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Answers a request that may access storage, which can take long or hang.
    fn answer<R, W>(&self, request: &Request, reply: R, work: W)
    where
        R: ErrorReply + Send + 'static,
        W: FnOnce(&Server, R) + Send + 'static,
    {
        if self.only_others && sys::is_own_thread(request.pid()) {
            let refusal = "what is mounted leads back into the mount itself, by a link or as a member of a group";
            self.server.errors.report("refused", refusal);
            return reply.refuse(Errno::EIO);
        }
        self.requests.handle(&self.server, request.pid(), move |server| work(server, reply));
    }
}

impl Server {
    /// Returns the names that the kernel remembers.
    pub fn inodes(&self) -> &Inodes {
        &self.inodes
    }

    /// Refreshes to what is stored now. Returns what to invalidate in the kernel, if anything changed.
    ///
    /// # Errors
    /// If what is stored cannot be opened. The log says why, and the previous state stays visible.
    pub fn refresh(&self) -> std::result::Result<Option<Outdated>, Errno> {
        let refreshed = self.attempt(
            || "refreshing".to_owned(),
            || {
                let Some(mut refreshed) = self.tree.refresh()? else { return Ok(None) };
                refreshed.root = Arc::new(RootWithOwn::new(refreshed.root, self.own.clone()));
                Ok(Some(self.inodes.refresh(refreshed)))
            },
        );
        if let Ok(Some(_)) = &refreshed {
            self.counts.refresh();
        }
        refreshed
    }

    /// Returns all statistics, of this module and those below.
    pub fn statistics(&self) -> Vec<Statistic> {
        let now = |name, help, count: usize| Statistic::new(name, help, Value::Now(count as u64));
        let (names, bytes) = self.inodes.remembered();
        let mut statistics = self.counts.statistics();
        statistics.extend([
            now("open_files", "Files that are open", self.files.count()),
            now("open_folders", "Folders that are being listed", self.folders.count()),
            now("names", "Names that the kernel remembers", names),
            now("names_bytes", "Approximate memory of these names in bytes", bytes),
        ]);
        statistics.extend(self.read_ahead.statistics());
        statistics.extend(self.tree.statistics());
        statistics
    }

    /// Runs the work of a request. Converts errors and panics to an errno and a log line.
    fn attempt<T>(
        &self,
        doing: impl Fn() -> String,
        work: impl FnOnce() -> std::result::Result<T, Failure>,
    ) -> std::result::Result<T, Errno> {
        let work = || {
            cancellation::check()?;
            work()
        };
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(Failure::Errno(errno))) => Err(errno),
            Ok(Err(Failure::Error(Error::Cancelled))) if cancellation::is_cancelled() => {
                log::debug!("{}: its reader has given up", doing());
                Err(Errno::EINTR)
            }
            Ok(Err(Failure::Error(error))) => {
                let errno = error.errno();
                if errno == libc::ENOENT {
                    log::debug!("{}: {error}", doing());
                } else {
                    self.counts.error(error.kind());
                    if let (Error::Missing { .. }, Some(trigger)) = (&error, &self.triggers.missing) {
                        trigger.trigger();
                    }
                    self.errors.report(&doing(), &error.to_string());
                }
                Err(Errno::from_i32(errno))
            }
            Err(panic) => {
                let reason = reason_of_panic(&*panic);
                self.counts.error(Error::internal(reason).kind());
                self.errors.report(&doing(), &format!("internal error, please report it: {reason}"));
                Err(Errno::EIO)
            }
        }
    }

    fn inode(&self, number: INodeNo) -> std::result::Result<Arc<Inode>, Failure> {
        self.inodes.get(number.0).ok_or(Failure::Errno(Errno::ESTALE))
    }

    fn node(&self, inode: &Inode) -> std::result::Result<Node, Failure> {
        self.inodes.node(inode)?.ok_or(Failure::Errno(Errno::ESTALE))
    }

    fn path_of(&self, number: INodeNo) -> String {
        self.inodes.get(number.0).map_or_else(|| format!("inode {}", number.0), |inode| inode.path())
    }

    fn find(&self, parent: INodeNo, name: &OsStr) -> std::result::Result<Arc<Inode>, Failure> {
        let name = name.to_str().ok_or(Failure::Errno(Errno::ENOENT))?;
        loop {
            if let Some(inode) = self.find_once(parent, name)? {
                return Ok(inode);
            }
        }
    }

    /// As [`Server::find`], but `None` if the tree was refreshed meanwhile.
    fn find_once(&self, parent: INodeNo, name: &str) -> std::result::Result<Option<Arc<Inode>>, Failure> {
        let generation = self.inodes.generation();
        if let Some(inode) = self.inodes.look_up(parent.0, name) {
            return Ok(Some(inode));
        }
        let parent = self.inode(parent)?;
        let Node::Folder(folder) = self.node(&parent)? else {
            return Err(Failure::Errno(Errno::ENOTDIR));
        };
        let Some(node) = folder.lookup(name)? else {
            let reason = folder.why_absent(name).or_else(|| {
                // Programs look for hidden files of their own everywhere.
                let near = (!name.starts_with('.')).then(|| suggestion_in(&*folder, name))?;
                near.map(|near| format!("there is no such file; the nearest name is {near}"))
            });
            if let Some(reason) = reason {
                self.errors.recent().add(&format!("{}/{name}", parent.path()), &reason);
            }
            return Err(Failure::Errno(Errno::ENOENT));
        };
        let size = match &node {
            Node::Folder(_) => 0,
            Node::File(file) => file.len()?,
        };
        // A cancelled lookup may have returned incomplete data.
        cancellation::check()?;
        let inode = self.inodes.insert(&parent, name, &node, size, generation);
        if self.inodes.remembers_too_many() {
            // Fails if a signal is pending already, which suffices.
            let _ = self.triggers.too_many_names.try_send(());
        }
        Ok(inode)
    }

    /// Attributes of a folder that no longer exists are an error; those of an open file stay the same.
    fn attributes_of(&self, number: INodeNo) -> std::result::Result<FileAttr, Failure> {
        let inode = self.inode(number)?;
        if self.inodes.is_stale(&inode) {
            self.node(&inode)?;
        }
        Ok(self.attributes(&inode))
    }

    fn attributes(&self, inode: &Inode) -> FileAttr {
        let (kind, perm) = match inode.kind {
            EntryKind::Folder => (FileType::Directory, 0o555),
            EntryKind::File => (FileType::RegularFile, 0o444),
        };
        let Ownership { user, group, umask } = self.ownership;
        let (size, time) = (inode.size(), inode.modified());
        FileAttr {
            ino: INodeNo(inode.number),
            size,
            blocks: size.div_ceil(512),
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind,
            perm: perm & !umask,
            // For a folder, 1 means that subfolders are not counted, so `find` does not rely on it.
            nlink: 1,
            uid: user,
            gid: group,
            rdev: 0,
            blksize: BLOCK_SIZE,
            flags: 0,
        }
    }

    fn list(&self, number: INodeNo) -> std::result::Result<Vec<Listed>, Failure> {
        let inode = self.inode(number)?;
        let Node::Folder(folder) = self.node(&inode)? else {
            return Err(Failure::Errno(Errno::ENOTDIR));
        };
        let link = |number, name: &str| Listed { number, kind: FileType::Directory, name: name.to_owned() };
        let mut listed = vec![link(inode.number, "."), link(inode.parent(), "..")];
        let entries = folder.list()?;
        cancellation::check()?;
        for entry in entries {
            // The kernel would reject the whole listing for one bad name.
            if entry.name.is_empty() || entry.name.len() > MAX_NAME || entry.name.contains(['/', '\0']) {
                let error = format!("{:?} cannot be the name of a file and is not listed", entry.name);
                self.errors.report(&format!("list of {}", inode.path()), &error);
                continue;
            }
            listed.push(Listed {
                number: self.inodes.number_of(inode.number, &entry.name),
                kind: match entry.kind {
                    EntryKind::Folder => FileType::Directory,
                    EntryKind::File => FileType::RegularFile,
                },
                name: entry.name,
            });
        }
        Ok(listed)
    }

    /// Returns the handle, and whether the kernel may cache its content.
    fn open_file(&self, number: INodeNo, flags: OpenFlags) -> std::result::Result<(u64, FopenFlags), Failure> {
        if flags.acc_mode() != OpenAccMode::O_RDONLY || flags.0 & libc::O_TRUNC != 0 {
            return Err(Failure::Errno(Errno::EROFS));
        }
        let inode = self.inode(number)?;
        let node = self.node(&inode)?;
        let Node::File(file) = &node else {
            return Err(Failure::Errno(Errno::EISDIR));
        };
        let content = file.open()?;
        cancellation::check()?;
        if inode.resize(content.len()) {
            // The length changed since the lookup (a text that now reports an error). On ESTALE the kernel fetches the
            // attributes again and retries.
            return Err(Failure::Errno(Errno::ESTALE));
        }
        // Without either flag the kernel drops pages cached by earlier opens, but caches new ones.
        let caching = match () {
            () if self.direct_io || file.is_live() => FopenFlags::FOPEN_DIRECT_IO,
            () if file.may_change() => FopenFlags::empty(),
            () => FopenFlags::FOPEN_KEEP_CACHE,
        };
        let handle = OpenFile { _node: node.clone(), reader: self.read_ahead.open(content) };
        Ok((self.files.open(Arc::new(handle)), caching))
    }

    /// Reads the existing part of a range of an open file.
    fn read(&self, handle: FileHandle, offset: u64, size: u32) -> std::result::Result<ReplyBuffer<'_>, Failure> {
        let file = self.files.get(handle.0).ok_or(Failure::Errno(Errno::EBADF))?;
        let content = file.reader.content();
        let length = content.len().saturating_sub(offset).min(u64::from(size));
        let mut reply = self.replies.get(length as usize); // at most a u32
        if length > 0 {
            self.read_ahead.note(&file.reader, offset, length);
            content.read_at(offset, &mut reply)?;
            self.counts.read(reply.len());
        }
        Ok(reply)
    }

    fn extended_attributes(&self, number: INodeNo) -> std::result::Result<Vec<(String, Vec<u8>)>, Failure> {
        Ok(match self.node(&*self.inode(number)?)? {
            Node::Folder(folder) => folder.extended_attributes(),
            Node::File(file) => file.extended_attributes(),
        })
    }
}

/// The failure of a request: an errno that is an ordinary answer, or an error to report.
enum Failure {
    Errno(Errno),
    Error(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Error(error)
    }
}

/// A reply that can be an error.
trait ErrorReply {
    fn refuse(self, errno: Errno);
}

macro_rules! refusable {
    ($($reply:ty),*) => {
        $(impl ErrorReply for $reply {
            fn refuse(self, errno: Errno) {
                self.error(errno);
            }
        })*
    };
}

refusable!(ReplyAttr, ReplyData, ReplyEntry, ReplyOpen, ReplyXattr);

/// Replies with an extended attribute or a list of them: the size if the kernel asks for it, otherwise the bytes.
fn reply_sized(reply: ReplyXattr, size: u32, bytes: &[u8]) {
    match u32::try_from(bytes.len()) {
        Ok(length) if size == 0 => reply.size(length),
        Ok(length) if length <= size => reply.data(bytes),
        _ => reply.error(Errno::ERANGE),
    }
}

impl Filesystem for TreeFilesystem {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        for capability in [
            InitFlags::FUSE_ASYNC_READ,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_ASYNC_DIO,
            InitFlags::FUSE_EXPLICIT_INVAL_DATA,
            InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP,
        ] {
            // Older kernels lack some of these and are slower, but not wrong.
            let _ = config.add_capabilities(capability);
        }
        // These fail only for zero and for values above the library's limits, which these are not.
        let _ = config.set_max_write(MAX_READ);
        let _ = config.set_max_background(MAX_BACKGROUND);
        Ok(())
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.server.counts.request(RequestKind::Lookup);
        let name = name.to_owned();
        self.answer(request, reply, move |server, reply| {
            let doing = || format!("look-up of {}/{}", server.path_of(parent), name.display());
            match server.attempt(doing, || server.find(parent, &name).map(|inode| server.attributes(&inode))) {
                Ok(attributes) => reply.entry(&FOREVER, &attributes, Generation(0)),
                Err(errno) => reply.error(errno),
            }
        });
    }

    fn forget(&self, _request: &Request, number: INodeNo, lookups: u64) {
        self.server.counts.request(RequestKind::Forget);
        let doing = || format!("forgetting of inode {}", number.0);
        // The kernel expects no reply.
        let _ = self.server.attempt(doing, || {
            self.server.inodes.forget(number.0, lookups);
            Ok(())
        });
    }

    fn getattr(&self, request: &Request, number: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        self.server.counts.request(RequestKind::GetAttributes);
        let answer = move |server: &Server, reply: ReplyAttr| {
            let doing = || format!("attributes of {}", server.path_of(number));
            match server.attempt(doing, || server.attributes_of(number)) {
                Ok(attributes) => reply.attr(&FOREVER, &attributes),
                Err(errno) => reply.error(errno),
            }
        };
        // A cached answer need not wait for requests that access storage.
        let inode = self.server.inodes.get(number.0);
        if inode.is_some_and(|inode| self.server.inodes.is_stale(&inode)) {
            self.answer(request, reply, answer);
        } else {
            answer(&self.server, reply);
        }
    }

    fn open(&self, request: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        self.server.counts.request(RequestKind::Open);
        self.answer(request, reply, move |server, reply| {
            let doing = || format!("open of {}", server.path_of(number));
            match server.attempt(doing, || server.open_file(number, flags)) {
                Ok((handle, caching)) => reply.opened(FileHandle(handle), caching | FopenFlags::FOPEN_NOFLUSH),
                Err(errno) => reply.error(errno),
            }
        });
    }

    fn read(
        &self,
        request: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.server.counts.request(RequestKind::Read);
        self.answer(request, reply, move |server, reply| {
            let doing = || format!("read of {} at {offset}", server.path_of(number));
            match server.attempt(doing, || server.read(handle, offset, size)) {
                Ok(bytes) => reply.data(&bytes),
                Err(errno) => reply.error(errno),
            }
        });
    }

    fn release(
        &self,
        _request: &Request,
        number: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.server.counts.request(RequestKind::Release);
        let server = &self.server;
        let doing = || format!("close of {}", server.path_of(number));
        // The kernel ignores errors of a release.
        let _ = server.attempt(doing, || {
            if let Some(file) = server.files.close(handle.0) {
                server.read_ahead.close(&file.reader);
            }
            Ok(())
        });
        reply.ok();
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn opendir(&self, request: &Request, number: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        self.server.counts.request(RequestKind::OpenFolder);
        self.answer(request, reply, move |server, reply| {
            let doing = || format!("list of {}", server.path_of(number));
            match server.attempt(doing, || Ok(server.folders.open(Arc::new(server.list(number)?)))) {
                Ok(handle) => {
                    reply.opened(FileHandle(handle), FopenFlags::FOPEN_CACHE_DIR | FopenFlags::FOPEN_KEEP_CACHE);
                }
                Err(errno) => reply.error(errno),
            }
        });
    }

    fn readdir(&self, _request: &Request, number: INodeNo, handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        self.server.counts.request(RequestKind::ReadFolder);
        let server = &self.server;
        let doing = || format!("list of {}", server.path_of(number));
        let listed = server.attempt(doing, || server.folders.get(handle.0).ok_or(Failure::Errno(Errno::EBADF)));
        let listed = match listed {
            Ok(listed) => listed,
            Err(errno) => return reply.error(errno),
        };
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        // The offset of an entry is the position after it.
        for (entry, next) in listed.iter().skip(from).zip(offset.saturating_add(1)..) {
            if reply.add(INodeNo(entry.number), next, entry.kind, &entry.name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(&self, _: &Request, _: INodeNo, handle: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.server.counts.request(RequestKind::ReleaseFolder);
        self.server.folders.close(handle.0);
        reply.ok();
    }

    fn statfs(&self, _request: &Request, _number: INodeNo, reply: ReplyStatfs) {
        self.server.counts.request(RequestKind::FileSystem);
        // No space and no files: `df` omits such file systems, and nothing can be written anyway.
        reply.statfs(0, 0, 0, 0, 0, BLOCK_SIZE, MAX_NAME as u32, BLOCK_SIZE);
    }

    fn getxattr(&self, request: &Request, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        self.server.counts.request(RequestKind::ExtendedAttribute);
        // `ls -l` asks every file for access lists and security labels.
        let Some(name) = name.to_str().filter(|name| name.starts_with("user.")) else {
            return reply.error(Errno::NO_XATTR);
        };
        let name = name.to_owned();
        self.answer(request, reply, move |server, reply| {
            let doing = || format!("extended attributes of {}", server.path_of(number));
            let value = server.attempt(doing, || {
                let found = server.extended_attributes(number)?.into_iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| value).ok_or(Failure::Errno(Errno::NO_XATTR))
            });
            match value {
                Ok(value) => reply_sized(reply, size, &value),
                Err(errno) => reply.error(errno),
            }
        });
    }

    fn listxattr(&self, request: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        self.server.counts.request(RequestKind::ListExtendedAttributes);
        self.answer(request, reply, move |server, reply| {
            let doing = || format!("extended attributes of {}", server.path_of(number));
            let names = server.attempt(doing, || {
                let names = server.extended_attributes(number)?.into_iter().map(|(name, _)| name + "\0");
                Ok(names.collect::<String>())
            });
            match names {
                Ok(names) => reply_sized(reply, size, names.as_bytes()),
                Err(errno) => reply.error(errno),
            }
        });
    }

    fn access(&self, _request: &Request, number: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        self.server.counts.request(RequestKind::Access);
        let server = &self.server;
        let doing = || format!("access to {}", server.path_of(number));
        let allowed = server.attempt(doing, || {
            let inode = server.inode(number)?;
            match inode.kind {
                _ if mask.contains(AccessFlags::W_OK) => Err(Failure::Errno(Errno::EROFS)),
                EntryKind::File if mask.contains(AccessFlags::X_OK) => Err(Failure::Errno(Errno::EACCES)),
                _ => Ok(()),
            }
        });
        match allowed {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }

    /// Not supported: the kernel then treats a file as one block of data without holes.
    fn lseek(&self, _: &Request, _: INodeNo, _: FileHandle, _: i64, _: i32, reply: ReplyLseek) {
        reply.error(Errno::ENOSYS);
    }

    fn ioctl(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: IoctlFlags,
        _: u32,
        _: &[u8],
        _: u32,
        reply: ReplyIoctl,
    ) {
        reply.error(Errno::ENOTTY);
    }
}
