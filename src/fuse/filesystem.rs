//! The kernel's requests, answered from the tree: each handler finds the node, asks it, and replies.
//!
//! Nothing here knows of arrays. Everything is immutable, so the kernel is told to keep names, attributes and pages.
//!
//! The length of some files takes a pass over all of them. Until it is known the kernel is told [`UNMEASURED`] and to ask
//! again: so it does for `stat` and `lseek`, which then wait for the pass. Opened before that, a file is read past the
//! kernel's cache, where no length matters, and its first bytes are there at once; see [`Front`]. `sendfile` and `splice`
//! go through the cache, where a length that is too great is corrected by the first read that is short, while one that is
//! too small would cut the file off. A check of permissions would also ask for the attributes, so the mount does without
//! `default_permissions`: everybody who is let in may read everything, and nobody write.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use fuser::{
    AccessFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    IoctlFlags, KernelConfig, LockOwner, OpenAccMode, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyIoctl, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyXattr, Request,
};

use super::error_log::{ErrorLog, reason_of_panic};
use super::front::{Front, Place};
use super::handles::Handles;
use super::inodes::{Inode, Inodes};
use super::read_ahead::{ReadAhead, Stream};
use super::requests::Requests;
use super::sys;
use crate::error::Error;
use crate::tree::{EntryKind, Node};

/// How long the kernel may rely on names and attributes without asking again.
const FOREVER: Duration = Duration::from_secs(24 * 3600);

/// The length that the kernel is told of a file whose own is not known: more than that.
const UNMEASURED: u64 = 1 << 62;

/// The longest name that the kernel takes from a FUSE file system of any version.
const MAX_NAME: usize = 1024;

/// What programs are told to read at a time; `cat` and `cp` read at least this anyway.
const BLOCK_SIZE: u32 = 128 << 10;

/// The largest read the kernel may ask for, which bounds the reply buffer of each thread.
const MAX_READ: u32 = 1 << 20;

/// How many reads that nobody waits for yet (the kernel's read-ahead) may be under way.
const MAX_BACKGROUND: u16 = 64;

/// A tree as a file system.
pub struct TreeFilesystem {
    served: Arc<Served>,
    requests: Arc<Requests>,
    only_others: bool,
}

/// What answers the requests, whichever thread it does.
struct Served {
    inodes: Arc<Inodes>,
    /// Told whenever the kernel remembers more names than it should.
    crowded: SyncSender<()>,
    files: Handles<OpenFile>,
    folders: Handles<Vec<Listed>>,
    read_ahead: ReadAhead,
    errors: ErrorLog,
    owner: (u32, u32),
    direct_io: bool,
    /// Whether the kernel maps files that it keeps no contents of, as it must if lengths may be found out later.
    maps_direct_files: AtomicBool,
}

/// An open file. Its node stays with it, so that others who open it need not find it again.
struct OpenFile {
    _node: Node,
    reading: Reading,
}

/// How an open file is read.
enum Reading {
    Whole(Arc<Stream>),
    Front(Front),
}

/// One entry of an open folder.
struct Listed {
    number: u64,
    kind: FileType,
    name: String,
}

