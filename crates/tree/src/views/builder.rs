//! Builds a folder together with the list of its files for README.txt and schema.json.
//!
//! Views declare the files of a field: name, length, listing, and how the node is made. Descriptions and listings take
//! the declarations; nodes are made where a file is looked up, because an array may have very many attributes. Both come
//! from the same call, so they agree.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

use tilefs_base::error::Result;
use tilefs_export::Field;
use tilefs_export::column::extension::of_datatype;
use tilefs_threads::cancellation;
use tilefs_vfs::node::lazy::{FixedFolder, LazyFile};
use tilefs_vfs::node::listing::Listing;
use tilefs_vfs::node::{Entry, EntryKind, File as _, Folder, Node};

use crate::cells::FieldId;
use crate::fields::FieldFolder;
use crate::shown::ShownViews;
use crate::views::facts::ViewFacts;
use crate::views::files::{FileFacts, Files};
use crate::views::parts::PartsFolder;

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
struct FolderPlace {
    modified: SystemTime,
    /// The path of the folder, with a final slash, from the folder that is described; empty for this folder itself.
    prefix: String,
    /// Whether `ls` shows the folder.
    listing: Listing,
    /// Optional views that are listed.
    shown: ShownViews,
}

/// A statement of README.txt and schema.json about files of a folder.
#[derive(Clone)]
enum FileNote {
    File(FileFacts),
    /// A file that a reader may look for but that does not exist, or what it lacks.
    Absent {
        path: String,
        reason: String,
    },
    Fields(FolderPlace, Arc<FilesOfFields>),
}

/// The files that a [`FolderBuilder`] has collected.
#[derive(Clone, Default)]
pub struct FileList {
    notes: Vec<FileNote>,
}

impl FileList {
    /// Returns the files, and the paths that do not exist, with the reasons. Describes the files of all fields, until nobody
    /// waits for it: then what is returned is incomplete.
    pub fn describe(&self) -> (Files, Vec<(String, String)>) {
        let (mut files, mut absent) = (Vec::new(), Vec::new());
        for note in &self.notes {
            match note {
                FileNote::File(facts) => files.push(facts.clone()),
                FileNote::Absent { path, reason } => absent.push((path.clone(), reason.clone())),
                FileNote::Fields(place, fields) => {
                    for (field, declared) in fields.declared().take_while(|_| !cancellation::is_cancelled()) {
                        declared.into_iter().for_each(|one| place.note(one, &field, &mut files, &mut absent));
                    }
                }
            }
        }
        (Files::new(files), absent)
    }
}

impl FolderPlace {
    /// Returns the path of a name in the folder.
    fn path(&self, name: String) -> String {
        if self.prefix.is_empty() { name } else { [self.prefix.as_str(), &name].concat() }
    }

    /// Appends what a view declares to the files or to the absent ones.
    fn note(
        &self,
        declared: Declared,
        field: &Arc<str>,
        files: &mut Vec<FileFacts>,
        absent: &mut Vec<(String, String)>,
    ) {
        match declared {
            Declared::Absent { name, reason } => absent.push((self.path(name), reason)),
            Declared::File(file) => files.push(self.facts(file, Some(field.clone()))),
        }
    }

    /// Returns what is known of a file in the folder, which may be one of a field.
    fn facts(&self, file: DeclaredFile, field: Option<Arc<str>>) -> FileFacts {
        let DeclaredFile { name, view, bytes, listing } = file;
        FileFacts { path: self.path(name), view, field, bytes, listing, listing_of_folder: self.listing.clone() }
    }
}

impl FileNote {
    /// Returns the first reason for the absence of a file, with its path.
    fn first_reason(&self) -> Option<(String, String)> {
        match self {
            FileNote::File(_) => None,
            FileNote::Absent { path, reason } => Some((path.clone(), reason.clone())),
            FileNote::Fields(place, fields) => {
                fields.declared().flat_map(|(_, declared)| declared).find_map(|declared| match declared {
                    Declared::Absent { name, reason } => Some((place.path(name), reason)),
                    Declared::File(_) => None,
                })
            }
        }
    }
}

impl FolderBuilder {
    pub fn new(modified: SystemTime) -> Self {
        Self::at(FolderPlace { modified, prefix: String::new(), listing: Listing::Always, shown: ShownViews::NONE })
    }

