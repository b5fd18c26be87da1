//! `tilefs verify`: checks that all stored data are readable.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use clap::Args;
use tilefs_base::error::Error;
use tilefs_reader::array::verify::{Finding, Findings, Progress, verify};
use tilefs_reader::array::{ArrayFolder, OpenedArray};
use tilefs_threads as threads;
use tilefs_tree::group::texts::NEITHER;
use tilefs_tree::objects::walk::{Unreadable, Visited, WalkPlace, walk_directory, walk_group};
use tilefs_tree::wording::size::counted;
use tilefs_tree::{self as tree, Stored, TreeOptions};

use crate::cli::failure::Failure;
use crate::cli::options::{NamedSlices, Opening};
use crate::cli::output;

/// Characters of the progress bar.
const BAR: usize = 40;

/// Interval between updates of the bar.
const REDRAW: Duration = Duration::from_millis(200);

/// The exit status if anything is damaged.
const DAMAGED: u8 = 1;

/// The exit status if something could not be checked, and the rest is sound.
const INCOMPLETE: u8 = 2;

const STATUSES: &str = "\
The exit status is 0 if everything is sound, 1 if anything is damaged, and 2 if no damage was found but something could
not be checked: there is no array, permission is denied, its key is missing, or it has a filter that is not supported.";

/// Read and check everything that is stored in an array, or in all arrays of a group or folder
#[derive(Debug, Args)]
#[command(after_help = STATUSES)]
pub struct Verify {
    /// The folder of the array or group, or a folder of these
    array: PathBuf,

    #[command(flatten)]
    opening: Opening,
}

impl Verify {
    pub fn run(&self) -> std::result::Result<(), Failure> {
        self.opening.logging.start();
        let tally = self.check().map_err(|failure| match failure.status {
            // The reader has closed the pipe.
            0 => failure,
            _ => Failure { status: INCOMPLETE, ..failure },
        })?;
        match (tally.damaged, tally.unchecked) {
            (0, 0) => Ok(()),
            (0, _) => Err(Failure { status: INCOMPLETE, message: String::new() }),
            _ => Err(Failure { status: DAMAGED, message: String::new() }),
        }
    }

