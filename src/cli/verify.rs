//! `tilefs verify`: is everything that is stored still readable?

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use clap::Args;

use super::failure::Failure;
use super::options::{Logging, Opening};
use super::output;
use tilefs::array::verify::{Progress, verify};
use tilefs::tree;

/// Characters of the progress bar.
const BAR: usize = 40;

/// How often the bar is drawn.
const REDRAW: Duration = Duration::from_millis(200);

/// Read everything that is stored and check it; exit status 1 if anything is wrong
#[derive(Debug, Args)]
pub struct Verify {
    /// The folder of the array or group
    array: PathBuf,

    #[command(flatten)]
    opening: Opening,

    #[command(flatten)]
    logging: Logging,
}

impl Verify {
    pub fn run(&self) -> Result<(), Failure> {
        self.logging.start();
        let array = tree::open_array(&self.array, &self.opening.options(&[])?)?;
        let progress = Progress::default();
        let damage = with_progress_bar(&progress, array.fragment_count() as u64, || verify(&array, &progress));
        let mut lines: Vec<String> = damage.iter().map(ToString::to_string).collect();
        lines.sort_unstable();
        let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let mut report = String::new();
        for line in &lines {
            report += &format!("{line}\n");
        }
        report += &format!(
            "{} fragments, {} tiles, {} bytes decoded; {} tiles with checksums; {} damaged places\n",
            count(&progress.fragments),
            count(&progress.tiles),
            count(&progress.bytes),
            count(&progress.checked_tiles),
            lines.len(),
        );
        output::print(&report)?;
        if lines.is_empty() { Ok(()) } else { Err(Failure::told()) }
    }
}

/// Runs `work` while a bar on standard error shows how many of `fragments` are done. None is shown where
/// standard error is no terminal.
fn with_progress_bar<T>(progress: &Progress, fragments: u64, work: impl FnOnce() -> T) -> T {
    if !io::stderr().is_terminal() {
        return work();
    }
    let (done, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            while ended.recv_timeout(REDRAW) == Err(mpsc::RecvTimeoutError::Timeout) {
                let fraction = progress.fragments.load(Ordering::Relaxed) as f64 / fragments.max(1) as f64;
                let filled = (fraction * BAR as f64) as usize;
                let megabytes = progress.bytes.load(Ordering::Relaxed) / 1_000_000;
                let bar = format!("{}{}", "#".repeat(filled), "-".repeat(BAR - filled.min(BAR)));
                // If the terminal is gone the work goes on.
                let _ = write!(io::stderr(), "\r[{bar}] {:3.0} %  {megabytes} MB", fraction * 100.0);
            }
            let _ = write!(io::stderr(), "\r\x1b[K");
        });
        let result = work();
        drop(done);
        result
    })
}