thread_local! {
    /// Where a read is assembled, one for each thread: it is as large as the largest read that was asked for, and
    /// its pages are not cleared and faulted in anew for every request.
    static REPLY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl TreeFilesystem {
    /// Serves these names. With `direct_io` the kernel keeps no file contents, and files cannot be mapped on older
    /// kernels. With `only_others` this process itself gets an error for whatever it asks. `crowded` is told of when
    /// [`Inodes::crowd`] has something to say.
    pub fn new(
        inodes: Arc<Inodes>,
        crowded: SyncSender<()>,
        requests: Arc<Requests>,
        read_ahead: ReadAhead,
        direct_io: bool,
        only_others: bool,
    ) -> Self {
        let served = Arc::new(Served {
            inodes,
            crowded,
            files: Handles::new(),
            folders: Handles::new(),
            read_ahead,
            errors: ErrorLog::default(),
            owner: sys::user_and_group(),
            direct_io,
            maps_direct_files: AtomicBool::new(false),
        });
        TreeFilesystem { served, requests, only_others }
    }

    /// Has a request answered that may have to look at stored files, which can take long or never end.
    fn answer<R, W>(&self, request: &Request, reply: R, work: W)
    where
        R: Refusable + Send + 'static,
        W: FnOnce(&Served, R) + Send + 'static,
    {
        if self.only_others && sys::is_own_thread(request.pid()) {
            let refusal = "what is mounted leads back into the mount itself, by a link or as a member of a group";
            self.served.errors.report("refused", refusal);
            return reply.refuse(Errno::EIO);
        }
        self.requests.handle(&self.served, move |served| work(served, reply));
    }
}

impl Served {
    /// Does what a request needs. Errors and panics become an errno, and a line in the log.
    fn attempt<T>(
        &self,
        doing: impl Fn() -> String,
        work: impl FnOnce() -> std::result::Result<T, Failure>,
    ) -> std::result::Result<T, Errno> {
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(Failure::Errno(errno))) => Err(errno),
            Ok(Err(Failure::Error(error))) => {
                let errno = error.errno();
                if errno == libc::ENOENT {
                    log::debug!("{}: {error}", doing());
                } else {
                    self.errors.report(&doing(), &error.to_string());
                }
                Err(Errno::from_i32(errno))
            }
            Err(panic) => {
                let reason = reason_of_panic(&*panic);
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
        if let Some(inode) = self.inodes.look_up(parent.0, name) {
            return Ok(inode);
        }
        let parent = self.inode(parent)?;
        let Node::Folder(folder) = self.node(&parent)? else {
            return Err(Failure::Errno(Errno::ENOTDIR));
        };
        let node = folder.lookup(name)?.ok_or(Failure::Errno(Errno::ENOENT))?;
        let size = match &node {
            Node::Folder(_) => Some(0),
            Node::File(file) if self.maps_direct_files.load(Ordering::Relaxed) => file.len_at_once()?,
            Node::File(file) => Some(file.len()?),
        };
        let inode = self.inodes.insert(&parent, name, &node, size);
        if self.inodes.is_crowded() {
            // If it was told already and has not come to it, it need not be told twice.
            let _ = self.crowded.try_send(());
        }
        Ok(inode)
    }

    /// Finds out the length of a file, if it is not known.
    fn measure(&self, inode: &Inode) -> std::result::Result<(), Failure> {
        if inode.size().is_none()
            && let Node::File(file) = self.node(inode)?
        {
            inode.resize(file.len()?);
        }
        Ok(())
    }

    /// The attributes; the length of a file is [`UNMEASURED`] where it is not known.
    fn attributes(&self, inode: &Inode) -> FileAttr {
        let (kind, perm) = match inode.kind {
            EntryKind::Folder => (FileType::Directory, 0o555),
            EntryKind::File => (FileType::RegularFile, 0o444),
        };
        let (size, time) = (inode.size().unwrap_or(UNMEASURED), inode.modified);
        FileAttr {
            ino: INodeNo(inode.number),
            size,
            blocks: size.div_ceil(512),
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind,
            perm,
            // For a folder 1 says that its subfolders are not counted here, so that `find` does not rely on it.
            nlink: 1,
            uid: self.owner.0,
            gid: self.owner.1,
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
        for entry in folder.list()? {
            // The kernel would refuse the whole listing for one bad name.
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

    /// The number of the handle, and whether the kernel must keep no contents of it.
    fn open_file(&self, number: INodeNo, flags: OpenFlags) -> std::result::Result<(u64, bool), Failure> {
        if flags.acc_mode() != OpenAccMode::O_RDONLY || flags.0 & libc::O_TRUNC != 0 {
            return Err(Failure::Errno(Errno::EROFS));
        }
        let inode = self.inode(number)?;
        let node = self.node(&inode)?;
        let Node::File(file) = &node else {
            return Err(Failure::Errno(Errno::EISDIR));
        };
        let open = |reading| self.files.open(Arc::new(OpenFile { _node: node.clone(), reading }));
        if inode.size().is_none()
            && let Some(forward) = file.forward()?
        {
            return Ok((open(Reading::Front(Front::new(file.clone(), forward))), true));
        }
        let content = file.open()?;
        if inode.resize(content.len()) {
            // Looked up again, it is not what it was (a text that now tells of an error). The kernel asks for the
            // attributes, and opens it then.
            return Err(Failure::Errno(Errno::ESTALE));
        }
        Ok((open(Reading::Whole(Arc::new(Stream::new(content)))), self.direct_io))
    }

    /// Fills `reply` with what there is of a range; gives how much that is.
    fn read_into(
        &self,
        reply: &mut Vec<u8>,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
    ) -> std::result::Result<usize, Failure> {
        let file = self.files.get(handle.0).ok_or(Failure::Errno(Errno::EBADF))?;
        let stream = match &file.reading {
            Reading::Whole(stream) => stream.clone(),
            Reading::Front(front) => {
                let place = front.read(offset, size as usize, reply)?;
                // Before the kernel learns of it by a short read.
                if let (Some(length), Some(inode)) = (front.length(), self.inodes.get(number.0)) {
                    inode.resize(length);
                }
                match place {
                    Place::Front(length) => return Ok(length),
                    Place::Whole(stream) => stream,
                }
            }
        };
        let content = stream.content();
        let length = content.len().saturating_sub(offset).min(u64::from(size));
        let wanted = length as usize; // at most a u32
        if wanted == 0 {
            return Ok(0);
        }
        self.read_ahead.note(&stream, offset, length);
        if reply.len() < wanted {
            reply.resize(wanted, 0);
        }
        content.read_at(offset, &mut reply[..wanted])?;
        Ok(wanted)
    }

    fn extended_attributes(&self, number: INodeNo) -> std::result::Result<Vec<(String, Vec<u8>)>, Failure> {
        Ok(match self.node(&*self.inode(number)?)? {
            Node::Folder(folder) => folder.extended_attributes(),
            Node::File(file) => file.extended_attributes(),
        })
    }
}

/// Why a request fails: an errno that is an everyday answer, or an error to be reported.
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
trait Refusable {
    fn refuse(self, errno: Errno);
}

macro_rules! refusable {
    ($($reply:ty),*) => {
        $(impl Refusable for $reply {
            fn refuse(self, errno: Errno) {
                self.error(errno);
            }
        })*
    };
}

refusable!(ReplyAttr, ReplyData, ReplyEntry, ReplyOpen, ReplyXattr);

/// Replies with an extended attribute or a list of them: its size where the kernel asks for that, else the bytes.
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
        ] {
            // Without one of them an older kernel is slower, not wrong.
            let _ = config.add_capabilities(capability);
        }
        let maps_direct_files = config.add_capabilities(InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP).is_ok();
        self.served.maps_direct_files.store(maps_direct_files, Ordering::Relaxed);
        // These fail only for zero and for values above the limits of the library, which these are not.
        let _ = config.set_max_write(MAX_READ);
        let _ = config.set_max_background(MAX_BACKGROUND);
        Ok(())
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = name.to_owned();
        self.answer(request, reply, move |served, reply| {
            let doing = || format!("look-up of {}/{}", served.path_of(parent), name.display());
            let found = served.attempt(doing, || {
                let inode = served.find(parent, &name)?;
                let lasting = if inode.size().is_some() { FOREVER } else { Duration::ZERO };
                Ok((lasting, served.attributes(&inode)))
            });
            match found {
                Ok((lasting, attributes)) => {
                    reply.entry_with_ttls(&lasting, &FOREVER, &attributes, Generation(0));
                }
                Err(errno) => reply.error(errno),
            }
        });
    }

    fn forget(&self, _request: &Request, number: INodeNo, lookups: u64) {
        let doing = || format!("forgetting of inode {}", number.0);
        // The kernel expects no answer.
        let _ = self.served.attempt(doing, || {
            self.served.inodes.forget(number.0, lookups);
            Ok(())
        });
    }

    fn getattr(&self, request: &Request, number: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        let give = move |served: &Served, reply: ReplyAttr| {
            let doing = || format!("attributes of {}", served.path_of(number));
            let attributes = served.attempt(doing, || {
                let inode = served.inode(number)?;
                served.measure(&inode)?;
                Ok(served.attributes(&inode))
            });
            match attributes {
                Ok(attributes) => reply.attr(&FOREVER, &attributes),
                Err(errno) => reply.error(errno),
            }
        };
        match self.served.inodes.get(number.0).is_some_and(|inode| inode.size().is_none()) {
            true => self.answer(request, reply, give),
            // Nothing has to be looked at.
            false => give(&self.served, reply),
        }
    }

    fn open(&self, request: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        self.answer(request, reply, move |served, reply| {
            let doing = || format!("open of {}", served.path_of(number));
            match served.attempt(doing, || served.open_file(number, flags)) {
                Ok((handle, direct)) => {
                    let caching = if direct { FopenFlags::FOPEN_DIRECT_IO } else { FopenFlags::FOPEN_KEEP_CACHE };
                    reply.opened(FileHandle(handle), caching | FopenFlags::FOPEN_NOFLUSH);
                }
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
        self.answer(request, reply, move |served, reply| {
            let doing = || format!("read of {} at {offset}", served.path_of(number));
            REPLY.with_borrow_mut(|buffer| {
                match served.attempt(doing, || served.read_into(buffer, number, handle, offset, size)) {
                    Ok(length) => reply.data(buffer.get(..length).unwrap_or_default()),
                    Err(errno) => reply.error(errno),
                }
            });
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
        let served = &self.served;
        let doing = || format!("close of {}", served.path_of(number));
        // The kernel passes no error of a release on.
        let _ = served.attempt(doing, || {
            let closed = served.files.close(handle.0);
            let stream = closed.as_deref().and_then(|file| match &file.reading {
                Reading::Whole(stream) => Some(stream),
                Reading::Front(front) => front.whole(),
            });
            if let Some(stream) = stream {
                served.read_ahead.close(stream);
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
        self.answer(request, reply, move |served, reply| {
            let doing = || format!("list of {}", served.path_of(number));
            match served.attempt(doing, || Ok(served.folders.open(Arc::new(served.list(number)?)))) {
                Ok(handle) => {
                    reply.opened(FileHandle(handle), FopenFlags::FOPEN_CACHE_DIR | FopenFlags::FOPEN_KEEP_CACHE);
                }
                Err(errno) => reply.error(errno),
            }
        });
    }

    fn readdir(&self, _request: &Request, number: INodeNo, handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let served = &self.served;
        let doing = || format!("list of {}", served.path_of(number));
        let listed = served.attempt(doing, || served.folders.get(handle.0).ok_or(Failure::Errno(Errno::EBADF)));
        let listed = match listed {
            Ok(listed) => listed,
            Err(errno) => return reply.error(errno),
        };
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        // The offset of an entry says where the next one is.
        for (entry, next) in listed.iter().skip(from).zip(offset.saturating_add(1)..) {
            if reply.add(INodeNo(entry.number), next, entry.kind, &entry.name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(&self, _: &Request, _: INodeNo, handle: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.served.folders.close(handle.0);
        reply.ok();
    }

    fn statfs(&self, _request: &Request, _number: INodeNo, reply: ReplyStatfs) {
        // No space and no files of its own: `df` leaves such file systems out, and nothing can be written anyway.
        reply.statfs(0, 0, 0, 0, 0, BLOCK_SIZE, MAX_NAME as u32, BLOCK_SIZE);
    }

    fn getxattr(&self, request: &Request, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        // `ls -l` asks every file for access lists and security labels.
        let Some(name) = name.to_str().filter(|name| name.starts_with("user.")) else {
            return reply.error(Errno::NO_XATTR);
        };
        let name = name.to_owned();
        self.answer(request, reply, move |served, reply| {
            let doing = || format!("extended attributes of {}", served.path_of(number));
            let value = served.attempt(doing, || {
                let found = served.extended_attributes(number)?.into_iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| value).ok_or(Failure::Errno(Errno::NO_XATTR))
            });
            match value {
                Ok(value) => reply_sized(reply, size, &value),
                Err(errno) => reply.error(errno),
            }
        });
    }

    fn listxattr(&self, request: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        self.answer(request, reply, move |served, reply| {
            let doing = || format!("extended attributes of {}", served.path_of(number));
            let names = served.attempt(doing, || {
                let names = served.extended_attributes(number)?.into_iter().map(|(name, _)| name + "\0");
                Ok(names.collect::<String>())
            });
            match names {
                Ok(names) => reply_sized(reply, size, names.as_bytes()),
                Err(errno) => reply.error(errno),
            }
        });
    }

    fn access(&self, _request: &Request, number: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        let served = &self.served;
        let doing = || format!("access to {}", served.path_of(number));
        let allowed = served.attempt(doing, || {
            let inode = served.inode(number)?;
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

    /// Unknown to us: the kernel then takes a file as one block of data without holes.
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
