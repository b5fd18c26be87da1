//! Every file of the program in which threads wait for each other has a model.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Collects all files below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// Returns the code of a file without comments and without tests, which are at the end.
fn code(text: &str) -> String {
    let program = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = program.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn files_with_condition_variables_are_modelled() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut sources, mut tests) = (Vec::new(), Vec::new());
    files(&root.join("src"), &mut sources);
    for krate in fs::read_dir(root.join("crates")).unwrap() {
        files(&krate.unwrap().path().join("src"), &mut sources);
    }
    files(&root.join("tests/interleavings/tests"), &mut tests);
    let models: String = tests.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let mut waiting = BTreeSet::new();
    let is_program = |path: &&PathBuf| path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs");
    for path in sources.iter().filter(is_program) {
        let code = code(&fs::read_to_string(path).unwrap());
        if code.contains("Condvar") || code.contains("park(") || code.contains("Barrier") {
            waiting.insert(path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned());
        }
    }
    // This file only re-exports the primitives of the standard library.
    let is_named = waiting.remove("crates/threads/src/sync.rs");
    let unmodelled: Vec<_> = waiting.iter().filter(|path| !models.contains(&format!("source!(\"{path}\")"))).collect();
    assert!(is_named && waiting.len() > 5 && unmodelled.is_empty(), "no model of {unmodelled:?}");
}
