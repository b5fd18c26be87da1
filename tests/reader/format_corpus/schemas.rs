//! Schemas and enumerations, compared with what libtiledb reads.

use std::path::Path;

use serde_json::{Map, Value, json};
use tilefs_format::datatype::Datatype;
use tilefs_format::enumeration::Enumeration;
use tilefs_format::folder::{ENUMERATIONS, SCHEMAS};
use tilefs_format::pipeline::{Filter, Pipeline, WebpFormat};
use tilefs_format::scalar::{Range, Scalar};
use tilefs_format::schema::{
    ArraySchema, ArrayType, Attribute, CellValNum, DataOrder, Dimension, FIRST_SCHEMA, Layout,
};

use super::corpus::{Corpus, hex, is_expected, listing};

/// Returns the schema of this name in an array's folder.
pub fn schema(corpus: &Corpus, array: &Path, name: &str) -> ArraySchema {
    let path = if name == FIRST_SCHEMA { array.join(name) } else { array.join(SCHEMAS).join(name) };
    ArraySchema::parse(&corpus.payload(&path).unwrap()).unwrap()
}

/// Returns the newest schema: the last by name in the folder of schemas.
fn newest_schema(corpus: &Corpus, array: &Path) -> ArraySchema {
    let mut names = listing(&array.join(SCHEMAS));
    names.retain(|name| name != ENUMERATIONS);
    schema(corpus, array, names.last().map_or(FIRST_SCHEMA, String::as_str))
}

#[test]
fn every_schema_parses() {
    let corpus = Corpus::open();
    let mut parsed = 0;
    let mut errors = Vec::new();
    for path in corpus.files() {
        if !path.ends_with(FIRST_SCHEMA) && !path.parent().unwrap().ends_with(SCHEMAS) {
            continue;
        }
        let schema =
            corpus.payload(&path).and_then(|payload| ArraySchema::parse(&payload).map_err(|error| error.to_string()));
        match schema {
            Ok(_) => parsed += 1,
            Err(error) if is_expected(&path, &error) => {}
            Err(error) => errors.push(format!("{}: {error}", path.display())),
        }
    }
    eprintln!("{parsed} schemas");
    assert!(errors.is_empty(), "{}", errors.join("\n"));
    assert!(parsed > 1000);
}

#[test]
fn schemas_are_what_libtiledb_says() {
    let corpus = Corpus::open();
    let mut compared = 0;
    for object in &corpus.objects {
        let Some(expected) = object.get("schema") else { continue };
        let path = corpus.path(object);
        let schema = newest_schema(&corpus, &path);
        let actual = describe(&schema);
        for (field, expected) in expected.as_object().unwrap() {
            let actual =
                if field == "enumerations" { enumerations(&corpus, &path, &schema) } else { actual[field].clone() };
            assert_eq!(&actual, expected, "{}: {field}", path.display());
        }
        for field in ["current_domain", "enumerations"] {
            let has_it = match field {
                "current_domain" => schema.current_domain.is_some(),
                _ => !schema.enumerations.is_empty(),
            };
            assert_eq!(expected.get(field).is_some(), has_it, "{}: {field}", path.display());
        }
        compared += 1;
    }
    eprintln!("{compared} schemas compared");
    assert!(compared > 1000);
}

#[test]
fn every_enumeration_parses() {
    let corpus = Corpus::open();
    let files = corpus.files_in(ENUMERATIONS);
    for path in &files {
        let enumeration = Enumeration::parse(&corpus.payload(path).unwrap()).unwrap();
        assert!(path.ends_with(&enumeration.file));
        assert_eq!(enumeration.values().count(), enumeration.len());
    }
    eprintln!("{} enumerations", files.len());
    assert!(files.len() > 100);
}

fn enumerations(corpus: &Corpus, array: &Path, schema: &ArraySchema) -> Value {
    let mut all = Map::new();
    for (name, file) in &schema.enumerations {
        let path = array.join(SCHEMAS).join(ENUMERATIONS).join(file);
        let enumeration = Enumeration::parse(&corpus.payload(&path).unwrap()).unwrap();
        assert_eq!(&enumeration.name, name);
        let values: Vec<String> = enumeration.values().map(hex).collect();
        all.insert(
            name.clone(),
            json!({
                "type": enumeration.datatype.name(),
                "cell_val_num": cell_val_num(enumeration.cell_count),
                "ordered": enumeration.ordered,
                "values_hex": values,
            }),
        );
    }
    Value::Object(all)
}

