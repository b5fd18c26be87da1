//! `slice/` and `islice/`: folders whose names are selections, each like the folder of its array.

use std::sync::Arc;

use super::array::add_files;
use super::fields::FieldFolder;
use super::grammar::By;
use super::made::FixedFolder;
use super::node::{Entry, EntryKind, Folder, Node};
use crate::error::Result;
use std::time::SystemTime;

/// Every selection of an array, by its name. Lists only the selections that were given a name.
pub struct SliceFolder {
    whole: FieldFolder,
    by: By,
    /// Names and selections.
    named: Vec<(String, String)>,
}

impl SliceFolder {
    pub fn new(whole: FieldFolder, by: By, named: Vec<(String, String)>) -> Self {
        SliceFolder { whole, by, named }
    }
}

impl Folder for SliceFolder {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        let named = self.named.iter().find(|(known, _)| known == name);
        let selection = named.map_or(name, |(_, selection)| selection.as_str());
        match self.whole.shown.select(selection, self.by) {
            Ok(shown) => {
                let mut folder = FixedFolder::new(self.whole.modified);
                add_files(&mut folder, &FieldFolder { shown, ..self.whole.clone() });
                Ok(Some(Node::Folder(Arc::new(folder))))
            }
            Err(error) => {
                log::debug!("slice {selection}: {}", error.message);
                Ok(None)
            }
        }
    }

    fn list(&self) -> Result<Vec<Entry>> {
        let entry = |(name, _): &(String, String)| Entry { name: name.clone(), kind: EntryKind::Folder };
        Ok(self.named.iter().map(entry).collect())
    }

    fn modified(&self) -> SystemTime {
        self.whole.modified
    }
}
