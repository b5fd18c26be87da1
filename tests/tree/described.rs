//! schema.json describes files that nobody has looked up: each has the name, the length and the place in a listing that
//! its node has.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use support::paths::{bytes, node};
use tilefs_tree::{ShownViews, TreeOptions, is_object};
use tilefs_vfs::{Folder, Node};

/// The folders that hold nothing but files of views.
const OF_VIEWS: [&str; 7] = ["dims", "npy", "text", "F", "tiff", "fits", "nifti"];

/// Returns the arrays and groups in a folder.
fn objects(folder: &Path, found: &mut Vec<PathBuf>) {
    if is_object(folder, &TreeOptions::default()) {
        found.push(folder.to_owned());
    }
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_own = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("__"));
    entries.filter(|path| path.is_dir() && !is_own(path)).for_each(|path| objects(&path, found));
}

fn listed(root: &Arc<dyn Folder>, folder: &str) -> HashSet<String> {
    let Some(Node::Folder(folder)) = node(root, folder) else { return HashSet::new() };
    folder.list().unwrap().into_iter().map(|entry| entry.name).collect()
}

/// Checks the description of a folder of an array; returns the number of files of fields.
fn check(root: &Arc<dyn Folder>, place: &str) -> usize {
    let schema: Value = serde_json::from_slice(&bytes(root, "schema.json")).unwrap();
    let files = schema["files"].as_array().unwrap();
    let all: HashSet<&str> = files.iter().map(|file| file["path"].as_str().unwrap()).collect();
    let of_fields: Vec<&Value> = files.iter().filter(|file| file.get("field").is_some()).collect();
    let root_lists: HashSet<String> = root.list().unwrap().into_iter().map(|entry| entry.name).collect();
    for file in &of_fields {
        let path = file["path"].as_str().unwrap();
        let Some(Node::File(node)) = node(root, path) else { panic!("{place}: there is no {path}") };
        assert_eq!(node.known_len(), file["bytes"].as_u64(), "{place} {path}");
        let is_listed = match path.split_once('/') {
            Some((folder, name)) => root_lists.contains(folder) && listed(root, folder).contains(name),
            None => root_lists.contains(path),
        };
        assert_eq!(is_listed, file.get("listed").is_none(), "{place} {path}");
        if let (Some(length), Ok(content)) = (file["bytes"].as_u64(), node.open()) {
            assert_eq!(content.len(), length, "{place} {path}");
        }
    }
    for folder in OF_VIEWS {
        let is_known = |name: &String| name.starts_with("parts") || all.contains(&*format!("{folder}/{name}"));
        let unknown: Vec<String> = listed(root, folder).into_iter().filter(|name| !is_known(name)).collect();
        assert!(unknown.is_empty(), "{place} {folder}: {unknown:?}");
    }
    of_fields.len()
}

#[test]
fn files_are_described_as_they_are() {
    let mut arrays = Vec::new();
    objects(tilefs_fixtures::fixtures(), &mut arrays);
    let (mut checked, mut files) = (0, 0);
    for shown in [ShownViews::NONE, ShownViews::ALL] {
        let options = TreeOptions { shown, ..TreeOptions::default() };
        for place in &arrays {
            // Damaged and encrypted arrays, and groups, have no description of files here.
            let Ok(root) = tilefs_tree::open(place, &options) else { continue };
            if node(&root, "schema.json").is_none() {
                continue;
            }
            let name = place.display().to_string();
            for folder in ["", "nonempty", "by-row", "islice/0"] {
                let Some(Node::Folder(part)) = node(&root, folder) else { continue };
                files += check(&part, &format!("{name}/{folder}"));
                checked += 1;
            }
        }
    }
    assert!(checked > 500 && files > 10 * checked, "{files} files in {checked} folders");
}
