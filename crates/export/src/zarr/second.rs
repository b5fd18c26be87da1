//! Version 2 of Zarr as another representation of version 3: the files `.zgroup`, `.zarray`, `.zattrs` and
//! `.zmetadata`, derived from a `zarr.json`. The chunks are the same bytes.
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
use tilefs_format::datatype::Datatype;

use super::json::pretty;
use super::numbers::number;

/// The files in the folder of a group or an array, and the chunk of an array without axes.
pub const GROUP: &str = ".zgroup";
/// The file of an array's metadata.
pub const ARRAY: &str = ".zarray";
/// The file of the attributes of an array or a group.
pub const ATTRIBUTES: &str = ".zattrs";
/// The file of consolidated metadata.
pub const CONSOLIDATED: &str = ".zmetadata";
/// The name of the chunk of an array without dimensions.
pub const ONLY_CHUNK: &str = "0";

/// The version 2 metadata of a group or an array.
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
    /// Whether it is an array, not a group.
    pub is_array: bool,
    /// Whether it is an array without axes, whose chunk has no number.
    pub is_scalar: bool,
    /// Names and texts of the files.
    pub files: Vec<(&'static str, String)>,
}

/// Returns the version 2 metadata of the group or array that `metadata`, a `zarr.json`, describes; `None` if it is not
/// one that this library writes.
pub fn described(metadata: &Value) -> Option<Described> {
    let (name, own, attributes) = spelled(metadata)?;
    let mut files = vec![(name, pretty(&own)), (ATTRIBUTES, pretty(&attributes))];
    if let Some(members) = metadata["consolidated_metadata"]["metadata"].as_object() {
        let mut all = Map::new();
        all.insert(name.to_owned(), own);
        all.insert(ATTRIBUTES.to_owned(), attributes);
        for (path, member) in members {
            let (name, own, attributes) = spelled(member)?;
            all.insert(format!("{path}/{name}"), own);
            all.insert(format!("{path}/{ATTRIBUTES}"), attributes);
        }
        files.push((CONSOLIDATED, pretty(&json!({"zarr_consolidated_format": 1, "metadata": all}))));
    }
    let is_array = name == ARRAY;
    let is_scalar = metadata["shape"].as_array().is_some_and(Vec::is_empty);
    Some(Described { is_array, is_scalar, files })
}

/// Returns the name of the file that describes a group or an array, its contents, and the attributes.
fn spelled(metadata: &Value) -> Option<(&'static str, Value, Value)> {
    let mut attributes = metadata["attributes"].as_object().cloned().unwrap_or_default();
    if metadata["node_type"] == "group" {
        lift_pictures(&mut attributes);
        return Some((GROUP, json!({"zarr_format": 2}), attributes.into()));
    }
    let (dtype, filters) = dtype(&metadata["data_type"])?;
    let missing = attributes.remove("_FillValue").map(|value| as_number(&dtype, value));
    if let Some(names) = metadata["dimension_names"].as_array() {
        attributes.insert("_ARRAY_DIMENSIONS".to_owned(), names.clone().into());
    }
    let array = json!({
        "zarr_format": 2,
        "shape": metadata["shape"],
        "chunks": metadata["chunk_grid"]["configuration"]["chunk_shape"],
        "dtype": dtype,
        "compressor": null,
        "fill_value": missing,
        "order": "C",
        "filters": filters,
        "dimension_separator": "/",
    });
    Some((ARRAY, array, attributes.into()))
}

/// Returns NumPy's name of a type, and the filters that decode its values from bytes.
fn dtype(data_type: &Value) -> Option<(String, Value)> {
    if let Some(name) = data_type.as_str() {
        let of_objects = |filter: &str| Some(("|O".to_owned(), json!([{"id": filter}])));
        let (kind, bits) = match name {
            "bool" => return Some(("|b1".to_owned(), Value::Null)),
            "string" => return of_objects("vlen-utf8"),
            "variable_length_bytes" => return of_objects("vlen-bytes"),
            _ => name.split_at(name.find(|letter: char| letter.is_ascii_digit())?),
        };
        let bytes = bits.parse::<u32>().ok()? / 8;
        let kind = match kind {
            "int" => 'i',
            "uint" => 'u',
            "float" => 'f',
            _ => return None,
        };
        let order = if bytes == 1 { '|' } else { '<' };
        return Some((format!("{order}{kind}{bytes}"), Value::Null));
    }
    let configuration = &data_type["configuration"];
    let dtype = match data_type["name"].as_str()? {
        "null_terminated_bytes" => format!("|S{}", configuration["length_bytes"]),
        "numpy.datetime64" => format!("<M8[{}]", configuration["unit"].as_str()?),
        _ => return None,
    };
    Some((dtype, Value::Null))
}

