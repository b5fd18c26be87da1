//! Where the larger collections of arrays are.

use std::env;
use std::path::PathBuf;

use super::skip::{Need, skipped};

/// The folder of the corpus: the one that `TILEFS_CORPUS` names, else the one that the fixtures hold packed.
///
/// # Panics
/// If `TILEFS_CORPUS` names a folder without a manifest: a corpus that was asked for must not be left out.
pub fn corpus() -> PathBuf {
    let Some(folder) = env::var_os("TILEFS_CORPUS").map(PathBuf::from) else {
        return tilefs_fixtures::corpus().to_owned();
    };
    assert!(folder.join("manifest.json").is_file(), "TILEFS_CORPUS: {} has no manifest.json", folder.display());
    folder
}

/// The arrays that other projects committed, which are no part of this one: the folder that `TILEFS_PEERS` names. Says
/// so where it names none.
///
/// # Panics
/// If `TILEFS_PEERS` names no folder.
pub fn peers() -> Option<PathBuf> {
    let Some(folder) = env::var_os("TILEFS_PEERS").map(PathBuf::from) else {
        skipped(Need::Peers, "there are no arrays of other projects; TILEFS_PEERS says where they are");
        return None;
    };
    assert!(folder.is_dir(), "TILEFS_PEERS: there is no folder {}", folder.display());
    Some(folder)
}
