//! Copies of stored arrays to alter, and the payloads of their generic tiles.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tilefs_format::filter::{Key, Scratch, decode_generic_tile, generic_tile_decoder};
use tilefs_format::generic_tile::GenericTileHeader;

use crate::generic_tile::{VERSION, compressed};

/// A copy of an array or group of the fixtures.
pub struct Copy(TempDir);

impl Copy {
    pub fn of(fixture: &str) -> Self {
        let copy = Copy(tempfile::tempdir().expect("a temporary folder"));
        copy_folder(&stored(fixture), &copy.path());
        copy
    }

    pub fn path(&self) -> PathBuf {
        self.0.path().join("stored")
    }

    /// Writes a file beside the copy; returns its path.
    pub fn beside(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).expect("a file is written");
        path
    }

    /// Returns the first file below a folder whose name ends like this.
    pub fn file(&self, folder: &str, end: &str) -> PathBuf {
        file_below(&self.path().join(folder), end).unwrap_or_else(|| panic!("no {end} in {folder}"))
    }
}

/// Returns the location of an array or group of the fixtures.
pub fn stored(fixture: &str) -> PathBuf {
    tilefs_fixtures::fixtures().join("arrays").join(fixture)
}

/// Copies a folder with everything in it.
pub fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder is made");
    for entry in fs::read_dir(from).expect("a folder is listed") {
        let entry = entry.expect("a folder is listed");
        match entry.file_type().expect("an entry has a type").is_dir() {
            true => copy_folder(&entry.path(), &to.join(entry.file_name())),
            false => drop(fs::copy(entry.path(), to.join(entry.file_name())).expect("a file is copied")),
        }
    }
}

/// Returns the first file in or below a folder, in the order of names, whose path ends like this.
pub fn file_below(folder: &Path, end: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder is listed");
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.expect("a folder is listed").path()).collect();
    entries.sort();
    entries.iter().find_map(|path| match path.is_dir() {
        true => file_below(path, end),
        false => path.to_str().filter(|path| path.ends_with(end)).map(|_| path.clone()),
    })
}

/// Returns the payload of a file that is one generic tile.
pub fn payload(file: &Path, key: Option<&Key>) -> Vec<u8> {
    let bytes = fs::read(file).expect("a file is read");
    let header = GenericTileHeader::parse(&bytes).expect("a generic tile");
    let persisted = &bytes[header.header_size..];
    let decoder = generic_tile_decoder(&header.pipeline, header.encrypted, key).expect("a pipeline of generic tiles");
    decode_generic_tile(&decoder, header.tile_size, persisted, &mut Scratch::new()).expect("a whole tile")
}

/// Returns a generic tile that is compressed and not encrypted, as every library writes it.
pub fn generic_tile(payload: &[u8]) -> Vec<u8> {
    compressed(payload, VERSION)
}

/// Alters the payload of a file that is one generic tile.
pub fn alter(file: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut payload = payload(file, None);
    change(&mut payload);
    fs::write(file, generic_tile(&payload)).expect("a file is written");
}

/// In the payload of a schema, replaces the first filter of an attribute or dimension by one that does not exist;
/// returns its offset.
pub fn make_filter_unknown(schema: &mut [u8], field: &str) -> usize {
    let stored = [&(field.len() as u32).to_le_bytes(), field.as_bytes()].concat();
    let name = schema.windows(stored.len()).position(|window| window == stored).expect("the field is there");
    // After the name: type, values per cell, chunk size, number of filters.
    let filters = name + stored.len() + 1 + 4 + 4;
    assert_ne!(schema[filters..filters + 4], [0; 4], "{field} has a filter");
    schema[filters + 4] = 99;
    filters + 4
}
