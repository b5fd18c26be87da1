//! Mounting in the background: the command returns once the mount answers, while another process serves it.
//!
//! The server is forked while there is only one thread. It reports the outcome of its start through a pipe: one line
//! with the exit status and, unless that is 0, the error.

use std::env;
use std::fs::File;
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::retry_on_intr;
use rustix::process::{Pid, WaitOptions, WaitStatus, setsid, waitpid};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::sys::{self, Process};

/// How this process reports the outcome of its start.
static START: Mutex<Start> = Mutex::new(Start::InForeground);

enum Start {
    /// It serves in the foreground.
    InForeground,
    /// It serves in the background and has yet to report.
    Waited(PipeWriter),
    /// It has reported that the mount answers.
    Succeeded,
}

/// The process in which [`start`] returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The background server.
    Server,
    /// The command that the user started; the mount answers.
    Starter,
}

/// Forks a background server. Returns in the server at once, and in this process once the mount answers. The server
/// leaves the terminal's session, so that ctrl-C does not end the mount. Must be called before any thread starts.
///
/// # Errors
/// The exit status of the server, and its one-line error.
pub fn start() -> Result<Side, (u8, String)> {
    let failed = |error: io::Error| (1, format!("cannot start a process: {error}"));
    let nothing = File::options().read(true).write(true).open("/dev/null").map_err(failed)?;
    let (report, reports) = io::pipe().map_err(failed)?;
    match sys::fork().map_err(failed)? {
        Process::Parent(server) => {
            drop(reports);
            wait_for(report, server).map(|()| Side::Starter)
        }
        Process::Child => {
            *state() = Start::Waited(reports);
            // Fails only for a process group leader, and then there is no terminal to leave.
            let _ = setsid();
            dup2_stdin(&nothing).and_then(|()| dup2_stdout(&nothing)).map_err(|error| failed(error.into()))?;
            Ok(Side::Server)
        }
    }
}

/// Waits for the server's report.
fn wait_for(report: PipeReader, server: Pid) -> Result<(), (u8, String)> {
    let mut line = String::new();
    // An unreadable report counts as none.
    let _ = BufReader::new(report).read_line(&mut line);
    let report = line.strip_suffix('\n').and_then(|line| line.split_once(' '));
    if let Some(("0", _)) = report {
        return Ok(());
    }
    // Reap the server, which exits in a moment, so that nothing of it is left when the command returns.
    let end = retry_on_intr(|| waitpid(Some(server), WaitOptions::empty()));
    Err(match (report, end) {
        (Some((status, error)), _) => (status.parse().unwrap_or(1), error.to_owned()),
        (None, Ok(end)) => {
            let how = how_ended(end.map(|(_, status)| status));
            (1, format!("the server process of the mount ended without a report ({how})"))
        }
        (None, Err(error)) => (1, format!("cannot wait for the server process of the mount: {error}")),
    })
}

fn how_ended(status: Option<WaitStatus>) -> String {
    match status.map(|status| (status.exit_status(), status.terminating_signal())) {
        Some((Some(status), _)) => format!("exit status {status}"),
        Some((_, Some(signal))) => format!("signal {signal}"),
        _ => "unknown status".to_owned(),
    }
}

/// Returns whether this process is a background server.
pub fn is_server() -> bool {
    !matches!(*state(), Start::InForeground)
}

/// Reports from the server that the mount answers, and releases the working folder and streams of the command.
///
/// # Errors
/// If the command no longer waits, as after ctrl-C; the mount is then no longer wanted.
pub fn report_success() -> io::Result<()> {
    let mut state = state();
    if let Start::Waited(reports) = &*state {
        report(reports, 0, "")?;
        // Replacing the state closes the pipe.
        *state = Start::Succeeded;
    }
    drop(state);
    env::set_current_dir("/")?;
    Ok(dup2_stderr(File::options().write(true).open("/dev/null")?)?)
}

/// Reports from the server why there is no mount, and the exit status. After a successful start, logs why the mount
/// ended.
pub fn report_failure(status: u8, error: &str) {
    match &*state() {
        // A write error means that nobody listens.
        Start::Waited(reports) => drop(report(reports, status, error)),
        Start::InForeground | Start::Succeeded => log::error!("{error}"),
    }
}

fn report(mut reports: &PipeWriter, status: u8, error: &str) -> io::Result<()> {
    reports.write_all(format!("{status} {}\n", error.replace('\n', " ")).as_bytes())
}

fn state() -> MutexGuard<'static, Start> {
    START.lock().unwrap_or_else(PoisonError::into_inner)
}
