//! Tests of schema parsing: written schemas are read back, and wrong ones are refused.

use super::*;
use crate::datatype::Datatype;
use crate::pipeline::Filter;
use crate::scalar::Scalar;
use proptest::prelude::*;

/// Returns a sparse schema with every feature of its version.
fn rich(version: u32) -> ArraySchema {
    let filters = Pipeline { max_chunk_size: 65536, filters: vec![Filter::Byteshuffle, Filter::Zstd { level: -1 }] };
    let mut schema = ArraySchema { version, coords_filters: filters.clone(), ..fixture::sparse() };
    schema.attributes.push(fixture::attribute("c", Datatype::Char, CellValNum::Fixed(3)));
    schema.attributes.push(fixture::attribute("", Datatype::Int64, CellValNum::Variable));
    schema.attributes[0].filters = filters.clone();
    if version >= 5 {
        schema.allows_duplicates = true;
        schema.dimensions.push(fixture::string_dimension("name"));
        schema.dimensions[0].filters = filters.clone();
    }
    if version >= 6 {
        schema.attributes[0].fill = vec![1, 2, 3, 4, 5, 6, 7, 8];
    }
    if version >= 7 {
        schema.validity_filters = filters;
        schema.attributes[1].nullable = true;
        schema.attributes[1].fill_validity = 1;
    }
    if version >= 17 {
        schema.attributes[0].order = DataOrder::Decreasing;
    }
    if version >= 18 {
        schema.labels.push(DimensionLabel {
            dimension: 1,
            name: "label".to_owned(),
            relative: true,
            uri: "__labels/l0".to_owned(),
            attribute: "label".to_owned(),
            order: DataOrder::Increasing,
            datatype: Datatype::Float64,
            cell_count: CellValNum::Fixed(1),
            external: false,
        });
    }
    if version >= 20 {
        schema.enumerations.push(("colours".to_owned(), "__0123_0".to_owned()));
        schema.attributes[3].enumeration = Some("colours".to_owned());
    }
    if version >= 22 {
        let text = |text: &str| Scalar::Text(text.as_bytes().to_vec());
        schema.current_domain = Some(vec![
            Range { low: Scalar::Signed(1), high: Scalar::Signed(5) },
            Range { low: Scalar::Signed(0), high: Scalar::Signed(0) },
            Range { low: text("a"), high: text("zzz") },
        ]);
    }
    schema
}

fn refused(schema: &ArraySchema) -> String {
    ArraySchema::parse(&fixture::write(schema)).expect_err("a schema that is wrong").to_string()
}

#[test]
fn every_version_round_trips_and_truncations_fail() {
    for version in 1..=23 {
        let schema = rich(version);
        let bytes = fixture::write(&schema);
        assert_eq!(ArraySchema::parse(&bytes).unwrap(), schema, "version {version}");
        for cut in 0..bytes.len() {
            assert!(ArraySchema::parse(&bytes[..cut]).is_err(), "version {version}, {cut} bytes");
        }
        let more = [bytes, vec![0]].concat();
        assert!(ArraySchema::parse(&more).unwrap_err().to_string().contains("too many"));
    }
}

#[test]
fn other_versions_are_refused_by_number() {
    let refused = |version: u32| {
        let mut bytes = fixture::write(&rich(22));
        bytes[..4].copy_from_slice(&version.to_le_bytes());
        ArraySchema::parse(&bytes).unwrap_err()
    };
    for version in [24, 9999] {
        let error = refused(version);
        assert!(matches!(error, Error::Unsupported { .. }));
        assert!(error.to_string().contains(&version.to_string()), "{error}");
    }
    // There was never a version 0.
    assert!(matches!(refused(0), Error::Damaged { .. }));
}

#[test]
fn implied_fill_values() {
    let schema = ArraySchema::parse(&fixture::write(&rich(5))).unwrap();
    let fills: Vec<&[u8]> = schema.attributes.iter().map(|attribute| attribute.fill.as_slice()).collect();
    assert_eq!(fills, [&[0, 0, 0, 0, 0, 0, 0xf8, 0x7f][..], &[0], &[0x80; 3], &[0, 0, 0, 0, 0, 0, 0, 0x80]]);
    assert_eq!(schema.attributes[2].cell_size(), Some(3));
    assert_eq!(schema.attributes[3].cell_size(), None);
}

#[test]
fn huge_implied_fill_values_are_not_allocated() {
    let mut schema = rich(5);
    schema.attributes[0].cell_count = CellValNum::Fixed(u32::MAX - 1);
    let error = refused(&schema);
    assert!(error.contains("not supported") && error.contains("field a"), "{error}");
}