    fn check(&self) -> std::result::Result<Tally, Failure> {
        output::check()?;
        // Results saved by earlier mounts are not used.
        let options = TreeOptions {
            reading: tilefs_reader::ReaderOptions {
                index: None,
                ..self.opening.options(&NamedSlices::default())?.reading
            },
            ..self.opening.options(&NamedSlices::default())?
        };
        threads::start_team(options.reading.threads);
        match tree::open_stored(&self.array, &options) {
            Ok(Stored::Array(array)) => {
                let (findings, tally) = check(&array);
                output::print(&format!("{}{tally}\n", lines(&findings)))?;
                Ok(tally)
            }
            Ok(Stored::Group(group)) => {
                let mut whole = Whole::default();
                walk_group(&group, None, |place, visited| whole.check(place, visited))?;
                whole.finish()
            }
            Ok(Stored::Directory(directory)) => {
                let mut whole = Whole::default();
                walk_directory(&directory, None, |place, visited| whole.check(place, visited))?;
                whole.finish()
            }
            // The array could not even be opened, because its schema or its commits are damaged.
            Err(error @ Error::Damaged { .. }) => {
                let (findings, tally) = not_opened(error);
                output::print(&format!("{}{tally}\n", lines(&findings)))?;
                Ok(tally)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The numbers of checked items.
#[derive(Debug, Default)]
struct Tally {
    fragments: u64,
    tiles: u64,
    bytes: u64,
    checked_tiles: u64,
    bytes_without_checksum: u64,
    /// Number of places.
    damaged: usize,
    /// Number of places that could not be checked.
    unchecked: usize,
    warnings: usize,
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.fragments += other.fragments;
        self.tiles += other.tiles;
        self.bytes += other.bytes;
        self.checked_tiles += other.checked_tiles;
        self.bytes_without_checksum += other.bytes_without_checksum;
        self.damaged += other.damaged;
        self.unchecked += other.unchecked;
        self.warnings += other.warnings;
    }

    fn add_findings(&mut self, findings: &Findings) {
        let damaged = findings.places.iter().filter(|place| place.is_damage()).count();
        self.damaged += damaged;
        self.unchecked += findings.places.len() - damaged;
        self.warnings += findings.warnings.len();
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { fragments, tiles, bytes, checked_tiles, bytes_without_checksum, damaged, unchecked, warnings } =
            self;
        write!(
            f,
            "{}, {}, {} decoded; {} with checksums, {} without; {}",
            counted(*fragments, "fragment"),
            counted(*tiles, "tile"),
            counted(*bytes, "byte"),
            counted(*checked_tiles, "tile"),
            counted(*bytes_without_checksum, "byte"),
            counted(*damaged as u64, "damaged place")
        )?;
        if *unchecked > 0 {
            write!(f, "; {} could not be checked", counted(*unchecked as u64, "place"))?;
        }
        if *warnings > 0 {
            write!(f, "; {}", counted(*warnings as u64, "warning"))?;
        }
        Ok(())
    }
}

/// Checks one array while showing a progress bar; returns the findings and the numbers.
fn check(array: &OpenedArray) -> (Findings, Tally) {
    let progress = Progress::default();
    let findings = with_progress_bar(&progress, || verify(array, &progress));
    let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
    let mut tally = Tally {
        fragments: count(&progress.fragments),
        tiles: count(&progress.tiles),
        bytes: count(&progress.bytes),
        checked_tiles: count(&progress.checked_tiles),
        bytes_without_checksum: count(&progress.bytes_without_checksum),
        ..Tally::default()
    };
    tally.add_findings(&findings);
    (findings, tally)
}

/// Returns the result for an array that cannot be opened.
fn not_opened(error: Error) -> (Findings, Tally) {
    let findings = Findings { places: vec![Finding { error, tiles: 0 }], warnings: Vec::new() };
    let mut tally = Tally::default();
    tally.add_findings(&findings);
    (findings, tally)
}

/// The arrays below a group or folder. Prints findings as they come.
#[derive(Default)]
struct Whole {
    total: Tally,
    arrays: u64,
    missing: u64,
}

impl Whole {
    /// Checks an array below a group or folder. Missing members are named; they are not damage, since a group only
    /// records where its members were.
    fn check(&mut self, place: WalkPlace<'_>, visited: Visited<'_>) -> std::result::Result<(), Failure> {
        let name = match (place.depth, &visited) {
            (0, Visited::Unreadable(Unreadable::Directory, _)) => "the folder itself",
            (0, _) => "the group itself",
            _ => place.path,
        };
        match visited {
            Visited::Group(..) | Visited::Directory(_) | Visited::Again => Ok(()),
            Visited::Unexamined | Visited::UnexaminedMember(_) => Ok(()),
            Visited::Missing(reason) => self.miss(name, reason),
            Visited::Neither => self.miss(name, NEITHER),
            Visited::Unreadable(_, error) => self.add(name, not_opened(error)),
            Visited::Array(array) => {
                self.arrays += 1;
                let folder = ArrayFolder::open(array.context.clone(), array.folder);
                let opened = folder.and_then(|folder| OpenedArray::open(Arc::new(folder), array.window));
                self.add(name, opened.map_or_else(not_opened, |array| check(&array)))
            }
        }
    }

    fn miss(&mut self, name: &str, reason: &str) -> std::result::Result<(), Failure> {
        self.missing += 1;
        output::print(&format!("{name}: {reason}\n"))
    }

    fn add(&mut self, name: &str, (findings, tally): (Findings, Tally)) -> std::result::Result<(), Failure> {
        output::print(&format!("{}{name}: {tally}\n", lines(&findings)))?;
        self.total.add(&tally);
        Ok(())
    }

    /// Prints the totals and returns them.
    fn finish(self) -> std::result::Result<Tally, Failure> {
        let missing = match self.missing {
            1 => "1 member is missing".to_owned(),
            count => format!("{count} members are missing"),
        };
        output::print(&format!("in all {}: {}; {missing}\n", counted(self.arrays, "array"), self.total))?;
        Ok(self.total)
    }
}

/// Returns a line for each finding, and for each warning.
fn lines(findings: &Findings) -> String {
    let places = findings.places.iter().map(|place| format!("{place}\n"));
    places.chain(findings.warnings.iter().map(|warning| format!("warning: {warning}\n"))).collect()
}

/// Runs `work` while a progress bar on standard error shows the share of tiles that are done. Shows none if standard
/// error is not a terminal.
fn with_progress_bar<T>(progress: &Progress, work: impl FnOnce() -> T) -> T {
    if !io::stderr().is_terminal() {
        return work();
    }
    let (done, ended) = mpsc::channel::<()>();
    let draw = move || {
        loop {
            let count = |number: &AtomicU64| number.load(Ordering::Relaxed) as f64;
            let fraction = (count(&progress.done) / count(&progress.due).max(1.0)).min(1.0);
            let filled = (fraction * BAR as f64) as usize;
            let megabytes = progress.bytes.load(Ordering::Relaxed) / 1_000_000;
            let bar = format!("{}{}", "#".repeat(filled), "-".repeat(BAR - filled.min(BAR)));
            // If the terminal is gone, the work continues.
            let _ = write!(io::stderr(), "\r[{bar}] {:3.0} %  {megabytes} MB", fraction * 100.0);
            if ended.recv_timeout(REDRAW) != Err(mpsc::RecvTimeoutError::Timeout) {
                break;
            }
        }
        let _ = write!(io::stderr(), "\r\x1b[K");
    };
    threads::with("progress", draw, move || {
        let result = work();
        drop(done);
        result
    })
}