    /// Creates a builder of some of the files in a folder.
    fn at(place: FolderPlace) -> Self {
        FolderBuilder { folder: FixedFolder::new(place.modified), place, notes: Vec::new() }
    }

    /// Also lists these views.
    pub fn showing(mut self, shown: ShownViews) -> Self {
        self.place.shown = shown;
        self
    }

    /// Adds a listed file.
    pub fn add(&mut self, name: impl Into<String>, view: &'static ViewFacts, file: LazyFile) {
        self.add_with(name, view, file, Listing::Always);
    }

    /// Adds a file that is unlisted unless its view is shown.
    pub fn add_unlisted(&mut self, name: impl Into<String>, view: &'static ViewFacts, file: LazyFile) {
        let listing = view.listing(&self.place.shown);
        self.add_with(name, view, file, listing);
    }

    /// Adds a file with the given listing.
    pub fn add_with(&mut self, name: impl Into<String>, view: &'static ViewFacts, file: LazyFile, listing: Listing) {
        self.add_of(name.into(), view, None, file, listing);
    }

    /// Adds a file with the given listing, which is that of an attribute or dimension if its user's name is given.
    pub fn add_of(
        &mut self,
        name: String,
        view: &'static ViewFacts,
        field: Option<&str>,
        file: LazyFile,
        listing: Listing,
    ) {
        let declared = DeclaredFile { name: name.clone(), view, bytes: file.known_len(), listing: listing.clone() };
        self.notes.push(FileNote::File(self.place.facts(declared, field.map(Into::into))));
        self.folder.add_with(name, Node::File(Arc::new(file)), listing);
    }

    /// Records why there is no file of this name, or what it lacks.
    pub fn leave_out(&mut self, name: &str, reason: impl ToString) {
        let reason = reason.to_string();
        self.folder.explain_absence(name, &reason);
        self.notes.push(FileNote::Absent { path: self.place.path(name.to_owned()), reason });
    }

    /// Adds the files that views declare for attributes, dimensions, or both. They are made when they are looked up.
    pub fn add_fields(&mut self, fields: &FieldFolder, of: WhichFields, views: Vec<DeclareFiles>) {
        let files = Arc::new(FilesOfFields::new(fields, of, views));
        self.notes.push(FileNote::Fields(self.place.clone(), files.clone()));
        match files.is_empty() {
            true => self.folder.explain_by(files),
            false => self.folder.add_all(files),
        }
    }

    /// Adds a folder of files, unless it would be empty. The reason why it is empty is then that of its first file.
    pub fn add_folder(&mut self, name: &str, listing: Listing, build: impl FnOnce(&mut FolderBuilder)) {
        let mut inner = FolderBuilder::at(FolderPlace {
            prefix: format!("{}{name}/", self.place.prefix),
            listing: self.place.listing.clone().and(listing.clone()),
            ..self.place.clone()
        });
        build(&mut inner);
        if inner.folder.is_empty() {
            if let Some((path, reason)) = inner.notes.iter().find_map(FileNote::first_reason) {
                self.folder.explain_empty(name, &format!("{path}: {reason}"), inner.folder);
            }
        } else {
            self.folder.add_with(name, Node::Folder(Arc::new(inner.folder)), listing);
        }
        self.notes.append(&mut inner.notes);
    }

    /// Adds a folder that is unlisted unless its view is shown, and that is one entry in the list: its file `main`.
    pub fn add_unlisted_whole(&mut self, name: &str, main: &str, view: &'static ViewFacts, folder: Arc<dyn Folder>) {
        let listing = view.listing(&self.place.shown);
        let declared = DeclaredFile { name: format!("{name}/{main}"), view, bytes: None, listing: listing.clone() };
        self.notes.push(FileNote::File(self.place.facts(declared, None)));
        self.folder.add_with(name, Node::Folder(folder), listing);
    }

    /// Adds a folder of the parts of a table. It is listed where the table is, if there are several parts, but not very
    /// many. The parts are not in the list of files, because the whole table is.
    pub fn add_parts(&mut self, name: &str, parts: PartsFolder, listing_of_table: Listing) {
        let listing = listing_of_table.and(parts.listing());
        self.folder.add_with(name, Node::Folder(Arc::new(parts)), listing);
    }

    /// Returns the list of the files added so far.
    pub fn file_list(&self) -> FileList {
        FileList { notes: self.notes.clone() }
    }
}

