//! A plain folder, or the prefix of a bucket, with arrays and groups somewhere below it. It shows a folder for each
//! folder in it, whatever that contains. Nothing is examined before it is entered, so a folder of 100,000 arrays takes
//! one listing.
//!
//! Other files are hidden, and so are folders whose names begin with a dot.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use tilefs_format::error::{Error, Locate, Result};
use tilefs_reader::array::{Context, ObjectKind, SingleFlight, TimeWindow};
use tilefs_reader::group::Group;
use tilefs_reader::group::changes::note;
use tilefs_reader::lru_cache::LruCache;
use tilefs_storage::{Listed, Storage, StoreKey, is_object_uri};

use crate::array::array_folder;
use crate::fields::xattrs;
use crate::group::GroupFolder;
use crate::node::ExtendedAttributes;
use crate::node::lazy::LazyFile;
use crate::node::names::{FileNames, OF_DIRECTORIES};
use crate::node::opened_later::{OpenedLater, source_of};
use crate::node::quoting::{heading, in_line, list_of_folders};
use crate::node::{Entry, EntryKind, Folder, Node};
use crate::objects::open_folder;
use crate::options::OpenOptions;

const README: &str = "README.txt";

/// Number of recently used folders that are kept open.
const KEPT: usize = 64;

/// Maximum depth of nested folders; deeper nesting counts as an endless loop.
const MAX_DEPTH: usize = 100;

/// Maximum number of folders in which to search for an array or a group, locally and in an object store, where each
/// needs a request.
const MAX_SEARCHED: usize = 1000;
const MAX_SEARCHED_REMOTE: usize = 32;

/// A folder that is neither an array nor a group, as of a time window.
#[derive(Clone)]
pub struct Directory {
    context: Arc<Context>,
    path: StoreKey,
    window: TimeWindow,
    /// The folders around this one, outermost first, and this one, by canonical path: a link to one of them would form
    /// a loop.
    around: Vec<StoreKey>,
}

/// The content of a folder in a [`Directory`].
pub enum Inside {
    Array,
    Group(Group),
    Directory(Directory),
}

/// Names in the tree, and their folders. Memory: proportional to their number.
pub struct NamedFolders {
    /// The names, in the order of the listing.
    pub names: Vec<String>,
    paths: HashMap<String, StoreKey>,
}

impl NamedFolders {
    pub fn path(&self, name: &str) -> Option<&StoreKey> {
        self.paths.get(name)
    }
}

impl Directory {
    /// Creates a root folder. Reads nothing.
    pub fn new(context: Arc<Context>, path: &StoreKey, window: TimeWindow) -> Self {
        let around = vec![context.storage.canonical(path)];
        Directory { context, path: path.clone(), window, around }
    }

    pub fn path(&self) -> &StoreKey {
        &self.path
    }

    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub fn window(&self) -> TimeWindow {
        self.window
    }

    /// Returns the folders in it and their names in the tree, with one listing.
    ///
    /// # Errors
    /// Fails if it cannot be listed.
    pub fn folders(&self) -> Result<NamedFolders> {
        let storage = &*self.context.storage;
        // Not `list`, for which a folder that is gone is empty.
        let entries = storage.list_in(&storage.know(&self.path)?, "")?.unwrap_or_default();
        let mut names = FileNames::new(OF_DIRECTORIES);
        let mut folders = NamedFolders { names: Vec::new(), paths: HashMap::new() };
        for entry in entries.iter().filter(|entry| is_shown(entry)) {
            let name = names.give(&entry.name, &[""]);
            folders.paths.insert(name.clone(), self.path.join(&entry.name));
            folders.names.push(name);
        }
        Ok(folders)
    }

    /// Returns the content of a folder in this one. Does not open arrays.
    ///
    /// # Errors
    /// Fails if it cannot be listed; [`Error::Unsupported`] for a folder within itself.
    pub fn inside(&self, path: &StoreKey) -> Result<Inside> {
        let context = self.context.clone();
        Ok(match ObjectKind::of(&*context.storage, path)? {
            Some(ObjectKind::Array) => Inside::Array,
            Some(ObjectKind::Group) => Inside::Group(Group::open(context, path, self.window)),
            None => {
                let canonical = context.storage.canonical(path);
                if self.around.contains(&canonical) || self.around.len() >= MAX_DEPTH {
                    return Err(Error::unsupported("a folder within itself, by a link").in_file(path));
                }
                let around = [self.around.as_slice(), &[canonical]].concat();
                Inside::Directory(Directory { context, path: path.clone(), window: self.window, around })
            }
        })
    }
}

