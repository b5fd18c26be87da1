//! A file system that passes a folder through, and fails chosen operations in a chosen way.
//!
//! The kernel caches nothing of it: each operation of a program arrives here. Another process begins a fault by setting
//! the extended attribute `user.fault` of the folder (`Read EIO 0 1`), and ends it by removing the attribute.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEntry, ReplyOpen, Request,
};
use tempfile::TempDir;

/// The extended attribute that begins and ends faults.
const FAULT: &str = "user.fault";

/// An operation of the file system that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Looking a name up in a folder, as every open and stat does.
    Lookup,
    Attributes,
    Open,
    OpenFolder,
    ListFolder,
    Read,
}

impl Operation {
    fn named(name: &str) -> Option<Operation> {
        Operation::ALL.into_iter().find(|operation| format!("{operation:?}") == name)
    }

    pub const ALL: [Operation; 6] = [
        Operation::Lookup,
        Operation::Attributes,
        Operation::Open,
        Operation::OpenFolder,
        Operation::ListFolder,
        Operation::Read,
    ];
}

/// How an operation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// With an error.
    With(i32),
    /// Files have half their size and half their bytes, as while they are being restored.
    HalfThere,
    /// Files have half their size, while all bytes can be read.
    HalfTheSize,
    /// A read returns half the bytes.
    HalfRead,
    /// A listing lacks the entry of this number.
    Without(usize),
    /// The answer comes late.
    Late,
}

impl How {
    fn named(name: &str) -> Option<How> {
        Some(match name {
            "EIO" => How::With(libc::EIO),
            "EINTR" => How::With(libc::EINTR),
            "ENOENT" => How::With(libc::ENOENT),
            "ESTALE" => How::With(libc::ESTALE),
            "HalfThere" => How::HalfThere,
            "HalfTheSize" => How::HalfTheSize,
            "HalfRead" => How::HalfRead,
            "Late" => How::Late,
            _ => return None,
        })
    }
}

/// Operations that fail: after `spared` of them succeeded, the next `count`.
#[derive(Debug, Clone)]
pub struct Fault {
    pub operation: Operation,
    pub how: How,
    pub spared: usize,
    pub count: usize,
}

impl Fault {
    /// Parses an operation, how it fails, and how many are spared and fail.
    fn parse(text: &[u8]) -> Option<Fault> {
        let mut words = str::from_utf8(text).ok()?.split(' ');
        Some(Fault {
            operation: Operation::named(words.next()?)?,
            how: How::named(words.next()?)?,
            spared: words.next()?.parse().ok()?,
            count: words.next()?.parse().ok()?,
        })
    }
}

#[derive(Default)]
struct State {
    fault: Option<Fault>,
    /// Failures since the fault began.
    failures: usize,
    paths: HashMap<u64, PathBuf>,
    numbers: HashMap<PathBuf, u64>,
    listings: HashMap<u64, Vec<(u64, FileType, OsString)>>,
    files: HashMap<u64, File>,
    handles: u64,
}

/// The file system, mounted for the length of a test.
pub struct Faulty {
    state: Arc<Mutex<State>>,
    // Dropped in this order: unmounted before the folder is removed.
    _session: BackgroundSession,
    mountpoint: TempDir,
}

impl Faulty {
    /// Mounts a folder.
    pub fn mount(folder: &Path) -> Faulty {
        let state = Arc::new(Mutex::new(State::default()));
        {
            let mut state = state.lock().unwrap();
            state.paths.insert(INodeNo::ROOT.0, folder.to_owned());
            state.numbers.insert(folder.to_owned(), INodeNo::ROOT.0);
        }
        let mountpoint = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("faulty".into())];
        let session = fuser::spawn_mount(PassThrough(state.clone()), mountpoint.path(), &config).unwrap();
        Faulty { state, _session: session, mountpoint }
    }

    pub fn path(&self) -> &Path {
        self.mountpoint.path()
    }

    /// Begins a fault.
    pub fn fail(&self, fault: Fault) {
        let mut state = self.state.lock().unwrap();
        (state.fault, state.failures) = (Some(fault), 0);
    }

    /// Ends the fault. Returns how many operations failed.
    pub fn recover(&self) -> usize {
        let mut state = self.state.lock().unwrap();
        state.fault = None;
        state.failures
    }
}

