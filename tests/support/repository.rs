//! The files of this repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Returns the folder of the repository.
pub fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let support = Path::new(env!("CARGO_MANIFEST_DIR"));
        support.join("../..").canonicalize().expect("the repository is there")
    });
    &ROOT
}

/// Returns the text of a file of the repository.
///
/// # Panics
/// If there is no such file.
pub fn text(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns the files below a folder with one of these extensions.
pub fn files_below(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("a folder is listed").path());
    let (folders, files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
    let is_meant = |path: &PathBuf| path.extension().is_some_and(|end| extensions.iter().any(|meant| end == *meant));
    let files = files.into_iter().filter(is_meant);
    files.chain(folders.iter().flat_map(|folder| files_below(folder, extensions))).collect()
}
