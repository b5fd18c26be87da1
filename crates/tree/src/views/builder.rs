//! Builds a folder together with the list of its files for README.txt and schema.json.

use std::iter;
use std::sync::Arc;
use std::time::SystemTime;

use crate::fields::FieldFolder;
use crate::node::lazy::{FixedFolder, LazyFile};
use crate::node::listing::Listing;
use crate::node::shown::ShownViews;
use crate::node::{File as _, Folder, Node};
use crate::views::field_files::{FieldFiles, Fields};
use crate::views::files::{FileFacts, Files};
use crate::views::parts::PartsFolder;
use crate::views::view::View;

/// A folder under construction.
pub struct FolderBuilder {
    pub folder: FixedFolder,
    place: FolderPlace,
    notes: Vec<Note>,
}

/// What the files of a folder have in common.
#[derive(Clone)]
pub struct FolderPlace {
    modified: SystemTime,
    /// The path of the folder within that of the description, with a final slash; empty for the latter itself.
    prefix: String,
    /// Whether `ls` shows the folder.
    is_listed: bool,
    /// Optional views that are listed.
    shown: ShownViews,
}

/// What the texts that describe a folder say about it.
#[derive(Clone)]
pub enum Note {
    File(FileFacts),
    /// A file that a reader may look for but that does not exist, or what it lacks.
    Absent {
        path: String,
        reason: String,
    },
    Fields(Arc<FieldFiles>),
}

/// The files that a [`FolderBuilder`] has collected.
#[derive(Clone, Default)]
pub struct FileList {
    notes: Vec<Note>,
}

impl FileList {
    /// Returns the files, and the paths that do not exist, with the reasons. Describes the files of all fields.
    pub fn describe(&self) -> (Files, Vec<(String, String)>) {
        let (mut files, mut absent) = (Vec::new(), Vec::new());
        for note in self.notes.iter().cloned().flat_map(Note::each) {
            match note {
                Note::File(facts) => files.push(facts),
                Note::Absent { path, reason } => absent.push((path, reason)),
                Note::Fields(_) => {}
            }
        }
        (Files::new(files), absent)
    }
}

impl Note {
    /// Returns the notes of single files.
    fn each(self) -> Box<dyn Iterator<Item = Note>> {
        match self {
            Note::Fields(files) => Box::new(files.notes()),
            one => Box::new(iter::once(one)),
        }
    }

    /// Returns the first reason for the absence of a file, with its path.
    fn first_reason(&self) -> Option<(String, String)> {
        self.clone().each().find_map(|note| match note {
            Note::Absent { path, reason } => Some((path, reason)),
            Note::File(_) | Note::Fields(_) => None,
        })
    }
}

impl FolderBuilder {
    pub fn new(modified: SystemTime) -> Self {
        Self::at(FolderPlace { modified, prefix: String::new(), is_listed: true, shown: ShownViews::NONE })
    }

    /// Creates a builder of some of the files in a folder.
    pub fn at(place: FolderPlace) -> Self {
        FolderBuilder { folder: FixedFolder::new(place.modified), place, notes: Vec::new() }
    }

    /// Also lists these views.
    pub fn showing(mut self, shown: ShownViews) -> Self {
        self.place.shown = shown;
        self
    }

    pub fn into_notes(self) -> Vec<Note> {
        self.notes
    }

    /// Adds a listed file. `field` is the user's name of its attribute or dimension.
    pub fn add(&mut self, name: impl Into<String>, view: &'static View, field: Option<&str>, file: LazyFile) {
        self.add_with(name, view, field, file, Listing::Always);
    }

    /// Adds a file that is unlisted unless its view is shown.
    pub fn add_unlisted(&mut self, name: impl Into<String>, view: &'static View, field: Option<&str>, file: LazyFile) {
        let listing = if view.is_shown(&self.place.shown) { Listing::Always } else { Listing::Never };
        self.add_with(name, view, field, file, listing);
    }

    /// Adds a file with the given listing.
    pub fn add_with(
        &mut self,
        name: impl Into<String>,
        view: &'static View,
        field: Option<&str>,
        file: LazyFile,
        listing: Listing,
    ) {
        let name = name.into();
        self.notes.push(Note::File(FileFacts {
            path: format!("{}{name}", self.place.prefix),
            view,
            field: field.map(str::to_owned),
            bytes: file.known_len(),
            listing: listing.clone(),
            is_folder_listed: self.place.is_listed,
        }));
        self.folder.add_with(name, Node::File(Arc::new(file)), listing);
    }

    /// Records why there is no file of this name, or what it lacks.
    pub fn leave_out(&mut self, name: &str, reason: impl ToString) {
        let reason = reason.to_string();
        self.folder.explain_absence(name, &reason);
        self.notes.push(Note::Absent { path: format!("{}{name}", self.place.prefix), reason });
    }

    /// Adds the files of `views` for attributes, dimensions, or both. They are made when they are looked up.
    pub fn add_fields(&mut self, fields: &FieldFolder, of: Fields, views: impl Iterator<Item = &'static View>) {
        let files = Arc::new(FieldFiles::new(fields, of, views, self.place.clone()));
        self.notes.push(Note::Fields(files.clone()));
        if !files.is_empty() {
            self.folder.add_all(files);
        }
    }

    /// Adds a folder of files, unless it would be empty. The reason why it is empty is then that of its first file.
    pub fn add_folder(&mut self, name: &str, listed: bool, build: impl FnOnce(&mut FolderBuilder)) {
        let mut inner = FolderBuilder::at(FolderPlace {
            prefix: format!("{}{name}/", self.place.prefix),
            is_listed: self.place.is_listed && listed,
            ..self.place.clone()
        });
        build(&mut inner);
        if inner.folder.is_empty() {
            if let Some((path, reason)) = inner.notes.iter().find_map(Note::first_reason) {
                self.folder.explain_absence(name, &format!("{path}: {reason}"));
            }
        } else if listed {
            self.folder.add_folder(name, inner.folder);
        } else {
            self.folder.add_unlisted(name, Node::Folder(Arc::new(inner.folder)));
        }
        self.notes.append(&mut inner.notes);
    }

    /// Adds a folder that is unlisted unless its view is shown, and that is one entry in the list: its file `main`.
    pub fn add_unlisted_whole(&mut self, name: &str, main: &str, view: &'static View, folder: Arc<dyn Folder>) {
        let listing = if view.is_shown(&self.place.shown) { Listing::Always } else { Listing::Never };
        self.notes.push(Note::File(FileFacts {
            path: format!("{}{name}/{main}", self.place.prefix),
            view,
            field: None,
            bytes: None,
            listing: listing.clone(),
            is_folder_listed: self.place.is_listed,
        }));
        self.folder.add_with(name, Node::Folder(folder), listing);
    }

    /// Adds a folder of the parts of a table. It is listed if there are several parts, but not very many. The parts are
    /// not in the list of files, because the whole table is.
    pub fn add_parts(&mut self, name: &str, parts: PartsFolder) {
        let listing = parts.listing();
        self.folder.add_with(name, Node::Folder(Arc::new(parts)), listing);
    }

    /// Returns the list of the files added so far.
    pub fn file_list(&self) -> FileList {
        FileList { notes: self.notes.clone() }
    }
}
