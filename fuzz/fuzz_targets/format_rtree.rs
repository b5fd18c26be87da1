//! R-trees: every rectangle that is counted can be had.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilefs::format::fragment::MbrList;
use tilefs_fuzz::schema_and_rest::split;

fuzz_target!(|data: &[u8]| {
    let Some((version, schema, rest)) = split(data) else { return };
    let Ok(list) = MbrList::parse_rtree(rest, version, &schema) else { return };
    for tile in 0..list.len() {
        assert_eq!(list.all_bounds(tile).unwrap().count(), schema.dimensions.len());
        assert!(list.range(tile, schema.dimensions.len() - 1).is_some());
    }
    assert!(list.all_bounds(list.len()).is_none());
    assert!(list.memory() <= 8 * data.len() + 8 * schema.dimensions.len());
});
