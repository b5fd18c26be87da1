//! Parses every metadata file of a corpus of real arrays. The corpus is not part of the project: its folder is
//! taken from `TILEFS_CORPUS`, or from `../shared/corpus`; where there is none, the tests say so and pass.

use std::io::Read;
use std::path::{Path, PathBuf};

use tilefs::format::fragment::{
    EarlyFragment, FRAGMENT_METADATA, Field, FieldFiles, FragmentFacts, FragmentFooter, MbrList, footer_range,
    schema_name, sections,
};
use tilefs::format::generic_tile::GenericTileHeader;
use tilefs::format::name::{NameForm, TimestampedName};
use tilefs::format::schema::{ArraySchema, FIRST_SCHEMA};

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

/// The schema of this name in an array's folder; `None` when it is encrypted.
fn schema(array: &Path, name: &str) -> Option<ArraySchema> {
    let path = if name == FIRST_SCHEMA { array.join(name) } else { array.join("__schema").join(name) };
    let (_, payload) = payload(&std::fs::read(path).unwrap()).unwrap()?;
    Some(ArraySchema::parse(&payload).unwrap())
}

fn file_size(folder: &Path, file: &str) -> u64 {
    std::fs::metadata(folder.join(file)).map_or(0, |metadata| metadata.len())
}

/// Every field that a fragment of these facts can have.
fn fields(facts: &FragmentFacts, schema: &ArraySchema) -> Vec<Field> {
    let attributes = (0..schema.attributes.len()).map(Field::Attribute);
    let dimensions = (0..schema.dimensions.len()).map(Field::Dimension);
    let others = [Field::Coordinates, Field::Timestamps, Field::DeleteTimestamps, Field::DeleteConditionIndex];
    attributes.chain(dimensions).chain(others).filter(|&field| facts.slot(field).is_some()).collect()
}

fn is_variable(field: Field, schema: &ArraySchema) -> bool {
    match field {
        Field::Attribute(number) => schema.attributes[number].is_variable(),
        Field::Dimension(number) => schema.dimensions[number].is_variable(),
        _ => false,
    }
}

/// Recorded sizes are those of the files. Some large files were left out of the corpus.
fn check_files(folder: &Path, files: &FieldFiles, sizes: [u64; 3]) {
    for (file, recorded) in [files.data(), files.var(), files.validity()].into_iter().zip(sizes) {
        if folder.join(&file).exists() {
            assert_eq!(file_size(folder, &file), recorded, "{}/{file}", folder.display());
        } else if recorded > 0 {
            eprintln!("absent: {}/{file}", folder.display());
        }
    }
}

fn check_early(folder: &Path, array: &Path, bytes: &[u8]) -> bool {
    let Some(schema) = schema(array, FIRST_SCHEMA) else { return false };
    let (end, payload) = payload(bytes).unwrap().unwrap();
    assert_eq!(end, bytes.len());
    let has_coordinates = folder.join("__coords.tdb").exists();
    let fragment = EarlyFragment::parse(&payload, has_coordinates, &schema)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let tiles = fragment.facts.tile_count(&schema).unwrap();
    for field in fields(&fragment.facts, &schema) {
        let entry = fragment.field(field).unwrap();
        let files = FieldFiles::of(field, fragment.facts.version, &schema).unwrap();
        check_files(folder, &files, [entry.file_size, entry.var_file_size, 0]);
        if field == Field::Coordinates && fragment.facts.dense {
            continue;
        }
        sections::check_tile_offsets(&entry.tile_offsets, tiles, entry.file_size).unwrap();
        if is_variable(field, &schema) {
            sections::check_tile_offsets(&entry.var_offsets, tiles, entry.var_file_size).unwrap();
            assert_eq!(entry.var_sizes.len() as u64, tiles);
        }
    }
    true
}