struct PassThrough(Arc<Mutex<State>>);

impl State {
    fn path(&self, number: INodeNo) -> Result<PathBuf, Errno> {
        self.paths.get(&number.0).cloned().ok_or(Errno::ESTALE)
    }

    fn number(&mut self, path: PathBuf) -> u64 {
        let next = self.numbers.len() as u64 + 1;
        let number = *self.numbers.entry(path.clone()).or_insert(next);
        self.paths.insert(number, path);
        number
    }

    fn handle(&mut self) -> u64 {
        self.handles += 1;
        self.handles
    }

    /// Returns how this operation fails.
    fn failing(&mut self, operation: Operation) -> Option<How> {
        let fault = self.fault.as_mut()?;
        // A file that is only half there is so in every way.
        let is_half = matches!(fault.how, How::HalfThere | How::HalfTheSize)
            && matches!(operation, Operation::Lookup | Operation::Attributes | Operation::Read);
        if operation != fault.operation && !is_half {
            return None;
        }
        if fault.spared > 0 {
            fault.spared -= 1;
            return None;
        }
        fault.count = fault.count.checked_sub(1)?;
        self.failures += 1;
        Some(fault.how)
    }
}

impl PassThrough {
    /// Returns the path of an inode and how this operation on it fails, unless it fails with an error.
    fn enter(&self, operation: Operation, number: INodeNo, name: &OsStr) -> Result<(PathBuf, Option<How>), Errno> {
        let (path, failing) = {
            let mut state = self.0.lock().unwrap();
            let folder = state.path(number)?;
            let path = if name.is_empty() { folder } else { folder.join(name) };
            let failing = state.failing(operation);
            (path, failing)
        };
        match failing {
            Some(How::With(errno)) => Err(Errno::from_i32(errno)),
            Some(How::Late) => {
                thread::sleep(Duration::from_millis(3));
                Ok((path, None))
            }
            failing => Ok((path, failing)),
        }
    }

    fn attributes(&self, path: &Path, failing: Option<How>) -> Result<FileAttr, Errno> {
        let found = fs::symlink_metadata(path)?;
        let size = match failing {
            Some(How::HalfThere | How::HalfTheSize) if found.is_file() => found.len() / 2,
            _ => found.len(),
        };
        let ino = self.0.lock().unwrap().number(path.to_owned());
        let time = |seconds: i64| UNIX_EPOCH + Duration::from_secs(seconds.max(0) as u64);
        Ok(FileAttr {
            ino: INodeNo(ino),
            size,
            blocks: size.div_ceil(512),
            atime: time(found.atime()),
            mtime: time(found.mtime()),
            ctime: time(found.ctime()),
            crtime: SystemTime::UNIX_EPOCH,
            kind: kind(&found),
            perm: found.mode() as u16 & 0o7777,
            nlink: 1,
            uid: found.uid(),
            gid: found.gid(),
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    fn listing(&self, path: &Path) -> Result<Vec<(u64, FileType, OsString)>, Errno> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let number = self.0.lock().unwrap().number(entry.path());
            entries.push((number, kind(&entry.metadata()?), entry.file_name()));
        }
        entries.sort_by(|a, b| a.2.cmp(&b.2));
        Ok(entries)
    }
}

fn kind(found: &Metadata) -> FileType {
    match found.file_type() {
        kind if kind.is_dir() => FileType::Directory,
        kind if kind.is_symlink() => FileType::Symlink,
        _ => FileType::RegularFile,
    }
}

impl Filesystem for PassThrough {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let entered = self.enter(Operation::Lookup, parent, name);
        match entered.and_then(|(path, failing)| self.attributes(&path, failing)) {
            Ok(found) => reply.entry(&Duration::ZERO, &found, Generation(0)),
            Err(errno) => reply.error(errno),
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let entered = self.enter(Operation::Attributes, number, OsStr::new(""));
        match entered.and_then(|(path, failing)| self.attributes(&path, failing)) {
            Ok(found) => reply.attr(&Duration::ZERO, &found),
            Err(errno) => reply.error(errno),
        }
    }

