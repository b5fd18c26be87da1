//! The contents of `zarr.json`.

use serde_json::{Map, Value, json};
use tilefs_format::datatype::Datatype;
use tilefs_format::text as texts;

use super::array::ZarrArray;
use super::node::{ZarrGroup, ZarrNode};
use super::numbers::number;
use crate::column::Metadatum;

/// Returns the text of a group's or an array's `zarr.json`; that of a group contains the metadata of all its members.
pub fn text(node: &ZarrNode) -> String {
    let mut value = own(node);
    if let ZarrNode::Group(group) = node {
        let mut all = Map::new();
        members(group, "", &mut all);
        value["consolidated_metadata"] = json!({"kind": "inline", "must_understand": false, "metadata": all});
    }
    pretty(&value)
}

/// Returns the text of a group's or an array's `zarr.json`, without the metadata of members.
pub fn own_text(node: &ZarrNode) -> String {
    pretty(&own(node))
}

/// Returns formatted JSON, readable for people.
pub fn pretty(value: &Value) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

fn members(group: &ZarrGroup, prefix: &str, all: &mut Map<String, Value>) {
    for (name, member) in &group.members {
        let path = format!("{prefix}{name}");
        let prefix = format!("{path}/");
        all.insert(path, own(member));
        if let ZarrNode::Group(inner) = member {
            members(inner, &prefix, all);
        }
    }
}

fn own(node: &ZarrNode) -> Value {
    match node {
        ZarrNode::Group(group) => json!({"zarr_format": 3, "node_type": "group", "attributes": group.attributes}),
        ZarrNode::Array(array) => of_array(array),
    }
}

fn of_array(array: &ZarrArray) -> Value {
    json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": array.shape,
        "data_type": array.kind.data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": array.chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": array.kind.fill_value,
        "codecs": array.kind.codecs,
        "attributes": array.attributes,
        "dimension_names": array.dimensions,
    })
}

/// Returns a metadata value as an attribute: text, a number, or a list of numbers. Bytes that are not valid text become
/// numbers.
pub fn metadatum(metadatum: &Metadatum) -> Value {
    let datatype = metadatum.datatype;
    if let Some(text) = texts::decode(datatype, &metadatum.value) {
        return text.into_owned().into();
    }
    let one = |value: &[u8]| match datatype {
        Datatype::Bool => value.iter().any(|&byte| byte != 0).into(),
        _ => number(datatype, value),
    };
    let mut values: Vec<Value> = metadatum.value.chunks_exact(datatype.size()).map(one).collect();
    match values.len() {
        1 => values.pop().unwrap_or_default(),
        _ => values.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_are_values() {
        let of = |datatype, value: &[u8]| metadatum(&Metadatum { key: "k".into(), datatype, value: value.to_vec() });
        assert_eq!(of(Datatype::StringUtf8, "ü".as_bytes()), "ü");
        assert_eq!(of(Datatype::Int16, &[1, 0, 255, 255]), json!([1, -1]));
        assert_eq!(of(Datatype::Float64, &1.5f64.to_le_bytes()), 1.5);
        assert_eq!(of(Datatype::Bool, &[1]), true);
        assert_eq!(of(Datatype::Blob, &[0, 255]), json!([0, 255]));
        assert_eq!(of(Datatype::Int32, &[]), json!([]));
    }
}
