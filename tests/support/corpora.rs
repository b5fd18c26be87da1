//! The locations of the larger collections of arrays.

use std::env;
use std::path::PathBuf;

use super::skip::{Need, skipped};

/// Returns the folder of the corpus: the one that `TILEFS_CORPUS` names, otherwise the packed one of the fixtures.
///
/// # Panics
/// If `TILEFS_CORPUS` names a folder without a manifest: a requested corpus must not be skipped.
pub fn corpus() -> PathBuf {
    let Some(folder) = env::var_os("TILEFS_CORPUS").map(PathBuf::from) else {
        return tilefs_fixtures::corpus().to_owned();
    };
    assert!(folder.join("manifest.json").is_file(), "TILEFS_CORPUS: {} has no manifest.json", folder.display());
    folder
}

/// Returns the folder of arrays from other projects, which are not part of this one: the folder that `TILEFS_PEERS`
/// names. Reports it if the variable is not set.
///
/// # Panics
/// If `TILEFS_PEERS` does not name a folder.
pub fn peers() -> Option<PathBuf> {
    let Some(folder) = env::var_os("TILEFS_PEERS").map(PathBuf::from) else {
        skipped(Need::Peers, "there are no arrays of other projects; TILEFS_PEERS says where they are");
        return None;
    };
    assert!(folder.is_dir(), "TILEFS_PEERS: there is no folder {}", folder.display());
    Some(folder)
}
