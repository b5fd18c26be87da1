//! The folder of a plain folder of arrays and groups.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tilefs_base::error::Result;
use tilefs_base::lru_cache::LruCache;
use tilefs_reader::group::changes::note;
use tilefs_storage::StoreKey;
use tilefs_threads::single_flight::SingleFlight;
use tilefs_vfs::node::ExtendedAttributes;
use tilefs_vfs::node::lazy::LazyFile;
use tilefs_vfs::node::quoting::{heading, in_line, list_of_folders};
use tilefs_vfs::node::{Entry, Folder, Node};

use crate::array::array_folder;
use crate::fields::xattrs;
use crate::group::GroupFolder;
use crate::objects::directory::{Directory, Inside, NamedFolders};
use crate::objects::open_folder;
use crate::objects::opened_later::{Later, OpenedLater, source_of};
use crate::options::TreeOptions;

const README: &str = "README.txt";

/// Number of recently used folders that are kept open.
const KEPT: usize = 64;

/// The folder of a [`Directory`]. Memory: its names, and the trees of recently used folders.
pub struct DirectoryFolder {
    directory: Arc<Directory>,
    options: Arc<TreeOptions>,
    /// The folders at the time of the first listing.
    folders: SingleFlight<Arc<NamedFolders>>,
    kept: LruCache<String, Arc<Later<InsideFolder>>>,
}

impl DirectoryFolder {
    /// Creates the folder. Lists nothing yet.
    pub fn new(directory: Directory, options: Arc<TreeOptions>) -> Self {
        let (directory, folders, kept) = (Arc::new(directory), SingleFlight::new(), LruCache::new(KEPT));
        DirectoryFolder { directory, options, folders, kept }
    }

    fn folders(&self) -> Result<Arc<NamedFolders>> {
        let list = || {
            // Watch before listing, so that a refresh does not miss a change.
            note(self.directory.context(), self.directory.path())?;
            Ok(Arc::new(self.directory.folders()?))
        };
        self.folders.get_or_retry(list).cloned()
    }

    fn readme(&self) -> Result<LazyFile> {
        let (directory, folders) = (self.directory.clone(), self.folders()?);
        Ok(LazyFile::text(UNIX_EPOCH, move || Ok(readme(&directory, &folders))))
    }
}

fn readme(directory: &Directory, folders: &NamedFolders) -> String {
    let title = format!("{}: a folder of TileDB arrays and groups", in_line(&directory.path().shown_name()));
    let path = in_line(&directory.path().to_string());
    heading(&title)
        + &format!("{path}\n\n")
        + &list_of_folders(&folders.names)
        + "\nEach folder is an array, a group, or a folder that may have some below it. It is looked into when it is\n\
            entered. An array and a group have a README.txt of their own. Other files are hidden.\n"
}

impl Folder for DirectoryFolder {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        if name == README {
            return Ok(Some(Node::File(Arc::new(self.readme()?))));
        }
        let folders = self.folders()?;
        let Some(path) = folders.path(name) else { return Ok(None) };
        let folder = self.kept.get_or_make(name.to_owned(), || {
            let (directory, options) = (self.directory.clone(), self.options.clone());
            let opened = SingleFlight::new();
            Ok(Arc::new(Later(InsideFolder { path: path.clone(), directory, options, opened })))
        })?;
        Ok(Some(Node::Folder(folder)))
    }

    fn list(&self) -> Result<Vec<Entry>> {
        let folders = self.folders()?;
        Ok([Entry::file(README)].into_iter().chain(folders.names.iter().map(Entry::folder)).collect())
    }

    fn known_paths(&self) -> Vec<String> {
        self.folders().map(|folders| folders.names.clone()).unwrap_or_default()
    }

    /// There are no commits to a plain folder.
    fn modified(&self) -> SystemTime {
        UNIX_EPOCH
    }

    /// Those of the folders that are open.
    fn known_bytes(&self) -> u64 {
        self.kept.all().into_iter().fold(0, |bytes, (_, inside)| bytes.saturating_add(inside.known_bytes()))
    }

    fn extended_attributes(&self) -> ExtendedAttributes {
        xattrs::of_directory(self.directory.path())
    }

    fn source(&self) -> Option<u64> {
        Some(source_of(self.directory.path()))
    }
}

/// A folder in a directory, opened when something in it is needed. Errors are reported then.
struct InsideFolder {
    path: StoreKey,
    directory: Arc<Directory>,
    options: Arc<TreeOptions>,
    opened: SingleFlight<Arc<dyn Folder>>,
}

impl InsideFolder {
    fn make(&self) -> Result<Arc<dyn Folder>> {
        let context = self.directory.context();
        Ok(match self.directory.inside(&self.path)? {
            Inside::Array => {
                let array = open_folder(context.clone(), &self.path, self.directory.window())?;
                Arc::new(array_folder(array, self.options.clone())?)
            }
            Inside::Group(group) => {
                note(context, &self.path)?;
                Arc::new(GroupFolder::new(group, self.options.clone())?)
            }
            Inside::Directory(directory) => Arc::new(DirectoryFolder::new(directory, self.options.clone())),
        })
    }
}

