//! The contents of `zarr.json`.

use serde_json::{Map, Value, json};
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::text as texts;

use super::{Array, Group, Node};
use crate::column::Metadatum;
use crate::number as numbers;

/// Returns the text of a group's or an array's `zarr.json`; that of a group contains the metadata of all its members.
pub fn text(node: &Node) -> String {
    let value = match node {
        Node::Array(array) => of_array(array),
        Node::Group(group) => {
            let mut all = Map::new();
            members(group, "", &mut all);
            let mut value = of_group(group);
            value["consolidated_metadata"] = json!({"kind": "inline", "must_understand": false, "metadata": all});
            value
        }
    };
    pretty(&value)
}

/// Returns formatted JSON, readable for people.
pub fn pretty(value: &Value) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

fn members(group: &Group, prefix: &str, all: &mut Map<String, Value>) {
    for (name, member) in &group.members {
        let path = format!("{prefix}{name}");
        match member {
            Node::Array(array) => drop(all.insert(path, of_array(array))),
            Node::Group(inner) => {
                let prefix = format!("{path}/");
                all.insert(path, of_group(inner));
                members(inner, &prefix, all);
            }
        }
    }
}

/// Returns the metadata of a group itself.
pub fn of_group(group: &Group) -> Value {
    json!({"zarr_format": 3, "node_type": "group", "attributes": group.attributes})
}

fn of_array(array: &Array) -> Value {
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

/// Returns a number of a datatype in Zarr's form for fill values: not-a-number and infinities as words. Bytes and
/// characters are unsigned numbers.
pub fn number(datatype: Datatype, value: &[u8]) -> Value {
    let bits = || -> String { value.iter().rev().map(|byte| format!("{byte:02x}")).collect() };
    let float = match (datatype, value) {
        (Datatype::Float32, &[a, b, c, d]) => f64::from(f32::from_le_bytes([a, b, c, d])),
        (Datatype::Float64, value) => value.try_into().map(f64::from_le_bytes).unwrap_or(f64::NAN),
        _ => {
            let plain = match (datatype.kind(), datatype.size()) {
                (Kind::Bytes, 1) => Datatype::UInt8,
                (Kind::Bytes, 2) => Datatype::UInt16,
                (Kind::Bytes, _) => Datatype::UInt32,
                _ => datatype,
            };
            let Some(integer) = numbers::integer(plain, value) else { return Value::Null };
            return match i64::try_from(integer) {
                Ok(signed) => signed.into(),
                Err(_) => u64::try_from(integer).unwrap_or(u64::MAX).into(),
            };
        }
    };
    let is_usual = match datatype {
        Datatype::Float32 => bits() == "7fc00000",
        _ => bits() == "7ff8000000000000",
    };
    match float {
        _ if float.is_nan() && is_usual => "NaN".into(),
        _ if float.is_nan() => format!("0x{}", bits()).into(),
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        _ => float.into(),
    }
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
    fn numbers_are_exact() {
        assert_eq!(number(Datatype::UInt64, &[255; 8]), json!(u64::MAX));
        assert_eq!(number(Datatype::Int64, &i64::MIN.to_le_bytes()), json!(i64::MIN));
        assert_eq!(number(Datatype::Float32, &0.1f32.to_le_bytes()), json!(f64::from(0.1f32)));
        assert_eq!(number(Datatype::Float32, &f32::NAN.to_le_bytes()), "NaN");
        assert_eq!(number(Datatype::Float32, &0x7fc0_0001u32.to_le_bytes()), "0x7fc00001");
        assert_eq!(number(Datatype::Float64, &f64::NEG_INFINITY.to_le_bytes()), "-Infinity");
        assert_eq!(number(Datatype::Float64, &0xfff8_0000_0000_0000u64.to_le_bytes()), "0xfff8000000000000");
    }

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
