//! The files in which a mount or server reports about itself, in `.tilefs/`: statistics and recent errors. The folder
//! can be opened by name but is not listed.
//!
//! Entries that the tree has in a folder of that name appear there as well. They do not conflict with names of users,
//! because names that begin with a dot are escaped.

use std::sync::Arc;
use std::time::SystemTime;

use tilefs_base::content::Content;
use tilefs_base::error::Result;
use tilefs_base::statistics::{self, Statistic};

use crate::node::{Entry, File, Folder, Node};

use super::recent_errors::RecentErrors;

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
    fn inner(&self) -> Option<&dyn Folder> {
        Some(&*self.root)
    }

    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        if name != OWN_FOLDER {
            return self.root.lookup(name);
        }
        let of_tree = match self.root.lookup(name)? {
            Some(Node::Folder(folder)) => Some(folder),
            _ => None,
        };
        Ok(Some(Node::Folder(Arc::new(OwnFolder { of_tree, ..(*self.own).clone() }))))
    }

    fn list(&self) -> Result<Vec<Entry>> {
        self.root.list()
    }

    fn modified(&self) -> SystemTime {
        self.root.modified()
    }
}

/// The folder `.tilefs/`.
#[derive(Clone)]
pub struct OwnFolder {
    collect: Collect,
    errors: Arc<RecentErrors>,
    since: SystemTime,
    /// The tree's own folder of that name.
    of_tree: Option<Arc<dyn Folder>>,
}

impl OwnFolder {
    /// Creates the folder; `collect` runs whenever a file is opened.
    pub fn new(errors: Arc<RecentErrors>, collect: impl Fn() -> Vec<Statistic> + Send + Sync + 'static) -> Self {
        OwnFolder { collect: Arc::new(collect), errors, since: SystemTime::now(), of_tree: None }
    }
}

/// Formats statistics as text.
type Format = fn(&[Statistic]) -> String;

/// The file with recent errors.
const ERRORS: &str = "errors.txt";

/// The files of statistics and their formats.
const FILES: [(&str, Format); 2] = [("stats.json", statistics::json), ("stats.prom", statistics::prometheus)];

/// Returns whether this is the path of a report, which costs little to read.
pub fn is_report(path: &[String]) -> bool {
    let [folder, name] = path else { return false };
    folder == OWN_FOLDER && (name == ERRORS || FILES.iter().any(|(known, _)| known == name))
}

impl Folder for OwnFolder {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        if name == ERRORS {
            return Ok(Some(Node::File(Arc::new(ErrorsFile { errors: self.errors.clone(), since: self.since }))));
        }
        match (FILES.iter().find(|(known, _)| *known == name), &self.of_tree) {
            (Some(&(_, text)), _) => {
                let file = StatisticsFile { collect: self.collect.clone(), text, since: self.since };
                Ok(Some(Node::File(Arc::new(file))))
            }
            (None, Some(folder)) => folder.lookup(name),
            (None, None) => Ok(None),
        }
    }

    fn list(&self) -> Result<Vec<Entry>> {
        let own = FILES.iter().map(|(name, _)| *name).chain([ERRORS]);
        let mut entries: Vec<Entry> = own.map(Entry::file).collect();
        if let Some(folder) = &self.of_tree {
            entries.extend(folder.list()?);
        }
        Ok(entries)
    }

    /// The time when the mount or server started.
    fn modified(&self) -> SystemTime {
        self.since
    }
}

/// Recent errors as of the moment the file is opened.
struct ErrorsFile {
    errors: Arc<RecentErrors>,
    since: SystemTime,
}

impl File for ErrorsFile {
    fn len(&self) -> Result<u64> {
        self.open().map(|content| content.len())
    }

    fn open(&self) -> Result<Arc<dyn Content>> {
        Ok(Arc::new(self.errors.text().into_bytes()))
    }

    fn may_change(&self) -> bool {
        true
    }

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
    use tilefs_base::statistics::{Counter, Value};

    use super::*;
    use crate::node::lazy::{FixedFolder, LazyFile};

    #[test]
    fn own_files_are_unlisted_and_fixed_while_open() {
        let count = Arc::new(Counter::default());
        let errors = Arc::new(RecentErrors::default());
        let own = OwnFolder::new(errors.clone(), move || {
            count.add(1);
            vec![Statistic::new("looks", "Looks", Value::Total(count.get()))]
        });
        let (mut tree, mut of_tree) =
            (FixedFolder::new(SystemTime::UNIX_EPOCH), FixedFolder::new(SystemTime::UNIX_EPOCH));
        of_tree.add_file("views.txt", LazyFile::text(SystemTime::UNIX_EPOCH, || Ok("all".to_owned())));
        tree.add_unlisted(".tilefs", Node::Folder(Arc::new(of_tree)));
        let root = RootWithOwn::new(Arc::new(tree), Arc::new(own));
        assert!(root.list().unwrap().is_empty());
        let Ok(Some(Node::Folder(own))) = root.lookup(".tilefs") else { panic!("it is not there") };
        let names: Vec<String> = own.list().unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["stats.json", "stats.prom", "errors.txt", "views.txt"]);
        assert!(names.iter().all(|name| matches!(own.lookup(name), Ok(Some(Node::File(_))))));
        let reports = names.iter().filter(|name| is_report(&[OWN_FOLDER.to_owned(), (*name).clone()]));
        assert_eq!(reports.collect::<Vec<_>>(), ["stats.json", "stats.prom", "errors.txt"]);
        assert!(!is_report(&["stats.json".to_owned()]) && !is_report(&["a".to_owned(), "stats.json".to_owned()]));
        let Ok(Some(Node::File(file))) = own.lookup("errors.txt") else { panic!("it is not there") };
        let before = file.len().unwrap();
        errors.add("read", "bad chunk");
        assert!(file.len().unwrap() > before);
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
