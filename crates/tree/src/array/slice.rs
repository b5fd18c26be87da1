//! `slice/` and `islice/`: folders whose names are selections, each with the structure of its array's folder.

use std::sync::Arc;
use std::time::SystemTime;

use tilefs_format::error::Result;
use tilefs_select::{Addressing, SelectionError};

use crate::array::explain::FieldFolderKind;
use crate::fields::FieldFolder;
use crate::node::lazy::{FixedFolder, LazyFolder};
use crate::node::{Entry, EntryKind, Folder, NODE, Node};
use crate::views;

/// Every selection of an array, by its name. Lists only named selections that select something here: those given for a
/// group need not fit all of its arrays.
pub struct SliceFolder {
    whole: FieldFolder,
    by: Addressing,
    /// Names and selections.
    named: Vec<(String, String)>,
    make: MakeFiles,
}

/// Makes the folder of the files of a slice.
type MakeFiles = fn(&FieldFolder, FieldFolderKind) -> Result<FixedFolder>;

impl SliceFolder {
    pub fn new(whole: FieldFolder, by: Addressing, named: Vec<(String, String)>, make: MakeFiles) -> Self {
        SliceFolder { whole, by, named, make }
    }

    /// Returns the selection of a named slice, or the name itself.
    fn selection<'a>(&'a self, name: &'a str) -> &'a str {
        let named = self.named.iter().find(|(known, _)| known == name);
        named.map_or(name, |(_, selection)| selection.as_str())
    }
}

impl Folder for SliceFolder {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        let selection = self.selection(name);
        match self.whole.subarray.select(selection, self.by) {
            Ok(subarray) => {
                let fields = FieldFolder { subarray, ..self.whole.clone() };
                let place = match self.by {
                    Addressing::Coordinate => "slice",
                    Addressing::Position => "islice",
                };
                let kind = FieldFolderKind::Slice(format!("{place}/{name}"));
                if fields.names.attributes.len() > MANY_FIELDS {
                    return Ok(Some(Node::Folder(Arc::new(WideSlice::new(fields, kind, self.make)))));
                }
                Ok(Some(Node::Folder(Arc::new(files(&fields, kind, self.make)?))))
            }
            Err(SelectionError { cause: Some(cause), .. }) => Err(*cause),
            Err(error) => {
                log::debug!("slice {selection}: {}", error.message);
                Ok(None)
            }
        }
    }

    fn why_absent(&self, name: &str) -> Option<String> {
        let selection = self.selection(name);
        let error = self.whole.subarray.select(selection, self.by).err()?;
        Some(error.into_error(selection).to_string())
    }

    fn list(&self) -> Result<Vec<Entry>> {
        let named = self.named.iter().filter(|(_, selection)| self.whole.subarray.select(selection, self.by).is_ok());
        Ok(named.map(|(name, _)| Entry { name: name.clone(), kind: EntryKind::Folder }).collect())
    }

    fn modified(&self) -> SystemTime {
        self.whole.modified
    }
}

/// Builds the folder of the files of a slice.
fn files(fields: &FieldFolder, kind: FieldFolderKind, make: MakeFiles) -> Result<FixedFolder> {
    let mut folder = make(fields, kind)?;
    let subarray = fields.subarray.clone();
    folder.holds(move || subarray.memory());
    Ok(folder)
}

/// Number of attributes beyond which the files of one of them are found without building the folder of all.
const MANY_FIELDS: usize = 256;

/// A slice of an array with very many attributes: readers of one attribute do not wait for the files of all others.
struct WideSlice {
    fields: FieldFolder,
    all: LazyFolder,
}

impl WideSlice {
    fn new(fields: FieldFolder, kind: FieldFolderKind, make: MakeFiles) -> Self {
        let of_all = fields.clone();
        let all = LazyFolder::new(fields.modified, move || files(&of_all, kind.clone(), make));
        WideSlice { fields, all }
    }
}

impl Folder for WideSlice {
    fn inner(&self) -> Option<&dyn Folder> {
        self.all.inner()
    }

    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        match views::file_of_attribute(&self.fields, name) {
            Some(node) => Ok(Some(node)),
            None => self.all.lookup(name),
        }
    }

    fn list(&self) -> Result<Vec<Entry>> {
        self.all.list()
    }

    fn modified(&self) -> SystemTime {
        self.fields.modified
    }

    fn memory(&self) -> usize {
        self.inner().map_or_else(|| NODE + self.fields.subarray.memory(), Folder::memory)
    }
}
