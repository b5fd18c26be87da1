//! `slice/` of a group that is one dataset: parts of all of its variables, such as `slice/time=2001-07,lat=40..50/`.

use std::sync::Arc;
use std::time::SystemTime;

use tilefs_format::error::{Error, Result};

use crate::domains::cf::GroupDataset;
use crate::domains::cf::files::files;
use crate::node::{Entry, Folder, Node};

/// The name of the folder.
pub const SLICE: &str = "slice";

/// `slice/`: its folders are found by name, and never listed.
pub struct DatasetSlices {
    dataset: Arc<GroupDataset>,
    modified: SystemTime,
}

impl DatasetSlices {
    pub fn new(dataset: Arc<GroupDataset>, modified: SystemTime) -> Self {
        DatasetSlices { dataset, modified }
    }
}

impl Folder for DatasetSlices {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        match self.dataset.select(name) {
            Ok(part) => Ok(Some(Node::Folder(Arc::new(files(&Arc::new(part), self.modified)?)))),
            Err(Error::Usage { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn why_absent(&self, name: &str) -> Option<String> {
        self.dataset.select(name).err().map(|error| error.to_string())
    }

    fn list(&self) -> Result<Vec<Entry>> {
        Ok(Vec::new())
    }

    fn modified(&self) -> SystemTime {
        self.modified
    }
}
