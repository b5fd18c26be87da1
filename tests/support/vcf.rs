//! Files of `vcf/` of a dataset, and the programs that read them.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use tilefs_tree::{TreeOptions, open};
use tilefs_vfs::Folder;

use super::paths::file;
use super::skip::{Need, skipped};

pub fn opened(path: &Path) -> Arc<dyn Folder> {
    open(path, &TreeOptions::default()).unwrap()
}

/// Returns the bytes of a file, read in sequence without its length, as a whole, and in parts from the end.
pub fn bytes(root: &Arc<dyn Folder>, path: &str) -> Vec<u8> {
    let file = file(root, path);
    let mut streamed = Vec::new();
    if let Some(mut forward) = file.forward().unwrap() {
        let mut part = Vec::new();
        while forward.next(&mut part).unwrap() {
            streamed.extend_from_slice(&part);
        }
    }
    let content = file.open().unwrap();
    assert_eq!(content.len(), file.len().unwrap());
    let mut whole = vec![0; content.len() as usize];
    content.read_at(0, &mut whole).unwrap();
    assert!(streamed.is_empty() || streamed == whole, "{path}: streaming gives other bytes");
    for start in (0..whole.len()).step_by(997).rev() {
        let mut part = vec![0; 997.min(whole.len() - start)];
        content.read_at(start as u64, &mut part).unwrap();
        assert!(part == whole[start..start + part.len()], "{path}: at {start}");
    }
    whole
}

pub fn text(root: &Arc<dyn Folder>, path: &str) -> String {
    String::from_utf8(bytes(root, path)).unwrap()
}

/// Returns whether a program is installed; reports it if not.
pub fn has(program: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        skipped(Need::Programs, &format!("{program} is not installed"));
    }
    is_there
}

/// Runs a program and returns its output; the test fails if the program fails.
pub fn printed(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
