//! Fragment metadata: every section of every fragment, compared with the files that it describes.

use std::path::Path;

use tilefs_format::folder::{FRAGMENT_METADATA_CACHE, FRAGMENTS};
use tilefs_format::fragment::{
    EarlyFragment, FRAGMENT_METADATA, FieldFiles, FragmentFacts, FragmentField, FragmentFooter, RTree, footer_range,
    parse_consolidated_footers, schema_name, sections,
};
use tilefs_format::name::{NameForm, TimestampedName};
use tilefs_format::schema::{ArraySchema, FIRST_SCHEMA};

use super::corpus::{Corpus, is_refused};
use super::schemas::schema;

fn file_size(folder: &Path, file: &str) -> u64 {
    std::fs::metadata(folder.join(file)).map_or(0, |metadata| metadata.len())
}

/// Returns every field that a fragment with these facts can have.
fn fields(facts: &FragmentFacts, schema: &ArraySchema) -> Vec<FragmentField> {
    let attributes = (0..schema.attributes.len()).map(FragmentField::Attribute);
    let dimensions = (0..schema.dimensions.len()).map(FragmentField::Dimension);
    let others = [
        FragmentField::Coordinates,
        FragmentField::Timestamps,
        FragmentField::DeleteTimestamps,
        FragmentField::DeleteConditionIndex,
    ];
    attributes.chain(dimensions).chain(others).filter(|&field| facts.slot(field).is_some()).collect()
}

fn is_variable(field: FragmentField, schema: &ArraySchema) -> bool {
    match field {
        FragmentField::Attribute(number) => schema.attributes[number].is_variable(),
        FragmentField::Dimension(number) => schema.dimensions[number].is_variable(),
        _ => false,
    }
}

/// Checks that recorded sizes are those of the files. Some large files were left out of the corpus.
fn check_files(folder: &Path, files: &FieldFiles, sizes: [u64; 3]) {
    for (file, recorded) in [files.data(), files.var(), files.validity()].into_iter().zip(sizes) {
        if folder.join(&file).exists() {
            assert_eq!(file_size(folder, &file), recorded, "{}/{file}", folder.display());
        } else if recorded > 0 {
            eprintln!("absent: {}/{file}", folder.display());
        }
    }
}

fn check_early(corpus: &Corpus, folder: &Path, array: &Path) {
    let schema = schema(corpus, array, FIRST_SCHEMA);
    let payload = corpus.payload(&folder.join(FRAGMENT_METADATA)).unwrap();
    let has_coordinates = folder.join("__coords.tdb").exists();
    let fragment = EarlyFragment::parse(&payload, has_coordinates, &schema)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let tiles = fragment.facts.tile_count(&schema).unwrap();
    for field in fields(&fragment.facts, &schema) {
        let entry = fragment.field(field).unwrap();
        let files = FieldFiles::of(field, fragment.facts.version, &schema).unwrap();
        check_files(folder, &files, [entry.file_size, entry.var_file_size, 0]);
        if field == FragmentField::Coordinates && fragment.facts.dense {
            continue;
        }
        sections::check_tile_offsets(&entry.tile_offsets, tiles, entry.file_size).unwrap();
        if is_variable(field, &schema) {
            sections::check_tile_offsets(&entry.var_offsets, tiles, entry.var_file_size).unwrap();
            assert_eq!(entry.var_sizes.len() as u64, tiles);
        }
    }
}

