//! A view: one form in which an array can be read.

use tilefs_vfs::node::lazy::LazyFile;

use crate::fields::FieldFolder;
use crate::sizing::Sizing;
use crate::views::builder::{DeclareFiles, FolderBuilder};
use crate::views::commands::{Command, FileFinder};
use crate::views::facts::ViewFacts;

/// A form in which an array can be read: what is known of its files, and how they are made.
pub struct View {
    pub facts: ViewFacts,
    /// How the bytes of its files of a field belong to cells.
    pub cell_bytes: CellBytes,
    /// Returns the reason why an array has no such view, if all of its attributes lack it.
    pub fits: fn(&FieldFolder) -> Result<(), String>,
    /// Adds its files.
    pub add: Add,
    /// The same table in parts.
    pub parts: &'static [Parts],
    /// The commands of README.txt that use it.
    pub commands: &'static [(CommandTask, WriteCommand)],
}

/// Makes a command for the first of the files that fit.
pub type WriteCommand = fn(&FileFinder<'_>) -> Option<Command>;

/// How the bytes of a view's file of a field belong to cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellBytes {
    /// Values, end to end.
    Values,
    /// An offset for each cell, and one for the end.
    Offsets,
    /// One byte for each cell.
    Validity,
    /// The header of a NumPy file, then values, or one byte for each cell.
    NumPy,
    /// In no such way.
    Derived,
}

/// How the files of a view are added to a folder.
pub enum Add {
    /// To the folder of the view, for each attribute and each dimension.
    OfFields(DeclareFiles),
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
pub enum CommandTask {
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

impl View {
    /// A view without any of the optional properties.
    pub const PLAIN: View = View {
        facts: ViewFacts::PLAIN,
        cell_bytes: CellBytes::Derived,
        fits: |_| Ok(()),
        add: Add::Elsewhere,
        parts: &[],
        commands: &[],
    };

    /// Returns what declares its files of an attribute or a dimension, if it has any.
    pub fn declare_of_field(&self) -> Option<DeclareFiles> {
        match self.add {
            Add::OfFields(declare) => Some(declare),
            Add::OfArray(_) | Add::Whole(_) | Add::Elsewhere => None,
        }
    }
}

/// Returns the reason if an array is sparse: its cells are rows, and not places along several axes.
pub fn only_dense(fields: &FieldFolder) -> Result<(), String> {
    match fields.schema().is_sparse() {
        true => Err("only dense arrays have it; the cells of this one are rows of tables".to_owned()),
        false => Ok(()),
    }
}
