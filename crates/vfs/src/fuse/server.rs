//! Answers requests about a tree: finds the node of an inode, queries it, and counts and reports failures.
//!
//! A lookup waits until the length of a file is known, even if that takes a pass over the whole file. The kernel asks
//! again for attributes that expire, but not in `sendfile` and `splice`, not even with direct I/O. There, too small a
//! length truncates the result. Too large a length appends zeros, because the short read that corrects the length may
//! arrive after a read that was sent ahead.

use std::ffi::OsStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Weak};

use tilefs_base::error::Error;
use tilefs_base::statistics::{Statistic, Value};
use tilefs_threads::cancellation;

use crate::node::suggest::suggestion_in;
use crate::node::{EntryKind, Node, ServedTree};
use fuser::{Errno, FileAttr, FileHandle, FileType, FopenFlags, INodeNo, OpenAccMode, OpenFlags};
use rustix::process::{getgid, getuid};

use super::counts::RequestCounts;
use super::error::errno;
use super::handles::Handles;
use super::inodes::{Inode, Inodes, Outdated};
use super::open_folders::{FolderEntry, OpenFolders};
use super::reply_buffers::{ReplyBuffer, ReplyBuffers};
use crate::read_ahead::{ReadAhead, Reader};
use crate::refresh::RefreshTrigger;
use crate::reports::{ErrorLog, OwnFolder, RootWithOwn, reason_of_panic};

/// The longest name that every kernel version accepts from a FUSE file system.
pub(super) const MAX_NAME: usize = 1024;

/// Preferred I/O size reported to programs; `cat` and `cp` read at least this anyway.
pub(super) const BLOCK_SIZE: u32 = 128 << 10;

/// The server of one tree, which answers requests on any thread.
pub struct FuseServer {
    tree: Arc<dyn ServedTree>,
    own: Arc<OwnFolder>,
    pub(super) inodes: Inodes,
    triggers: BackgroundTriggers,
    pub(super) files: Handles<OpenFile>,
    pub(super) folders: OpenFolders,
    pub(super) read_ahead: ReadAhead,
    replies: ReplyBuffers,
    pub(super) errors: ErrorLog,
    pub(super) counts: RequestCounts,
    ownership: Ownership,
    direct_io: bool,
}

/// Owner of files and folders, and a umask for their permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ownership {
    pub user: u32,
    pub group: u32,
    pub umask: u16,
}

impl Ownership {
    /// Returns this process as the owner, and a umask that removes no permissions.
    pub fn own() -> Self {
        Ownership { user: getuid().as_raw(), group: getgid().as_raw(), umask: 0 }
    }
}

/// Triggers for work in the background.
pub struct BackgroundTriggers {
    /// Signalled whenever the kernel remembers too many names: [`Inodes::names_to_forget`] then returns some.
    pub too_many_names: SyncSender<()>,
    /// Triggered when stored data is missing, if the tree is refreshed periodically: it may have been vacuumed.
    pub missing: Option<RefreshTrigger>,
}

/// An open file. It holds its node, so that other openers need not look it up again.
pub(super) struct OpenFile {
    _node: Node,
    pub(super) reader: Arc<Reader>,
}

