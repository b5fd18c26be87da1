//! Builds a folder together with the list of its files for README.txt and schema.json. The files of a field are made
//! when one of them is looked up, because an array may have very many attributes.

use std::collections::{HashMap, HashSet};
use std::iter;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

use tilefs_format::error::Result;

use crate::cells::FieldId;
use crate::fields::FieldFolder;
use crate::node::lazy::{FixedFolder, LazyFile};
use crate::node::listing::Listing;
use crate::node::shown::ShownViews;
use crate::node::{Entry, File as _, Folder, Node};
use crate::views::files::{FileFacts, Files};
use crate::views::parts::PartsFolder;
use crate::views::view::{Add, View};

/// Maximum number of fields whose names are suggested to those who mistype one.
const MAX_SUGGESTED: usize = 1000;

/// A folder under construction.
pub struct FolderBuilder {
    pub folder: FixedFolder,
    place: FolderPlace,
    notes: Vec<FileNote>,
}

/// The place of a folder's files: its time, its path and the views that it lists.
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

/// A statement of README.txt and schema.json about files of a folder.
#[derive(Clone)]
pub enum FileNote {
    File(FileFacts),
    /// A file that a reader may look for but that does not exist, or what it lacks.
    Absent {
        path: String,
        reason: String,
    },
    Fields(Arc<FilesOfFields>),
}

/// The files that a [`FolderBuilder`] has collected.
#[derive(Clone, Default)]
pub struct FileList {
    notes: Vec<FileNote>,
}

impl FileList {
    /// Returns the files, and the paths that do not exist, with the reasons. Describes the files of all fields.
    pub fn describe(&self) -> (Files, Vec<(String, String)>) {
        let (mut files, mut absent) = (Vec::new(), Vec::new());
        for note in self.notes.iter().cloned().flat_map(FileNote::each) {
            match note {
                FileNote::File(facts) => files.push(facts),
                FileNote::Absent { path, reason } => absent.push((path, reason)),
                FileNote::Fields(_) => {}
            }
        }
        (Files::new(files), absent)
    }
}

impl FileNote {
    /// Returns the notes of single files.
    fn each(self) -> Box<dyn Iterator<Item = FileNote>> {
        match self {
            FileNote::Fields(files) => Box::new(files.notes()),
            one => Box::new(iter::once(one)),
        }
    }

