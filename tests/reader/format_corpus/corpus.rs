//! The location of the corpus, its files, its manifest, and the payloads of generic tiles.

use std::path::{Path, PathBuf};

use serde_json::Value;
use support::corpora;
use tilefs_format::filter::{Key, Scratch, decode_generic_tile, generic_tile_decoder};
use tilefs_format::generic_tile::GenericTileHeader;

/// Arrays that libtiledb rejects too, and the expected reason.
pub const REFUSED: [(&str, &str); 2] = [
    ("dense_array_v1_3_0", "written by TileDB before 1.4"),
    ("experimental_array_vUINT32_MAX", "an implausible format version"),
];

/// A corpus: arrays, and what libtiledb reads from them.
pub struct Corpus {
    folder: PathBuf,
    /// The arrays and groups of the manifests.
    pub objects: Vec<Value>,
}

impl Corpus {
    pub fn open() -> Self {
        let folder = corpora::corpus();
        let mut objects = Vec::new();
        for manifest in ["manifest.json", "manifest_real.json"] {
            let text = std::fs::read(folder.join(manifest)).unwrap();
            let mut manifest: Value = serde_json::from_slice(&text).unwrap();
            objects.append(manifest["objects"].as_array_mut().unwrap());
        }
        assert!(!objects.is_empty(), "{} has no objects", folder.display());
        Corpus { folder, objects }
    }

    pub fn path(&self, object: &Value) -> PathBuf {
        self.folder.join(object["path"].as_str().unwrap())
    }

    /// Returns all files, including those of other projects' arrays if present.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let own = ["arrays", "real"].map(|folder| self.folder.join(folder));
        own.into_iter().chain(corpora::peers()).for_each(|folder| collect(&folder, &mut found));
        found
    }

    /// Returns all files in folders of this name.
    pub fn files_in(&self, folder: &str) -> Vec<PathBuf> {
        let mut files = self.files();
        files.retain(|path| path.parent().is_some_and(|parent| parent.ends_with(folder)));
        files
    }

    /// Returns the payload of a file that is one generic tile.
    pub fn payload(&self, path: &Path) -> Result<Vec<u8>, String> {
        let bytes = std::fs::read(path).unwrap();
        let (payload, size) = self.payload_at_start(path, &bytes)?;
        assert_eq!(size, bytes.len(), "{}", path.display());
        Ok(payload)
    }

    /// Returns the payload of the generic tile at the start of these bytes of a file, and its stored length.
    pub fn payload_at_start(&self, path: &Path, bytes: &[u8]) -> Result<(Vec<u8>, usize), String> {
        let header = GenericTileHeader::parse(&bytes[..bytes.len().min(GenericTileHeader::MAX_SIZE)])
            .map_err(|error| error.to_string())?;
        let end = header.header_size + header.persisted_size as usize;
        let persisted = &bytes[header.header_size..end];
        let key = self.key(path);
        let decoded = generic_tile_decoder(&header.pipeline, header.encrypted, key.as_ref())
            .and_then(|decoder| decode_generic_tile(&decoder, header.tile_size, persisted, &mut Scratch::new()));
        Ok((decoded.map_err(|error| error.to_string())?, end))
    }

    /// Returns the key of the encrypted array to which a file belongs.
    fn key(&self, path: &Path) -> Option<Key> {
        self.objects.iter().find_map(|object| {
            let key = object["key"].as_str()?;
            path.starts_with(self.path(object)).then(|| Key::parse(key.as_bytes()).unwrap())
        })
    }
}

/// Returns whether this error is the expected one for this file.
pub fn is_expected(path: &Path, error: &str) -> bool {
    REFUSED.iter().any(|(array, reason)| path.to_string_lossy().contains(array) && error.contains(reason))
}

/// Returns whether a file belongs to an array that libtiledb rejects.
pub fn is_refused(path: &Path) -> bool {
    REFUSED.iter().any(|(array, _)| path.to_string_lossy().contains(array))
}

/// Returns the names in a folder in byte order; none if the folder is missing.
pub fn listing(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for name in listing(folder) {
        let path = folder.join(name);
        if path.is_dir() {
            collect(&path, found);
        } else {
            found.push(path);
        }
    }
}