/// Returns the folders in a directory as JSON: the name of each in the tree, its path, and whether it is an array, a
/// group or a folder of these. Lists each of them.
///
/// # Errors
/// Fails if the directory cannot be listed. A folder that cannot be listed has an `error`.
pub fn directory_json(directory: &Directory) -> Result<String> {
    let folders = directory.folders()?;
    let named = folders.names.iter().filter_map(|name| Some((name, folders.path(name)?)));
    let members = named.map(|(name, path)| {
        let (kind, error) = match directory.inside(path) {
            Ok(Inside::Array) => (Some("array"), None),
            Ok(Inside::Group(_)) => (Some("group"), None),
            Ok(Inside::Directory(_)) => (Some("folder"), None),
            Err(error) => (None, Some(error.to_string())),
        };
        json!({"name": name, "uri": path.to_string(), "type": kind, "error": error})
    });
    let all = json!({
        "object": "folder",
        "path": directory.path().to_string(),
        "members": members.collect::<Vec<_>>(),
    });
    Ok(serde_json::to_string_pretty(&all).unwrap_or_default() + "\n")
}

fn is_shown(entry: &Listed) -> bool {
    entry.is_folder() && !entry.name.starts_with('.')
}

/// Returns whether there is an array or a group below a folder with these entries. Assumes so if too many folders would
/// have to be searched.
pub fn holds_objects(storage: &dyn Storage, path: &StoreKey, entries: &[Listed]) -> bool {
    let is_remote = is_object_uri(&path.to_string());
    let most = if is_remote { MAX_SEARCHED_REMOTE } else { MAX_SEARCHED };
    let folders = |path: &StoreKey, entries: &[Listed]| -> Vec<StoreKey> {
        entries.iter().filter(|entry| is_shown(entry)).map(|entry| path.join(&entry.name)).collect()
    };
    // Breadth first.
    let mut waiting: VecDeque<StoreKey> = folders(path, entries).into();
    for _ in 0..most {
        let Some(folder) = waiting.pop_front() else { return false };
        // Skip a folder that cannot be listed.
        let Ok(entries) = storage.list(&folder) else { continue };
        if ObjectKind::of_entries(&entries).is_some() {
            return true;
        }
        if waiting.len() < most {
            waiting.extend(folders(&folder, &entries));
        }
    }
    !waiting.is_empty()
}

/// The folder of a [`Directory`]. Memory: its names, and the trees of recently used folders.
pub struct DirectoryFolder {
    directory: Arc<Directory>,
    options: Arc<OpenOptions>,
    /// The folders at the time of the first listing.
    folders: SingleFlight<Arc<NamedFolders>>,
    kept: LruCache<String, Arc<InsideFolder>>,
}

impl DirectoryFolder {
    /// Creates the folder. Lists nothing yet.
    pub fn new(directory: Directory, options: Arc<OpenOptions>) -> Self {
        let (directory, folders, kept) = (Arc::new(directory), SingleFlight::new(), LruCache::new(KEPT));
        DirectoryFolder { directory, options, folders, kept }
    }

    fn folders(&self) -> Result<Arc<NamedFolders>> {
        let list = || {
            // Watch before listing, so that a refresh does not miss a change.
            note(&self.directory.context, &self.directory.path)?;
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
    let title = format!("{}: a folder of TileDB arrays and groups", in_line(&directory.path.shown_name()));
    let path = in_line(&directory.path.to_string());
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
            Ok(Arc::new(InsideFolder { path: path.clone(), directory, options, opened: SingleFlight::new() }))
        })?;
        Ok(Some(Node::Folder(folder)))
    }

    fn list(&self) -> Result<Vec<Entry>> {
        let folders = self.folders()?;
        let readme = Entry { name: README.to_owned(), kind: EntryKind::File };
        let entry = |name: &String| Entry { name: name.clone(), kind: EntryKind::Folder };
        Ok([readme].into_iter().chain(folders.names.iter().map(entry)).collect())
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
        xattrs::of_directory(&self.directory.path)
    }

    fn source(&self) -> Option<u64> {
        Some(source_of(&self.directory.path))
    }
}

/// A folder in a directory, opened when something in it is needed. Errors are reported then.
struct InsideFolder {
    path: StoreKey,
    directory: Arc<Directory>,
    options: Arc<OpenOptions>,
    opened: SingleFlight<Arc<dyn Folder>>,
}

impl InsideFolder {
    fn make(&self) -> Result<Arc<dyn Folder>> {
        let context = &self.directory.context;
        Ok(match self.directory.inside(&self.path)? {
            Inside::Array => {
                let array = open_folder(context.clone(), &self.path, self.directory.window)?;
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
    use tilefs_storage::{LocalStorage, MemoryStorage};

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
        DirectoryFolder::new(Directory::new(context, path, TimeWindow::ALL), Arc::new(OpenOptions::default()))
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

    #[test]
    fn folder_holds_objects_if_found_or_too_large() {
        let holds = |paths: &[String]| {
            let (storage, root) = (MemoryStorage::new(), StoreKey::from("/root"));
            paths.iter().for_each(|path| storage.put(root.join(path), vec![]));
            holds_objects(&storage, &root, &storage.list(&root).unwrap())
        };
        assert!(holds(&["x/y/z/__schema/s".to_owned()]) && holds(&["x/__group/g".to_owned()]));
        assert!(!holds(&["x/y/z".to_owned(), "file".to_owned()]) && !holds(&[".hidden/__schema/s".to_owned()]));
        let many: Vec<String> = (0..2 * MAX_SEARCHED).map(|number| format!("{number}/file")).collect();
        assert!(holds(&many));
    }
}
