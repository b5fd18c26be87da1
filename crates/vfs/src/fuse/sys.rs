//! System calls of the mount that need `unsafe`: signals, threads, inherited descriptors, and a probe process that may
//! hang.
//!
//! This is the only module in this folder with `unsafe`. Every wrapper takes owned or borrowed Rust values, so that no
//! pointer outlives its call, and returns an [`io::Result`].
#![allow(unsafe_code)]

use std::ffi::{CString, c_int};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::process::Pid;
use tilefs_threads as threads;

/// Returns whether a thread id, as reported by the kernel, belongs to this process.
pub fn is_own_thread(thread: u32) -> bool {
    let Ok(thread) = libc::pid_t::try_from(thread) else { return false };
    // SAFETY: getpid takes nothing and cannot fail; signal 0 is sent to nobody, the kernel only checks that the thread
    // exists.
    thread > 0 && unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, 0) } == 0
}

/// Returns a copy of a descriptor that this process has inherited, known by its number. The copy is closed by `exec`.
///
/// # Errors
/// `EBADF` if no descriptor has this number.
pub fn copy_of_descriptor(number: c_int) -> io::Result<OwnedFd> {
    // SAFETY: takes only integers, and the kernel checks them.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 0) };
    check(copy)?;
    // SAFETY: the kernel has just made this descriptor, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// The process in which [`fork`] returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Process {
    /// The parent, with the child's process id.
    Parent(Pid),
    /// The child.
    Child,
}

/// Forks this process.
///
/// # Errors
/// If the system refuses, or if this process has other threads, whose locks would stay locked in the child.
pub fn fork() -> io::Result<Process> {
    let has_others = match fs::read_dir("/proc/self/task") {
        Ok(threads) => threads.count() != 1,
        // Without /proc, rely on our own record: all threads are started by this program.
        Err(_) => threads::are_started(),
    };
    if has_others {
        return Err(io::Error::other("this one has threads already"));
    }
    // SAFETY: there is no other thread that could hold a lock or change memory during the copy.
    let child = unsafe { libc::fork() };
    check(child)?;
    Ok(Pid::from_raw(child).map_or(Process::Child, Process::Parent))
}

/// The result of probing a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeResult {
    /// It was opened, or rejected with this errno.
    Opened,
    Refused(c_int),
    /// No answer within the timeout.
    TimedOut,
}

/// Opens and closes a folder in a child process, which may hang while this process does not.
///
/// # Errors
/// If no process can be started; `InvalidInput` if the path has a NUL byte.
pub fn probe_folder(folder: &Path, timeout: Duration) -> io::Result<ProbeResult> {
    let folder = CString::new(folder.as_os_str().as_bytes())?;
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NONBLOCK | libc::O_CLOEXEC;
    // SAFETY: the child, which lacks the other threads and may have their locks locked, only makes system calls: open
    // and _exit. The string was created before the fork, and the child has its own copy.
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
    let deadline = Instant::now() + timeout;
    loop {
        let mut status = 0;
        // SAFETY: `status` is valid for writes, and the child is ours and was not waited for.
        match unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } {
            0 if Instant::now() < deadline => thread::sleep(Duration::from_millis(1)),
            0 => {
                // SAFETY: the child was not waited for, so its id cannot have been reused. It may not die before its
                // file system answers; nobody waits for it.
                unsafe { libc::kill(child, libc::SIGKILL) };
                return Ok(ProbeResult::TimedOut);
            }
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Err(io::Error::last_os_error()),
            _ => {
                return Ok(match libc::WEXITSTATUS(status) {
                    0 if libc::WIFEXITED(status) => ProbeResult::Opened,
                    errno => ProbeResult::Refused(errno),
                });
            }
        }
    }
}

/// Blocks these signals in this thread and in threads it starts; [`wait_for_signal`] receives them.
///
/// # Errors
/// `EINVAL` if one of them is not a signal.
pub fn block_signals(signals: &[c_int]) -> io::Result<()> {
    let set = signal_set(signals)?;
    // SAFETY: the set is initialised; the old mask is not asked for.
    check_errno(unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) })
}

/// Waits for one of these signals, all of which must be blocked, and consumes it.
///
/// # Errors
/// `EINVAL` if one of them is not a signal.
pub fn wait_for_signal(signals: &[c_int]) -> io::Result<c_int> {
    let set = signal_set(signals)?;
    let mut signal = 0;
    // SAFETY: the set is initialised and `signal` outlives the call.
    check_errno(unsafe { libc::sigwait(&raw const set, &raw mut signal) })?;
    Ok(signal)
}

fn signal_set(signals: &[c_int]) -> io::Result<libc::sigset_t> {
    // SAFETY: sigset_t is plain integers, and sigemptyset initialises it before it is read.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is valid for writes.
    check(unsafe { libc::sigemptyset(&raw mut set) })?;
    for &signal in signals {
        // SAFETY: `set` was initialised above.
        check(unsafe { libc::sigaddset(&raw mut set, signal) })?;
    }
    Ok(set)
}

/// Converts the result of calls that return -1 and set errno.
fn check(returned: c_int) -> io::Result<()> {
    if returned == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Converts the result of calls that return the errno.
fn check_errno(returned: c_int) -> io::Result<()> {
    if returned == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(returned)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_this_process_are_known() {
        assert!(is_own_thread(std::process::id()));
        // SAFETY: the call takes nothing and cannot fail.
        let this_thread = || unsafe { libc::gettid() };
        let other = std::thread::spawn(this_thread).join().unwrap();
        assert!(is_own_thread(this_thread() as u32));
        assert!(!is_own_thread(0) && !is_own_thread(1) && !is_own_thread(u32::MAX));
        // The kernel reports that a thread has ended a moment before it frees its id.
        let deadline = Instant::now() + Duration::from_secs(10);
        while is_own_thread(other as u32) {
            assert!(Instant::now() < deadline, "it has ended");
            thread::yield_now();
        }
    }

    #[test]
    fn a_copied_descriptor_is_the_same_file() {
        use std::io::Read;
        use std::os::fd::AsRawFd;
        let (mut reader, writer) = io::pipe().unwrap();
        let copy = copy_of_descriptor(writer.as_raw_fd()).unwrap();
        drop(writer);
        io::Write::write_all(&mut fs::File::from(copy), b"x").unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "x", "and both are closed");
        for number in [-1, c_int::MAX] {
            assert_eq!(copy_of_descriptor(number).unwrap_err().raw_os_error(), Some(libc::EBADF));
        }
    }

    #[test]
    fn a_process_with_threads_is_not_copied() {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let other = thread::spawn(move || ended.recv().is_err());
        assert!(fork().unwrap_err().to_string().contains("threads"));
        drop(end);
        assert!(other.join().unwrap());
    }

    #[test]
    fn probing_runs_in_another_process() {
        let probe = |path: &str| probe_folder(Path::new(path), Duration::from_secs(10)).unwrap();
        assert_eq!([probe("/"), probe("/none")], [ProbeResult::Opened, ProbeResult::Refused(libc::ENOENT)]);
    }

    #[test]
    fn a_blocked_signal_is_received_by_the_waiter() {
        block_signals(&[libc::SIGUSR2]).unwrap();
        // SAFETY: pthread_kill of the calling thread with a blocked signal only marks it as pending.
        assert_eq!(unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGUSR2) }, 0);
        assert_eq!(wait_for_signal(&[libc::SIGUSR2]).unwrap(), libc::SIGUSR2);
        assert!(block_signals(&[9999]).is_err());
    }
}
