//! `tilefs info`: describes an array, without mounting it.

use std::path::PathBuf;

use clap::Args;
use tilefs_threads as threads;
use tilefs_tree::group::outline::{outline, outline_of_directory};
use tilefs_tree::objects::directory::directory_json;
use tilefs_tree::{self as tree, Stored};
use tilefs_vfs::Node;

use crate::cli::failure::Failure;
use crate::cli::options::{NamedSlices, Opening};
use crate::cli::{array, output, printable};

/// Describe an array, a group, or a folder of these: shape, types, filters
#[derive(Debug, Args)]
pub struct Info {
    /// The folder of the array or group, or a folder of these
    array: PathBuf,

    /// Print it as JSON
    #[arg(long, conflicts_with = "slice")]
    json: bool,

    /// Explain this selection, or why it selects nothing; for positions, give islice/SELECTION
    #[arg(long, value_name = "SELECTION")]
    slice: Option<String>,

    /// For a group, list members only this many levels deep; those on the last level are not opened
    #[arg(long, value_name = "LEVELS", conflicts_with_all = ["json", "slice"])]
    depth: Option<usize>,

    #[command(flatten)]
    opening: Opening,
}

impl Info {
    pub fn run(&self) -> Result<(), Failure> {
        self.opening.logging.start();
        let options = self.opening.options(&NamedSlices::default())?;
        threads::start_team(options.reading.threads);
        if let Some(selection) = &self.slice {
            return output::print(&printable::lines(&array::explain_slice(&self.array, &options, selection)?));
        }
        let stored = array::open_stored(&self.array, &options)?;
        let name = match (&stored, self.json) {
            (Stored::Array(_), false) => "schema.txt",
            (Stored::Array(_), true) => "schema.json",
            (Stored::Group(group), false) => {
                let mut print = |line: &str| output::print(&format!("{}\n", printable::line(line)));
                return outline(group, &options, self.depth, &mut print);
            }
            (Stored::Group(_), true) => ".group/group.json",
            (Stored::Directory(directory), false) => {
                let mut print = |line: &str| output::print(&format!("{}\n", printable::line(line)));
                return outline_of_directory(directory, &options, self.depth, &mut print);
            }
            (Stored::Directory(directory), true) => {
                return output::print(&printable::json(&directory_json(directory)?));
            }
        };
        let root = tree::root(stored, &options)?;
        match array::find(&root, name)? {
            Node::File(file) => {
                let content = file.open()?;
                let mut bytes = vec![0; content.len() as usize];
                content.read_at(0, &mut bytes)?;
                let text = String::from_utf8_lossy(&bytes);
                output::print(&if self.json { printable::json(&text) } else { printable::lines(&text) })
            }
            Node::Folder(_) => Err(Failure::failed(format!("{name} is a folder here"))),
        }
    }
}
