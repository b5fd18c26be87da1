//! schema.json: all information about an array, for programs.
//!
//! One object. Numbers are exact; non-finite numbers are strings (`"nan"`, `"inf"`). Dates and times are counts of
//! `unit` since 1970 or midnight, accompanied by ISO 8601 (`domain_text`). Integers beyond 2^53, which many programs
//! read as doubles, are repeated as text, under their key with the suffix `_text`; `about_integers` states this.
//! Inapplicable keys are omitted; unknown values are `null`. The lists of files are limited in arrays of very many
//! attributes, whose files are also listed with each attribute; the numbers of omitted entries are `files_left_out` and
//! `not_listed_left_out`.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value, json};
use tilefs_base::hex::hex;
use tilefs_export::Labels;
use tilefs_format::datatype::Datatype;
use tilefs_format::scalar::{Range, Scalar};
use tilefs_format::schema::{Attribute, CellValNum, DataOrder, Dimension, DimensionLabel, Layout};
use tilefs_format::text::is_text;
use tilefs_reader::array::sparse::RowCount;
use tilefs_select::coordinate_text;
use tilefs_select::time;
use tilefs_threads::cancellation;

use super::description::{CellsSummary, Description};
use crate::cells::axis_summary::AxisSummary;
use crate::cells::dense::CoveredBox;
use crate::views::files::FileFacts;
use crate::wording::filters::pipeline_json;
use crate::wording::value::{scalar_json, text_json, values_json, with_large_integers_as_text};

/// Maximum memory that the labels of all enumerations take while the text is made. Enumerations that do not fit are
/// replaced by their number of labels: `enums/` has them.
const MAX_LABELS: usize = 16 << 20;

/// Maximum number of attributes, and of dimensions, whose files are in the list of all files: the list would be longer
/// than the rest of the text, and programs read the text as a whole.
const MAX_FIELDS: usize = 1000;

/// Maximum number of reasons why there is no file.
const MAX_REASONS: usize = 10_000;

/// Memory that a label takes in addition to its bytes.
const LABEL_OVERHEAD: usize = 48;
/// A hint for programs that read the numbers.
const ABOUT_INTEGERS: &str = "exact; those beyond 2^53, which doubles cannot represent, are also text under KEY_text";

/// Returns the text of schema.json.
pub fn schema_json(description: &Description<'_>) -> String {
    let mut text = serde_json::to_string_pretty(&with_large_integers_as_text(object(description))).unwrap_or_default();
    text.push('\n');
    text
}

fn object(description: &Description<'_>) -> Value {
    let schema = description.schema;
    let mut all = Map::new();
    let mut put = |key: &str, value: Value| all.insert(key.to_owned(), value);
    put("tilefs_version", env!("CARGO_PKG_VERSION").into());
    put("about_integers", ABOUT_INTEGERS.into());
    put("path", description.path.clone().into());
    put("array_type", if schema.is_sparse() { "sparse" } else { "dense" }.into());
    put("format_version", schema.version.into());
    if let Some(selection) = &description.selection {
        put("selection", selection.clone().into());
    }
    put("shape", description.shape().into());
    cells(description, &mut put);
    put("tile_order", layout_name(schema.tile_order).into());
    put("cell_order", layout_name(schema.cell_order).into());
    put("time", times(description));
    put("fragments", description.fragments.into());
    let numbers = 0..schema.dimensions.len();
    put("dimensions", numbers.map(|number| dimension(description, number)).collect());
    // A text that nobody waits for is not kept.
    let attributes = schema.attributes.iter().take_while(|_| !cancellation::is_cancelled());
    put("attributes", attributes.map(|one| attribute(description, one)).collect());
    put("coordinate_filters", pipeline_json(&schema.coords_filters));
    put("offset_filters", pipeline_json(&schema.offsets_filters));
    put("validity_filters", pipeline_json(&schema.validity_filters));
    if !schema.labels.is_empty() {
        put("dimension_labels", schema.labels.iter().map(label).collect());
    }
    if !schema.enumerations.is_empty() {
        let mut space = MAX_LABELS;
        put("enumerations", description.enumerations.iter().map(|one| enumeration(one, &mut space)).collect());
    }
    put_lists(description, &mut put);
    put("warnings", description.warnings.clone().into());
    Value::Object(all)
}

