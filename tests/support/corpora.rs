//! Where the larger collections of arrays are, which are no part of this project.

use std::env;
use std::path::{Path, PathBuf};

use super::skip::{Need, skipped};

/// The folder of the corpus: what `TILEFS_CORPUS` names, else `../shared/corpus` or `../../shared/corpus` beside this
/// checkout. Says aloud where there is none.
///
/// # Panics
/// If `TILEFS_CORPUS` names a folder without a manifest: who asks for a corpus must not be left without.
pub fn corpus() -> Option<PathBuf> {
    if let Some(folder) = env::var_os("TILEFS_CORPUS").map(PathBuf::from) {
        assert!(is_corpus(&folder), "TILEFS_CORPUS: {} has no manifest.json", folder.display());
        return Some(folder);
    }
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let beside = ["../shared/corpus", "../../shared/corpus"].map(|path| home.join(path));
    let found = beside.into_iter().filter_map(|folder| folder.canonicalize().ok()).find(|folder| is_corpus(folder));
    if found.is_none() {
        skipped(Need::Corpus, "there is no corpus of arrays; TILEFS_CORPUS says where it is");
    }
    found
}

fn is_corpus(folder: &Path) -> bool {
    folder.join("manifest.json").is_file()
}

/// The arrays that other projects committed, beside the corpus. Says aloud where there are none.
pub fn peers() -> Option<PathBuf> {
    let peers = corpus()?.join("../peers");
    if !peers.is_dir() {
        skipped(Need::Corpus, "there are no arrays of other projects beside the corpus");
        return None;
    }
    Some(peers.canonicalize().expect("a folder that is there has a path"))
}