fn check_footer(corpus: &Corpus, folder: &Path, array: &Path, version: u32) {
    let path = folder.join(FRAGMENT_METADATA);
    let bytes = &std::fs::read(&path).unwrap()[..];
    let first = (version < 10).then(|| schema(corpus, array, FIRST_SCHEMA));
    let last_8 = bytes[bytes.len() - 8..].try_into().unwrap();
    let range = footer_range(version, first.as_ref(), bytes.len() as u64, last_8).unwrap();
    let footer = &bytes[range.start as usize..range.end as usize];
    let schema = schema(corpus, array, schema_name(footer).unwrap());
    let parsed =
        FragmentFooter::parse(footer, version, &schema).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let facts = &parsed.facts;
    let tiles = facts.tile_count(&schema).unwrap();
    // The byte ranges of the sections read, to check that they fill the file if all sections are known.
    let mut read = Vec::new();
    let mut section = |offset: u64| {
        let section = &bytes[offset as usize..range.start as usize];
        let (payload, size) = corpus.payload_at_start(&path, section).unwrap();
        read.push((offset, offset + size as u64));
        payload
    };
    let mbrs = RTree::parse(section(facts.rtree_offset().unwrap()), facts.version, &schema).unwrap();
    assert_eq!(mbrs.tiles(), facts.sparse_tiles);
    for tile in 0..mbrs.tiles() {
        assert!(mbrs.range(tile, schema.dimensions.len()).is_err());
        // The MBRs lie in the non-empty domain, as far as its ends are known to hold.
        for (number, range) in facts.covering_ranges().unwrap().iter().enumerate() {
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
        if facts.version < 5 && facts.dense && field == FragmentField::Coordinates {
            section(record.tile_offsets);
            continue;
        }
        sections::parse_tile_offsets(&section(record.tile_offsets), tiles, record.file_size).unwrap();
        if facts.version >= 5 || field != FragmentField::Coordinates {
            sections::parse_tile_offsets(&section(record.var_offsets), tiles, record.var_file_size).unwrap();
            sections::parse_tile_sizes(&section(record.var_sizes), tiles).unwrap();
        }
        if facts.version >= 7 {
            sections::parse_tile_offsets(&section(record.validity_offsets), tiles, record.validity_file_size).unwrap();
        }
    }
    if let Some(offset) = parsed.statistics_offset {
        let extremes = sections::parse_extremes(&section(offset), facts.slot_count()).unwrap();
        // The least text may be an empty one.
        for field in fields(facts, &schema).into_iter().filter(|field| !is_variable(*field, &schema)) {
            let one = &extremes[facts.slot(field).unwrap()];
            assert_eq!(one.least.is_empty(), one.greatest.is_empty());
        }
    }
    if let Some(offset) = facts.processed_conditions_offset() {
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
}

#[test]
fn every_fragment_parses() {
    let corpus = Corpus::open();
    let mut parsed = 0;
    for path in corpus.files() {
        if !path.ends_with(FRAGMENT_METADATA) || is_refused(&path) {
            continue;
        }
        let folder = path.parent().unwrap();
        let root = folder.parent().unwrap();
        let array = if root.ends_with(FRAGMENTS) { root.parent().unwrap() } else { root };
        let name = TimestampedName::parse(folder.file_name().unwrap().to_str().unwrap()).unwrap().unwrap();
        match name.form {
            NameForm::One => check_early(&corpus, folder, array),
            _ => check_footer(&corpus, folder, array, name.version),
        }
        parsed += 1;
    }
    eprintln!("{parsed} fragments");
    assert!(parsed > 2000);
}

/// From version 10, a copy of a footer equals the fragment's own footer.
#[test]
fn consolidated_footers_are_those_of_the_fragments() {
    let corpus = Corpus::open();
    let mut compared = 0;
    for path in corpus.files_in(FRAGMENT_METADATA_CACHE) {
        let array = path.parent().unwrap().parent().unwrap();
        let payload = corpus.payload(&path).unwrap();
        let copies = parse_consolidated_footers(&payload).unwrap();
        assert!(!copies.is_empty(), "{}", path.display());
        for copy in copies {
            let folders = [array.join(FRAGMENTS).join(copy.name), array.join(copy.name)];
            let Some(folder) = folders.into_iter().find(|folder| folder.exists()) else { continue };
            let version = TimestampedName::parse(copy.name).unwrap().unwrap().version;
            if version < 10 {
                continue;
            }
            let bytes = std::fs::read(folder.join(FRAGMENT_METADATA)).unwrap();
            let last_8 = *bytes.last_chunk().unwrap();
            let range = footer_range(version, None, bytes.len() as u64, last_8).unwrap();
            let own = &bytes[range.start as usize..range.end as usize];
            let schema = schema(&corpus, array, schema_name(own).unwrap());
            let parsed = |footer: &[u8]| FragmentFooter::parse(footer, version, &schema).unwrap();
            assert_eq!(schema_name(copy.footer).unwrap(), schema_name(own).unwrap());
            assert_eq!(parsed(copy.footer), parsed(own), "{}", folder.display());
            compared += 1;
        }
    }
    eprintln!("{compared} copies compared");
    assert!(compared > 20, "{compared} copies were compared");
}