impl OpenedLater for InsideFolder {
    fn path(&self) -> &StoreKey {
        &self.path
    }

    fn opened(&self) -> Option<&dyn Folder> {
        self.opened.get().map(|opened| &**opened)
    }

    fn open(&self) -> Result<&dyn Folder> {
        self.opened.get_or_retry(|| self.make()).map(|opened| &**opened)
    }

    fn modified_before(&self) -> SystemTime {
        UNIX_EPOCH
    }
}

#[cfg(test)]
mod tests {
    use tilefs_reader::array::{Context, TimeWindow};
    use tilefs_storage::{LocalStorage, MemoryStorage, Storage};

    use super::*;
    use std::fs;
    use std::path::Path;

    fn fixture(name: &str) -> std::path::PathBuf {
        tilefs_fixtures::fixtures().join(name)
    }

    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
            match entry.file_type().unwrap().is_dir() {
                true => copy(&entry.path(), &to.join(entry.file_name())),
                false => drop(fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
            }
        }
    }

    fn open(storage: Arc<dyn Storage>, path: &StoreKey) -> DirectoryFolder {
        let context = Arc::new(Context::new(storage, 1 << 20, 1, None));
        DirectoryFolder::new(Directory::new(context, path, TimeWindow::ALL), Arc::new(TreeOptions::default()))
    }

    fn names(folder: &dyn Folder) -> Vec<String> {
        folder.list().unwrap().into_iter().map(|entry| entry.name).collect()
    }

    fn within(folder: &dyn Folder, path: &str) -> Arc<dyn Folder> {
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        match folder.lookup(first).unwrap() {
            Some(Node::Folder(found)) if rest.is_empty() => found,
            Some(Node::Folder(found)) => within(&*found, rest),
            _ => panic!("no folder {first}"),
        }
    }

    #[test]
    fn arrays_and_groups_are_found_however_deep_and_all_else_is_hidden() {
        let root = tempfile::tempdir().unwrap();
        copy(&fixture("demo"), &root.path().join("a/b/demo"));
        copy(&fixture("arrays/groups/experiment"), &root.path().join("group"));
        fs::create_dir_all(root.path().join(".git/objects")).unwrap();
        fs::create_dir_all(root.path().join("README.txt")).unwrap();
        fs::write(root.path().join("notes.md"), "").unwrap();
        let folder = open(Arc::new(LocalStorage::new()), &root.path().into());
        assert_eq!(names(&folder), ["README.txt", "%52EADME.txt", "a", "group"]);
        assert_eq!(names(&*within(&folder, "a")), ["README.txt", "b"]);
        assert!(names(&*within(&folder, "a/b/demo")).contains(&"temp.f32".to_owned()));
        assert!(names(&*within(&folder, "group")).contains(&".group".to_owned()));
        assert!(folder.lookup("notes.md").unwrap().is_none() && folder.lookup(".git").unwrap().is_none());
        let Some(Node::File(file)) = folder.lookup("README.txt").unwrap() else { panic!("no README.txt") };
        assert!(file.len().unwrap() > 0);
    }

    #[test]
    fn what_is_damaged_is_an_error_when_it_is_entered_and_hides_no_other() {
        let root = tempfile::tempdir().unwrap();
        copy(&fixture("demo"), &root.path().join("good"));
        copy(&fixture("demo"), &root.path().join("bad"));
        for schema in fs::read_dir(root.path().join("bad/__schema")).unwrap().map(|entry| entry.unwrap()) {
            if schema.file_type().unwrap().is_file() {
                fs::write(schema.path(), b"nothing of a schema").unwrap();
            }
        }
        let folder = open(Arc::new(LocalStorage::new()), &root.path().into());
        assert_eq!(names(&folder), ["README.txt", "bad", "good"]);
        assert!(within(&folder, "bad").list().is_err() && within(&folder, "good").list().is_ok());
    }

    #[test]
    fn links_that_lead_around_end() {
        let root = tempfile::tempdir().unwrap();
        copy(&fixture("demo"), &root.path().join("a/demo"));
        std::os::unix::fs::symlink(root.path(), root.path().join("a/up")).unwrap();
        std::os::unix::fs::symlink(root.path().join("a/demo"), root.path().join("link")).unwrap();
        let folder = open(Arc::new(LocalStorage::new()), &root.path().into());
        assert_eq!(names(&*within(&folder, "a")), ["README.txt", "demo", "up"]);
        assert!(within(&folder, "a/up").list().is_err());
        assert!(names(&*within(&folder, "link")).contains(&"temp.f32".to_owned()));
    }

    #[test]
    fn a_hundred_thousand_folders_are_listed_without_looking_into_one() {
        let (storage, root) = (MemoryStorage::new(), StoreKey::from("s3://bucket/all"));
        for number in 0..100_000 {
            storage.put(root.join(format!("a{number:06}/__schema/nothing")), vec![]);
        }
        let folder = open(Arc::new(storage), &root);
        assert_eq!(names(&folder).len(), 100_001);
        assert!(folder.lookup("a099999").unwrap().is_some());
        assert!(within(&folder, "a012345").list().is_err(), "it has no schema");
    }
}
