//! Mounting in the background: the command returns when the mount answers, and a process of its own serves it.
//!
//! That process is this program again with the same arguments; forking one that has threads is not safe. It is
//! marked by an environment variable, and its standard output is a pipe by which it says how the start went: one
//! line, with the exit status and, unless that is 0, the error.

use std::env;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::setsid;
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

/// Marks the process that serves.
const MARK: &str = "TILEFS_BACKGROUND";

/// Whether the process that serves has said that the mount answers.
static SUCCEEDED: AtomicBool = AtomicBool::new(false);

/// Whether this process was started to serve in the background.
pub fn is_server() -> bool {
    env::var_os(MARK).is_some()
}

/// Starts this program again, with the same arguments, to serve in the background; returns when the mount answers.
///
/// # Errors
/// The exit status of the other process, and the line in which it says why there is no mount.
pub fn start() -> Result<(), (u8, String)> {
    let failed = |reason: String| (1, reason);
    let program = env::current_exe().map_err(|error| failed(format!("cannot find this program itself: {error}")))?;
    let mut server = Command::new(program)
        .args(env::args_os().skip(1))
        .env(MARK, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| failed(format!("cannot start a process: {error}")))?;
    let mut report = String::new();
    if let Some(pipe) = server.stdout.take() {
        // An unreadable report is as good as none.
        let _ = BufReader::new(pipe).read_line(&mut report);
    }
    match report.strip_suffix('\n').and_then(|line| line.split_once(' ')) {
        Some(("0", _)) => Ok(()),
        Some((status, error)) => {
            // Gone in a moment: so that nothing of it is left when the command returns.
            let _ = server.wait();
            Err((status.parse().unwrap_or(1), error.to_owned()))
        }
        None => Err(failed(match server.wait() {
            Ok(status) => format!("the process that should serve the mount ended without a word ({status})"),
            Err(error) => format!("the process that should serve the mount is lost: {error}"),
        })),
    }
}

/// In the process that serves: leaves the terminal, so that ctrl-C there does not end the mount. To be called first.
pub fn leave_terminal() {
    // Fails only where it is the leader of a group already, and then there is no terminal to leave.
    let _ = setsid();
}

/// In the process that serves: says that the mount answers, and lets go of the folder and the streams of whoever
/// started it.
///
/// # Errors
/// Where nobody waits for that any more, as after ctrl-C; the mount is then not wanted.
pub fn report_success() -> io::Result<()> {
    report(0, "")?;
    SUCCEEDED.store(true, Ordering::Relaxed);
    env::set_current_dir("/")?;
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&nothing)?;
    dup2_stdout(&nothing)?;
    Ok(dup2_stderr(&nothing)?)
}

/// In the process that serves: says why there is no mount, and with which status to exit; after a mount, says to the
/// log why it ended.
pub fn report_failure(status: u8, error: &str) {
    if SUCCEEDED.load(Ordering::Relaxed) {
        log::error!("{error}");
    } else {
        // If nobody listens, nobody wants to know.
        let _ = report(status, error);
    }
}

fn report(status: u8, error: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{status} {}", error.replace('\n', " "))?;
    output.flush()
}
