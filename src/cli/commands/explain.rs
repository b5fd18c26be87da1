//! `tilefs explain`: tells where a value comes from, and why others are not shown.

use std::path::PathBuf;

use clap::Args;
use tilefs_threads as threads;
use tilefs_tree::array::explanation::AskedPart;

use crate::cli::failure::Failure;
use crate::cli::options::{NamedSlices, Opening};
use crate::cli::{array, explained, output, printable};

const EXAMPLES: &str = "\
Examples:
  tilefs explain dem.tdb slice/42,17/elevation.f32
  tilefs explain dem.tdb elevation.f32 --byte 16828
  tilefs explain genes.tdb text/cells.tsv --row 3
  tilefs explain genes.tdb slice/gene=BRCA1 --at 2024-01-31";

/// Explain where a value comes from: its fragment, tile and bytes, and why other cells there are not shown
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Explain {
    /// The folder of the array or group
    array: PathBuf,

    /// A file or a folder, as shown by `tilefs ls`; the folder of the array if not given
    #[arg(value_name = "PATH", default_value = "")]
    path: String,

    /// Explain this cell of the file or folder, counted from 0: the row of a sparse array, or the cell in row-major order
    #[arg(long, value_name = "N", conflicts_with = "byte")]
    row: Option<u64>,

    /// Explain the cell that this byte of the file is of
    #[arg(long, value_name = "OFFSET")]
    byte: Option<u64>,

    /// Print it as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    slices: NamedSlices,

    #[command(flatten)]
    opening: Opening,
}

impl Explain {
    pub fn run(&self) -> Result<(), Failure> {
        self.opening.logging.start();
        output::check()?;
        let options = self.opening.options(&self.slices)?;
        threads::start_team(options.reading.threads);
        let root = array::open(&self.array, &options)?;
        let asked = match (self.row, self.byte) {
            (Some(row), _) => AskedPart::Cell(row),
            (None, Some(byte)) => AskedPart::Byte(byte),
            (None, None) => AskedPart::Whole,
        };
        let (origins, rest) = array::find_origins(&root, &self.path)?;
        let explanation = origins.explain(&rest, asked).map_err(|error| Failure::from(error).about(&self.path))?;
        match self.json {
            true => output::print(&printable::json(&format!("{:#}\n", explained::json::of(&self.path, &explanation)))),
            false => output::print(&printable::lines(&explained::text::of(&self.path, &explanation))),
        }
    }
}