#[test]
fn contradictions_are_refused() {
    type Spoil = fn(&mut ArraySchema);
    let cases: [(&str, Spoil); 15] = [
        ("two fields of this name", |schema| schema.attributes[1].name = "rows".to_owned()),
        ("two fields of this name", |schema| schema.labels[0].name = "a".to_owned()),
        ("no enumeration \"colours\"", |schema| schema.enumerations.clear()),
        ("two enumerations", |schema| schema.enumerations.push(schema.enumerations[0].clone())),
        ("enumeration file", |schema| schema.enumerations[0].1 = "../x".to_owned()),
        ("no cell per tile", |schema| schema.capacity = 0),
        ("Hilbert order of tiles", |schema| schema.tile_order = Layout::Hilbert),
        ("tile extent", |schema| schema.dimensions[0].extent = Some(Scalar::Signed(0))),
        ("tile extent", |schema| schema.dimensions[0].extent = Some(Scalar::Signed(11))),
        ("domain from 3 to 2", |schema| {
            schema.dimensions[0].domain = Some(Range { low: Scalar::Signed(3), high: Scalar::Signed(2) });
        }),
        ("current domain from 0", |schema| {
            schema.current_domain.as_mut().unwrap()[0].low = Scalar::Signed(0);
        }),
        ("fill value of 7 bytes", |schema| schema.attributes[0].fill.truncate(7)),
        ("fill value of 0 bytes", |schema| schema.attributes[3].fill.clear()),
        ("label of dimension 3", |schema| schema.labels[0].dimension = 3),
        ("no dimensions", |schema| {
            schema.dimensions.clear();
            schema.current_domain = None;
        }),
    ];
    for (reason, spoil) in cases {
        let mut schema = rich(22);
        spoil(&mut schema);
        let error = refused(&schema);
        assert!(error.contains(reason), "wanted {reason}, got {error}");
    }
}

#[test]
fn dense_schemas_have_more_rules() {
    let dense = fixture::dense();
    assert_eq!(ArraySchema::parse(&fixture::write(&dense)).unwrap(), dense);
    let mut schema = dense.clone();
    schema.attributes.clear();
    assert!(refused(&schema).contains("without attributes"));
    let mut schema = dense.clone();
    schema.cell_order = Layout::Hilbert;
    assert!(refused(&schema).contains("Hilbert"));
    let mut schema = dense.clone();
    schema.dimensions[1].datatype = Datatype::Int64;
    assert!(refused(&schema).contains("several types"));
    let mut schema = dense.clone();
    schema.dimensions.truncate(1);
    schema.dimensions[0].datatype = Datatype::Float64;
    schema.dimensions[0].domain = Some(Range { low: Scalar::Float64(0.0), high: Scalar::Float64(1.0) });
    schema.dimensions[0].extent = Some(Scalar::Float64(0.5));
    assert!(refused(&schema).contains("FLOAT64 dimensions"));
    schema.array_type = ArrayType::Sparse;
    assert!(ArraySchema::parse(&fixture::write(&schema)).is_ok());
    schema.dimensions[0].domain = Some(Range { low: Scalar::Float64(f64::NAN), high: Scalar::Float64(1.0) });
    assert!(refused(&schema).contains("NaN"));
    let mut schema = dense;
    schema.capacity = 0;
    assert!(ArraySchema::parse(&fixture::write(&schema)).is_ok(), "dense arrays have no use for the capacity");
}

#[test]
fn odd_dimensions_are_named() {
    let mut schema = rich(22);
    schema.dimensions[2].datatype = Datatype::StringUtf8;
    assert!(refused(&schema).contains("any number of STRING_UTF8 a cell (field name"));
    let mut schema = rich(22);
    schema.dimensions[2].extent = Some(Scalar::Text(b"x".to_vec()));
    assert!(refused(&schema).contains("string dimension with a tile extent"));
    let mut schema = rich(22);
    schema.dimensions[0].cell_count = CellValNum::Fixed(2);
    assert!(refused(&schema).contains("2 INT32 a cell"));
}

#[test]
fn names_that_are_not_utf8_are_refused_with_their_place() {
    let mut bytes = fixture::write(&rich(22));
    let at = bytes.windows(4).position(|window| window == b"rows").unwrap();
    bytes[at] = 0xff;
    let error = ArraySchema::parse(&bytes).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }));
    assert!(error.to_string().contains("not UTF-8 (field ") && !error.to_string().contains("ows"), "{error}");
}

