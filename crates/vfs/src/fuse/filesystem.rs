//! Receives the kernel's requests and replies to them: each handler lets the [`FuseServer`] answer, on this thread if
//! that needs no storage, otherwise on a request thread.
//!
//! Nothing here knows arrays. The kernel may cache names, attributes and pages indefinitely: they change only when the
//! tree is refreshed, and are then invalidated.

use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use fuser::{
    AccessFlags, Errno, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, IoctlFlags, KernelConfig,
    LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyLseek,
    ReplyOpen, ReplyStatfs, ReplyXattr, Request,
};

use super::counts::RequestKind;
use super::requests::Requests;
use super::server::{BLOCK_SIZE, BackgroundTriggers, FuseFailure, FuseServer, MAX_NAME, Ownership};
use super::sys;
use crate::node::{EntryKind, ServedTree};
use crate::read_ahead::ReadAhead;

/// Time for which the kernel may cache names and attributes.
const FOREVER: Duration = Duration::from_secs(24 * 3600);

/// The largest read the kernel may request, which bounds the reply buffer of each thread.
const MAX_READ: u32 = 1 << 20;

/// Maximum number of concurrent background reads (the kernel's read-ahead).
const MAX_BACKGROUND: u16 = 64;

/// A tree as a FUSE file system.
pub struct TreeFilesystem {
    server: Arc<FuseServer>,
    requests: Arc<Requests>,
    only_others: bool,
}

impl TreeFilesystem {
    /// Serves this tree. With `direct_io` the kernel caches no file contents, and older kernels cannot map files. With
    /// `only_others` requests of this process itself fail.
    pub fn new(
        tree: Arc<dyn ServedTree>,
        triggers: BackgroundTriggers,
        requests: Arc<Requests>,
        read_ahead: ReadAhead,
        ownership: Ownership,
        direct_io: bool,
        only_others: bool,
    ) -> Self {
        let server = FuseServer::new(tree, triggers, read_ahead, ownership, direct_io);
        TreeFilesystem { server, requests, only_others }
    }

    /// Returns the server.
    pub fn server(&self) -> &Arc<FuseServer> {
        &self.server
    }

    /// Answers a request that may access storage, which can take long or hang.
    fn answer<R, W>(&self, request: &Request, reply: R, work: W)
    where
        R: ErrorReply + Send + 'static,
        W: FnOnce(&FuseServer, R) + Send + 'static,
    {
        if self.only_others && sys::is_own_thread(request.pid()) {
            let refusal = "what is mounted leads back into the mount itself, by a link or as a member of a group";
            self.server.errors.report("refused", refusal);
            return reply.refuse(Errno::EIO);
        }
        self.requests.handle(&self.server, request.pid(), move |server| work(server, reply));
    }
}

/// A reply that can be an error.
trait ErrorReply: Sized {
    fn refuse(self, errno: Errno);

    /// Replies with what a request gave: `answer` sends it, unless it is an error.
    fn finish<T>(self, given: Result<T, Errno>, answer: impl FnOnce(Self, T)) {
        match given {
            Ok(given) => answer(self, given),
            Err(errno) => self.refuse(errno),
        }
    }
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

refusable!(ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyXattr);

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
            InitFlags::FUSE_EXPORT_SUPPORT,
        ] {
            // Older kernels lack some of these and are slower, or cannot be NFS servers of a mount, but not wrong.
            let _ = config.add_capabilities(capability);
        }
        // These calls fail only for zero and for values above the library's limits.
        let _ = config.set_max_write(MAX_READ);
        let _ = config.set_max_background(MAX_BACKGROUND);
        Ok(())
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.server.counts.request(RequestKind::Lookup);
        let name = name.to_owned();
        self.answer(request, reply, move |server, reply| {
            let doing = || format!("look-up of {}/{}", server.path_of(parent), name.display());
            reply.finish(server.attempt(doing, || server.find(parent, &name)), |reply, inode| {
                reply.entry(&FOREVER, &server.attributes(&inode), Generation(inode.handle_generation));
            });
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
        let answer = move |server: &FuseServer, reply: ReplyAttr| {
            let doing = || format!("attributes of {}", server.path_of(number));
            let attributes = server.attempt(doing, || server.attributes_of(number));
            reply.finish(attributes, |reply, attributes| reply.attr(&FOREVER, &attributes));
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
            reply.finish(server.attempt(doing, || server.open_file(number, flags)), |reply, (handle, caching)| {
                reply.opened(FileHandle(handle), caching | FopenFlags::FOPEN_NOFLUSH);
            });
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
        // A thread of this process cannot have opened the file, so nothing is refused here.
        self.requests.handle(&self.server, request.pid(), move |server| {
            let doing = || format!("read of {} at {offset}", server.path_of(number));
            reply
                .finish(server.attempt(doing, || server.read(handle, offset, size)), |reply, bytes| reply.data(&bytes));
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
            let opened = server.attempt(doing, || server.open_folder(number));
            reply.finish(opened, |reply, (handle, flags)| reply.opened(FileHandle(handle), flags));
        });
    }

    fn readdir(&self, _request: &Request, number: INodeNo, handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        self.server.counts.request(RequestKind::ReadFolder);
        let server = &self.server;
        let doing = || format!("list of {}", server.path_of(number));
        let listed = server.attempt(doing, || server.folders.get(handle.0).ok_or(FuseFailure::Errno(Errno::EBADF)));
        let listed = match listed {
            Ok(listed) => listed,
            Err(errno) => return reply.error(errno),
        };
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        // The offset of an entry is the position after it.
        for (entry, next) in listed.entries.iter().skip(from).zip(offset.saturating_add(1)..) {
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
        // `df` omits file systems without blocks. They are free, so that nobody is warned of a full disk, but nobody may
        // use them. Programs that compute bytes have signed numbers for them.
        let bytes = self.server.known_bytes().min(i64::MAX as u64);
        let blocks = (bytes / u64::from(BLOCK_SIZE)).max(1);
        reply.statfs(blocks, blocks, 0, 0, 0, BLOCK_SIZE, MAX_NAME as u32, BLOCK_SIZE);
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
                found.map(|(_, value)| value).ok_or(FuseFailure::Errno(Errno::NO_XATTR))
            });
            reply.finish(value, |reply, value| reply_sized(reply, size, &value));
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
            reply.finish(names, |reply, names| reply_sized(reply, size, names.as_bytes()));
        });
    }

    fn access(&self, _request: &Request, number: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        self.server.counts.request(RequestKind::Access);
        let server = &self.server;
        let doing = || format!("access to {}", server.path_of(number));
        let allowed = server.attempt(doing, || {
            let inode = server.inode(number)?;
            match inode.kind {
                _ if mask.contains(AccessFlags::W_OK) => Err(FuseFailure::Errno(Errno::EROFS)),
                EntryKind::File if mask.contains(AccessFlags::X_OK) => Err(FuseFailure::Errno(Errno::EACCES)),
                _ => Ok(()),
            }
        });
        reply.finish(allowed, |reply, ()| reply.ok());
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
