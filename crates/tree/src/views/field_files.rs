//! The files of attributes and dimensions in one folder. Those of a field are made when one of them is looked up, because
//! an array may have very many attributes.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

use tilefs_format::error::Result;

use crate::cells::FieldId;
use crate::fields::FieldFolder;
use crate::node::lazy::FixedFolder;
use crate::node::{Entry, Folder, Node};
use crate::views::builder::{FolderBuilder, FolderPlace, Note};
use crate::views::view::{Add, View};

/// Maximum number of fields whose names are suggested to those who mistype one.
const MAX_SUGGESTED: usize = 1000;

/// The fields that have files in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fields {
    Attributes,
    Dimensions,
    /// Attributes, then dimensions.
    All,
}

/// The files of fields in one folder. Memory: the files of each field of which one was looked up.
pub struct FieldFiles {
    fields: FieldFolder,
    of: Fields,
    views: Vec<&'static View>,
    place: FolderPlace,
    made: Mutex<HashMap<FieldId, Arc<FixedFolder>>>,
    /// The bytes of all files whose lengths are known before their contents are made.
    bytes: OnceLock<u64>,
}

impl FieldFiles {
    /// Creates the files of `views` in a folder. Makes none of them.
    pub fn new(
        fields: &FieldFolder,
        of: Fields,
        views: impl Iterator<Item = &'static View>,
        place: FolderPlace,
    ) -> Self {
        let views = views.filter(|view| matches!(view.add, Add::OfFields(_))).collect();
        let (made, bytes) = (Mutex::new(HashMap::new()), OnceLock::new());
        FieldFiles { fields: fields.clone(), of, views, place, made, bytes }
    }

    /// Returns whether no field has a file here. Makes the files of the first fields, until one has any.
    pub fn is_empty(&self) -> bool {
        self.ids().all(|id| self.build(id).folder.is_empty())
    }

    /// Returns what the texts that describe the folder say about the files, field by field.
    pub fn notes(self: &Arc<Self>) -> impl Iterator<Item = Note> + use<> {
        let this = self.clone();
        self.ids().flat_map(move |id| this.build(id).into_notes())
    }

    /// Returns the fields in the order of their files.
    fn ids(&self) -> impl Iterator<Item = FieldId> + use<> {
        let attributes = (self.of != Fields::Dimensions).then(|| self.fields.attributes());
        let dimensions = (self.of != Fields::Attributes).then(|| self.fields.dimensions());
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
            FieldId::Attribute(_) => self.of != Fields::Dimensions,
            FieldId::Dimension(_) => self.of != Fields::Attributes,
        }
    }
}

impl Folder for FieldFiles {
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
