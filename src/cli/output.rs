//! Standard output: all output of commands goes through here, so that a reader that closes the pipe ends the command.

use std::io::{self, IsTerminal, StdoutLock, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl};
use tilefs_base::content::Forward;
use tilefs_vfs::read_ahead::{ReadAhead, Reader};

use super::closed_output;
use super::failure::Failure;

/// Size of the first block: a reader who needs only a header should not wait for more.
const FIRST_BLOCK: u64 = 4 << 10;

/// Delay before the progress of a copy is shown, and interval between updates.
const PATIENCE: Duration = Duration::from_secs(1);
const REDRAW: Duration = Duration::from_millis(200);

/// Size up to which blocks grow.
const BLOCK: u64 = 1 << 20;

/// Fails if nothing can be printed: standard output is closed, or open only for reading. [`io::stdout`] reports
/// neither, and drops the output.
pub fn check() -> Result<(), Failure> {
    let flags = fcntl_getfl(io::stdout()).map_err(io::Error::from)?;
    if closed_output::was_closed() {
        return Err(Failure::failed("cannot write: standard output is closed"));
    }
    if flags & OFlags::RWMODE == OFlags::RDONLY {
        return Err(Failure::failed("cannot write: standard output is open for reading only"));
    }
    Ok(())
}

/// Returns standard output after checking that it is open for writing.
fn standard_output() -> Result<StdoutLock<'static>, Failure> {
    check()?;
    Ok(io::stdout().lock())
}

/// Prints a text that ends with a line break.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut output = standard_output()?;
    output.write_all(text.as_bytes())?;
    output.flush()?;
    Ok(())
}

/// Prints all bytes of a file in blocks, with prefetching.
pub fn copy(reader: &Arc<Reader>, read_ahead: &ReadAhead) -> Result<(), Failure> {
    let mut output = standard_output()?;
    let length = reader.content().len();
    let mut block = vec![0; length.min(BLOCK) as usize];
    let (mut offset, mut next) = (0, FIRST_BLOCK);
    let mut progress = CopyProgress::new(length);
    while offset < length {
        let now = next.min(length - offset);
        next = BLOCK.min(2 * next);
        let bytes = &mut block[..now as usize];
        read_ahead.note(reader, offset, now);
        reader.content().read_at(offset, bytes)?;
        output.write_all(bytes)?;
        offset += now;
        progress.draw(offset);
    }
    read_ahead.close(reader);
    output.flush()?;
    Ok(())
}

/// The progress of a copy, on standard error if that is a terminal and the output is not.
struct CopyProgress {
    length: u64,
    /// Time of the next update; `None` if progress is not shown.
    next: Option<Instant>,
    was_drawn: bool,
}

impl CopyProgress {
    fn new(length: u64) -> Self {
        let is_seen = io::stderr().is_terminal() && !io::stdout().is_terminal();
        CopyProgress { length, next: is_seen.then(|| Instant::now() + PATIENCE), was_drawn: false }
    }

    fn draw(&mut self, done: u64) {
        let now = Instant::now();
        if self.next.is_some_and(|next| now >= next) {
            let percent = done as f64 / self.length.max(1) as f64 * 100.0;
            // If the terminal is gone, the copy continues.
            let _ = write!(io::stderr(), "\r{percent:3.0} %  {} of {} MB", done / 1_000_000, self.length / 1_000_000);
            (self.next, self.was_drawn) = (Some(now + REDRAW), true);
        }
    }
}

impl Drop for CopyProgress {
    fn drop(&mut self) {
        if self.was_drawn {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// Prints a file of unknown length.
pub fn copy_forward(mut forward: Box<dyn Forward>) -> Result<(), Failure> {
    let mut output = standard_output()?;
    let mut bytes = Vec::new();
    while forward.next(&mut bytes)? {
        output.write_all(&bytes)?;
    }
    output.flush()?;
    Ok(())
}
