//! Bytes without what differs between machines: the folder in which the objects are, and the version of tilefs.

use std::path::{Path, PathBuf};

use memchr::memmem;

/// The word that a generated text has not far before the version.
const PROGRAM: &[u8] = b"tilefs";

/// The greatest distance between that word and the version.
const DISTANCE: usize = 40;

/// Replaces the path of a folder by `FOLDER`, and the version of tilefs, where its name stands before it, by `VERSION`.
pub struct Neutral {
    folder: Vec<u8>,
}

impl Neutral {
    pub fn new(folder: &Path) -> Self {
        let folder = std::path::absolute(folder).unwrap_or_else(|_| PathBuf::from(folder));
        Neutral { folder: folder.as_os_str().as_encoded_bytes().to_vec() }
    }

    /// Returns the bytes with the replacements made.
    pub fn bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let without_folder = replaced(bytes, &self.folder, b"FOLDER", |_| true);
        let is_of_program = |before: &[u8]| {
            let near = before.get(before.len().saturating_sub(DISTANCE)..).unwrap_or_default();
            memmem::find(near, PROGRAM).is_some()
        };
        replaced(&without_folder, env!("CARGO_PKG_VERSION").as_bytes(), b"VERSION", is_of_program)
    }

    /// Returns a text with the replacements made, in one line.
    pub fn line(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.bytes(text.as_bytes())).replace(['\n', '\t'], " ")
    }
}

/// Replaces the places of a pattern for which `is_meant` accepts the bytes before it.
fn replaced(bytes: &[u8], pattern: &[u8], by: &[u8], is_meant: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut copied = 0;
    for place in memmem::find_iter(bytes, pattern).filter(|&place| is_meant(&bytes[..place])) {
        out.extend_from_slice(&bytes[copied..place]);
        out.extend_from_slice(by);
        copied = place + pattern.len();
    }
    out.extend_from_slice(&bytes[copied..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_and_versions_are_replaced_and_nothing_else() {
        let neutral = Neutral::new(Path::new("/some/folder"));
        let version = env!("CARGO_PKG_VERSION");
        let text = format!("tilefs ls /some/folder/a /some/fold; tilefs version {version}\n");
        assert_eq!(neutral.line(&text), "tilefs ls FOLDER/a /some/fold; tilefs version VERSION ");
        let data = format!("v = {version}");
        assert_eq!(neutral.bytes(data.as_bytes()), data.as_bytes());
    }
}