#[test]
fn anonymous_dimensions_have_numbers() {
    let mut schema = fixture::sparse();
    schema.dimensions[1].name.clear();
    let first = schema.dimensions[0].name.clone();
    assert_eq!(schema.dimension_names().collect::<Vec<_>>(), [first.as_str(), "__dim_1"]);
}

#[test]
fn tiles_of_a_dimension() {
    let rows = fixture::dimension("rows", 1, 10, 4);
    let numbers: Vec<_> = [0, 1, 4, 5, 10, 12, 13].map(|row| rows.tile_number(&Scalar::Signed(row))).into();
    assert_eq!(numbers, [None, Some(0), Some(0), Some(1), Some(2), Some(2), Some(3)]);
    assert_eq!((rows.last_position(), rows.extent_length()), (Some(9), Some(4)));
    let mut whole = fixture::dimension("whole", i64::MIN, i64::MAX, 1);
    whole.datatype = Datatype::Int64;
    assert_eq!(whole.last_position(), Some(u64::MAX));
    assert_eq!(whole.tile_number(&Scalar::Signed(i64::MAX)), Some(u64::MAX));
    whole.extent = None;
    assert_eq!(whole.tile_number(&Scalar::Signed(i64::MAX)), Some(0));
    assert_eq!(fixture::dense().cells_per_dense_tile(), Some(28));
}

/// If the user gives no extent, writers store the length of the domain, however large.
#[test]
fn extents_beyond_half_of_a_type_wrap_around() {
    let parsed = |datatype: Datatype, low: i64, high: i64, extent: i64| {
        let mut schema = fixture::sparse();
        schema.dimensions[0] = fixture::dimension("rows", low, high, extent);
        schema.dimensions[0].datatype = datatype;
        ArraySchema::parse(&fixture::write(&schema)).map(|schema| schema.dimensions[0].clone())
    };
    for (datatype, low, high, extent, length) in [
        (Datatype::Int8, -100, 100, -55, 201),
        (Datatype::Int8, -128, 126, -1, 255),
        (Datatype::Int16, -20_000, 30_000, 50_001 - (1 << 16), 50_001),
        (Datatype::Int32, i64::from(i32::MIN), i64::from(i32::MAX) - 1, -1, u64::from(u32::MAX)),
        (Datatype::Int64, -(1 << 62), 1 << 62, i64::MIN + 1, (1 << 63) + 1),
        (Datatype::DateTimeNs, i64::MIN + 1, i64::MAX, -1, u64::MAX),
        (Datatype::TimeSec, i64::MIN, i64::MAX, -5, u64::MAX - 4),
    ] {
        let dimension = parsed(datatype, low, high, extent).unwrap();
        assert_eq!(dimension.extent, Some(Scalar::Signed(extent)));
        assert_eq!(dimension.extent_length(), Some(length));
        assert_eq!(dimension.unwrapped_extent(), Some(Scalar::Unsigned(length)));
        let last = dimension.last_position().unwrap();
        assert_eq!(dimension.tile_number(&Scalar::Signed(high)), Some(last / length));
    }
    for (datatype, low, high, extent) in
        [(Datatype::Int8, -100, 99, -55), (Datatype::Int8, -100, 100, 0), (Datatype::Int64, -5, 5, -1)]
    {
        let error = parsed(datatype, low, high, extent).unwrap_err().to_string();
        assert!(error.contains(&format!("tile extent {extent} in a domain")), "{error}");
    }
}

proptest! {
    /// Compares with 128-bit arithmetic.
    #[test]
    fn tile_numbers_are_exact(low in any::<i64>(), high in any::<i64>(), extent in 1..=i64::MAX, value in any::<i64>()) {
        let (low, high) = (low.min(high), low.max(high));
        let mut dimension = fixture::dimension("d", low, high, extent);
        dimension.datatype = Datatype::Int64;
        let expected = (value >= low).then(|| ((i128::from(value) - i128::from(low)) / i128::from(extent)) as u64);
        prop_assert_eq!(dimension.tile_number(&Scalar::Signed(value)), expected);
    }

    #[test]
    fn flipped_bytes_never_panic(version in 1u32..=23, at in any::<prop::sample::Index>(), value in any::<u8>()) {
        let mut bytes = fixture::write(&rich(version));
        let at = at.index(bytes.len());
        bytes[at] = value;
        let _ = ArraySchema::parse(&bytes);
    }
}
