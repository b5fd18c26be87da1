//! A plain folder, or the prefix of a bucket, with arrays and groups somewhere below it. It shows a folder for each
//! folder in it, whatever that contains. Nothing is examined before it is entered, so a folder of 100,000 arrays takes
//! one listing.
//!
//! Other files are hidden, and so are folders whose names begin with a dot.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde_json::json;
use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::folder::ObjectKind;
use tilefs_reader::array::{Context, TimeWindow, kind_of_entries, object_kind};
use tilefs_reader::group::OpenedGroup;
use tilefs_storage::{Listed, Storage, StoreKey, is_object_uri};

use crate::names::{FileNames, OF_DIRECTORIES};

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
    Group(OpenedGroup),
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
        Ok(match object_kind(&*context.storage, path)? {
            Some(ObjectKind::Array) => Inside::Array,
            Some(ObjectKind::Group) => Inside::Group(OpenedGroup::open(context, path, self.window)),
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
        if kind_of_entries(&entries).is_some() {
            return true;
        }
        if waiting.len() < most {
            waiting.extend(folders(&folder, &entries));
        }
    }
    !waiting.is_empty()
}

#[cfg(test)]
mod tests {
    use tilefs_storage::MemoryStorage;

    use super::*;

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
