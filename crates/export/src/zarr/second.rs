//! Version 2 of Zarr: the files `.zgroup`, `.zarray`, `.zattrs` and `.zmetadata`. The chunks are the same bytes as in
//! version 3.
//!
//! * Types are NumPy's (`<f4`); text and bytes of variable length are objects with the filter `vlen-utf8` or
//!   `vlen-bytes`.
//! * The dimensions are the attribute `_ARRAY_DIMENSIONS`, as in xarray and GDAL.
//! * `fill_value` is the marker of missing values, as xarray interprets it, or null if there is none: no chunk is
//!   absent, so readers do not need it for missing chunks.
//! * Chunk numbers are folders (`dimension_separator`).
//! * The contents of `ome` in OME-NGFF 0.5 are attributes of the group itself in 0.4.
//!
//! Source: the specification of Zarr version 2, and the conventions of xarray and OME-NGFF 0.4.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use tilefs_format::datatype::{Datatype, Kind};

use super::json::pretty;
use super::node::ZarrNode;
use super::numbers::number;
use super::types::ZarrType;

/// The attribute that marks missing values, as in xarray.
const FILL_VALUE: &str = "_FillValue";

/// The file of a group.
pub const GROUP: &str = ".zgroup";
/// The file of an array's metadata.
pub const ARRAY: &str = ".zarray";
/// The file of the attributes of an array or a group.
pub const ATTRIBUTES: &str = ".zattrs";
/// The file of consolidated metadata.
pub const CONSOLIDATED: &str = ".zmetadata";
/// The name of the chunk of an array without dimensions.
pub const ONLY_CHUNK: &str = "0";

/// Returns the text of a file that describes a group or an array.
pub(super) fn text(node: &ZarrNode, file: &str) -> String {
    pretty(&match file {
        ATTRIBUTES => attributes(node),
        CONSOLIDATED => {
            let mut all = Map::new();
            add(node, "", &mut all);
            json!({"zarr_consolidated_format": 1, "metadata": all})
        }
        _ => own(node),
    })
}

/// Adds the metadata of a group or an array and of all its members, by the paths of the files.
fn add(node: &ZarrNode, folder: &str, all: &mut Map<String, Value>) {
    let (file, members) = match node {
        ZarrNode::Group(group) => (GROUP, group.members.as_slice()),
        ZarrNode::Array(_) => (ARRAY, [].as_slice()),
    };
    all.insert(format!("{folder}{file}"), own(node));
    all.insert(format!("{folder}{ATTRIBUTES}"), attributes(node));
    for (name, member) in members {
        add(member, &format!("{folder}{name}/"), all);
    }
}

fn own(node: &ZarrNode) -> Value {
    let ZarrNode::Array(array) = node else { return json!({"zarr_format": 2}) };
    let kind = &array.kind;
    json!({
        "zarr_format": 2,
        "shape": array.shape,
        "chunks": array.chunk,
        "dtype": dtype(kind),
        "compressor": null,
        "fill_value": array.attributes.get(FILL_VALUE).map(|value| as_number(kind, value)),
        "order": "C",
        "filters": kind.cell_size().is_none().then(|| json!([{"id": kind.codecs[0]["name"]}])),
        "dimension_separator": "/",
    })
}

fn attributes(node: &ZarrNode) -> Value {
    let mut attributes;
    match node {
        ZarrNode::Group(group) => {
            attributes = group.attributes.clone();
            lift_pictures(&mut attributes);
        }
        ZarrNode::Array(array) => {
            attributes = array.attributes.clone();
            attributes.remove(FILL_VALUE);
            attributes.insert("_ARRAY_DIMENSIONS".to_owned(), array.dimensions.as_slice().into());
        }
    }
    attributes.into()
}

/// Returns NumPy's name of a type.
fn dtype(kind: &ZarrType) -> String {
    let (letter, bytes) = match (kind.datatype.kind(), kind.data_type.as_str(), kind.cell_size()) {
        (.., None) => return "|O".to_owned(),
        (_, Some("bool"), _) => ('b', 1),
        (_, None, Some(bytes)) => match kind.data_type["configuration"]["unit"].as_str() {
            Some(unit) => return format!("<M8[{unit}]"),
            None => return format!("|S{bytes}"),
        },
        (Kind::Signed, ..) => ('i', kind.datatype.size()),
        (Kind::Float, ..) => ('f', kind.datatype.size()),
        (Kind::Unsigned | Kind::Bytes, ..) => ('u', kind.datatype.size()),
    };
    let order = if bytes == 1 { '|' } else { '<' };
    format!("{order}{letter}{bytes}")
}

/// Returns the value of xarray's `_FillValue` of version 3, in which floats are the bytes of a double in base 64.
fn as_number(kind: &ZarrType, value: &Value) -> Value {
    let is_float = kind.datatype.kind() == Kind::Float;
    match value.as_str().filter(|_| is_float).and_then(|text| STANDARD.decode(text).ok()) {
        // The exact bits of a NaN cannot be represented.
        Some(bytes) if bytes.as_slice().try_into().is_ok_and(|bytes| f64::from_le_bytes(bytes).is_nan()) => {
            "NaN".into()
        }
        Some(bytes) => number(Datatype::Float64, &bytes),
        None => value.clone(),
    }
}