fn check_footer(folder: &Path, array: &Path, bytes: &[u8], version: u32) -> bool {
    let first = if version < 10 { schema(array, FIRST_SCHEMA) } else { None };
    if version < 10 && first.is_none() {
        return false;
    }
    let last_8 = bytes[bytes.len() - 8..].try_into().unwrap();
    let range = footer_range(version, first.as_ref(), bytes.len() as u64, last_8).unwrap();
    let footer = &bytes[range.start as usize..range.end as usize];
    let Some(schema) = schema(array, schema_name(footer).unwrap()) else { return false };
    let parsed =
        FragmentFooter::parse(footer, version, &schema).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let facts = &parsed.facts;
    let tiles = facts.tile_count(&schema).unwrap();
    // The sections that were read, to see that they fill the file where all of them are known.
    let mut read = Vec::new();
    let mut section = |offset: u64| {
        let (size, payload) = payload(&bytes[offset as usize..range.start as usize]).unwrap().unwrap();
        read.push((offset, offset + size as u64));
        payload
    };
    let mbrs = MbrList::parse_rtree(&section(facts.rtree_offset.unwrap()), facts.version, &schema).unwrap();
    assert_eq!(mbrs.len() as u64, facts.sparse_tiles);
    for tile in 0..mbrs.len() {
        assert_eq!(mbrs.all_bounds(tile).unwrap().count(), schema.dimensions.len());
        // The MBRs lie in the non-empty domain.
        for (number, range) in facts.non_empty_domain.as_ref().unwrap().iter().enumerate() {
            let mbr = mbrs.range(tile, number).unwrap();
            assert!(range.contains(&mbr.low) && range.contains(&mbr.high), "{}", folder.display());
        }
    }
    let mut slots = vec![false; facts.slot_count()];
    for field in fields(facts, &schema) {
        assert!(!std::mem::replace(&mut slots[facts.slot(field).unwrap()], true));
        let record = parsed.record(field).unwrap();
        let files = FieldFiles::of(field, facts.version, &schema).unwrap();
        check_files(folder, &files, [record.file_size, record.var_file_size, record.validity_file_size]);
        if facts.version < 5 && facts.dense && field == Field::Coordinates {
            section(record.tile_offsets);
            continue;
        }
        sections::parse_tile_offsets(&section(record.tile_offsets), tiles, record.file_size).unwrap();
        if facts.version >= 5 || field != Field::Coordinates {
            sections::parse_tile_offsets(&section(record.var_offsets), tiles, record.var_file_size).unwrap();
            sections::parse_tile_sizes(&section(record.var_sizes), tiles).unwrap();
        }
        if facts.version >= 7 {
            sections::parse_tile_offsets(&section(record.validity_offsets), tiles, record.validity_file_size).unwrap();
        }
    }
    if let Some(offset) = facts.processed_conditions_offset {
        sections::parse_processed_conditions(&section(offset)).unwrap();
    }
    if facts.version >= 5 {
        // Only the slot of the old coordinates belongs to no field.
        let unused: Vec<usize> = (0..slots.len()).filter(|&slot| !slots[slot]).collect();
        assert_eq!(unused, [schema.attributes.len()]);
        let record = &parsed.records[unused[0]];
        for offset in [record.tile_offsets, record.var_offsets, record.var_sizes] {
            section(offset);
        }
        if facts.version >= 7 {
            section(record.validity_offsets);
        }
    }
    if facts.version < 11 {
        read.sort();
        let end = read.iter().try_fold(0, |end, &(start, stop)| (start == end).then_some(stop));
        assert_eq!(end, Some(range.start), "{}", folder.display());
    }
    true
}

#[test]
fn every_fragment_parses() {
    let Some(corpus) = corpus() else { return };
    let (mut parsed, mut encrypted) = (0, 0);
    for path in all_files(&corpus) {
        if path.file_name().unwrap() != FRAGMENT_METADATA {
            continue;
        }
        let folder = path.parent().unwrap();
        let root = folder.parent().unwrap();
        let array = if root.ends_with("__fragments") { root.parent().unwrap() } else { root };
        let name = TimestampedName::parse(folder.file_name().unwrap().to_str().unwrap()).unwrap().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        if REFUSED.iter().any(|(array, _)| path.to_string_lossy().contains(array)) {
            continue;
        }
        let done = match name.form {
            NameForm::One => check_early(folder, array, &bytes),
            _ => check_footer(folder, array, &bytes, name.version),
        };
        *(if done { &mut parsed } else { &mut encrypted }) += 1;
    }
    eprintln!("{parsed} fragments, {encrypted} encrypted");
}