    fn open(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let opened = self.enter(Operation::Open, number, OsStr::new("")).and_then(|(path, _)| Ok(File::open(path)?));
        match opened {
            Ok(file) => {
                let mut state = self.0.lock().unwrap();
                let handle = state.handle();
                state.files.insert(handle, file);
                reply.opened(FileHandle(handle), FopenFlags::FOPEN_DIRECT_IO);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let read = self.enter(Operation::Read, number, OsStr::new("")).and_then(|(_, failing)| {
            let file = self.0.lock().unwrap().files.get(&handle.0).ok_or(Errno::EBADF)?.try_clone()?;
            let length = file.metadata()?.len();
            let end = if failing == Some(How::HalfThere) { length / 2 } else { length };
            let there = end.saturating_sub(offset).min(u64::from(size));
            let wanted = if failing == Some(How::HalfRead) { there.div_ceil(2) } else { there };
            let mut bytes = vec![0; wanted as usize];
            file.read_exact_at(&mut bytes, offset)?;
            Ok(bytes)
        });
        match read {
            Ok(bytes) => reply.data(&bytes),
            Err(errno) => reply.error(errno),
        }
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: fuser::ReplyEmpty,
    ) {
        self.0.lock().unwrap().files.remove(&handle.0);
        reply.ok();
    }

    fn opendir(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let entered = self.enter(Operation::OpenFolder, number, OsStr::new(""));
        let listed = entered.and_then(|(path, failing)| {
            let mut listing = self.listing(&path)?;
            if let Some(How::Without(number)) = failing
                && !listing.is_empty()
            {
                listing.remove(number % listing.len());
            }
            Ok(listing)
        });
        match listed {
            Ok(listing) => {
                let mut state = self.0.lock().unwrap();
                let handle = state.handle();
                state.listings.insert(handle, listing);
                reply.opened(FileHandle(handle), FopenFlags::empty());
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn readdir(&self, _: &Request, number: INodeNo, handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        if let Err(errno) = self.enter(Operation::ListFolder, number, OsStr::new("")) {
            return reply.error(errno);
        }
        let state = self.0.lock().unwrap();
        let Some(listing) = state.listings.get(&handle.0) else { return reply.error(Errno::EBADF) };
        // Few at once, so that longer listings can fail in their midst.
        for (at, (number, kind, name)) in listing.iter().enumerate().skip(offset as usize).take(3) {
            if reply.add(INodeNo(*number), at as u64 + 1, *kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(&self, _: &Request, _: INodeNo, handle: FileHandle, _: OpenFlags, reply: fuser::ReplyEmpty) {
        self.0.lock().unwrap().listings.remove(&handle.0);
        reply.ok();
    }

    fn setxattr(&self, _: &Request, _: INodeNo, name: &OsStr, value: &[u8], _: i32, _: u32, reply: fuser::ReplyEmpty) {
        match Fault::parse(value).filter(|_| name == FAULT) {
            Some(fault) => {
                self.0.lock().unwrap().fault = Some(fault);
                reply.ok();
            }
            None => reply.error(Errno::EINVAL),
        }
    }

    fn removexattr(&self, _: &Request, _: INodeNo, name: &OsStr, reply: fuser::ReplyEmpty) {
        if name == FAULT {
            self.0.lock().unwrap().fault = None;
        }
        reply.ok();
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        use std::os::unix::ffi::OsStrExt;
        let read = self.0.lock().unwrap().path(number).and_then(|path| Ok(fs::read_link(path)?));
        match read {
            Ok(target) => reply.data(target.as_os_str().as_bytes()),
            Err(errno) => reply.error(errno),
        }
    }
}