impl FuseServer {
    /// Answers from this tree. With `direct_io` the kernel caches no file contents.
    pub(super) fn new(
        tree: Arc<dyn ServedTree>,
        triggers: BackgroundTriggers,
        read_ahead: ReadAhead,
        ownership: Ownership,
        direct_io: bool,
    ) -> Arc<Self> {
        Arc::new_cyclic(|server: &Weak<FuseServer>| {
            let server = server.clone();
            let errors = ErrorLog::default();
            let statistics = move || server.upgrade().map_or(Vec::new(), |server| server.statistics());
            let own = OwnFolder::new(errors.recent().clone(), statistics);
            let own = Arc::new(own);
            let root = RootWithOwn::new(tree.root(), own.clone());
            FuseServer {
                tree,
                own,
                inodes: Inodes::new(Arc::new(root)),
                triggers,
                files: Handles::new(),
                folders: OpenFolders::new(),
                read_ahead,
                replies: ReplyBuffers::default(),
                errors,
                counts: RequestCounts::default(),
                ownership,
                direct_io,
            }
        })
    }

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
                let outdated = self.inodes.refresh(refreshed);
                self.folders.refresh();
                Ok(Some(outdated))
            },
        );
        if let Ok(Some(_)) = &refreshed {
            self.counts.refresh();
        }
        refreshed
    }

    /// Returns all statistics of this module and of the modules below.
    pub fn statistics(&self) -> Vec<Statistic> {
        let now = |name, help, count: usize| Statistic::new(name, help, Value::Now(count as u64));
        let (names, bytes) = self.inodes.remembered();
        let mut statistics = self.counts.statistics();
        statistics.extend([
            now("open_files", "Files that are open", self.files.count()),
            now("open_folders", "Folders that are being listed", self.folders.count()),
            now("names", "Names that the kernel remembers", names),
            now("names_bytes", "Approximate memory of these names in bytes", bytes),
            now("forgotten_names", "Other names that file handles may mean", self.inodes.forgotten()),
        ]);
        statistics.extend(self.read_ahead.statistics());
        statistics.extend(self.tree.statistics());
        statistics
    }

    /// Runs the work of a request. Converts errors and panics to an errno and a log line.
    pub(super) fn attempt<T>(
        &self,
        doing: impl Fn() -> String,
        work: impl FnOnce() -> FuseResult<T>,
    ) -> std::result::Result<T, Errno> {
        let work = || {
            cancellation::check()?;
            work()
        };
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(FuseFailure::Errno(errno))) => Err(errno),
            Ok(Err(FuseFailure::Error(Error::Cancelled))) if cancellation::is_cancelled() => {
                log::debug!("{}: its reader has given up", doing());
                Err(Errno::EINTR)
            }
            Ok(Err(FuseFailure::Error(error))) => {
                let errno = errno(&error);
                if errno == libc::ENOENT {
                    log::debug!("{}: {error}", doing());
                } else {
                    self.counts.errors.add(error.kind());
                    if let (Error::Missing { .. }, Some(trigger)) = (&error, &self.triggers.missing) {
                        trigger.trigger();
                    }
                    self.errors.report(&doing(), &error.to_string());
                }
                Err(Errno::from_i32(errno))
            }
            Err(panic) => {
                let reason = reason_of_panic(&*panic);
                self.counts.errors.add(Error::internal(reason).kind());
                self.errors.report(&doing(), &format!("internal error, please report it: {reason}"));
                Err(Errno::EIO)
            }
        }
    }

    pub(super) fn inode(&self, number: INodeNo) -> FuseResult<Arc<Inode>> {
        self.inodes.get(number.0).ok_or(FuseFailure::Errno(Errno::ESTALE))
    }

    fn node(&self, inode: &Inode) -> FuseResult<Node> {
        self.inodes.node(inode)?.ok_or(FuseFailure::Errno(Errno::ESTALE))
    }

    pub(super) fn path_of(&self, number: INodeNo) -> String {
        self.inodes.get(number.0).map_or_else(|| format!("inode {}", number.0), |inode| inode.path())
    }

    /// Finds a name in a folder; counts as one lookup. As in every folder, `.` is the folder itself, whether the kernel
    /// remembers it or not, and `..` the folder around it: the kernel looks these up for file handles.
    pub(super) fn find(&self, parent: INodeNo, name: &OsStr) -> FuseResult<Arc<Inode>> {
        let name = name.to_str().ok_or(FuseFailure::Errno(Errno::ENOENT))?;
        match name {
            "." => self.find_number(parent.0),
            ".." => {
                let inode = self.inode(parent)?;
                match inode.place().map(|(folder, _)| folder) {
                    Some(folder) => match folder.place() {
                        Some((around, name)) => self.find_in(around, name),
                        None => Ok(Arc::clone(folder)),
                    },
                    None => Ok(inode),
                }
            }
            name => self.find_in(&self.inode(parent)?, name),
        }
    }

    /// Finds the inode of a number, also if the kernel has forgotten it; counts as one lookup.
    fn find_number(&self, number: u64) -> FuseResult<Arc<Inode>> {
        if let Some(inode) = self.inodes.look_up_number(number) {
            return Ok(inode);
        }
        let (mut inode, names) = self.inodes.way_to(number).ok_or(FuseFailure::Errno(Errno::ESTALE))?;
        let mut passed = Vec::new();
        let found = names.iter().try_for_each(|name| {
            inode = self.find_in(&inode, name)?;
            passed.push(inode.number);
            Ok(())
        });
        let is_it = found.is_ok() && inode.number == number;
        if is_it {
            passed.pop();
        }
        // The kernel did not look up the folders on the way. The inode keeps the folders anyway, as its ancestors.
        passed.iter().for_each(|number| self.inodes.forget(*number, 1));
        match found {
            Ok(()) if is_it => Ok(inode),
            Err(failure) => Err(failure),
            // Another file has this name now.
            Ok(()) => Err(FuseFailure::Errno(Errno::ESTALE)),
        }
    }

    fn find_in(&self, parent: &Arc<Inode>, name: &str) -> FuseResult<Arc<Inode>> {
        loop {
            if let Some(inode) = self.find_once(parent, name)? {
                return Ok(inode);
            }
        }
    }

    /// Like [`FuseServer::find_in`], but returns `None` if the tree was refreshed meanwhile.
    fn find_once(&self, parent: &Arc<Inode>, name: &str) -> FuseResult<Option<Arc<Inode>>> {
        let generation = self.inodes.generation();
        if let Some(inode) = self.inodes.look_up(parent.number, name) {
            return Ok(Some(inode));
        }
        let Node::Folder(folder) = self.node(parent)? else {
            return Err(FuseFailure::Errno(Errno::ENOTDIR));
        };
        let Some(node) = folder.lookup(name)? else {
            let reason = folder.why_absent(name).or_else(|| {
                // Programs look for hidden files of their own everywhere.
                let near = (!name.starts_with('.')).then(|| suggestion_in(&*folder, name))?;
                near.map(|near| format!("there is no such file; the nearest name is {near}"))
            });
            if let Some(reason) = reason {
                self.errors.recent().remark(&format!("{}/{name}", parent.path()), &reason);
            }
            return Err(FuseFailure::Errno(Errno::ENOENT));
        };
        let size = match &node {
            Node::Folder(_) => 0,
            Node::File(file) => {
                let size = file.len()?;
                if let Some(remark) = file.remark() {
                    // Files of one folder mostly have the same remark.
                    self.errors.recent().remark(&parent.path(), &remark);
                }
                size
            }
        };
        // A cancelled lookup may have returned incomplete data.
        cancellation::check()?;
        let inode = self.inodes.insert(parent, name, &node, size, generation);
        if self.inodes.remembers_too_many() {
            // Fails if a signal is pending already, which suffices.
            let _ = self.triggers.too_many_names.try_send(());
        }
        Ok(inode)
    }

    /// Returns the bytes of the files that the mount lists, as far as their lengths are known. Reads nothing.
    pub(super) fn known_bytes(&self) -> u64 {
        self.inodes.root().known_bytes()
    }

    /// Returns the attributes of an inode. Fails for a folder that no longer exists; an open file keeps its attributes.
    pub(super) fn attributes_of(&self, number: INodeNo) -> FuseResult<FileAttr> {
        let inode = self.inode(number)?;
        if self.inodes.is_stale(&inode) {
            self.node(&inode)?;
        }
        Ok(self.attributes(&inode))
    }

    pub(super) fn attributes(&self, inode: &Inode) -> FileAttr {
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

    /// Opens a folder; returns the handle, and whether the kernel may answer from the listing that it has cached.
    pub(super) fn open_folder(&self, number: INodeNo) -> FuseResult<(u64, FopenFlags)> {
        let generation = self.inodes.generation();
        let entries = self.list(number)?;
        let (handle, keeps) = self.folders.open(number.0, generation, entries, || self.inodes.generation());
        let keep = if keeps { FopenFlags::FOPEN_KEEP_CACHE } else { FopenFlags::empty() };
        Ok((handle, FopenFlags::FOPEN_CACHE_DIR | keep))
    }

    fn list(&self, number: INodeNo) -> FuseResult<Vec<FolderEntry>> {
        let inode = self.inode(number)?;
        let Node::Folder(folder) = self.node(&inode)? else {
            return Err(FuseFailure::Errno(Errno::ENOTDIR));
        };
        let link = |number, name: &str| FolderEntry { number, kind: FileType::Directory, name: name.to_owned() };
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
            listed.push(FolderEntry {
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

    /// Opens a file; returns the handle, and whether the kernel may cache the content.
    pub(super) fn open_file(&self, number: INodeNo, flags: OpenFlags) -> FuseResult<(u64, FopenFlags)> {
        if flags.acc_mode() != OpenAccMode::O_RDONLY || flags.0 & libc::O_TRUNC != 0 {
            return Err(FuseFailure::Errno(Errno::EROFS));
        }
        let inode = self.inode(number)?;
        let node = self.node(&inode)?;
        let Node::File(file) = &node else {
            return Err(FuseFailure::Errno(Errno::EISDIR));
        };
        let content = file.open()?;
        cancellation::check()?;
        if inode.resize(content.len()) {
            // The length changed since the lookup (a text that now reports an error). On ESTALE the kernel fetches the
            // attributes again and retries.
            return Err(FuseFailure::Errno(Errno::ESTALE));
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
    pub(super) fn read(&self, handle: FileHandle, offset: u64, size: u32) -> FuseResult<ReplyBuffer<'_>> {
        let file = self.files.get(handle.0).ok_or(FuseFailure::Errno(Errno::EBADF))?;
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

    pub(super) fn extended_attributes(&self, number: INodeNo) -> FuseResult<Vec<(String, Vec<u8>)>> {
        Ok(match self.node(&*self.inode(number)?)? {
            Node::Folder(folder) => folder.extended_attributes(),
            Node::File(file) => file.extended_attributes(),
        })
    }
}

type FuseResult<T> = std::result::Result<T, FuseFailure>;

/// The failure of a request: an errno that is an ordinary answer, or an error to report.
pub(super) enum FuseFailure {
    Errno(Errno),
    Error(Error),
}

impl From<Error> for FuseFailure {
    fn from(error: Error) -> Self {
        FuseFailure::Error(error)
    }
}
