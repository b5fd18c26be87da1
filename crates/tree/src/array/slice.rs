//! `slice/` and `islice/`: folders whose names are selections, each with the structure of its array's folder.

use std::sync::Arc;
use std::time::SystemTime;

use tilefs_format::error::Result;
use tilefs_select::{Addressing, SelectionError};

use crate::array::explain::FieldFolderKind;
use crate::fields::FieldFolder;
use crate::node::lazy::FixedFolder;
use crate::node::{Entry, Folder, Node};

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
                let mut folder = (self.make)(&fields, kind)?;
                let subarray = fields.subarray;
                folder.holds(move || subarray.memory());
                Ok(Some(Node::Folder(Arc::new(folder))))
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
        Ok(named.map(|(name, _)| Entry::folder(name)).collect())
    }

    fn modified(&self) -> SystemTime {
        self.whole.modified
    }
}