/// Adds the list of all files and that of files that do not exist, and how many entries each lacks.
fn put_lists(description: &Description<'_>, put: &mut impl FnMut(&str, Value) -> Option<Value>) {
    let first = first_fields(description);
    let (mut files, mut left_out) = (Vec::new(), 0);
    for one in description.files.iter().take_while(|_| !cancellation::is_cancelled()) {
        match one.field.as_deref().is_none_or(|field| first.contains(field)) {
            true => files.push(file(one)),
            false => left_out += 1,
        }
    }
    put("files", files.into());
    let not_listed = description.not_listed.iter().take(MAX_REASONS);
    put("not_listed", not_listed.map(|(path, reason)| json!({"path": path, "reason": reason})).collect());
    let reasons_left_out = description.not_listed.len().saturating_sub(MAX_REASONS);
    for (key, count) in [("files_left_out", left_out), ("not_listed_left_out", reasons_left_out)] {
        if count > 0 {
            put(key, count.into());
        }
    }
}

/// Returns the names of the fields whose files are in the list of all files.
fn first_fields<'a>(description: &'a Description<'_>) -> HashSet<Cow<'a, str>> {
    let schema = description.schema;
    let attributes = schema.attributes.iter().map(|attribute| attribute.name.as_str().into());
    attributes.take(MAX_FIELDS).chain(schema.dimension_names().take(MAX_FIELDS)).collect()
}

/// Adds which cells the files hold.
fn cells(description: &Description<'_>, put: &mut impl FnMut(&str, Value) -> Option<Value>) {
    let schema = description.schema;
    match &description.cells {
        CellsSummary::Dense { axes, covers } => {
            let firsts = axes.iter().zip(&schema.dimensions);
            let origin = firsts.map(|(axis, dimension)| optional_scalar(dimension.datatype, axis.first.as_ref()));
            put("origin", origin.collect());
            put("covers", covers_name(*covers).into());
            put("file_order", "row-major".into());
        }
        CellsSummary::Sparse { rows, non_empty, matrix } => {
            put("rows", rows.and_then(RowCount::exact).into());
            if let Some(RowCount::AtMost(most)) = rows {
                put("rows_at_most", (*most).into());
            }
            if let Some(lengths) = matrix {
                put("matrix", lengths.to_vec().into());
            }
            put("file_order", "one row per cell, in the same order in every file".into());
            if let Some(ranges) = non_empty {
                let ranges = ranges.iter().zip(&schema.dimensions);
                put("non_empty_domain", ranges.map(|(range, one)| range_json(one.datatype, range)).collect());
            }
            put("capacity", schema.capacity.into());
            put("allows_duplicates", schema.allows_duplicates.into());
        }
    }
}

fn times(description: &Description<'_>) -> Value {
    let mut times = Map::new();
    let mut put = |key: &str, moment: Option<u64>| {
        times.insert(format!("{key}_ms"), moment.into());
        times.insert(key.to_owned(), moment.map(time::extended).into());
    };
    put("from", Some(description.window.start).filter(|&start| start > 0));
    put("until", Some(description.window.end).filter(|&end| end < u64::MAX));
    put("last_commit", description.last_commit);
    Value::Object(times)
}

fn dimension(description: &Description<'_>, number: usize) -> Value {
    let schema = description.schema;
    let Some(dimension) = schema.dimensions.get(number) else { return Value::Null };
    let datatype = dimension.datatype;
    let mut all = typed(&schema.dimension_name(number), datatype);
    if dimension.name.is_empty() {
        all.insert("anonymous".to_owned(), true.into());
    }
    if dimension.cell_count == CellValNum::Variable {
        all.insert("values_per_cell".to_owned(), "variable".into());
    }
    if let Some(domain) = &dimension.domain {
        put_range(&mut all, "domain", datatype, domain);
    }
    if let Some(range) = schema.current_domain.as_ref().and_then(|ranges| ranges.get(number)) {
        put_range(&mut all, "current_domain", datatype, range);
    }
    all.insert("tile_extent".to_owned(), optional_scalar(datatype, dimension.unwrapped_extent().as_ref()));
    if let CellsSummary::Dense { axes, .. } = &description.cells
        && let Some(axis) = axes.get(number)
    {
        all.insert("shown".to_owned(), shown(axis, dimension));
    }
    all.insert("filters".to_owned(), pipeline_json(&dimension.filters));
    put_files(&mut all, description, &schema.dimension_name(number));
    Value::Object(all)
}

