//! Standard output: everything a command prints goes through here, so that a reader who has seen enough ends it.

use std::io::{self, IsTerminal, StdoutLock, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl};
use tilefs_export::Forward;

use super::closed_output;
use super::failure::Failure;
use tilefs::read_ahead::{ReadAhead, Reader};

/// How much is read and written first: a reader who wants a header only should not wait for more.
const FIRST_BLOCK: u64 = 4 << 10;

/// How long nothing is said of how far a copy is, and how often from then on.
const PATIENCE: Duration = Duration::from_secs(1);
const REDRAW: Duration = Duration::from_millis(200);

/// To how much at a time that grows.
const BLOCK: u64 = 1 << 20;

/// Fails where nothing can be printed: standard output is closed, or open for reading only. [`io::stdout`] reports
/// neither, and drops what is written to it.
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

/// Standard output, once it is known to be open for writing.
fn standard_output() -> Result<StdoutLock<'static>, Failure> {
    check()?;
    Ok(io::stdout().lock())
}

/// Prints a text that ends in a line break.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut output = standard_output()?;
    output.write_all(text.as_bytes())?;
    output.flush()?;
    Ok(())
}

/// Prints all bytes of a file, in blocks, reading ahead.
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

/// How far a copy is, on standard error where that is a terminal and the copy goes elsewhere.
struct CopyProgress {
    length: u64,
    /// When to draw; `None` where nobody looks.
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
            // If the terminal is gone the copy goes on.
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

/// Prints a file whose length nobody knows yet.
pub fn copy_forward(mut forward: Box<dyn Forward>) -> Result<(), Failure> {
    let mut output = standard_output()?;
    let mut bytes = Vec::new();
    while forward.next(&mut bytes)? {
        output.write_all(&bytes)?;
    }
    output.flush()?;
    Ok(())
}
