//! Folders whose nodes are found by name.

use std::time::SystemTime;

use tilefs_base::error::Result;
use tilefs_base::lru_cache::LruCache;

use crate::node::{Entry, Folder, NODE, Node};

/// The node of a name, or the reason why there is none, if there is a specific one.
pub type NodeOrReason = std::result::Result<Node, Option<String>>;

type Find = Box<dyn Fn(&str) -> Result<NodeOrReason> + Send + Sync>;

type List = Box<dyn Fn() -> Result<Vec<Entry>> + Send + Sync>;

/// A folder whose nodes a function finds by name. `ls` shows the names that another function returns, or none.
pub struct NamedFolder {
    modified: SystemTime,
    find: Find,
    list: List,
    kept: Option<LruCache<String, Node>>,
}

impl NamedFolder {
    /// Creates a folder that lists nothing.
    pub fn new(modified: SystemTime, find: impl Fn(&str) -> Result<NodeOrReason> + Send + Sync + 'static) -> Self {
        NamedFolder { modified, find: Box::new(find), list: Box::new(|| Ok(Vec::new())), kept: None }
    }

    /// Keeps the nodes that were looked up last, up to this many.
    pub fn keeping(self, most: usize) -> Self {
        NamedFolder { kept: Some(LruCache::new(most)), ..self }
    }

    /// Sets the function that lists names.
    pub fn listing(self, list: impl Fn() -> Result<Vec<Entry>> + Send + Sync + 'static) -> Self {
        NamedFolder { list: Box::new(list), ..self }
    }
}

impl Folder for NamedFolder {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        if let Some(node) = self.kept.as_ref().and_then(|kept| kept.get(name)) {
            return Ok(Some(node));
        }
        match ((self.find)(name)?.ok(), &self.kept) {
            (Some(node), Some(kept)) => kept.get_or_make(name.to_owned(), || Ok(node)).map(Some),
            (found, _) => Ok(found),
        }
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

    fn memory(&self) -> usize {
        let kept = self.kept.iter().flat_map(LruCache::all);
        NODE + kept.map(|(_, node)| node.memory()).sum::<usize>()
    }
}
