//! A view: one form in which an array can be read.

use std::{fmt, ptr};

use crate::fields::FieldFolder;
use crate::node::lazy::LazyFile;
use crate::node::listing::Sizing;
use crate::node::shown::ShownViews;
use crate::views::builder::FilesOfField;
use crate::views::builder::FolderBuilder;
use crate::views::commands::{Command, FileFinder};

/// The media type of bytes that no browser shows or runs.
pub const BYTES: &str = "application/octet-stream";

/// The media type of plain text.
pub const TEXT: &str = "text/plain; charset=utf-8";

/// A form in which an array can be read: the names of its files, the programs that open them, and how they are made.
pub struct View {
    /// Its name in schema.json.
    pub name: &'static str,
    /// The folder of its files; empty for files beside those of an attribute.
    pub folder: &'static str,
    /// The names of its files; `NAME` and `EXT` stand for the name and the type of an attribute or a dimension.
    pub files: &'static [&'static str],
    pub media_type: &'static str,
    /// The content of its files, and the programs that read them.
    pub reader: &'static str,
    /// The data that the view's files cannot hold, in words for the manual.
    pub lacks: &'static str,
    /// The task that README.txt recommends the view for, if any.
    pub job: Option<Job>,
    /// Whether a file holds the values of all cells, so that copying two such files copies the values twice.
    pub holds_values: bool,
    pub shown: Shown,
    /// Returns the reason why an array has no such view, if all of its attributes lack it.
    pub fits: fn(&FieldFolder) -> Result<(), String>,
    /// Adds its files.
    pub add: Add,
    /// The same table in parts.
    pub parts: &'static [Parts],
    /// The commands of README.txt that use it.
    pub commands: &'static [(Task, WriteCommand)],
    /// The command on the page of a server that uses it.
    pub web: Option<WebCommand>,
}

/// Makes a command for the first of the files that fit.
pub type WriteCommand = fn(&FileFinder<'_>) -> Option<Command>;

/// A task, and its place among those of README.txt.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    pub place: u8,
    pub task: &'static str,
}

/// When `ls` shows the files of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    Always,
    /// With this word of `--show`.
    With(&'static str),
    /// Only with all views.
    WithAll,
    /// Never: a second table of the same rows.
    Never,
}

/// How the files of a view are added to a folder.
pub enum Add {
    /// To the folder of the view, for each attribute and each dimension.
    OfFields(fn(&mut FilesOfField<'_>)),
    /// To the folder of the view, once.
    OfArray(fn(&mut FolderBuilder, &FieldFolder)),
    /// To the folder of the array, once: the view is a folder itself. The argument tells whether the array is a slice.
    Whole(fn(&mut FolderBuilder, &FieldFolder, bool)),
    /// With other files that describe the array.
    Elsewhere,
}

/// A folder of the parts of a table, one for all views of a folder.
pub struct Parts {
    pub folder: &'static str,
    /// What the folder contains; `ENDINGS` stands for the endings of its files.
    pub about: &'static str,
    pub ending: &'static str,
    /// The data on which the size of a part depends.
    pub sizing: fn(&FieldFolder) -> Sizing,
    /// Makes the file of the rows of one part.
    pub make: fn(&FieldFolder) -> LazyFile,
}

/// The tasks of the commands in README.txt, in their order there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    FirstValues,
    FirstLines,
    FirstRows,
    Frame,
    Query,
    Matrix,
    Labels,
    Mean,
    Memory,
    R,
    Raster,
    Dataset,
    Chunks,
}

/// A command that reads the first file of a view over HTTP, and its place on the page.
pub struct WebCommand {
    pub place: u8,
    pub about: &'static str,
    /// Writes the command for the URL of the file.
    pub write: fn(&str) -> String,
}

impl View {
    /// A view without any of the optional properties.
    pub const PLAIN: View = View {
        name: "",
        folder: "",
        files: &[],
        media_type: BYTES,
        reader: "",
        lacks: "",
        job: None,
        holds_values: false,
        shown: Shown::Always,
        fits: |_| Ok(()),
        add: Add::Elsewhere,
        parts: &[],
        commands: &[],
        web: None,
    };

    /// Declares its files of an attribute or a dimension, if it has any.
    pub fn declare_of_field(&self, files: &mut FilesOfField<'_>) {
        if let Add::OfFields(declare) = self.add {
            declare(files);
        }
    }

    /// Returns whether `ls` shows its files because of a set.
    pub fn is_shown(&self, shown: &ShownViews) -> bool {
        match self.shown {
            Shown::Always => true,
            Shown::With(word) => shown.has(word),
            Shown::WithAll => shown.are_all(),
            Shown::Never => false,
        }
    }
}

impl fmt::Debug for View {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

/// Each view is one static item.
impl PartialEq for View {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self, other)
    }
}

impl Job {
    pub const fn new(place: u8, task: &'static str) -> Self {
        Job { place, task }
    }
}

/// Returns the reason if an array is sparse: its cells are rows, and not places along several axes.
pub fn only_dense(fields: &FieldFolder) -> Result<(), String> {
    match fields.schema().is_sparse() {
        true => Err("only dense arrays have it; the cells of this one are rows of tables".to_owned()),
        false => Ok(()),
    }
}
