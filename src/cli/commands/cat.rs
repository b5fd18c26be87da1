//! `tilefs cat`: prints the bytes of files in the tree, without mounting it.

use std::path::PathBuf;

use clap::Args;
use tilefs_threads as threads;
use tilefs_vfs::Node;
use tilefs_vfs::read_ahead::ReadAhead;

use crate::cli::failure::{Failure, complain};
use crate::cli::options::{NamedSlices, Opening};
use crate::cli::{array, output};

/// A longer file in an object store is prefetched as a whole from the start.
const LARGE: u64 = 1 << 20;

const EXAMPLES: &str = "\
Examples:
  tilefs cat dem.tdb elevation.f32 > elevation.f32
  tilefs cat dem.tdb slice/0..99,0..99/elevation.f32 | od -A d -t f4 | head";

/// Print the bytes of files, without mounting
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Cat {
    /// The folder of the array or group
    array: PathBuf,

    /// Files, as shown by `tilefs ls`
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<String>,

    #[command(flatten)]
    slices: NamedSlices,

    #[command(flatten)]
    opening: Opening,
}

impl Cat {
    pub fn run(&self) -> Result<(), Failure> {
        self.opening.logging.start();
        output::check()?;
        let options = self.opening.options(&self.slices)?;
        threads::start_team(options.reading.threads);
        let root = array::open(&self.array, &options)?;
        let workers = array::read_ahead_workers(&self.array, &options);
        let read_ahead = ReadAhead::new(workers, array::read_ahead_window(&self.array, &options));
        let mut result = Ok(());
        for path in &self.paths {
            let copied = array::find(&root, path)
                .and_then(|node| self.copy(path, node, &read_ahead).map_err(|failure| failure.about(path)));
            match copied {
                Ok(()) => {}
                // The reader has closed the pipe.
                Err(failure) if failure.status == 0 => return Ok(()),
                Err(failure) => {
                    complain(&failure.message);
                    // The status is that of the first failure.
                    result = result.and(Err(failure.without_message()));
                }
            }
        }
        result
    }

    fn copy(&self, path: &str, node: Node, read_ahead: &ReadAhead) -> Result<(), Failure> {
        let Node::File(file) = node else { return Err(Failure::failed("this is a folder; see `tilefs ls`")) };
        match file.forward()? {
            Some(forward) => output::copy_forward(forward)?,
            None => {
                let reader = read_ahead.open(file.open()?);
                // Sequential requests would take too long until a pattern is detected.
                if array::is_remote(&self.array) && reader.content().len() > LARGE {
                    read_ahead.note_all(&reader);
                }
                output::copy(&reader, read_ahead)?;
            }
        }
        if let Some(remark) = file.remark() {
            complain(&format!("{path}: {remark}"));
        }
        Ok(())
    }
}
