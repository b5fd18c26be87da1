//! The facts of a view: the names of its files, the programs that open the files, and when `ls` lists them. The code that
//! makes the files is in [`View`](super::view::View). Each file of a folder, and each text about it, refers to these facts.

use std::{fmt, ptr};

use tilefs_vfs::node::listing::Listing;

use crate::shown::ShownViews;

/// The media type of bytes that no browser shows or runs.
pub const BYTES: &str = "application/octet-stream";

/// The media type of plain text.
pub const TEXT: &str = "text/plain; charset=utf-8";

/// The names of a view's files, the programs that open them, and when they are listed.
pub struct ViewFacts {
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
    pub job: Option<ReadmeTask>,
    /// Whether a file holds the values of all cells, so that copying two such files copies the values twice.
    pub holds_values: bool,
    pub shown: Shown,
    /// The command on the page of a server that uses it.
    pub web: Option<WebCommand>,
}

/// A task, and its place among those of README.txt.
#[derive(Debug, Clone, Copy)]
pub struct ReadmeTask {
    pub place: u8,
    pub task: &'static str,
}

/// When `ls` shows the files of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    Always,
    /// Unless another view of the same values is listed, of a group around the array or the one that the array is stored
    /// for; then with this word of `--show`.
    Alone(&'static str),
    /// With this word of `--show`, and for arrays that are stored for it.
    With(&'static str),
    /// Only with all views.
    WithAll,
    /// Never: a second table of the same rows.
    Never,
}

/// A command that reads the first file of a view over HTTP, and its place on the page.
pub struct WebCommand {
    pub place: u8,
    pub about: &'static str,
    /// Writes the command for the URL of the file.
    pub write: fn(&str) -> String,
}

impl ViewFacts {
    /// A view without any of the optional properties.
    pub const PLAIN: ViewFacts = ViewFacts {
        name: "",
        folder: "",
        files: &[],
        media_type: BYTES,
        reader: "",
        lacks: "",
        job: None,
        holds_values: false,
        shown: Shown::Always,
        web: None,
    };

    /// Returns whether `ls` shows the view's files because of a set.
    pub fn listing(&self, shown: &ShownViews) -> Listing {
        let has_word = match self.shown {
            Shown::Always => true,
            Shown::Alone(word) | Shown::With(word) => shown.has(word),
            Shown::WithAll => shown.are_all(),
            Shown::Never => false,
        };
        match self.shown {
            _ if has_word => Listing::Always,
            Shown::Alone(_) => shown.unless_values_are_listed(),
            Shown::With(word) => shown.if_own_view(word),
            _ => Listing::Never,
        }
    }

    /// Returns whether `ls` shows the view's files now because of a set.
    pub fn is_shown(&self, shown: &ShownViews) -> bool {
        self.listing(shown).is_listed()
    }
}

impl fmt::Debug for ViewFacts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

/// Each view is one static item.
impl PartialEq for ViewFacts {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self, other)
    }
}

impl ReadmeTask {
    pub const fn new(place: u8, task: &'static str) -> Self {
        ReadmeTask { place, task }
    }
}
