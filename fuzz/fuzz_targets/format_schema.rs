//! Array schemas, and the arithmetic on their dimensions.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilefs_format::scalar::Scalar;
use tilefs_format::schema::ArraySchema;
use tilefs_fuzz as _; // for its bounded allocator

fuzz_target!(|data: &[u8]| {
    let Ok(schema) = ArraySchema::parse(data) else { return };
    assert!(!schema.dimensions.is_empty());
    schema.cells_per_dense_tile();
    for dimension in &schema.dimensions {
        if let (Some(domain), Some(last)) = (&dimension.domain, dimension.last_position()) {
            assert_eq!(dimension.tile_number(&domain.low), Some(0));
            assert!(dimension.tile_number(&domain.high).unwrap() <= last);
        }
        dimension.tile_number(&Scalar::Signed(i64::MIN));
        dimension.tile_number(&Scalar::Unsigned(u64::MAX));
    }
    for attribute in &schema.attributes {
        assert!(attribute.cell_size().is_none_or(|size| size == attribute.fill.len()));
        if let Some(enumeration) = &attribute.enumeration {
            assert!(schema.enumeration_file(enumeration).is_some());
        }
    }
});
