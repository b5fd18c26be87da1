//! The system calls of a mount that only `unsafe` code can make: those about signals, threads and a process that may hang.
//!
//! This is the only module of the room with `unsafe`. Every wrapper takes owned or borrowed Rust values, so that no
//! pointer outlives its call, and turns the return value into an [`io::Result`].
#![allow(unsafe_code)]

use std::ffi::{CString, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::process::Pid;

use tilefs_reader::threads;

/// Whether a thread, by the number that the kernel gives it, is one of this process.
pub fn is_own_thread(thread: u32) -> bool {
    let Ok(thread) = libc::pid_t::try_from(thread) else { return false };
    // SAFETY: getpid takes nothing and cannot fail; signal 0 is sent to nobody, the kernel only looks for the thread.
    thread > 0 && unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, 0) } == 0
}

/// Where [`fork`] goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Process {
    /// In the process that was there before; the other one has this number.
    Parent(Pid),
    /// In the new one.
    Child,
}

/// Makes a second process, with a copy of the memory of this one and with its open files.
///
/// # Errors
/// Where the system refuses; where this process has other threads, whose locks nobody would open in the copy.
pub fn fork() -> io::Result<Process> {
    let has_others = match fs::read_dir("/proc/self/task") {
        Ok(threads) => threads.count() != 1,
        // Without /proc only those are known that this program has started, which are all that there are.
        Err(_) => threads::are_started(),
    };
    if has_others {
        return Err(io::Error::other("this one has threads already"));
    }
    // SAFETY: no other thread is there to hold a lock or to change memory while it is copied.
    let child = unsafe { libc::fork() };
    check(child)?;
    Ok(Pid::from_raw(child).map_or(Process::Child, Process::Parent))
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

    #[test]
    fn threads_of_this_process_are_known() {
        assert!(is_own_thread(std::process::id()));
        // SAFETY: the call takes nothing and cannot fail.
        let this_thread = || unsafe { libc::gettid() };
        let other = std::thread::spawn(this_thread).join().unwrap();
        assert!(is_own_thread(this_thread() as u32));
        assert!(!is_own_thread(0) && !is_own_thread(1) && !is_own_thread(u32::MAX));
        // The kernel says that a thread has ended a moment before it takes its number away.
        let deadline = Instant::now() + Duration::from_secs(10);
        while is_own_thread(other as u32) {
            assert!(Instant::now() < deadline, "it has ended");
            thread::yield_now();
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
    fn another_process_asks() {
        let ask = |path: &str| ask(Path::new(path), Duration::from_secs(10)).unwrap();
        assert_eq!([ask("/"), ask("/none")], [Answer::Opened, Answer::Refused(libc::ENOENT)]);
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