/// A file of a field, as a view declares it.
pub struct DeclaredFile {
    pub name: String,
    pub view: &'static ViewFacts,
    /// The length, if it is known without the content.
    pub bytes: Option<u64>,
    pub listing: Listing,
}

/// A view's declaration about one name in its folder: the file, or the reason why there is none.
pub enum Declared {
    File(DeclaredFile),
    /// A file that a reader may look for but that does not exist, with the reason.
    Absent {
        name: String,
        reason: String,
    },
}

/// Declares the files of a view for one field, if it has any.
pub type DeclareFiles = fn(&mut FilesOfField<'_>);

/// The declarations of the views of a folder about one field.
pub struct FilesOfField<'a> {
    pub fields: &'a FieldFolder,
    pub id: FieldId,
    /// The description of the field for the formats.
    pub field: Field,
    /// The folder that gets the nodes, if they are made.
    nodes: Option<&'a mut FixedFolder>,
    declared: Vec<Declared>,
}

impl<'a> FilesOfField<'a> {
    /// Returns what `views` declare about a field. Makes no node.
    pub fn declared(fields: &FieldFolder, id: FieldId, views: &[DeclareFiles]) -> Vec<Declared> {
        FilesOfField::of(fields, id, None, views)
    }

    /// Adds the nodes of the files that `views` declare to a folder.
    pub fn make(fields: &'a FieldFolder, id: FieldId, views: &[DeclareFiles], nodes: &'a mut FixedFolder) {
        FilesOfField::of(fields, id, Some(nodes), views);
    }

    fn of(
        fields: &'a FieldFolder,
        id: FieldId,
        nodes: Option<&'a mut FixedFolder>,
        views: &[DeclareFiles],
    ) -> Vec<Declared> {
        let mut files = FilesOfField { fields, id, field: fields.describe(id), nodes, declared: Vec::new() };
        views.iter().for_each(|declare| declare(&mut files));
        files.declared
    }

    /// Returns the name of the field's file with this ending.
    pub fn name(&self, ending: &str) -> String {
        [self.fields.names.of_field(self.id), ".", ending].concat()
    }

    /// Returns the name of the field's raw file.
    pub fn raw_name(&self) -> String {
        self.name(of_datatype(self.field.datatype))
    }

    /// Returns the number of cells in the files, if known without reading.
    pub fn known_cells(&self) -> Option<u64> {
        self.fields.known_cells(self.id)
    }

    /// Returns the number of dimensions of the array.
    pub fn axes(&self) -> usize {
        self.fields.schema().dimensions.len()
    }

    /// Returns whether the field is a dimension.
    pub fn is_dimension(&self) -> bool {
        matches!(self.id, FieldId::Dimension(_))
    }

    /// Declares a listed file; `make` makes it.
    pub fn add(
        &mut self,
        name: String,
        view: &'static ViewFacts,
        make: impl FnOnce(&FieldFolder, FieldId) -> LazyFile,
    ) {
        self.add_with(DeclaredFile { name, view, bytes: None, listing: Listing::Always }, make);
    }

    /// Declares a file that is unlisted unless its view is shown.
    pub fn add_unlisted(
        &mut self,
        name: String,
        view: &'static ViewFacts,
        make: impl FnOnce(&FieldFolder, FieldId) -> LazyFile,
    ) {
        let listing = view.listing(&self.fields.shown);
        self.add_with(DeclaredFile { name, view, bytes: None, listing }, make);
    }

    /// Declares a file. `make` makes it; its node has the declared length.
    pub fn add_with(&mut self, file: DeclaredFile, make: impl FnOnce(&FieldFolder, FieldId) -> LazyFile) {
        let Some(nodes) = &mut self.nodes else { return self.declared.push(Declared::File(file)) };
        let node = make(self.fields, self.id).with_length(file.bytes);
        nodes.add_with(file.name, Node::File(Arc::new(node)), file.listing);
    }

