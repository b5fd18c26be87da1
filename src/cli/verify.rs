//! `tilefs verify`: is everything that is stored still readable?

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use clap::Args;

use super::failure::Failure;
use super::options::{Logging, Opening};
use super::{output, pool};
use tilefs::array::verify::{Progress, verify};
use tilefs::array::{Array, ArrayFolder, Group};
use tilefs::error::{Error, Result};
use tilefs::tree::below::{Found, arrays_below};
use tilefs::tree::{self, Stored};

/// Characters of the progress bar.
const BAR: usize = 40;

/// How often the bar is drawn.
const REDRAW: Duration = Duration::from_millis(200);

/// Read everything that is stored in an array, or in all arrays of a group, and check it; exit status 1 if anything is
/// damaged
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
    pub fn run(&self) -> std::result::Result<(), Failure> {
        self.logging.start();
        let options = self.opening.options(&[])?;
        pool::start(options.threads, false)?;
        let tally = match tree::open_stored(&self.array, &options)? {
            Stored::Array(array) => {
                let (damage, tally) = check(&array);
                output::print(&format!("{}{tally}\n", sorted_lines(&damage)))?;
                tally
            }
            Stored::Group(group) => check_group(&group)?,
        };
        if tally.damaged == 0 { Ok(()) } else { Err(Failure::told()) }
    }
}

/// What was checked.
#[derive(Debug, Default)]
struct Tally {
    fragments: u64,
    tiles: u64,
    bytes: u64,
    checked_tiles: u64,
    damaged: usize,
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.fragments += other.fragments;
        self.tiles += other.tiles;
        self.bytes += other.bytes;
        self.checked_tiles += other.checked_tiles;
        self.damaged += other.damaged;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { fragments, tiles, bytes, checked_tiles, damaged } = self;
        write!(
            f,
            "{fragments} fragments, {tiles} tiles, {bytes} bytes decoded; {checked_tiles} tiles with checksums; \
             {damaged} damaged places"
        )
    }
}

/// Checks one array, with a bar meanwhile; gives the damage and what was checked.
fn check(array: &Array) -> (Vec<Error>, Tally) {
    let progress = Progress::default();
    let damage = with_progress_bar(&progress, array.fragment_count() as u64, || verify(array, &progress));
    let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
    let tally = Tally {
        fragments: count(&progress.fragments),
        tiles: count(&progress.tiles),
        bytes: count(&progress.bytes),
        checked_tiles: count(&progress.checked_tiles),
        damaged: damage.len(),
    };
    (damage, tally)
}

/// Checks the arrays below a group, and prints what is found as it is found. Members that are gone are named; they are
/// no damage, as a group only says where its members were.
fn check_group(group: &Group) -> std::result::Result<Tally, Failure> {
    let open = |folder: &Path| -> Result<Array> {
        Array::open(Arc::new(ArrayFolder::open(group.context().clone(), folder)?), group.window())
    };
    let (mut total, mut arrays, mut absent) = (Tally::default(), 0u64, 0u64);
    for below in arrays_below(group) {
        let opened = match below.found {
            Found::Absent(reason) => {
                absent += 1;
                output::print(&format!("{}: {reason}\n", below.path))?;
                continue;
            }
            Found::Wrong(error) => Err(error),
            Found::Array(folder) => {
                arrays += 1;
                open(&folder)
            }
        };
        let (damage, tally) = match &opened {
            Ok(array) => check(array),
            Err(error) => (vec![error.clone()], Tally { damaged: 1, ..Tally::default() }),
        };
        let lines = sorted_lines(&damage);
        let name = if below.path.is_empty() { "the group itself" } else { &below.path };
        output::print(&format!("{lines}{name}: {tally}\n"))?;
        total.add(&tally);
    }
    output::print(&format!("in all {arrays} arrays: {total}; {absent} members are not there\n"))?;
    Ok(total)
}

fn sorted_lines(damage: &[Error]) -> String {
    let mut lines: Vec<String> = damage.iter().map(|error| format!("{error}\n")).collect();
    lines.sort_unstable();
    lines.concat()
}

/// Runs `work` while a bar on standard error shows how many of `fragments` are done. None is shown where
/// standard error is no terminal.
fn with_progress_bar<T>(progress: &Progress, fragments: u64, work: impl FnOnce() -> T) -> T {
    if !io::stderr().is_terminal() {
        return work();
    }
    let (done, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let draw = move || {
            loop {
                // Those of labels count too.
                let fraction = (progress.fragments.load(Ordering::Relaxed) as f64 / fragments.max(1) as f64).min(1.0);
                let filled = (fraction * BAR as f64) as usize;
                let megabytes = progress.bytes.load(Ordering::Relaxed) / 1_000_000;
                let bar = format!("{}{}", "#".repeat(filled), "-".repeat(BAR - filled.min(BAR)));
                // If the terminal is gone the work goes on.
                let _ = write!(io::stderr(), "\r[{bar}] {:3.0} %  {megabytes} MB", fraction * 100.0);
                if ended.recv_timeout(REDRAW) != Err(mpsc::RecvTimeoutError::Timeout) {
                    break;
                }
            }
            let _ = write!(io::stderr(), "\r\x1b[K");
        };
        // Without another thread there is no bar.
        let _ = thread::Builder::new().spawn_scoped(scope, draw);
        let result = work();
        drop(done);
        result
    })
}