    /// Returns the first reason for the absence of a file, with its path.
    fn first_reason(&self) -> Option<(String, String)> {
        self.clone().each().find_map(|note| match note {
            FileNote::Absent { path, reason } => Some((path, reason)),
            FileNote::File(_) | FileNote::Fields(_) => None,
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

    fn into_notes(self) -> Vec<FileNote> {
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
        self.notes.push(FileNote::File(FileFacts {
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
        self.notes.push(FileNote::Absent { path: format!("{}{name}", self.place.prefix), reason });
    }

    /// Adds the files of `views` for attributes, dimensions, or both. They are made when they are looked up.
    pub fn add_fields(&mut self, fields: &FieldFolder, of: WhichFields, views: impl Iterator<Item = &'static View>) {
        let files = Arc::new(FilesOfFields::new(fields, of, views, self.place.clone()));
        self.notes.push(FileNote::Fields(files.clone()));
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
            if let Some((path, reason)) = inner.notes.iter().find_map(FileNote::first_reason) {
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
        self.notes.push(FileNote::File(FileFacts {
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

/// The fields that have files in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhichFields {
    Attributes,
    Dimensions,
    /// Attributes, then dimensions.
    All,
}

/// The files of fields in one folder. Memory: the files of each field of which one was looked up.
pub struct FilesOfFields {
    fields: FieldFolder,
    of: WhichFields,
    views: Vec<&'static View>,
    place: FolderPlace,
    made: Mutex<HashMap<FieldId, Arc<FixedFolder>>>,
    /// The bytes of all files whose lengths are known before their contents are made.
    bytes: OnceLock<u64>,
}

impl FilesOfFields {
    /// Creates the files of `views` in a folder. Makes none of them.
    pub fn new(
        fields: &FieldFolder,
        of: WhichFields,
        views: impl Iterator<Item = &'static View>,
        place: FolderPlace,
    ) -> Self {
        let views = views.filter(|view| matches!(view.add, Add::OfFields(_))).collect();
        let (made, bytes) = (Mutex::new(HashMap::new()), OnceLock::new());
        FilesOfFields { fields: fields.clone(), of, views, place, made, bytes }
    }

    /// Returns whether no field has a file here. Makes the files of the first fields, until one has any.
    pub fn is_empty(&self) -> bool {
        self.ids().all(|id| self.build(id).folder.is_empty())
    }

    /// Returns what the texts that describe the folder say about the files, field by field.
    pub fn notes(self: &Arc<Self>) -> impl Iterator<Item = FileNote> + use<> {
        let this = self.clone();
        self.ids().flat_map(move |id| this.build(id).into_notes())
    }

    /// Returns the fields in the order of their files.
    fn ids(&self) -> impl Iterator<Item = FieldId> + use<> {
        let attributes = (self.of != WhichFields::Dimensions).then(|| self.fields.attributes());
        let dimensions = (self.of != WhichFields::Attributes).then(|| self.fields.dimensions());
        attributes.into_iter().flatten().chain(dimensions.into_iter().flatten())
    }

    fn build(&self, id: FieldId) -> FolderBuilder {
        let mut builder = FolderBuilder::at(self.place.clone());
        self.views.iter().for_each(|view| view.add_of_field(&mut builder, &self.fields, id));
        builder
    }

    fn made(&self) -> MutexGuard<'_, HashMap<FieldId, Arc<FixedFolder>>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the files of a field, which are kept from now on.
    fn of_field(&self, id: FieldId) -> Arc<FixedFolder> {
        if let Some(made) = self.made().get(&id) {
            return made.clone();
        }
        let made = Arc::new(self.build(id).folder);
        self.made().entry(id).or_insert(made).clone()
    }

    /// Returns the fields that may have a file of this name, which is that of the first that has one.
    fn candidates(&self, name: &str) -> impl Iterator<Item = FieldId> {
        let stems = name.match_indices('.').map(|(end, _)| &name[..end]);
        let found = stems.flat_map(|stem| self.fields.names.called(stem));
        let mut found: Vec<FieldId> = found.filter(|id| self.has(*id)).collect();
        found.sort_by_key(|id| matches!(id, FieldId::Dimension(_)));
        found.into_iter()
    }

    fn has(&self, id: FieldId) -> bool {
        match id {
            FieldId::Attribute(_) => self.of != WhichFields::Dimensions,
            FieldId::Dimension(_) => self.of != WhichFields::Attributes,
        }
    }
}

impl Folder for FilesOfFields {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        for id in self.candidates(name) {
            if let Some(node) = self.of_field(id).lookup(name)? {
                return Ok(Some(node));
            }
        }
        Ok(None)
    }

    fn why_absent(&self, name: &str) -> Option<String> {
        self.candidates(name).find_map(|id| self.of_field(id).why_absent(name))
    }

    fn list(&self) -> Result<Vec<Entry>> {
        // A dimension may have the name of an attribute, whose files come first.
        let mut names = HashSet::new();
        let mut entries = Vec::new();
        for id in self.ids() {
            entries.extend(self.build(id).folder.list()?.into_iter().filter(|entry| names.insert(entry.name.clone())));
        }
        Ok(entries)
    }

    fn known_paths(&self) -> Vec<String> {
        self.ids().take(MAX_SUGGESTED).flat_map(|id| self.build(id).folder.known_paths()).collect()
    }

    fn modified(&self) -> SystemTime {
        self.fields.modified
    }

    fn memory(&self) -> usize {
        self.made().values().map(|made| made.memory()).sum()
    }

    fn known_bytes(&self) -> u64 {
        let before = |id: FieldId| self.build(id).folder.known_bytes();
        let bytes = *self.bytes.get_or_init(|| self.ids().map(before).fold(0, u64::saturating_add));
        let made: Vec<(FieldId, Arc<FixedFolder>)> = self.made().iter().map(|(id, made)| (*id, made.clone())).collect();
        let since = made.into_iter().map(|(id, made)| made.known_bytes().saturating_sub(before(id)));
        since.fold(bytes, u64::saturating_add)
    }
}
