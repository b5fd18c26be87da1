//! Detects whether the thread that made a request still waits for the reply.
//!
//! The thread's state in `/proc` shows whether it exists, and which signals are pending while it waits in the kernel.
//! If a request is cancelled, a program with a handler for the signal gets EINTR and its handler runs. Local disks
//! never return EINTR, and programs use signals for timers, children and windows without expecting it. So among handled
//! signals, only those count that ask a program to end, as with the `intr` option of NFS.
//!
//! Readers in other PID namespaces have the id 0; nothing is known about them.

use std::ffi::c_int;
use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// Signals that ask a program to end; they count whether or not the program handles them.
const ASK_TO_END: [c_int; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

/// Signals that dump core and end a program without a handler. For all other fatal signals the kernel sets SIGKILL
/// pending, but not for these.
const WITH_CORE: [c_int; 9] = [
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGSEGV,
    libc::SIGSYS,
    libc::SIGTRAP,
    libc::SIGXCPU,
    libc::SIGXFSZ,
];

/// Returns whether a thread has ended, or was sent a signal that should end it.
pub fn has_given_up(thread: u32) -> bool {
    let Some(id) = i32::try_from(thread).ok().and_then(Pid::from_raw) else { return false };
    match fs::read_to_string(format!("/proc/{thread}/status")) {
        Ok(status) => says_given_up(&status),
        // Without `/proc`, or if it hides other users' processes.
        Err(_) => test_kill_process(id) == Err(Errno::SRCH),
    }
}

fn says_given_up(status: &str) -> bool {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
    let signals = |name: &str| field(name).and_then(|text| u64::from_str_radix(text, 16).ok()).unwrap_or(0);
    let sent = signals("SigPnd") | signals("ShdPnd");
    let taken = sent & !signals("SigBlk") & !signals("SigIgn");
    let is_dead = field("State").is_some_and(|state| state.starts_with(['Z', 'X']));
    is_dead
        || sent & set_of(&[libc::SIGKILL]) != 0
        || taken & set_of(&ASK_TO_END) != 0
        || taken & !signals("SigCgt") & set_of(&WITH_CORE) != 0
}

/// Returns a signal set as `/proc` encodes it.
fn set_of(signals: &[c_int]) -> u64 {
    signals.iter().fold(0, |set, signal| set | 1u64.checked_shl(signal.wrapping_sub(1).cast_unsigned()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    /// A status with signals pending for the thread, pending for its process, blocked, ignored and handled.
    fn status(sets: [&[c_int]; 5]) -> String {
        let [own, shared, blocked, ignored, handled] = sets.map(set_of);
        format!(
            "Name:\tSigPnd: 1\nState:\tD (disk sleep)\nSigQ:\t0/1\nSigPnd:\t{own:016x}\nShdPnd:\t{shared:016x}\n\
             SigBlk:\t{blocked:016x}\nSigIgn:\t{ignored:016x}\nSigCgt:\t{handled:016x}\n"
        )
    }

    #[test]
    fn only_signals_that_end_a_program_count() {
        let (int, alarm, abort, kill) = ([libc::SIGINT], [libc::SIGALRM], [libc::SIGABRT], [libc::SIGKILL]);
        let waits: [[&[c_int]; 5]; 7] = [
            [&[], &[], &[], &[], &int],
            [&[], &int, &int, &[], &[]],
            [&[], &int, &[], &int, &[]],
            [&[], &alarm, &[], &[], &alarm],
            [&alarm, &[], &[], &[], &alarm],
            [&[], &abort, &[], &[], &abort],
            [&[], &[libc::SIGCHLD, libc::SIGWINCH, libc::SIGURG], &[], &[], &[]],
        ];
        waits.into_iter().for_each(|sets| assert!(!says_given_up(&status(sets)), "{sets:?}"));
        let given_up: [[&[c_int]; 5]; 6] = [
            [&kill, &[], &[], &[], &[]],
            [&[], &kill, &[], &[], &[]],
            [&[], &int, &[], &[], &[]],
            [&[], &int, &[], &[], &int],
            [&int, &alarm, &[], &[], &alarm],
            [&[], &abort, &[], &[], &[]],
        ];
        given_up.into_iter().for_each(|sets| assert!(says_given_up(&status(sets)), "{sets:?}"));
        assert!(says_given_up("State:\tZ (zombie)\n") && !says_given_up("") && !says_given_up("SigPnd:\tx\n"));
    }

    #[test]
    fn ended_processes_are_detected_and_invisible_ones_ignored() {
        assert!(!has_given_up(std::process::id()) && !has_given_up(0) && !has_given_up(1));
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        assert!(!has_given_up(child.id()));
        child.kill().unwrap();
        let start = Instant::now();
        while !has_given_up(child.id()) {
            assert!(start.elapsed() < Duration::from_secs(10));
        }
        child.wait().unwrap();
        assert!(has_given_up(child.id()) && has_given_up(i32::MAX as u32));
    }
}
