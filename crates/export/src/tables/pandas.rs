//! The description of a table for pandas: which columns are the index, and which have pandas' own nullable types.
//! pyarrow makes such a frame of Parquet and Arrow files with this metadata under the key `pandas`.
//!
//! Source: "Storing pandas DataFrame objects in Apache Parquet format" in pandas' documentation, and the metadata that
//! TileDB-Py's `from_pandas` writes. Nullable integers always have pandas' own types, as in TileDB-Py's
//! `open_dataframe`, since floats would lose precision.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tilefs_base::json;
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::text;
use tilefs_format::time_unit::TimeUnit;
use tilefs_threads::cancellation;

use crate::column::{Column, Field, Metadatum};

/// The key in the metadata of a Parquet or Arrow file.
pub const KEY: &str = "pandas";

/// TileDB-Py's keys: the dimensions of the index, and the types of columns, both as a JSON object by name.
const INDEX: &str = "__pandas_index_dims";
const TYPES: &str = "__pandas_attribute_repr";

/// TileDB-Py's name for the dimension of an unnamed index.
const ROWS: &str = "__tiledb_rows";

/// Likewise in TileDB-Py 0.6, which notes the index without a name.
const ROWS_OF_0_6: &str = "rows";
const NO_NAME: &str = "null";

/// The known properties of the frame that was stored as an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PandasFrame {
    /// The types of the index columns.
    index: BTreeMap<String, String>,
    /// Whether the dimension of an unnamed index has its name in TileDB-Py 0.6.
    is_of_0_6: bool,
    /// The types of the other columns.
    types: BTreeMap<String, String>,
}

impl PandasFrame {
    /// Reads the metadata of an array. Metadata in another form than TileDB-Py's is ignored.
    ///
    /// TileDB-Py 0.6 notes an unnamed index under no name. Of a sparse array, its readers show the dimension as a column; of
    /// a dense one, they show no dimension, and the index is unnamed again.
    pub fn of(metadata: &[Metadatum], is_sparse: bool) -> Self {
        let types = |key: &str| -> BTreeMap<String, String> {
            let object = metadata.iter().find(|metadatum| metadatum.key == key).and_then(|metadatum| {
                let text = text::decode(metadatum.datatype, &metadatum.value)?;
                json::parse::<Map<String, Value>>(&text, cancellation::check).ok()
            });
            let named = |(name, value): (String, Value)| Some((name, value.as_str()?.to_owned()));
            object.unwrap_or_default().into_iter().filter_map(named).collect()
        };
        let index = types(INDEX);
        let is_of_0_6 = !is_sparse && index.contains_key(NO_NAME);
        PandasFrame { index, is_of_0_6, types: types(TYPES) }
    }

    /// Like [`PandasFrame::metadata`], for a Parquet file, which has no dictionaries of labels that are no text: the
    /// columns have the labels themselves.
    pub fn metadata_in_parquet(&self, columns: &[Column]) -> String {
        let shown = |column: &Column| {
            let mut column = column.clone();
            let labels = column.field.labels.as_ref().filter(|labels| labels.datatype.kind() != Kind::Bytes);
            if let Some(datatype) = labels.map(|labels| labels.datatype) {
                column.field = Field::new(&column.field.name, datatype).with_nullable(true);
            }
            column
        };
        self.metadata(&columns.iter().map(shown).collect::<Vec<_>>())
    }

