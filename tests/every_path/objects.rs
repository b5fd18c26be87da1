//! The arrays and groups in a folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tilefs_tree::{TreeOptions, is_object};

/// An array or a group to list.
pub struct StoredObject {
    /// Its path relative to the folder that was searched, or its own name if it is that folder.
    pub name: String,
    pub place: PathBuf,
    /// The encryption key that a manifest in the folder gives for it.
    pub key: Option<String>,
}

/// Returns all arrays and groups in a folder in order of their names: the folder itself, or everything below it,
/// including members of groups, which are listed on their own, too.
pub fn objects_in(folder: &Path) -> Vec<StoredObject> {
    let keys = keys(folder);
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(place) = folders.pop() {
        if is_object(&place, &TreeOptions::default()) {
            let relative = place.strip_prefix(folder).unwrap_or(&place).to_string_lossy().into_owned();
            let own = place.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let name = if relative.is_empty() { own } else { relative };
            found.push(StoredObject { key: keys.get(&place).cloned(), name, place: place.clone() });
        }
        // Folders whose names begin with two underscores are TileDB's own.
        let is_inside = |path: &PathBuf| {
            path.is_dir() && path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with("__"))
        };
        folders.extend(entries(&place).into_iter().filter(is_inside));
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// Returns the keys that the manifests in a folder, and one level below it, give for arrays.
fn keys(folder: &Path) -> BTreeMap<PathBuf, String> {
    let is_manifest = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("manifest") && name.ends_with(".json")
    };
    let below = entries(folder).into_iter().filter(|path| path.is_dir());
    let folders = [folder.to_owned()].into_iter().chain(below);
    let manifests = folders.flat_map(|folder| entries(&folder)).filter(is_manifest);
    let mut keys = BTreeMap::new();
    for manifest in manifests {
        let text = fs::read(&manifest).expect("a manifest is read");
        let json: serde_json::Value = serde_json::from_slice(&text).expect("a manifest is JSON");
        for entry in json["objects"].as_array().into_iter().flatten() {
            if let (Some(path), Some(key)) = (entry["path"].as_str(), entry["key"].as_str()) {
                keys.insert(manifest.with_file_name(path), key.to_owned());
            }
        }
    }
    keys
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.expect("a folder is listed").path()).collect()
}