/// Describes a schema in the form of the manifest.
fn describe(schema: &ArraySchema) -> Value {
    json!({
        "array_type": match schema.array_type { ArrayType::Dense => "dense", ArrayType::Sparse => "sparse" },
        "cell_order": layout(schema.cell_order),
        "tile_order": layout(schema.tile_order),
        "capacity": schema.capacity,
        "allows_dups": schema.allows_duplicates,
        "version": schema.version,
        "coords_filters": pipeline(&schema.coords_filters),
        "offsets_filters": pipeline(&schema.offsets_filters),
        "validity_filters": pipeline(&schema.validity_filters),
        "dims": schema.dimensions.iter().map(|dimension| describe_dimension(dimension, schema)).collect::<Vec<_>>(),
        "attrs": schema.attributes.iter().map(describe_attribute).collect::<Vec<_>>(),
        "current_domain": schema.current_domain.as_ref().map(|ranges| ranges.iter().map(range).collect::<Vec<_>>()),
    })
}

fn describe_dimension(dimension: &Dimension, schema: &ArraySchema) -> Value {
    // libtiledb shows the filters that are in effect.
    let own = schema.version < 5 || !dimension.filters.filters.is_empty();
    json!({
        "name": dimension.name,
        "type": dimension.datatype.name(),
        "domain": dimension.domain.as_ref().map(range),
        "extent": dimension.extent.as_ref().map(scalar),
        "filters": pipeline(if own { &dimension.filters } else { &schema.coords_filters }),
    })
}

fn describe_attribute(attribute: &Attribute) -> Value {
    assert_eq!(attribute.order, DataOrder::Unordered);
    let mut description = json!({
        "name": attribute.name,
        "type": attribute.datatype.name(),
        "cell_val_num": cell_val_num(attribute.cell_count),
        "nullable": attribute.nullable,
        "filters": pipeline(&attribute.filters),
        "fill_hex": hex(&attribute.fill),
    });
    if attribute.nullable {
        description["fill_valid"] = json!(attribute.fill_validity);
    }
    if let Some(enumeration) = &attribute.enumeration {
        description["enumeration"] = json!(enumeration);
    }
    description
}

fn cell_val_num(cell_count: CellValNum) -> Value {
    match cell_count {
        CellValNum::Fixed(number) => json!(number),
        CellValNum::Variable => json!("var"),
    }
}

fn layout(layout: Layout) -> &'static str {
    match layout {
        Layout::RowMajor => "row",
        Layout::ColMajor => "col",
        Layout::Hilbert => "hilbert",
    }
}

fn range(range: &Range) -> Value {
    json!([scalar(&range.low), scalar(&range.high)])
}

fn scalar(value: &Scalar) -> Value {
    match value {
        Scalar::Signed(value) => json!(value),
        Scalar::Unsigned(value) => json!(value),
        Scalar::Float32(value) => json!(f64::from(*value)),
        Scalar::Float64(value) => json!(value),
        Scalar::Text(value) => json!(value.iter().copied().map(char::from).collect::<String>()),
    }
}

fn pipeline(pipeline: &Pipeline) -> Value {
    json!({
        "max_chunk_size": pipeline.max_chunk_size,
        "filters": pipeline.filters.iter().map(filter).collect::<Vec<_>>(),
    })
}

fn filter(filter: &Filter) -> Value {
    let name = if matches!(filter, Filter::Noop) { "NONE".into() } else { filter.name() };
    let mut entry = json!({ "type": name });
    let reinterpret = |datatype: &Option<Datatype>| json!(datatype.map_or("ANY", Datatype::name));
    match filter {
        Filter::Gzip { level } | Filter::Zstd { level } | Filter::Lz4 { level } | Filter::Bzip2 { level } => {
            entry["compression_level"] = json!(level);
        }
        Filter::DoubleDelta { reinterpret_datatype: datatype, .. }
        | Filter::Delta { reinterpret_datatype: datatype, .. } => {
            entry["compression_reinterpret_datatype"] = reinterpret(datatype);
        }
        Filter::BitWidthReduction { max_window } => entry["bit_width_max_window"] = json!(max_window),
        Filter::PositiveDelta { max_window } => entry["positive_delta_max_window"] = json!(max_window),
        Filter::ScaleFloat { scale, offset, byte_width } => {
            entry["scale_float_factor"] = json!(scale);
            entry["scale_float_offset"] = json!(offset);
            entry["scale_float_bytewidth"] = json!(byte_width);
        }
        Filter::Webp { quality, format, lossless } => {
            entry["webp_quality"] = json!(quality);
            entry["webp_input_format"] = json!(match format {
                WebpFormat::Unspecified => 0,
                WebpFormat::Rgb => 1,
                WebpFormat::Bgr => 2,
                WebpFormat::Rgba => 3,
                WebpFormat::Bgra => 4,
            });
            entry["webp_lossless"] = json!(u8::from(*lossless));
        }
        _ => {}
    }
    entry
}
