//! Builds a folder and at the same time the list of its files that README.txt and schema.json show.

use std::sync::Arc;
use std::time::SystemTime;

use super::lazy::{FixedFolder, LazyFile};
use super::listing::Listing;
use super::node::{Folder, Node};
use super::parts::PartsFolder;
use super::shown::ShownViews;
use super::texts::{FileFacts, Files, Format};

/// A folder in the making.
pub struct FolderBuilder {
    pub folder: FixedFolder,
    modified: SystemTime,
    /// Of the folder within that of the description, with a slash behind it; empty for that itself.
    prefix: String,
    /// Whether `ls` shows the folder.
    listed: bool,
    /// Views that it shows beside those that it always does.
    shown: ShownViews,
    facts: Vec<FileFacts>,
    /// Files that one may look for in vain, and why they are not there.
    not_listed: Vec<(String, String)>,
}

/// What [`FolderBuilder`] has collected.
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

    /// The same, where `ls` also shows these views.
    pub fn showing(mut self, shown: ShownViews) -> Self {
        self.shown = shown;
        self
    }

    /// Adds a file that `ls` shows. `field` is the attribute or dimension it is of, as the user named it.
    pub fn add(&mut self, name: impl Into<String>, format: Format, field: Option<&str>, file: LazyFile) {
        self.add_with(name, format, field, file, Listing::Always);
    }

    /// Adds a file that is found by its name alone, unless its view is shown.
    pub fn add_unlisted(&mut self, name: impl Into<String>, format: Format, field: Option<&str>, file: LazyFile) {
        let listing = if self.shown.has_format(format) { Listing::Always } else { Listing::Never };
        self.add_with(name, format, field, file, listing);
    }

    /// Adds a file that `ls` shows or not.
    pub fn add_with(
        &mut self,
        name: impl Into<String>,
        format: Format,
        field: Option<&str>,
        file: LazyFile,
        listing: Listing,
    ) {
        let name = name.into();
        self.facts.push(FileFacts {
            path: format!("{}{name}", self.prefix),
            format,
            field: field.map(str::to_owned),
            bytes: file.known_length(),
            listing: listing.clone(),
            is_folder_listed: self.listed,
        });
        self.folder.add_with(name, Node::File(Arc::new(file)), listing);
    }

    /// Says why there is no file of this name.
    pub fn leave_out(&mut self, name: &str, reason: impl ToString) {
        self.not_listed.push((format!("{}{name}", self.prefix), reason.to_string()));
    }

    /// Adds a folder of files, unless there are none.
    pub fn add_folder(&mut self, name: &str, listed: bool, build: impl FnOnce(&mut FolderBuilder)) {
        let mut inner = FolderBuilder::new(self.modified);
        inner.prefix = format!("{}{name}/", self.prefix);
        inner.listed = self.listed && listed;
        inner.shown = self.shown;
        build(&mut inner);
        self.facts.append(&mut inner.facts);
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

    /// Adds a folder that is found by its name alone, unless the view is shown, and all of which is one thing in the list: its file `main`.
    pub fn add_unlisted_whole(&mut self, name: &str, main: &str, format: Format, folder: Arc<dyn Folder>) {
        let listing = if self.shown.has_format(format) { Listing::Always } else { Listing::Never };
        self.facts.push(FileFacts {
            path: format!("{}{name}/{main}", self.prefix),
            format,
            field: None,
            bytes: None,
            listing: listing.clone(),
            is_folder_listed: self.listed,
        });
        self.folder.add_with(name, Node::Folder(folder), listing);
    }

    /// Adds a folder of the parts of a table, which `ls` shows where there are several and not very many. They are no
    /// files of the list: all of them are there once more, in one.
    pub fn add_parts(&mut self, name: &str, parts: PartsFolder) {
        let listing = parts.listing();
        self.folder.add_with(name, Node::Folder(Arc::new(parts)), listing);
    }

    /// The list of the files so far.
    pub fn file_list(&self) -> FileList {
        FileList { files: Arc::new(Files::new(self.facts.clone())), not_listed: Arc::new(self.not_listed.clone()) }
    }
}
