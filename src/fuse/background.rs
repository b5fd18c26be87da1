//! Mounting in the background: the command returns when the mount answers, and a process of its own serves it.
//!
//! That process is this program again with the same arguments; forking one that has threads is not safe. It is
//! marked by an environment variable, and its standard output is a pipe by which it says how the start went: one
//! line, empty for success or else the error.

use std::env;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

use super::sys;

/// Marks the process that serves.
const MARK: &str = "TILEFS_BACKGROUND";

/// Whether this process was started to serve in the background.
pub fn is_server() -> bool {
    env::var_os(MARK).is_some()
}

/// Starts this program again, with the same arguments, to serve in the background; returns when the mount answers.
///
/// # Errors
/// The line in which the other process says why there is no mount.
pub fn start() -> Result<(), String> {
    let program = env::current_exe().map_err(|error| format!("cannot find this program itself: {error}"))?;
    let mut server = Command::new(program)
        .args(env::args_os().skip(1))
        .env(MARK, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start a process: {error}"))?;
    let mut report = String::new();
    if let Some(pipe) = server.stdout.take() {
        // An unreadable report is as good as none.
        let _ = BufReader::new(pipe).read_line(&mut report);
    }
    match report.strip_suffix('\n') {
        Some("") => Ok(()),
        Some(error) => {
            // Gone in a moment: so that nothing of it is left when the command returns.
            let _ = server.wait();
            Err(error.to_owned())
        }
        None => Err(match server.wait() {
            Ok(status) => format!("the process that should serve the mount ended without a word ({status})"),
            Err(error) => format!("the process that should serve the mount is lost: {error}"),
        }),
    }
}

/// In the process that serves: leaves the terminal, so that ctrl-C there does not end the mount. To be called first.
pub fn leave_terminal() {
    // Fails only where it is the leader of a group already, and then there is no terminal to leave.
    let _ = sys::new_session();
}

/// In the process that serves: says that the mount answers, and lets go of the folder and the streams of whoever
/// started it.
///
/// # Errors
/// Where nobody waits for that any more, as after ctrl-C; the mount is then not wanted.
pub fn report_success() -> io::Result<()> {
    report("")?;
    env::set_current_dir("/")?;
    sys::redirect_standard_streams(File::options().read(true).write(true).open("/dev/null")?.as_fd())
}

/// In the process that serves: says why there is no mount.
pub fn report_failure(error: &str) {
    // If nobody listens, nobody wants to know.
    let _ = report(error);
}

fn report(line: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{}", line.replace('\n', " "))?;
    output.flush()
}
