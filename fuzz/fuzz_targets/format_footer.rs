//! Fragment footers and their file names.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilefs_format::fragment::{FragmentField, FieldFiles, FragmentFooter, footer_range, schema_name};
use tilefs_fuzz::schema_and_rest::split;

fuzz_target!(|data: &[u8]| {
    let Some((version, schema, rest)) = split(data) else { return };
    if let Some((last_8, footer)) = rest.split_last_chunk::<8>().map(|(footer, last_8)| (*last_8, footer)) {
        let size = rest.len() as u64;
        if let Ok(range) = footer_range(version, Some(&schema), size, last_8) {
            assert!(range.start < range.end && range.end <= size);
        }
        let _ = schema_name(footer);
    }
    let Ok(footer) = FragmentFooter::parse(rest, version, &schema) else { return };
    let facts = &footer.facts;
    let tiles = facts.tile_count(&schema).unwrap();
    assert!(facts.cells_in_tile(&schema, tiles).is_none());
    facts.cells_in_tile(&schema, 0);
    let dimensions = (0..=schema.dimensions.len()).map(FragmentField::Dimension);
    let fields = (0..=schema.attributes.len()).map(FragmentField::Attribute).chain(dimensions);
    let others = [FragmentField::Coordinates, FragmentField::Timestamps, FragmentField::DeleteTimestamps, FragmentField::DeleteConditionIndex];
    for field in fields.chain(others) {
        assert_eq!(facts.slot(field).is_some(), footer.record(field).is_some());
        if let Ok(files) = FieldFiles::of(field, facts.version, &schema) {
            assert!(!files.data().contains('/'));
        }
    }
});