    /// Returns the metadata of a file with these columns.
    pub fn metadata(&self, columns: &[Column]) -> String {
        let name = |column: &Column| column.field.name.clone();
        let has_name = |wanted: &str| columns.iter().any(|column| column.field.name == wanted);
        let unnamed = if self.is_of_0_6 && !has_name(NO_NAME) { ROWS_OF_0_6 } else { ROWS };
        let is_index = |name: &String| self.index.contains_key(name) || name == unnamed && unnamed == ROWS_OF_0_6;
        let mut index: Vec<Value> = columns.iter().map(name).filter(is_index).map(Value::from).collect();
        if index.is_empty() {
            let rows = columns.first().map_or(0, Column::cells);
            index.push(json!({"kind": "range", "name": null, "start": 0, "stop": rows, "step": 1}));
        }
        let column = |column: &Column| {
            let field = &column.field;
            let types = Types::of(field, self.types.get(&field.name).map(String::as_str));
            let is_unnamed = field.name == unnamed && is_index(&field.name);
            json!({
                "name": (!is_unnamed).then_some(&field.name),
                "field_name": field.name,
                "pandas_type": types.logical,
                "numpy_type": types.numpy,
                "metadata": types.categories.map(|(count, ordered)| json!({"num_categories": count, "ordered": ordered})),
            })
        };
        let columns: Vec<Value> = columns.iter().map(column).collect();
        json!({
            "index_columns": index,
            "column_indexes": [],
            "columns": columns,
            "creator": {"library": "tilefs", "version": env!("CARGO_PKG_VERSION")},
            "pandas_version": "2.0.0",
        })
        .to_string()
    }
}

/// The logical type of a column, and its type in a frame.
struct Types {
    logical: String,
    numpy: String,
    /// For categories: their number, and whether they are ordered.
    categories: Option<(usize, bool)>,
}

