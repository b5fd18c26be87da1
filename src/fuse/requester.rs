//! Whether a thread that asked the kernel for something of a mount still waits for it.
//!
//! Its state in `/proc` says so: whether it is there, and which signals were sent to it that it has not taken, as it
//! waits in the kernel. A program that has a handler for a signal gets EINTR then, and its handler runs. No local disk
//! ever gives EINTR, and programs take signals for timers, children and windows without expecting it: of
//! those they handle only the ones that ask a program to end count, as with the option `intr` of NFS.
//!
//! Readers in containers whose processes this one cannot see have the number 0; nothing is known of them.

use std::ffi::c_int;
use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// The signals that ask a program to end: whether it has handlers for them or not, it is to return to them.
const ASK_TO_END: [c_int; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

/// Signals that end a program that has no handler for them, and of which the kernel tells a waiting thread nothing, as
/// it writes a core. All others become SIGKILL.
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

/// Whether a thread, by the number that the kernel gives it, has ended, or was sent a signal that is to end it.
pub fn has_given_up(thread: u32) -> bool {
    let Some(id) = i32::try_from(thread).ok().and_then(Pid::from_raw) else { return false };
    match fs::read_to_string(format!("/proc/{thread}/status")) {
        Ok(status) => says_given_up(&status),
        // Without `/proc`, or where it hides the processes of others.
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

/// Signals as `/proc` writes them.
fn set_of(signals: &[c_int]) -> u64 {
    signals.iter().fold(0, |set, signal| set | 1u64.checked_shl(signal.wrapping_sub(1).cast_unsigned()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    /// A status with signals that were sent to the thread, to its process, and that it blocks, ignores and handles.
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
    fn processes_that_ended_are_known_and_those_that_cannot_be_seen_are_left_alone() {
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
