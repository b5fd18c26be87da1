//! Nodes of a tree by their paths.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_vfs::{File, Folder, Node};

/// Returns what a path leads to; `None` if nothing.
pub fn node(root: &Arc<dyn Folder>, path: &str) -> Option<Node> {
    let mut node = Node::Folder(root.clone());
    for name in path.split('/').filter(|name| !["", "."].contains(name)) {
        let Node::Folder(folder) = node else { return None };
        node = folder.lookup(name).unwrap_or_else(|error| panic!("{path}: {error}"))?;
    }
    Some(node)
}

pub fn folder(root: &Arc<dyn Folder>, path: &str) -> Arc<dyn Folder> {
    match node(root, path) {
        Some(Node::Folder(folder)) => folder,
        _ => panic!("there is no folder {path}"),
    }
}

pub fn file(root: &Arc<dyn Folder>, path: &str) -> Arc<dyn File> {
    match node(root, path) {
        Some(Node::File(file)) => file,
        _ => panic!("there is no file {path}"),
    }
}

/// Returns the names in a folder.
pub fn names(root: &Arc<dyn Folder>, path: &str) -> Vec<String> {
    let entries = folder(root, path).list().unwrap_or_else(|error| panic!("{path}: {error}"));
    entries.into_iter().map(|entry| entry.name).collect()
}

/// Returns the bytes of a file, which must be as many as it reports.
pub fn bytes(root: &Arc<dyn Folder>, path: &str) -> Vec<u8> {
    let file = file(root, path);
    let read = || {
        let content = file.open()?;
        assert_eq!(content.len(), file.len()?, "{path}");
        whole(&*content)
    };
    read().unwrap_or_else(|error: Error| panic!("{path}: {error}"))
}

pub fn text(root: &Arc<dyn Folder>, path: &str) -> String {
    String::from_utf8(bytes(root, path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns all bytes of a content.
pub fn whole(content: &dyn Content) -> Result<Vec<u8>> {
    let mut bytes = vec![0; content.len() as usize];
    content.read_at(0, &mut bytes)?;
    Ok(bytes)
}

/// Opens a file that must be there.
///
/// # Errors
/// If something on the way cannot be read.
pub fn content(root: &dyn Folder, path: &str) -> Result<Arc<dyn Content>> {
    found(root, path)?.open()
}

/// Returns a file that must be there.
///
/// # Errors
/// If something on the way cannot be read.
pub fn found(root: &dyn Folder, path: &str) -> Result<Arc<dyn File>> {
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    match root.lookup(first)? {
        Some(Node::File(file)) => Ok(file),
        Some(Node::Folder(folder)) => found(&*folder, rest),
        None => panic!("there is no {path}"),
    }
}

/// Returns the paths of all files that are listed below a folder.
pub fn files(folder: &dyn Folder) -> Vec<String> {
    let mut paths = Vec::new();
    add_files(folder, "", &mut paths);
    paths
}

fn add_files(folder: &dyn Folder, path: &str, paths: &mut Vec<String>) {
    for entry in folder.list().unwrap_or_else(|error| panic!("{path}: {error}")) {
        let path = if path.is_empty() { entry.name.clone() } else { format!("{path}/{}", entry.name) };
        match folder.lookup(&entry.name) {
            Ok(Some(Node::Folder(inner))) => add_files(&*inner, &path, paths),
            Ok(Some(Node::File(_))) => paths.push(path),
            Ok(None) => panic!("{path} is listed and not there"),
            Err(error) => panic!("{path}: {error}"),
        }
    }
}
