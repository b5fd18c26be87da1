//! Builds a folder together with the list of its files for README.txt and schema.json.

use std::sync::Arc;
use std::time::SystemTime;

use crate::node::lazy::{FixedFolder, LazyFile};
use crate::node::listing::Listing;
use crate::node::shown::ShownViews;
use crate::node::{File as _, Folder, Node};
use crate::views::files::{FileFacts, Files};
use crate::views::parts::PartsFolder;
use crate::views::view::View;

/// A folder under construction.
pub struct FolderBuilder {
    pub folder: FixedFolder,
    modified: SystemTime,
    /// The path of this folder within that of the description, with a final slash; empty for the latter itself.
    prefix: String,
    /// Whether `ls` shows the folder.
    listed: bool,
    /// Optional views that are listed.
    shown: ShownViews,
    facts: Vec<FileFacts>,
    /// Files that a reader may look for but that do not exist, with the reasons.
    not_listed: Vec<(String, String)>,
}

/// The lists that a [`FolderBuilder`] has collected.
#[derive(Debug, Clone, Default)]
pub struct FileList {
    pub files: Arc<Files>,
    pub not_listed: Arc<Vec<(String, String)>>,
}

impl FolderBuilder {
    pub fn new(modified: SystemTime) -> Self {
        FolderBuilder {
            folder: FixedFolder::new(modified),
            modified,
            prefix: String::new(),
            listed: true,
            shown: ShownViews::NONE,
            facts: Vec::new(),
            not_listed: Vec::new(),
        }
    }

    /// Also lists these views.
    pub fn showing(mut self, shown: ShownViews) -> Self {
        self.shown = shown;
        self
    }

    /// Adds a listed file. `field` is the user's name of its attribute or dimension.
    pub fn add(&mut self, name: impl Into<String>, view: &'static View, field: Option<&str>, file: LazyFile) {
        self.add_with(name, view, field, file, Listing::Always);
    }

    /// Adds a file that is unlisted unless its view is shown.
    pub fn add_unlisted(&mut self, name: impl Into<String>, view: &'static View, field: Option<&str>, file: LazyFile) {
        let listing = if view.is_shown(&self.shown) { Listing::Always } else { Listing::Never };
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
        self.facts.push(FileFacts {
            path: format!("{}{name}", self.prefix),
            view,
            field: field.map(str::to_owned),
            bytes: file.known_len(),
            listing: listing.clone(),
            is_folder_listed: self.listed,
        });
        self.folder.add_with(name, Node::File(Arc::new(file)), listing);
    }

    /// Records why there is no file of this name, or what it lacks.
    pub fn leave_out(&mut self, name: &str, reason: impl ToString) {
        let reason = reason.to_string();
        self.folder.explain_absence(name, &reason);
        self.not_listed.push((format!("{}{name}", self.prefix), reason));
    }

    /// Adds a folder of files, unless it would be empty. The reason why it is empty is then that of its first file.
    pub fn add_folder(&mut self, name: &str, listed: bool, build: impl FnOnce(&mut FolderBuilder)) {
        let mut inner = FolderBuilder::new(self.modified);
        inner.prefix = format!("{}{name}/", self.prefix);
        inner.listed = self.listed && listed;
        inner.shown = self.shown.clone();
        build(&mut inner);
        self.facts.append(&mut inner.facts);
        if inner.folder.is_empty()
            && let Some((path, reason)) = inner.not_listed.first()
        {
            self.folder.explain_absence(name, &format!("{path}: {reason}"));
        }
        self.not_listed.append(&mut inner.not_listed);
        if inner.folder.is_empty() {
            return;
        }
        let node = Node::Folder(Arc::new(inner.folder));
        if listed {
            self.folder.add(name, node);
        } else {
            self.folder.add_unlisted(name, node);
        }
    }

    /// Adds a folder that is unlisted unless its view is shown, and that is one entry in the list: its file `main`.
    pub fn add_unlisted_whole(&mut self, name: &str, main: &str, view: &'static View, folder: Arc<dyn Folder>) {
        let listing = if view.is_shown(&self.shown) { Listing::Always } else { Listing::Never };
        self.facts.push(FileFacts {
            path: format!("{}{name}/{main}", self.prefix),
            view,
            field: None,
            bytes: None,
            listing: listing.clone(),
            is_folder_listed: self.listed,
        });
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
        FileList { files: Arc::new(Files::new(self.facts.clone())), not_listed: Arc::new(self.not_listed.clone()) }
    }
}
