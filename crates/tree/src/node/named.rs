//! Folders whose nodes are found by name.

use std::time::SystemTime;

use tilefs_format::error::Result;

use crate::node::{Entry, Folder, Node};

/// The node of a name, or the reason why there is none, if there is a specific one.
pub type Found = std::result::Result<Node, Option<String>>;

type Find = Box<dyn Fn(&str) -> Result<Found> + Send + Sync>;

type List = Box<dyn Fn() -> Result<Vec<Entry>> + Send + Sync>;

/// A folder whose nodes a function finds by name. `ls` shows the names that another function returns, or none.
pub struct NamedFolder {
    modified: SystemTime,
    find: Find,
    list: List,
}

impl NamedFolder {
    /// Creates a folder that lists nothing.
    pub fn new(modified: SystemTime, find: impl Fn(&str) -> Result<Found> + Send + Sync + 'static) -> Self {
        NamedFolder { modified, find: Box::new(find), list: Box::new(|| Ok(Vec::new())) }
    }

    /// Sets the function that lists names.
    pub fn listing(self, list: impl Fn() -> Result<Vec<Entry>> + Send + Sync + 'static) -> Self {
        NamedFolder { list: Box::new(list), ..self }
    }
}

impl Folder for NamedFolder {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        Ok((self.find)(name)?.ok())
    }

    fn why_absent(&self, name: &str) -> Option<String> {
        (self.find)(name).ok()?.err()?
    }

    fn list(&self) -> Result<Vec<Entry>> {
        (self.list)()
    }

    fn modified(&self) -> SystemTime {
        self.modified
    }
}
