//! The geometry columns of a table, described as in GeoParquet 1.1 under the key `geo` of a Parquet file.
//!
//! Geometries are well-known binary: attributes of the datatype `GEOM_WKB`, and the blobs that GDAL's vector driver
//! writes with an older library. GDAL stores the coordinate system with them, as PROJJSON.

use serde_json::{Map, Value, json};
use tilefs_format::datatype::Datatype;
use tilefs_format::text;

use crate::column::{Column, Field, Metadatum};

/// The key in the metadata of a Parquet file.
pub const KEY: &str = "geo";

/// GDAL's keys: the name of the geometry attribute, and its coordinate system.
const GEOMETRY: &str = "GEOMETRY_ATTRIBUTE_NAME";
const SYSTEM: &str = "CRS";

/// GDAL's name for the attribute if no key names it.
const USUAL_NAME: &str = "wkb_geometry";

/// Maximum size of a coordinate system in bytes.
const MAX_SYSTEM: usize = 256 << 10;

/// Returns the metadata of a file with these columns; `None` if none is a geometry.
///
/// A system that is not PROJJSON is unknown, which GeoParquet expresses as null.
pub fn metadata(columns: &[Column], of_array: &[Metadatum]) -> Option<String> {
    let named = value(of_array, GEOMETRY);
    let of_gdal = named.as_deref().unwrap_or(USUAL_NAME);
    let is_of_gdal = |field: &Field| field.datatype == Datatype::Blob && field.name == of_gdal;
    let is_geometry =
        |field: &Field| field.values_per_cell.is_none() && (field.datatype == Datatype::GeomWkb || is_of_gdal(field));
    let names =
        || columns.iter().map(|column| &column.field).filter(|field| is_geometry(field)).map(|field| &field.name);
    let primary = names().find(|name| *name == of_gdal).or_else(|| names().next())?;
    let system = value(of_array, SYSTEM).filter(|text| text.len() <= MAX_SYSTEM);
    let system = system.and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let system = system.filter(|system| system.get("type").is_some_and(Value::is_string)).unwrap_or(Value::Null);
    let column = |name: &String| (name.clone(), json!({"encoding": "WKB", "geometry_types": [], "crs": system}));
    let columns: Map<String, Value> = names().map(column).collect();
    Some(json!({"version": "1.1.0", "primary_column": primary, "columns": columns}).to_string())
}

/// Gives an attribute of unsigned bytes that GDAL's key names the type of blobs. GDAL writes geometries in this type if
/// it is asked to; without the key, they would be lists of numbers.
pub fn retype_geometries(columns: &mut [Column], of_array: &[Metadatum]) {
    let Some(name) = value(of_array, GEOMETRY) else { return };
    for column in columns {
        let field = &mut column.field;
        if field.name == name && field.values_per_cell.is_none() && field.datatype == Datatype::UInt8 {
            field.datatype = Datatype::Blob;
        }
    }
}

/// Returns a text in the metadata of an array.
fn value(of_array: &[Metadatum], key: &str) -> Option<String> {
    let metadatum = of_array.iter().find(|metadatum| metadatum.key == key)?;
    match metadatum.datatype {
        // GDAL writes texts like this.
        Datatype::UInt8 => String::from_utf8(metadatum.value.clone()).ok(),
        datatype => text::decode(datatype, &metadatum.value).map(|text| text.into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn column(name: &str, datatype: Datatype) -> Column {
        let field = Field::new(name, datatype).with_values_per_cell(None);
        Column::variable(field, vec![0], Arc::new(Vec::new()), Arc::new(vec![0; 8]))
    }

    fn text(key: &str, value: &str) -> Metadatum {
        Metadatum { key: key.into(), datatype: Datatype::UInt8, value: value.into() }
    }

    fn geo(columns: &[Column], of_array: &[Metadatum]) -> Option<Value> {
        metadata(columns, of_array).map(|text| serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn geometries_are_recognised_by_type_or_gdals_name() {
        let columns = [column("wkb_geometry", Datatype::Blob), column("other", Datatype::Blob)];
        let found = geo(&columns, &[]).unwrap();
        assert_eq!(found["primary_column"], "wkb_geometry");
        assert_eq!(found["columns"], json!({"wkb_geometry": {"encoding": "WKB", "geometry_types": [], "crs": null}}));
        let named = geo(&columns, &[text(GEOMETRY, "other")]).unwrap();
        assert_eq!(named["columns"].as_object().unwrap().keys().collect::<Vec<_>>(), ["other"]);
        assert_eq!(geo(&columns[1..], &[]), None);
        let two = [column("a", Datatype::GeomWkb), column("b", Datatype::GeomWkb)];
        let found = geo(&two, &[text(GEOMETRY, "b")]).unwrap();
        assert_eq!((&found["primary_column"], found["columns"].as_object().unwrap().len()), (&json!("b"), 2));
        assert_eq!(geo(&[column("a", Datatype::StringUtf8)], &[]), None);
    }

    #[test]
    fn the_system_is_gdals_or_unknown() {
        let columns = [column("g", Datatype::GeomWkb)];
        let system = json!({"type": "GeographicCRS", "name": "WGS 84", "id": {"authority": "EPSG", "code": 4326}});
        let found = geo(&columns, &[text(SYSTEM, &system.to_string())]).unwrap();
        assert_eq!(found["columns"]["g"]["crs"], system);
        for other in ["EPSG:4326", "GEOGCS[\"WGS 84\"]", "{}", "[1]", "{\"type\": 3}", ""] {
            let found = geo(&columns, &[text(SYSTEM, other)]).unwrap();
            assert_eq!(found["columns"]["g"]["crs"], Value::Null, "{other}");
        }
    }

    #[test]
    fn bytes_are_geometries_only_where_gdal_names_them() {
        let mut columns = [column("g", Datatype::UInt8), column("other", Datatype::UInt8)];
        retype_geometries(&mut columns, &[]);
        assert_eq!(columns[0].field.datatype, Datatype::UInt8);
        let named = [text(GEOMETRY, "g")];
        retype_geometries(&mut columns, &named);
        assert_eq!([0, 1].map(|number| columns[number].field.datatype), [Datatype::Blob, Datatype::UInt8]);
        assert_eq!(geo(&columns, &named).unwrap()["primary_column"], "g");
    }
}