fn shown(axis: &AxisSummary, dimension: &Dimension) -> Value {
    let datatype = dimension.datatype;
    let mut all = Map::new();
    all.insert("count".to_owned(), axis.length.into());
    for (key, coordinate) in [("first", &axis.first), ("last", &axis.last)] {
        all.insert(key.to_owned(), optional_scalar(datatype, coordinate.as_ref()));
        if let Some(text) = coordinate.as_ref().filter(|_| datatype.time_unit().is_some()) {
            all.insert(format!("{key}_text"), coordinate_text(datatype, text).into());
        }
    }
    all.insert("step".to_owned(), axis.step.into());
    Value::Object(all)
}

fn attribute(description: &Description<'_>, attribute: &Attribute) -> Value {
    let mut all = typed(&attribute.name, attribute.datatype);
    let mut put = |key: &str, value: Value| all.insert(key.to_owned(), value);
    put(
        "values_per_cell",
        match attribute.cell_count {
            CellValNum::Fixed(count) => count.into(),
            CellValNum::Variable => "variable".into(),
        },
    );
    put("nullable", attribute.nullable.into());
    put("fill", values_json(attribute.datatype, &attribute.fill));
    put("fill_hex", hex(&attribute.fill).into());
    if attribute.nullable {
        put("fill_is_valid", (attribute.fill_validity != 0).into());
    }
    if let Some(enumeration) = &attribute.enumeration {
        put("enumeration", enumeration.clone().into());
    }
    if let Some(order) = order_name(attribute.order) {
        put("order", order.into());
    }
    put("filters", pipeline_json(&attribute.filters));
    put_files(&mut all, description, &attribute.name);
    Value::Object(all)
}

fn label(label: &DimensionLabel) -> Value {
    let mut all = typed(&label.name, label.datatype);
    all.insert("dimension_number".to_owned(), label.dimension.into());
    all.insert("order".to_owned(), order_name(label.order).into());
    all.insert("uri".to_owned(), label.uri.clone().into());
    all.insert("attribute".to_owned(), label.attribute.clone().into());
    Value::Object(all)
}

fn enumeration(labels: &Labels, space: &mut usize) -> Value {
    let mut all = typed(&labels.name, labels.datatype);
    all.insert("ordered".to_owned(), labels.ordered.into());
    all.insert("count".to_owned(), labels.values.len().into());
    let bytes: usize = labels.values.iter().map(Vec::len).sum();
    let needed = 2 * bytes + labels.values.len() * LABEL_OVERHEAD;
    if let Some(left) = space.checked_sub(needed) {
        *space = left;
        let shown = |label: &Vec<u8>| match is_text(labels.datatype) {
            true => text_json(labels.datatype, label),
            false => values_json(labels.datatype, label),
        };
        all.insert("labels".to_owned(), labels.values.iter().map(shown).collect());
    }
    Value::Object(all)
}

/// Returns the keys with which every field begins.
fn typed(name: &str, datatype: Datatype) -> Map<String, Value> {
    let mut all = Map::new();
    all.insert("name".to_owned(), name.into());
    all.insert("datatype".to_owned(), datatype.name().into());
    if let Some(unit) = datatype.time_unit() {
        all.insert("unit".to_owned(), unit.symbol().into());
    }
    all
}

fn put_files(all: &mut Map<String, Value>, description: &Description<'_>, field: &str) {
    let files: Vec<&str> = description.files_of(field).map(|file| file.path.as_str()).collect();
    all.insert("files".to_owned(), files.into());
}

fn put_range(all: &mut Map<String, Value>, key: &str, datatype: Datatype, range: &Range) {
    all.insert(key.to_owned(), range_json(datatype, range));
    if datatype.time_unit().is_some() {
        let ends = [&range.low, &range.high].map(|end| coordinate_text(datatype, end));
        all.insert(format!("{key}_text"), ends.to_vec().into());
    }
}

fn range_json(datatype: Datatype, range: &Range) -> Value {
    [&range.low, &range.high].into_iter().map(|end| scalar_json(datatype, end)).collect()
}

fn optional_scalar(datatype: Datatype, scalar: Option<&Scalar>) -> Value {
    scalar.map_or(Value::Null, |scalar| scalar_json(datatype, scalar))
}

fn file(file: &FileFacts) -> Value {
    let mut all = Map::new();
    all.insert("path".to_owned(), file.path.clone().into());
    all.insert("format".to_owned(), file.view.name.into());
    if let Some(field) = &file.field {
        all.insert("field".to_owned(), (&**field).into());
    }
    all.insert("bytes".to_owned(), file.bytes.into());
    if !file.is_listed() {
        all.insert("listed".to_owned(), false.into());
    }
    Value::Object(all)
}

