//! Fragment metadata of format versions 1 and 2. The version in the input decides whether the fragment has coordinates.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilefs_format::fragment::EarlyFragment;
use tilefs_fuzz::schema_and_rest::split;

fuzz_target!(|data: &[u8]| {
    let Some((version, schema, rest)) = split(data) else { return };
    if let Ok(fragment) = EarlyFragment::parse(rest, version == 2, &schema) {
        fragment.facts.tile_count(&schema).unwrap();
        assert_eq!(fragment.fields.len(), schema.attributes.len() + 1);
    }
});
