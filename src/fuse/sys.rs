//! The system calls that mounting needs and the standard library does not offer.
//!
//! This is the only module of the room with `unsafe`. Every wrapper takes owned or borrowed Rust values, so that no
//! pointer outlives its call, and turns the return value into an [`io::Result`].
#![allow(unsafe_code)]

use std::ffi::{CString, OsStr, c_int};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// The user that started this process, and their group.
pub fn user_and_group() -> (u32, u32) {
    // SAFETY: these calls take nothing, cannot fail and touch no memory of ours.
    unsafe { (libc::getuid(), libc::getgid()) }
}

/// Whether this process acts as root.
pub fn is_root() -> bool {
    // SAFETY: as above.
    unsafe { libc::geteuid() == 0 }
}

/// Whether a thread, by the number that the kernel gives it, is one of this process.
pub fn is_own_thread(thread: u32) -> bool {
    let Ok(thread) = libc::pid_t::try_from(thread) else { return false };
    // SAFETY: getpid takes nothing and cannot fail; signal 0 is sent to nobody, the kernel only looks for the thread.
    thread > 0 && unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, 0) } == 0
}

/// What a file system says when it is asked to open a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It opened it, or refused to with this number.
    Opened,
    Refused(c_int),
    /// Nothing, for as long as was waited.
    Silence,
}

/// Opens a folder in a process of its own and closes it: that process may hang, this one does not.
///
/// # Errors
/// Where there can be no other process; `InvalidInput` where the path holds a NUL byte.
pub fn ask(folder: &Path, patience: Duration) -> io::Result<Answer> {
    let folder = CString::new(folder.as_os_str().as_bytes())?;
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NONBLOCK | libc::O_CLOEXEC;
    // SAFETY: the child, in which other threads and their locks may be lost, only makes system calls: open and
    // _exit. The string was made before and is its own copy.
    let child = unsafe {
        let child = libc::fork();
        if child == 0 {
            let opened = libc::open(folder.as_ptr(), flags);
            let errno = if opened == -1 { *libc::__errno_location() } else { 0 };
            libc::_exit(errno.clamp(0, 255));
        }
        child
    };
    if child == -1 {
        return Err(io::Error::last_os_error());
    }
    let deadline = Instant::now() + patience;
    loop {
        let mut status = 0;
        // SAFETY: `status` is a valid place to write to, and the child is ours and was not waited for.
        match unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } {
            0 if Instant::now() < deadline => thread::sleep(Duration::from_millis(1)),
            0 => {
                // SAFETY: the child was not waited for, so that nobody else has its number. It may not die before its
                // file system does; nobody waits for it.
                unsafe { libc::kill(child, libc::SIGKILL) };
                return Ok(Answer::Silence);
            }
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Err(io::Error::last_os_error()),
            _ => {
                return Ok(match libc::WEXITSTATUS(status) {
                    0 if libc::WIFEXITED(status) => Answer::Opened,
                    errno => Answer::Refused(errno),
                });
            }
        }
    }
}

/// Attaches a file system: mount(2).
///
/// # Errors
/// What the kernel says; `InvalidInput` where an argument holds a NUL byte.
pub fn mount(source: &OsStr, target: &Path, kind: &str, flags: u64, data: &OsStr) -> io::Result<()> {
    let source = CString::new(source.as_bytes())?;
    let target = CString::new(target.as_os_str().as_bytes())?;
    let kind = CString::new(kind)?;
    let data = CString::new(data.as_bytes())?;
    // SAFETY: all four strings are NUL-terminated and live until the call returns; the kernel copies them.
    check(unsafe {
        libc::mount(
            source.as_ptr(),
            target.as_ptr(),
            kind.as_ptr(),
            flags as libc::c_ulong,
            data.as_ptr().cast::<libc::c_void>(),
        )
    })
}

/// Detaches a file system: umount2(2), not following a symbolic link. A lazy one takes the name away at once and
/// the file system when its last user lets go.
///
/// # Errors
/// What the kernel says: `EBUSY` in use, `EINVAL` no mount point, `EPERM` not permitted.
pub fn unmount(target: &Path, lazy: bool) -> io::Result<()> {
    let target = CString::new(target.as_os_str().as_bytes())?;
    let flags = libc::UMOUNT_NOFOLLOW | if lazy { libc::MNT_DETACH } else { 0 };
    // SAFETY: the string is NUL-terminated and lives until the call returns.
    check(unsafe { libc::umount2(target.as_ptr(), flags) })
}

/// Receives one file descriptor that the other end sent with one byte of data; `None` where it closed instead.
///
/// # Errors
/// What recvmsg(2) says, or `InvalidData` where a message came without a descriptor.
#[allow(clippy::unnecessary_cast, reason = "lengths of control messages have other types in other C libraries")]
pub fn receive_descriptor(socket: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut byte = [0_u8; 1];
    let mut parts = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: byte.len() };
    // Room for one control message with one descriptor, aligned for its header.
    let mut control = [0_u64; 4];
    // SAFETY: all-zero bytes are a valid msghdr: null pointers and zero lengths.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut parts;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    let received = loop {
        // SAFETY: the message points to `parts` and `control`, which outlive the call and are as long as stated.
        let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
        match received {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Err(io::Error::last_os_error()),
            received => break received,
        }
    };
    if received == 0 {
        return Ok(None);
    }
    // SAFETY: the kernel filled `control` and set its length; CMSG_FIRSTHDR gives null or a header within it.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message).as_ref() };
    match header {
        Some(header)
            if header.cmsg_level == libc::SOL_SOCKET
                && header.cmsg_type == libc::SCM_RIGHTS
                // SAFETY: CMSG_LEN only computes.
                && header.cmsg_len as usize >= unsafe { libc::CMSG_LEN(size_of::<c_int>() as u32) } as usize =>
        {
            // SAFETY: a rights message of that length holds at least one descriptor, which the kernel has opened
            // for us and nobody else owns.
            Ok(Some(unsafe { OwnedFd::from_raw_fd(libc::CMSG_DATA(header).cast::<c_int>().read_unaligned()) }))
        }
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "a message without a file descriptor")),
    }
}

