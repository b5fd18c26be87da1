//! A command of the user's that gives credentials (`credential_process` of an AWS profile).
//!
//! It runs beside the requests: whoever waits for it can be cancelled, and it is ended with all that it started when it
//! takes too long, prints too much, or nobody waits for it any more.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::try_join;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::threads;

/// How long the command may take. Some ask a person to confirm.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Credentials take less than a KiB, and so does what a command says of a failure.
const MOST_OUTPUT: u64 = 64 << 10;

/// How often to look whether a command that prints no more has ended, which is mostly at once.
const LOOK: Duration = Duration::from_millis(2);

/// What a command printed, and how it ended.
#[derive(Debug)]
pub struct Output {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Runs a command by the shell.
///
/// # Errors
/// A sentence that says what is wrong, where it cannot be run, takes longer than a minute, or prints more than 64 KiB.
pub async fn run(command: &str) -> Result<Output, String> {
    run_within(command, TIMEOUT).await
}

async fn run_within(command: &str, limit: Duration) -> Result<Output, String> {
    let mut process = Command::new("/bin/sh");
    process.arg("-c").arg(command).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = process.spawn().map_err(|error| format!("it cannot be run: {error}"))?;
    let streams = (child.stdout.take(), child.stderr.take());
    // Ends the command when this future ends, whatever ends it.
    let running = Running(Arc::new(Mutex::new(Some(child))));
    let (Some(stdout), Some(stderr)) = streams else { return Err("it has no output".to_owned()) };
    let (out, err) = (collect(stdout)?, collect(stderr)?);
    let ended = async {
        // Either may be too long while the other has no end.
        let (stdout, stderr) = try_join(of_length(out), of_length(err)).await?;
        Ok(Output { status: running.status().await?, stdout, stderr })
    };
    timeout(limit, ended).await.map_err(|_| format!("it does not end within {} s", limit.as_secs()))?
}

/// What was collected, if it is not too long.
async fn of_length(collected: oneshot::Receiver<Vec<u8>>) -> Result<Vec<u8>, String> {
    let bytes = collected.await.map_err(|_| "it cannot be read".to_owned())?;
    if bytes.len() as u64 > MOST_OUTPUT {
        return Err(format!("it prints more than {} KiB", MOST_OUTPUT >> 10));
    }
    Ok(bytes)
}

/// Reads a stream to its end, or until it is too long, on a thread of its own.
fn collect(stream: impl Read + Send + 'static) -> Result<oneshot::Receiver<Vec<u8>>, String> {
    let (sender, receiver) = oneshot::channel();
    let read = move || {
        let mut bytes = Vec::new();
        // A stream that breaks has ended.
        let _ = stream.take(MOST_OUTPUT + 1).read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    };
    threads::start("credentials", read).map_err(|error| format!("a thread for it cannot be started: {error}"))?;
    Ok(receiver)
}

/// A command that runs until this is dropped; `None` once its status is known, from when on its number may be another
/// process's.
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
            sleep(LOOK).await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let child = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut child) = child else { return };
        // Its group has the number of the shell, which has not been waited for.
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

    use crate::storage::cloud::runtime::IoThread;

    fn run_for(command: &str, limit: Duration) -> Result<Output, String> {
        IoThread::start().unwrap().wait(async { Ok(run_within(command, limit).await) }).unwrap()
    }

    #[test]
    fn output_and_status_are_given() {
        let output = run_for("echo out; echo err >&2; exit 3", TIMEOUT).unwrap();
        assert_eq!((output.stdout, output.stderr, output.status.code()), (b"out\n".into(), b"err\n".into(), Some(3)));
    }

    #[test]
    fn a_command_that_hangs_or_never_stops_printing_ends_with_all_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let alive = folder.path().join("alive");
        let limit = Duration::from_millis(300);
        for (hangs, why) in
            [("sleep 1000", "does not end"), ("exec >&- 2>&-; sleep 1000", "does not end"), ("yes", "prints more")]
        {
            let start = Instant::now();
            // Leaves a process behind it that would show that it lives.
            let command = format!("(sleep 2; touch {}) & {hangs}", alive.display());
            let error = run_for(&command, limit).unwrap_err();
            assert!(error.contains(why), "{hangs}: {error}");
            assert!(start.elapsed() < Duration::from_secs(2), "{hangs}: {:?}", start.elapsed());
        }
        std::thread::sleep(Duration::from_secs(3));
        assert!(!alive.exists());
    }
}