impl Types {
    /// Returns the types of a field, whose type in the stored frame may be known.
    fn of(field: &Field, stored: Option<&str>) -> Self {
        let object = |logical: &str| Types { logical: logical.into(), numpy: "object".into(), categories: None };
        let datatype = field.datatype;
        if field.is_bytes() && datatype.size() == 1 {
            let is_text = text::is_text(datatype) && datatype != Datatype::Char && field.values_per_cell.is_none();
            return match (is_text, stored) {
                (true, Some("string")) => Types { numpy: "string".into(), ..object("unicode") },
                (true, _) => object("unicode"),
                (false, _) => object("bytes"),
            };
        }
        if field.values_per_cell != Some(1) {
            return object("object");
        }
        let bits = 8 * datatype.size();
        let named = |kind: &str| Types { logical: format!("{kind}{bits}"), ..object("") };
        // No reader has times finer than nanoseconds, which are counts.
        let is_count = datatype.time_unit().is_some_and(|unit| unit > TimeUnit::Nanosecond);
        let number = match (datatype.time_unit(), datatype.kind()) {
            (Some(_), _) if is_count => named("int"),
            (Some(_), _) if datatype.is_datetime() => object("datetime"),
            (Some(_), _) => object("timedelta"),
            _ if datatype == Datatype::Bool => object("bool"),
            (_, Kind::Signed) => named("int"),
            (_, Kind::Float) => named("float"),
            _ => named("uint"),
        };
        if let Some(labels) = field.labels.as_ref().filter(|_| matches!(datatype.kind(), Kind::Signed | Kind::Unsigned))
        {
            let categories = Some((labels.values.len(), labels.ordered));
            return Types { logical: "categorical".into(), numpy: number.logical, categories };
        }
        let numpy = match (datatype.kind(), field.nullable) {
            // "Not a time" is null.
            _ if is_count => format!("Int{bits}"),
            _ if datatype.time_unit().is_some() => "object".to_owned(),
            _ if datatype == Datatype::Bool => if field.nullable { "boolean" } else { "bool" }.to_owned(),
            (Kind::Signed, true) => format!("Int{bits}"),
            (Kind::Float, _) if stored == Some(&*format!("Float{bits}")) => format!("Float{bits}"),
            (Kind::Signed | Kind::Float, _) => number.logical.clone(),
            (_, true) => format!("UInt{bits}"),
            _ => number.logical.clone(),
        };
        Types { numpy, ..number }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Labels;

    fn of_array(pairs: &[(&str, &str)], is_sparse: bool) -> PandasFrame {
        let metadata: Vec<Metadatum> = pairs.iter().map(|(key, value)| Metadatum::text(*key, *value)).collect();
        PandasFrame::of(&metadata, is_sparse)
    }

    fn frame(pairs: &[(&str, &str)]) -> PandasFrame {
        of_array(pairs, true)
    }

    fn metadata(frame: &PandasFrame, fields: &[Field]) -> Value {
        let column = |field: &Field| Column::fixed(field.clone(), vec![3], Arc::new(Vec::new()));
        serde_json::from_str(&frame.metadata(&fields.iter().map(column).collect::<Vec<_>>())).unwrap()
    }

    #[test]
    fn index_matches_the_stored_frame() {
        let fields = ["b", "a", "v", ROWS].map(|name| Field::new(name, Datatype::Int64));
        let indexed = frame(&[(INDEX, r#"{"a": "int64", "b": "int64", "gone": "int64"}"#)]);
        // In the order of the dimensions.
        assert_eq!(metadata(&indexed, &fields)["index_columns"], json!(["b", "a"]));
        let unnamed = metadata(&frame(&[(INDEX, r#"{"__tiledb_rows": "int64"}"#)]), &fields);
        assert_eq!(unnamed["index_columns"], json!([ROWS]));
        assert_eq!(unnamed["columns"][3]["name"], Value::Null);
        let range = json!([{"kind": "range", "name": null, "start": 0, "stop": 3, "step": 1}]);
        // TileDB-Py 0.6 names no dimension for an unnamed index.
        let fields_of_0_6 = ["rows", "v"].map(|name| Field::new(name, Datatype::UInt64));
        for (is_sparse, index, name) in [(true, &range, json!("rows")), (false, &json!(["rows"]), Value::Null)] {
            let nameless = of_array(&[(INDEX, r#"{"null": "int64"}"#)], is_sparse);
            let found = metadata(&nameless, &fields_of_0_6);
            assert_eq!((&found["index_columns"], &found["columns"][0]["name"]), (index, &name));
            assert_eq!(found["columns"][1]["name"], "v");
            assert_eq!(metadata(&nameless, &fields)["index_columns"], range);
        }
        for text in ["", "[]", "{", r#"{"a": 1}"#, r#""a""#] {
            let none = frame(&[(INDEX, text), (TYPES, text)]);
            assert_eq!(none, frame(&[]), "{text}");
            assert_eq!(metadata(&none, &fields)["index_columns"], range);
        }
    }

    #[test]
    fn columns_have_pandas_types() {
        let text = Field::new("t", Datatype::StringUtf8).with_values_per_cell(None);
        let labels =
            Labels { name: "l".into(), datatype: Datatype::StringUtf8, ordered: true, values: vec![vec![]; 4] };
        let cases = [
            (Field::new("i", Datatype::Int16), None, "int16", "int16"),
            (Field::new("i", Datatype::Int64).with_nullable(true), None, "int64", "Int64"),
            (Field::new("i", Datatype::UInt8).with_nullable(true), None, "uint8", "UInt8"),
            (Field::new("f", Datatype::Float64).with_nullable(true), None, "float64", "float64"),
            (Field::new("f", Datatype::Float64).with_nullable(true), Some("Float64"), "float64", "Float64"),
            // A stored name of a type must not make a reader use a type that the column does not have.
            (Field::new("f", Datatype::Float64), Some("os.system"), "float64", "float64"),
            (Field::new("b", Datatype::Bool), None, "bool", "bool"),
            (Field::new("b", Datatype::Bool).with_nullable(true), Some("boolean"), "bool", "boolean"),
            (text.clone(), None, "unicode", "object"),
            (text, Some("string"), "unicode", "string"),
            (Field::new("d", Datatype::DateTimeNs).with_nullable(true), None, "datetime", "object"),
            (Field::new("l", Datatype::Int32).with_values_per_cell(None), None, "object", "object"),
            (Field::new("c", Datatype::Int32).with_labels(Arc::new(labels)), None, "categorical", "int32"),
        ];
        for (field, stored, logical, numpy) in cases {
            let types = Types::of(&field, stored);
            assert_eq!((&*types.logical, &*types.numpy), (logical, numpy), "{field:?}");
            assert_eq!(types.categories, (logical == "categorical").then_some((4, true)));
        }
    }
}