/// Returns the value of xarray's `_FillValue` of version 3, in which floats are the bytes of a double in base 64.
fn as_number(dtype: &str, value: Value) -> Value {
    match value.as_str().filter(|_| dtype.contains('f')).and_then(|text| STANDARD.decode(text).ok()) {
        // The exact bits of a NaN cannot be represented.
        Some(bytes) if bytes.as_slice().try_into().is_ok_and(|bytes| f64::from_le_bytes(bytes).is_nan()) => {
            "NaN".into()
        }
        Some(bytes) => number(Datatype::Float64, &bytes),
        None => value,
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
    use super::*;

    fn array(data_type: Value, attributes: Value) -> Value {
        json!({
            "zarr_format": 3, "node_type": "array", "shape": [5], "data_type": data_type,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
            "attributes": attributes, "dimension_names": ["x"],
        })
    }

    fn file(described: &Described, name: &str) -> Value {
        let (_, text) = described.files.iter().find(|(known, _)| *known == name).unwrap();
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn every_type_has_a_name_in_numpy() {
        let numbers = [("bool", "|b1"), ("int8", "|i1"), ("uint16", "<u2"), ("float32", "<f4"), ("int64", "<i8")];
        for (name, dtype) in numbers {
            let found = file(&described(&array(json!(name), json!({}))).unwrap(), ARRAY);
            assert_eq!(
                (&found["dtype"], &found["filters"], &found["fill_value"]),
                (&json!(dtype), &Value::Null, &Value::Null)
            );
        }
        for (data_type, dtype, filters) in [
            (json!("string"), "|O", json!([{"id": "vlen-utf8"}])),
            (json!("variable_length_bytes"), "|O", json!([{"id": "vlen-bytes"}])),
            (json!({"name": "null_terminated_bytes", "configuration": {"length_bytes": 7}}), "|S7", Value::Null),
            (
                json!({"name": "numpy.datetime64", "configuration": {"unit": "ns", "scale_factor": 1}}),
                "<M8[ns]",
                Value::Null,
            ),
        ] {
            let found = file(&described(&array(data_type, json!({}))).unwrap(), ARRAY);
            assert_eq!((&found["dtype"], &found["filters"]), (&json!(dtype), &filters));
        }
        assert_eq!(described(&array(json!("complex64"), json!({}))), None);
        assert_eq!(described(&json!({"node_type": "other"})), None);
    }

    #[test]
    fn marker_of_missing_values_is_the_fill_value() {
        let of = |kind: &str, value: Value| {
            let found = described(&array(json!(kind), json!({"_FillValue": value, "units": "K"}))).unwrap();
            assert_eq!(file(&found, ATTRIBUTES), json!({"units": "K", "_ARRAY_DIMENSIONS": ["x"]}));
            file(&found, ARRAY)["fill_value"].clone()
        };
        let double = |value: f64| json!(STANDARD.encode(value.to_le_bytes()));
        assert_eq!(of("float32", double(-999.0)), -999.0);
        assert_eq!(of("float64", double(-f64::NAN)), "NaN");
        assert_eq!(of("float64", double(f64::INFINITY)), "Infinity");
        assert_eq!(of("int16", json!(-1)), -1);
    }

    #[test]
    fn group_contains_its_members() {
        let members =
            json!({"v": array(json!("int8"), json!({})), "g": {"node_type": "group", "attributes": {"a": 1}}});
        let ome = json!({"version": "0.5", "multiscales": [{"axes": []}], "omero": {}});
        let group = json!({
            "node_type": "group", "attributes": {"title": "t", "ome": ome}, "consolidated_metadata": {"metadata": members},
        });
        let found = described(&group).unwrap();
        assert!(!found.is_array);
        let attributes = json!({"title": "t", "multiscales": [{"axes": [], "version": "0.4"}], "omero": {}});
        assert_eq!((file(&found, GROUP), file(&found, ATTRIBUTES)), (json!({"zarr_format": 2}), attributes.clone()));
        let all = &file(&found, CONSOLIDATED)["metadata"];
        assert_eq!((&all[".zattrs"], &all["g/.zattrs"]), (&attributes, &json!({"a": 1})));
        assert_eq!(
            all["v/.zarray"],
            file(&described(&group["consolidated_metadata"]["metadata"]["v"]).unwrap(), ARRAY)
        );
        assert_eq!(all.as_object().unwrap().len(), 6);
    }
}
