//! R-trees: every rectangle can be read, and a descent finds all tiles.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilefs_format::fragment::{Descent, RTree};
use tilefs_fuzz::schema_and_rest::split;

fuzz_target!(|data: &[u8]| {
    let Some((version, schema, rest)) = split(data) else { return };
    let Ok(tree) = RTree::parse(rest.to_vec(), version, &schema) else { return };
    let (mut boxes, mut ranges) = (tree.boxes(), Vec::new());
    for tile in 0..tree.tiles() {
        boxes.read(tile, &mut ranges).unwrap();
        assert_eq!(ranges.len(), schema.dimensions.len());
    }
    assert!(boxes.read(tree.tiles(), &mut ranges).is_err());
    let mut found = 0;
    tree.descend(|_| Ok(Descent::Enter), |tiles| found += tiles.end - tiles.start).unwrap();
    assert_eq!(found, tree.tiles());
    assert!(tree.layout.memory() <= 8 * data.len() + 256 * schema.dimensions.len() + 65536);
});
