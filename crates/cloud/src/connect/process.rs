//! Runs a user's command that prints credentials (`credential_process` of an AWS profile).
//!
//! It runs asynchronously, so that waiting for it can be cancelled. It is killed with all its children when it takes
//! too long, prints too much, or nobody waits for it any more.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::try_join;
use rustix::process::{Pid, Signal, kill_process_group};
use tilefs_threads as threads;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

/// Time limit of the command. Some ask a person to confirm.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Limit of output in bytes. Credentials take less than a KiB, and so does an error message.
const MOST_OUTPUT: u64 = 64 << 10;

/// Interval for polling whether a command that closed its output has exited, which is mostly at once.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The output and exit status of a command.
#[derive(Debug)]
pub struct CommandOutput {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Runs a command in the shell.
///
/// # Errors
/// A message, if the command cannot be run, takes longer than a minute, or prints more than 64 KiB.
pub async fn run(command: &str) -> Result<CommandOutput, String> {
    run_within(command, TIMEOUT).await
}

async fn run_within(command: &str, limit: Duration) -> Result<CommandOutput, String> {
    let mut process = Command::new("/bin/sh");
    process.arg("-c").arg(command).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = process.spawn().map_err(|error| format!("it cannot be run: {error}"))?;
    let streams = (child.stdout.take(), child.stderr.take());
    // Kills the command when this future is dropped.
    let running = Running(Arc::new(Mutex::new(Some(child))));
    let (Some(stdout), Some(stderr)) = streams else { return Err("it has no output".to_owned()) };
    let (out, err) = (collect(stdout)?, collect(stderr)?);
    let ended = async {
        // Either stream may exceed the limit while the other has no end.
        let (stdout, stderr) = try_join(of_length(out), of_length(err)).await?;
        Ok(CommandOutput { status: running.status().await?, stdout, stderr })
    };
    timeout(limit, ended).await.map_err(|_| format!("it does not end within {} s", limit.as_secs()))?
}

/// Returns the collected output unless it is too long.
async fn of_length(collected: oneshot::Receiver<Vec<u8>>) -> Result<Vec<u8>, String> {
    let bytes = collected.await.map_err(|_| "it cannot be read".to_owned())?;
    if bytes.len() as u64 > MOST_OUTPUT {
        return Err(format!("it prints more than {} KiB", MOST_OUTPUT >> 10));
    }
    Ok(bytes)
}

/// Reads a stream to its end, or past the limit, on a thread of its own.
fn collect(stream: impl Read + Send + 'static) -> Result<oneshot::Receiver<Vec<u8>>, String> {
    let (sender, receiver) = oneshot::channel();
    let read = move || {
        let mut bytes = Vec::new();
        // A broken stream counts as ended.
        let _ = stream.take(MOST_OUTPUT + 1).read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    };
    threads::start("credentials", read).map_err(|error| format!("a thread for it cannot be started: {error}"))?;
    Ok(receiver)
}

/// A running command, killed on drop; `None` once its status is known, because its process id may then be reused.
struct Running(Arc<Mutex<Option<Child>>>);

impl Running {
    async fn status(&self) -> Result<ExitStatus, String> {
        loop {
            {
                let mut child = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                let status = child.as_mut().map(Child::try_wait);
                match status {
                    Some(Ok(Some(status))) => {
                        *child = None;
                        return Ok(status);
                    }
                    Some(Ok(None)) => {}
                    Some(Err(error)) => return Err(format!("it cannot be waited for: {error}")),
                    None => return Err("it has ended before".to_owned()),
                }
            }
            sleep(POLL_INTERVAL).await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let child = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut child) = child else { return };
        // The group id is the shell's process id, which is still reserved because the shell was not waited for.
        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    use crate::runtime::IoThread;

    fn run_for(command: &str, limit: Duration) -> Result<CommandOutput, String> {
        IoThread::start().unwrap().wait(async { Ok(run_within(command, limit).await) }).unwrap()
    }

    #[test]
    fn output_and_status_are_given() {
        let output = run_for("echo out; echo err >&2; exit 3", TIMEOUT).unwrap();
        assert_eq!((output.stdout, output.stderr, output.status.code()), (b"out\n".into(), b"err\n".into(), Some(3)));
    }

    #[test]
    fn runaway_commands_are_killed_with_their_children() {
        let folder = tempfile::tempdir().unwrap();
        let alive = folder.path().join("alive");
        let limit = Duration::from_millis(300);
        for (hangs, why) in
            [("sleep 1000", "does not end"), ("exec >&- 2>&-; sleep 1000", "does not end"), ("yes", "prints more")]
        {
            let start = Instant::now();
            // Leaves a child process behind that would show if it survives.
            let command = format!("(sleep 2; touch {}) & {hangs}", alive.display());
            let error = run_for(&command, limit).unwrap_err();
            assert!(error.contains(why), "{hangs}: {error}");
            assert!(start.elapsed() < Duration::from_secs(2), "{hangs}: {:?}", start.elapsed());
        }
        std::thread::sleep(Duration::from_secs(3));
        assert!(!alive.exists());
    }
}