    /// Records why there is no file of this name.
    pub fn leave_out(&mut self, name: String, reason: impl ToString) {
        let reason = reason.to_string();
        match &mut self.nodes {
            Some(nodes) => nodes.explain_absence(&name, &reason),
            None => self.declared.push(Declared::Absent { name, reason }),
        }
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

/// The files of fields in one folder. Memory: the files of each field from which a file was looked up.
pub struct FilesOfFields {
    fields: FieldFolder,
    of: WhichFields,
    views: Vec<DeclareFiles>,
    made: Mutex<HashMap<FieldId, Arc<FixedFolder>>>,
    /// The bytes of all files whose lengths are known before their contents are made.
    bytes: OnceLock<u64>,
}

impl FilesOfFields {
    /// Creates the files of `views` in a folder. Makes none of them.
    pub fn new(fields: &FieldFolder, of: WhichFields, views: Vec<DeclareFiles>) -> Self {
        FilesOfFields { fields: fields.clone(), of, views, made: Mutex::default(), bytes: OnceLock::new() }
    }

    /// Returns whether no field has a file here.
    pub fn is_empty(&self) -> bool {
        self.ids().all(|id| self.files(id).next().is_none())
    }

    /// Returns what the views declare, field by field, with the user's name of the field.
    pub fn declared(&self) -> impl Iterator<Item = (Arc<str>, Vec<Declared>)> {
        self.ids().map(|id| (Arc::from(&*self.fields.user_name(id)), self.declared_of(id)))
    }

    /// Returns the fields in the order of their files.
    fn ids(&self) -> impl Iterator<Item = FieldId> + use<> {
        let attributes = (self.of != WhichFields::Dimensions).then(|| self.fields.attributes());
        let dimensions = (self.of != WhichFields::Attributes).then(|| self.fields.dimensions());
        attributes.into_iter().flatten().chain(dimensions.into_iter().flatten())
    }

    fn declared_of(&self, id: FieldId) -> Vec<Declared> {
        FilesOfField::declared(&self.fields, id, &self.views)
    }

    /// Returns the files that a field has.
    fn files(&self, id: FieldId) -> impl Iterator<Item = DeclaredFile> + use<> {
        self.declared_of(id).into_iter().filter_map(|declared| match declared {
            Declared::File(file) => Some(file),
            Declared::Absent { .. } => None,
        })
    }

    /// Returns the bytes of the listed files of a field whose lengths are known before their contents are made.
    fn known_bytes_of(&self, id: FieldId) -> u64 {
        let bytes = |file: DeclaredFile| file.bytes.filter(|_| file.listing.is_listed()).unwrap_or(0);
        self.files(id).map(bytes).fold(0, u64::saturating_add)
    }

    fn made(&self) -> MutexGuard<'_, HashMap<FieldId, Arc<FixedFolder>>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the files of a field, which are kept from now on.
    fn of_field(&self, id: FieldId) -> Arc<FixedFolder> {
        if let Some(made) = self.made().get(&id) {
            return made.clone();
        }
        let made = Arc::new(self.make(id));
        self.made().entry(id).or_insert(made).clone()
    }

    fn make(&self, id: FieldId) -> FixedFolder {
        let mut folder = FixedFolder::new(self.fields.modified);
        FilesOfField::make(&self.fields, id, &self.views, &mut folder);
        folder
    }

    /// Returns the fields that may have a file of this name. The first field that has such a file gives it.
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
        let listed = self.ids().flat_map(|id| self.files(id)).filter(|file| file.listing.is_listed());
        let mut entries: Vec<Entry> = listed.map(|file| Entry { name: file.name, kind: EntryKind::File }).collect();
        // A dimension may have the name of an attribute, whose files come first.
        if self.of == WhichFields::All {
            let mut names = HashSet::new();
            entries.retain(|entry| names.insert(entry.name.clone()));
        }
        Ok(entries)
    }

    fn known_paths(&self) -> Vec<String> {
        self.ids().take(MAX_SUGGESTED).flat_map(|id| self.make(id).known_paths()).collect()
    }

    fn modified(&self) -> SystemTime {
        self.fields.modified
    }

    fn memory(&self) -> usize {
        self.made().values().map(|made| made.memory()).sum()
    }

    fn known_bytes(&self) -> u64 {
        let before = |id: FieldId| self.known_bytes_of(id);
        let bytes = *self.bytes.get_or_init(|| self.ids().map(before).fold(0, u64::saturating_add));
        let made: Vec<(FieldId, Arc<FixedFolder>)> = self.made().iter().map(|(id, made)| (*id, made.clone())).collect();
        let since = made.into_iter().map(|(id, made)| made.known_bytes().saturating_sub(before(id)));
        since.fold(bytes, u64::saturating_add)
    }
}
