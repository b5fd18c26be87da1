//! `tilefs ls`: lists the names in the tree, without mounting it.

use std::collections::HashSet;
use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use tilefs_reader::array::sparse::RowCount;
use tilefs_threads as threads;
use tilefs_tree as tree;
use tilefs_tree::objects::walk::joined;
use tilefs_tree::wording::size::{dense_text, sparse_text};
use tilefs_vfs::{EntryKind, Folder, Node};

use crate::cli::failure::{Failure, complain};
use crate::cli::options::TreeArguments;
use crate::cli::{array, output, printable};

const EXAMPLES: &str = "\
Examples:
  tilefs ls dem.tdb
  tilefs ls -l dem.tdb slice/0..99,0..99
  tilefs ls -a dem.tdb .history";

/// List files and folders, without mounting
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Ls {
    /// The folder of the array or group
    array: PathBuf,

    /// A folder or file in it; the root if not given
    #[arg(default_value = "", hide_default_value = true)]
    path: String,

    /// One line each: mode, size in bytes, time (UTC) and name
    #[arg(short = 'l')]
    long: bool,

    /// Also list nested folders
    #[arg(short = 'R')]
    recursive: bool,

    /// Also list names that start with a dot
    #[arg(short = 'a')]
    all: bool,

    #[command(flatten)]
    tree: TreeArguments,
}

/// A listing in progress, with errors about folders that could not be listed and files without a size.
struct TreeListing<'a> {
    command: &'a Ls,
    /// Whether the output is a terminal.
    is_for_people: bool,
    /// The groups that were listed.
    visited: HashSet<Arc<[u8]>>,
    has_errors: bool,
}

impl Ls {
    pub fn run(&self) -> Result<(), Failure> {
        self.tree.start_log();
        let options = self.tree.options()?;
        threads::start_team(options.reading.threads);
        let root = array::open(&self.array, &options)?;
        let (is_for_people, visited) = (io::stdout().is_terminal(), HashSet::new());
        let mut listing = TreeListing { command: self, is_for_people, visited, has_errors: false };
        let shown = match array::find(&root, &self.path)? {
            Node::Folder(folder) => listing.folder(&folder, self.path.trim_matches('/')),
            file @ Node::File(_) => {
                let line = listing.line(&self.path, Some(&file));
                output::print(&line)
            }
        };
        match shown {
            Ok(()) if listing.has_errors => Err(Failure::failed("")),
            Err(failure) if failure.status == 0 => Ok(()),
            shown => shown,
        }
    }
}

impl TreeListing<'_> {
    fn folder(&mut self, folder: &Arc<dyn Folder>, path: &str) -> Result<(), Failure> {
        let entries = match folder.list() {
            Ok(entries) => entries,
            Err(error) => {
                self.complain(path, &error.to_string());
                return Ok(());
            }
        };
        if self.command.recursive {
            // A group may have many names, and groups in it, too.
            if folder.place().is_some_and(|place| !self.visited.insert(place)) {
                complain(&format!("{path}: not listed again, the same group is above under another name"));
                return Ok(());
            }
            output::print(&format!("{}:\n", if path.is_empty() { ".".into() } else { printable::line(path) }))?;
        }
        let mut within = Vec::new();
        for entry in entries {
            if entry.name.starts_with('.') && !self.command.all {
                continue;
            }
            let is_folder = entry.kind == EntryKind::Folder;
            let node = if self.command.long || (self.command.recursive && is_folder) {
                match folder.lookup(&entry.name) {
                    Ok(Some(node)) => Some(node),
                    Ok(None) => None,
                    Err(error) => {
                        self.complain(&joined(path, &entry.name), &error.to_string());
                        None
                    }
                }
            } else {
                None
            };
            let line = self.line(&entry.name, node.as_ref());
            output::print(&line)?;
            if let (Some(Node::Folder(folder)), true) = (node, self.command.recursive) {
                within.push((folder, joined(path, &entry.name)));
            }
        }
        for (folder, path) in within {
            output::print("\n")?;
            self.folder(&folder, &path)?;
        }
        Ok(())
    }

    /// Returns the line of one name.
    fn line(&mut self, name: &str, node: Option<&Node>) -> String {
        let mut line = String::new();
        if self.command.long {
            let (mode, size, time) = match node {
                Some(Node::Folder(folder)) => ("dr-xr-xr-x", "0".to_owned(), format_time(folder.modified())),
                Some(Node::File(file)) => {
                    let size = file.len().map_or_else(
                        |error| {
                            self.complain(name, &error.to_string());
                            "?".to_owned()
                        },
                        |size| size.to_string(),
                    );
                    ("-r--r--r--", size, format_time(file.modified()))
                }
                None => ("?---------", "?".to_owned(), "?".to_owned()),
            };
            // Writing to a string cannot fail.
            let _ = write!(line, "{mode} {size:>14} {time:<20} ");
        }
        line.push_str(&printable::line(name));
        // Programs expect only names.
        if let (Some(Node::Folder(folder)), true) = (node, self.command.recursive && self.is_for_people) {
            line.push_str(&printable::line(&shape(&**folder)));
        }
        line.push('\n');
        line
    }

    fn complain(&mut self, path: &str, error: &str) {
        complain(&format!("{path}: {error}"));
        self.has_errors = true;
    }
}

/// Returns the text after the name of an array or a group: ` dense 100 x 200`, ` sparse 2638 rows`; empty for other
/// folders.
fn shape(folder: &dyn Folder) -> String {
    // Listing a member of a group opens it, which determines its kind. The recursion lists it anyway, and reports
    // errors.
    let _ = folder.list();
    let attributes = folder.extended_attributes();
    let value = |name: &str| {
        let found = attributes.iter().find(|(known, _)| known.strip_prefix("user.tiledb.") == Some(name));
        found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
    };
    match (value("object").as_deref(), value("array_type"), value("members")) {
        (Some("array"), Some(kind), _) => {
            let rows = |name: &str| value(name).and_then(|rows| rows.parse().ok());
            let text = match (kind.as_str(), value("shape")) {
                ("sparse", _) => {
                    rows("shape").map(RowCount::Exactly).or(rows("rows_at_most").map(RowCount::AtMost)).map(sparse_text)
                }
                (_, shape) => shape.map(|shape| dense_text(shape.split(','))),
            };
            format!("  {}", text.unwrap_or(kind))
        }
        (Some("group"), _, Some(members)) => format!("  group of {members}"),
        _ => String::new(),
    }
}

/// Formats a time to the second: `2024-01-31T10:15:00Z`.
fn format_time(time: SystemTime) -> String {
    let milliseconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    let text = tree::select::time::extended(milliseconds);
    match text.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => text,
    }
}
