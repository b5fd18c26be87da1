//! Mounting in the background: the command returns when the mount answers, and a process of its own serves it.
//!
//! That process is a copy of this one, made while it has one thread. By a pipe it says how the start went: one line, with
//! the exit status and, unless that is 0, the error.

use std::env;
use std::fs::File;
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::retry_on_intr;
use rustix::process::{Pid, WaitOptions, WaitStatus, setsid, waitpid};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::sys::{self, Process};

/// How the start of this process is told to whoever waits for it.
static START: Mutex<Start> = Mutex::new(Start::InForeground);

enum Start {
    /// It was not started to serve in the background.
    InForeground,
    /// It was, and this is how it says how that went.
    Waited(PipeWriter),
    /// It has said that the mount answers.
    Succeeded,
}

/// Where a program goes on after [`start`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// In the process that serves.
    Server,
    /// In the one that was started by somebody; the mount answers.
    Starter,
}

/// Makes a process that serves in the background; goes on there at once, and here when the mount answers. The other
/// process has left the terminal, so that ctrl-C there does not end the mount. To be called before there are threads.
///
/// # Errors
/// The exit status of the other process, and the line in which it says why there is no mount.
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
            // Fails only where it is the leader of a group already, and then there is no terminal to leave.
            let _ = setsid();
            dup2_stdin(&nothing).and_then(|()| dup2_stdout(&nothing)).map_err(|error| failed(error.into()))?;
            Ok(Side::Server)
        }
    }
}

/// Waits until the process that serves has said how its start went.
fn wait_for(report: PipeReader, server: Pid) -> Result<(), (u8, String)> {
    let mut line = String::new();
    // An unreadable report is as good as none.
    let _ = BufReader::new(report).read_line(&mut line);
    let report = line.strip_suffix('\n').and_then(|line| line.split_once(' '));
    if let Some(("0", _)) = report {
        return Ok(());
    }
    // Gone in a moment: so that nothing of it is left when the command returns.
    let end = retry_on_intr(|| waitpid(Some(server), WaitOptions::empty()));
    Err(match (report, end) {
        (Some((status, error)), _) => (status.parse().unwrap_or(1), error.to_owned()),
        (None, Ok(end)) => {
            let how = how_ended(end.map(|(_, status)| status));
            (1, format!("the process that should serve the mount ended without a word ({how})"))
        }
        (None, Err(error)) => (1, format!("the process that should serve the mount is lost: {error}")),
    })
}

fn how_ended(status: Option<WaitStatus>) -> String {
    match status.map(|status| (status.exit_status(), status.terminating_signal())) {
        Some((Some(status), _)) => format!("exit status {status}"),
        Some((_, Some(signal))) => format!("signal {signal}"),
        _ => "nobody knows how".to_owned(),
    }
}

/// Whether this process was started to serve in the background.
pub fn is_server() -> bool {
    !matches!(*state(), Start::InForeground)
}

/// In the process that serves: says that the mount answers, and lets go of the folder and the streams of whoever
/// started it.
///
/// # Errors
/// Where nobody waits for that any more, as after ctrl-C; the mount is then not wanted.
pub fn report_success() -> io::Result<()> {
    let mut state = state();
    if let Start::Waited(reports) = &*state {
        report(reports, 0, "")?;
        // Which closes the pipe.
        *state = Start::Succeeded;
    }
    drop(state);
    env::set_current_dir("/")?;
    Ok(dup2_stderr(File::options().write(true).open("/dev/null")?)?)
}

/// In the process that serves: says why there is no mount, and with which status to exit; after a mount, says to the
/// log why it ended.
pub fn report_failure(status: u8, error: &str) {
    match &*state() {
        // If nobody listens, nobody wants to know.
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
