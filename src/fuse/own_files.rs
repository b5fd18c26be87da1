//! The mount's own files in `.tilefs/`, next to the root of the tree. The folder can be opened by name but is not
//! listed.
//!
//! No name in a tree conflicts, because names that begin with a dot are escaped.

use std::sync::Arc;
use std::time::SystemTime;

use tilefs_export::Content;
use tilefs_format::error::Result;
use tilefs_reader::statistics::{self, Statistic};

use crate::tree::{Entry, EntryKind, File, Folder, Node};

/// Name of the folder.
const OWN_FOLDER: &str = ".tilefs";

/// Collects the current statistics.
type Collect = Arc<dyn Fn() -> Vec<Statistic> + Send + Sync>;

/// A root folder with `.tilefs` added.
pub struct RootWithOwn {
    root: Arc<dyn Folder>,
    own: Arc<OwnFolder>,
}

impl RootWithOwn {
    pub fn new(root: Arc<dyn Folder>, own: Arc<OwnFolder>) -> Self {
        RootWithOwn { root, own }
    }
}

impl Folder for RootWithOwn {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        if name == OWN_FOLDER { Ok(Some(Node::Folder(self.own.clone()))) } else { self.root.lookup(name) }
    }

    fn why_absent(&self, name: &str) -> Option<String> {
        self.root.why_absent(name)
    }

    fn list(&self) -> Result<Vec<Entry>> {
        self.root.list()
    }

    fn modified(&self) -> SystemTime {
        self.root.modified()
    }

    fn memory(&self) -> usize {
        self.root.memory()
    }

    fn extended_attributes(&self) -> Vec<(String, Vec<u8>)> {
        self.root.extended_attributes()
    }
}

/// The folder `.tilefs/`.
pub struct OwnFolder {
    collect: Collect,
    since: SystemTime,
}

impl OwnFolder {
    /// Creates the folder; `collect` runs whenever a file is opened.
    pub fn new(collect: impl Fn() -> Vec<Statistic> + Send + Sync + 'static) -> Self {
        OwnFolder { collect: Arc::new(collect), since: SystemTime::now() }
    }
}

/// Formats statistics as text.
type Format = fn(&[Statistic]) -> String;

/// The files and their formats.
const FILES: [(&str, Format); 2] = [("stats.json", statistics::json), ("stats.prom", statistics::prometheus)];

impl Folder for OwnFolder {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        let known = FILES.iter().find(|(known, _)| *known == name);
        Ok(known.map(|&(_, text)| {
            Node::File(Arc::new(StatisticsFile { collect: self.collect.clone(), text, since: self.since }))
        }))
    }

    fn list(&self) -> Result<Vec<Entry>> {
        Ok(FILES.iter().map(|(name, _)| Entry { name: (*name).to_owned(), kind: EntryKind::File }).collect())
    }

    /// The time of mounting.
    fn modified(&self) -> SystemTime {
        self.since
    }
}

/// A file whose content is computed when it is opened.
struct StatisticsFile {
    collect: Collect,
    text: Format,
    since: SystemTime,
}

impl File for StatisticsFile {
    fn len(&self) -> Result<u64> {
        self.open().map(|content| content.len())
    }

    fn open(&self) -> Result<Arc<dyn Content>> {
        Ok(Arc::new((self.text)(&(self.collect)()).into_bytes()))
    }

    fn is_live(&self) -> bool {
        true
    }

    fn modified(&self) -> SystemTime {
        self.since
    }
}

#[cfg(test)]
mod tests {
    use tilefs_reader::statistics::{Counter, Value};

    use super::*;
    use crate::tree::lazy::FixedFolder;

    #[test]
    fn own_files_are_unlisted_and_fixed_while_open() {
        let count = Arc::new(Counter::default());
        let own = OwnFolder::new(move || {
            count.add(1);
            vec![Statistic::new("looks", "Looks", Value::Total(count.get()))]
        });
        let root = RootWithOwn::new(Arc::new(FixedFolder::new(SystemTime::UNIX_EPOCH)), Arc::new(own));
        assert!(root.list().unwrap().is_empty());
        let Ok(Some(Node::Folder(own))) = root.lookup(".tilefs") else { panic!("it is not there") };
        assert_eq!(own.list().unwrap().len(), 2);
        let Ok(Some(Node::File(file))) = own.lookup("stats.json") else { panic!("it is not there") };
        let looks = || {
            let content = file.open().unwrap();
            let mut bytes = vec![0; content.len() as usize];
            content.read_at(0, &mut bytes).unwrap();
            assert_eq!(file.len().unwrap(), content.len());
            serde_json::from_slice::<serde_json::Value>(&bytes).unwrap()["looks"].as_u64().unwrap()
        };
        let first = looks();
        assert!(looks() > first);
    }
}
