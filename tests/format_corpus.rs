//! Parses every metadata file of a corpus of real arrays. The corpus is not part of the project: its folder is
//! taken from `TILEFS_CORPUS`, or from `../shared/corpus`; where there is none, the tests say so and pass.

use std::io::Read;
use std::path::{Path, PathBuf};

use tilefs::format::generic_tile::GenericTileHeader;
use tilefs::format::schema::ArraySchema;

/// The corpus and the folder of arrays from other projects beside it.
fn corpus() -> Option<PathBuf> {
    let folder = match std::env::var_os("TILEFS_CORPUS") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus"),
    };
    let found = folder.join("manifest.json").is_file();
    if !found {
        eprintln!("SKIPPED: no corpus at {} (set TILEFS_CORPUS)", folder.display());
    }
    found.then_some(folder)
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            files(&entry, found);
        } else {
            found.push(entry);
        }
    }
}

fn all_files(corpus: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["arrays", "real", "../peers"] {
        let folder = corpus.join(folder);
        if folder.is_dir() {
            files(&folder, &mut found);
        }
    }
    found
}

/// Decodes a generic tile whose only filter is GZIP; `None` for encrypted ones.
fn payload(bytes: &[u8]) -> Result<Option<(usize, Vec<u8>)>, String> {
    let header = GenericTileHeader::parse(bytes).map_err(|error| error.to_string())?;
    if header.encrypted {
        return Ok(None);
    }
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let mut at = header.header_size;
    let chunks = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    at += 8;
    let mut out = Vec::new();
    for _ in 0..chunks {
        let (filtered, metadata) = (u32_at(at + 4), u32_at(at + 8));
        let (parts, mut part_at) = (u32_at(at + 12) + u32_at(at + 16), at + 20);
        let mut data_at = at + 12 + metadata;
        for _ in 0..parts {
            let compressed = u32_at(part_at + 4);
            flate2::read::ZlibDecoder::new(&bytes[data_at..data_at + compressed]).read_to_end(&mut out).unwrap();
            part_at += 8;
            data_at += compressed;
        }
        at += 12 + metadata + filtered;
    }
    assert_eq!(at, header.header_size + header.persisted_size as usize);
    assert_eq!(out.len() as u64, header.tile_size);
    Ok(Some((at, out)))
}

/// Arrays that libtiledb refuses too, and the reason to be given.
const REFUSED: [(&str, &str); 2] = [
    ("dense_array_v1_3_0", "written by TileDB before 1.4"),
    ("experimental_array_vUINT32_MAX", "experimental format version 4294967295"),
];

/// Whether this error is the right one for this file.
fn is_expected(path: &Path, error: &str) -> bool {
    REFUSED.iter().any(|(array, reason)| path.to_string_lossy().contains(array) && error.contains(reason))
}

#[test]
fn every_schema_parses() {
    let Some(corpus) = corpus() else { return };
    let (mut parsed, mut encrypted) = (0, 0);
    let mut errors = Vec::new();
    for path in all_files(&corpus) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let folder = path.parent().unwrap().file_name().unwrap();
        if name != "__array_schema.tdb" && folder != "__schema" {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let schema = match payload(&bytes) {
            Ok(None) => {
                encrypted += 1;
                continue;
            }
            Ok(Some((end, payload))) => {
                assert_eq!(end, bytes.len(), "{}", path.display());
                ArraySchema::parse(&payload).map_err(|error| error.to_string())
            }
            Err(error) => Err(error),
        };
        match schema {
            Ok(_) => parsed += 1,
            Err(error) if is_expected(&path, &error) => {}
            Err(error) => errors.push(format!("{}: {error}", path.display())),
        }
    }
    eprintln!("{parsed} schemas, {encrypted} encrypted");
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}