/// Converts the OME-NGFF metadata of a pyramid to version 0.4.
fn lift_pictures(attributes: &mut Map<String, Value>) {
    let Some(Value::Object(ome)) = attributes.remove("ome") else { return };
    for (key, mut value) in ome.into_iter().filter(|(key, _)| key != "version") {
        for scales in value.as_array_mut().into_iter().flatten().filter(|_| key == "multiscales") {
            scales["version"] = "0.4".into();
        }
        attributes.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::column::{Column, Field};
    use crate::zarr::array::{ArrayLayout, Attributes, ZarrArray};
    use crate::zarr::node::ZarrGroup;

    fn array(kind: ZarrType, attributes: Value) -> ZarrNode {
        let attributes = attributes.as_object().cloned().unwrap();
        let layout = ArrayLayout { chunk: vec![2], dimensions: vec!["x".to_owned()], attributes };
        let none = |_: &_| Ok(Column::fixed(Field::new("v", Datatype::Int8), vec![0], Arc::new(Vec::new())));
        ZarrNode::Array(Arc::new(ZarrArray::new(vec![5], kind, layout, none)))
    }

    fn file(node: &ZarrNode, name: &str) -> Value {
        serde_json::from_str(&text(node, name)).unwrap()
    }

    #[test]
    fn every_type_has_a_name_in_numpy() {
        let variable = |datatype| Field { values_per_cell: None, ..Field::new("v", datatype) };
        let of = |field: &Field| ZarrType::of(field).unwrap();
        let characters = Field { values_per_cell: Some(7), ..Field::new("v", Datatype::StringAscii) };
        for (kind, dtype, filters) in [
            (of(&Field::new("v", Datatype::Bool)), "|b1", Value::Null),
            (of(&Field::new("v", Datatype::Int8)), "|i1", Value::Null),
            (of(&Field::new("v", Datatype::UInt16)), "<u2", Value::Null),
            (of(&Field::new("v", Datatype::Float32)), "<f4", Value::Null),
            (of(&Field::new("v", Datatype::DateTimeDay)), "<i8", Value::Null),
            (of(&variable(Datatype::StringUtf8)), "|O", json!([{"id": "vlen-utf8"}])),
            (of(&variable(Datatype::Blob)), "|O", json!([{"id": "vlen-bytes"}])),
            (of(&characters), "|S7", Value::Null),
            (ZarrType::with_dates(&Field::new("v", Datatype::DateTimeNs)).unwrap(), "<M8[ns]", Value::Null),
        ] {
            let found = file(&array(kind, json!({})), ARRAY);
            assert_eq!((&found["dtype"], &found["filters"]), (&json!(dtype), &filters));
            assert_eq!((&found["fill_value"], &found["chunks"]), (&Value::Null, &json!([2])));
        }
    }

    #[test]
    fn marker_of_missing_values_is_the_fill_value() {
        let of = |datatype: Datatype, value: Value| {
            let kind = ZarrType::of(&Field::new("v", datatype)).unwrap();
            let array = array(kind, json!({"_FillValue": value, "units": "K"}));
            assert_eq!(file(&array, ATTRIBUTES), json!({"units": "K", "_ARRAY_DIMENSIONS": ["x"]}));
            file(&array, ARRAY)["fill_value"].clone()
        };
        let double = |value: f64| json!(STANDARD.encode(value.to_le_bytes()));
        assert_eq!(of(Datatype::Float32, double(-999.0)), -999.0);
        assert_eq!(of(Datatype::Float64, double(-f64::NAN)), "NaN");
        assert_eq!(of(Datatype::Float64, double(f64::INFINITY)), "Infinity");
        assert_eq!(of(Datatype::Int16, json!(-1)), -1);
    }

    #[test]
    fn group_contains_its_members() {
        let group = |attributes: Value, members| {
            let attributes: Attributes = attributes.as_object().cloned().unwrap();
            ZarrNode::Group(Arc::new(ZarrGroup { attributes, members }))
        };
        let numbers = array(ZarrType::of(&Field::new("v", Datatype::Int8)).unwrap(), json!({}));
        let members = vec![("v".to_owned(), numbers.clone()), ("g".to_owned(), group(json!({"a": 1}), Vec::new()))];
        let ome = json!({"version": "0.5", "multiscales": [{"axes": []}], "omero": {}});
        let found = group(json!({"title": "t", "ome": ome}), members);
        let attributes = json!({"title": "t", "multiscales": [{"axes": [], "version": "0.4"}], "omero": {}});
        assert_eq!((file(&found, GROUP), file(&found, ATTRIBUTES)), (json!({"zarr_format": 2}), attributes.clone()));
        let all = &file(&found, CONSOLIDATED)["metadata"];
        assert_eq!((&all[".zattrs"], &all["g/.zattrs"]), (&attributes, &json!({"a": 1})));
        assert_eq!(all["v/.zarray"], file(&numbers, ARRAY));
        assert_eq!(all.as_object().unwrap().len(), 6);
    }
}