/// Keeps these signals from this thread and from the threads it will start, until [`wait_for_signal`] takes them.
///
/// # Errors
/// `EINVAL` where one of them is no signal.
pub fn block_signals(signals: &[c_int]) -> io::Result<()> {
    let set = signal_set(signals)?;
    // SAFETY: the set is initialised; the old mask is not asked for.
    check_errno(unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) })
}

/// Waits for one of these signals, all of which must be blocked, and takes it.
///
/// # Errors
/// `EINVAL` where one of them is no signal.
pub fn wait_for_signal(signals: &[c_int]) -> io::Result<c_int> {
    let set = signal_set(signals)?;
    let mut signal = 0;
    // SAFETY: the set is initialised and `signal` outlives the call.
    check_errno(unsafe { libc::sigwait(&raw const set, &raw mut signal) })?;
    Ok(signal)
}

/// Starts a session of its own, away from the terminal: setsid(2).
///
/// # Errors
/// `EPERM` where this process leads a group already.
pub fn new_session() -> io::Result<()> {
    // SAFETY: the call takes nothing and touches no memory of ours.
    if unsafe { libc::setsid() } == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes standard input, output and error refer to this file.
///
/// # Errors
/// What dup2(2) says.
pub fn redirect_standard_streams(to: BorrowedFd<'_>) -> io::Result<()> {
    for stream in [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: `to` is open. The standard streams are owned by nobody in this process, so that no owner's
        // descriptor changes under it.
        if unsafe { libc::dup2(to.as_raw_fd(), stream) } == -1 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

fn signal_set(signals: &[c_int]) -> io::Result<libc::sigset_t> {
    // SAFETY: sigset_t is plain integers, and sigemptyset initialises it before it is read.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is a valid place to write to.
    check(unsafe { libc::sigemptyset(&raw mut set) })?;
    for &signal in signals {
        // SAFETY: `set` was initialised above.
        check(unsafe { libc::sigaddset(&raw mut set, signal) })?;
    }
    Ok(set)
}

/// For calls that return -1 and leave the reason in errno.
fn check(returned: c_int) -> io::Result<()> {
    if returned == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// For calls that return the reason.
fn check_errno(returned: c_int) -> io::Result<()> {
    if returned == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(returned)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn the_user_is_the_one_that_proc_shows() {
        let process = std::fs::metadata("/proc/self").expect("/proc is there");
        let (user, _) = user_and_group();
        assert_eq!(process.uid() == 0, is_root());
        assert_eq!(process.uid(), user);
    }

    #[test]
    fn threads_of_this_process_are_known() {
        assert!(is_own_thread(std::process::id()));
        // SAFETY: the call takes nothing and cannot fail.
        let this_thread = || unsafe { libc::gettid() };
        let other = std::thread::spawn(this_thread).join().unwrap();
        assert!(is_own_thread(this_thread() as u32));
        assert!(!is_own_thread(0) && !is_own_thread(1) && !is_own_thread(u32::MAX));
        assert!(!is_own_thread(other as u32), "it has ended");
    }

    #[test]
    fn another_process_asks() {
        let ask = |path: &str| ask(Path::new(path), Duration::from_secs(10)).unwrap();
        assert_eq!([ask("/"), ask("/none")], [Answer::Opened, Answer::Refused(libc::ENOENT)]);
    }

    #[test]
    fn arguments_with_nul_and_unknown_targets_are_errors() {
        let missing = Path::new("/nonexistent/mountpoint");
        assert_eq!(unmount(Path::new("a\0b"), false).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert!(matches!(unmount(missing, true).unwrap_err().raw_os_error(), Some(libc::ENOENT | libc::EPERM)));
        let error = mount(OsStr::new("s"), missing, "fuse", 0, OsStr::new("")).unwrap_err();
        assert!(matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EPERM)));
    }

    #[test]
    fn a_closed_socket_sends_no_descriptor_and_plain_bytes_are_refused() {
        use std::io::Write;
        let (here, there) = UnixStream::pair().unwrap();
        drop(there);
        assert!(receive_descriptor(&here).unwrap().is_none());
        let (here, mut there) = UnixStream::pair().unwrap();
        there.write_all(b"x").unwrap();
        assert_eq!(receive_descriptor(&here).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_blocked_signal_is_taken_by_the_waiter() {
        block_signals(&[libc::SIGUSR2]).unwrap();
        // SAFETY: pthread_kill of the calling thread with a blocked signal only marks it as pending.
        assert_eq!(unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGUSR2) }, 0);
        assert_eq!(wait_for_signal(&[libc::SIGUSR2]).unwrap(), libc::SIGUSR2);
        assert!(block_signals(&[9999]).is_err());
    }
}