fn covers_name(covers: CoveredBox) -> &'static str {
    match covers {
        CoveredBox::Domain => "domain",
        CoveredBox::CurrentDomain => "current domain",
        CoveredBox::NonEmpty => "non-empty domain",
        CoveredBox::Selection => "selection",
    }
}

/// Returns the name of an order of tiles or cells.
pub fn layout_name(layout: Layout) -> &'static str {
    match layout {
        Layout::RowMajor => "row-major",
        Layout::ColMajor => "column-major",
        Layout::Hilbert => "hilbert",
    }
}

fn order_name(order: DataOrder) -> Option<&'static str> {
    match order {
        DataOrder::Unordered => None,
        DataOrder::Increasing => Some("increasing"),
        DataOrder::Decreasing => Some("decreasing"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::texts::testing;

    fn parsed(description: &Description<'_>) -> Value {
        serde_json::from_str(&schema_json(description)).unwrap()
    }

    #[test]
    fn a_dense_array_is_described_in_full() {
        let schema = testing::dense_schema();
        let all = parsed(&testing::dense(&schema));
        assert_eq!(all["array_type"], "dense");
        assert_eq!(all["format_version"], 22);
        assert_eq!(all["shape"], json!([100, 50]));
        assert_eq!(all["origin"], json!([-5, 0]));
        assert_eq!(all["covers"], "domain");
        assert_eq!(all["time"]["until"], "2024-01-31T10:15:00.000Z");
        assert_eq!(all["time"]["from_ms"], Value::Null);
        let y = &all["dimensions"][0];
        assert_eq!(y["domain"], json!([-5, 94]));
        assert_eq!(y["tile_extent"], 10);
        assert_eq!(y["shown"], json!({"count": 100, "first": -5, "last": 94, "step": 1}));
        assert_eq!(y["files"], json!(["dims/y.i32"]));
        let temp = &all["attributes"][0];
        assert_eq!(temp["filters"], json!([{"name": "BYTESHUFFLE"}, {"name": "ZSTD", "level": 7}]));
        assert_eq!(temp["fill"], "nan");
        assert_eq!(temp["files"], json!(["temp.f32", "temp.f32.hdr", "temp.vrt", "npy/temp.npy", "text/temp.txt"]));
        assert_eq!(all["attributes"][1]["unit"], "D");
        assert_eq!(all["attributes"][2]["values_per_cell"], "variable");
        assert_eq!(all["attributes"][2]["fill_is_valid"], false);
        assert_eq!(all["attributes"][2]["enumeration"], "kinds");
        assert_eq!(all["enumerations"][0]["labels"], json!(["T cell", "ß"]));
        assert_eq!(all["enumerations"][0]["count"], 2);
        assert_eq!(all["files"][4], json!({"path": "it's.bytes", "format": "raw", "field": "it's", "bytes": null}));
        assert_eq!(all["not_listed"][0]["reason"], "ENVI has no dates");
    }

    #[test]
    fn labels_beyond_the_limit_are_left_out() {
        let labels = |count: usize| Labels {
            name: "e".to_owned(),
            datatype: Datatype::Int8,
            ordered: false,
            values: vec![vec![7]; count],
        };
        let schema = testing::dense_schema();
        let mut description = testing::dense(&schema);
        description.enumerations = [200_000, 200_000, 3].map(|count| labels(count).into()).into();
        let all = parsed(&description);
        let held =
            |number: usize| all["enumerations"][number].get("labels").map(|labels| labels.as_array().unwrap().len());
        assert_eq!([0, 1, 2].map(held), [Some(200_000), None, Some(3)]);
        assert_eq!(all["enumerations"][1]["count"], 200_000);
    }

    #[test]
    fn a_sparse_array_is_described_in_full() {
        let schema = testing::sparse_schema();
        let all = parsed(&testing::sparse(&schema));
        assert_eq!(all["shape"], Value::Null);
        assert_eq!(all["capacity"], 100);
        assert_eq!(all["non_empty_domain"][2], json!(["a", "z,"]));
        assert_eq!(all["dimensions"][1]["domain_text"], json!(["1970-01-01", "1970-04-10"]));
        assert_eq!(all["dimensions"][2]["domain"], Value::Null);
        assert_eq!(all["dimensions"][2]["values_per_cell"], "variable");
        assert_eq!(all["time"]["until_ms"], Value::Null);
        assert_eq!(all["warnings"].as_array().unwrap().len(), 1);
    }
}
