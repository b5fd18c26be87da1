//! The geometry columns of a table, described as in GeoParquet 1.1 under the key `geo` of a Parquet file.
//!
//! Geometries are well-known binary: attributes of the datatype `GEOM_WKB`, and the blobs that GDAL's vector driver
//! writes with an older library. GDAL stores the coordinate system with them, as PROJJSON or well-known text. Layers of points may have no
//! other geometry than their coordinates; then it is computed.
//!
//! A column `bbox` (`bbox_2` if the array has a column of this name, and so on) has the box around each geometry, where the
//! array itself is sorted by their places, so that bounds of the boxes are known and readers skip row groups:
//!
//! * GDAL's layers: the dimensions `_X` and `_Y` are the centre of the box
//! * data frames of geometries of TileDB-SOMA: four dimensions are the sides
//! * points: the dimensions are their coordinates
//!
//! How far the geometries reach from these places is found in a pass over them ([`Reach`]): what their writer has noted
//! (`PAD_X`, `FEATURE_COUNT`, `LAYER_EXTENT_MINX`) is not known to hold for those of another.
//!
//! The types of geometries are known only of points: the type of a layer does not bind GDAL.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tilefs_base::error::Result;
use tilefs_base::json;
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_threads::cancellation;

use super::boxes::{SIDES, points};
use super::geometry_layout::{CoordinateRanges, GEOMETRY, GeometryLayout, name_of_gdal, value};
use super::reach::{PlacedGeometries, Reach};
use crate::column::{Column, Field, Metadatum};
use crate::content::compose::Repeat;
use crate::geo::projjson_of_wkt::projjson;
use crate::geo::wkt;
use crate::parquet::StructColumn;

/// The key in the metadata of a Parquet file.
pub const KEY: &str = "geo";

/// GDAL's key for the coordinate system.
const SYSTEM: &str = "CRS";

/// GDAL's key for the name of the attribute with the identifiers of features, and TileDB-SOMA's name for them.
const IDENTIFIERS: &str = "FID_ATTRIBUTE_NAME";
const JOINID: &str = "soma_joinid";

/// The names of the computed columns. If the array has a column of the name, they get another.
const POINTS: &str = "geometry";
const BOXES: &str = "bbox";
const RADIUS: &str = "radius";

/// Returns the metadata of a file with these columns; `None` if none is a geometry.
///
/// A system that is neither PROJJSON nor text that it can express is unknown: null in GeoParquet.
pub fn metadata(columns: &[Column], of_array: &[Metadatum]) -> Option<String> {
    let primary = primary(columns, of_array)?;
    Some(described(columns, of_array, &primary, json!({})))
}

/// Adds the geometries of points to columns. Returns the metadata of a Parquet file with the columns and the boxes around
/// the geometries, as far as there are any. `ranges` and `reach` tell what is known of points and of other geometries.
///
/// # Errors
/// Those of `reach`.
pub fn in_parquet(
    columns: &mut Vec<Column>,
    of_array: &[Metadatum],
    ranges: impl FnOnce() -> CoordinateRanges,
    reach: impl FnOnce(&PlacedGeometries) -> Result<Option<Reach>>,
) -> Result<(Option<String>, Option<StructColumn>)> {
    let layout = GeometryLayout::of(columns, of_array, primary(columns, of_array).as_deref());
    if let Some(GeometryLayout::Points(coordinates)) = &layout {
        columns.push(points(&free_name(columns, POINTS), coordinates));
        columns.extend(radius(&free_name(columns, RADIUS), coordinates, of_array));
    }
    let Some(primary) = primary(columns, of_array) else { return Ok((None, None)) };
    let name_of_boxes = free_name(columns, BOXES);
    let geometries = columns.iter().find(|column| column.field.name == primary);
    let placed = layout.as_ref().zip(geometries).and_then(|(layout, geometries)| layout.placed(geometries));
    let reach = placed.as_ref().map(reach).transpose()?.flatten();
    let mut facts = Map::new();
    let sides = layout.as_ref().and_then(|layout| {
        if let Some(bounds) = layout.bounds(ranges, reach.as_ref()) {
            facts.insert("bbox".into(), json!(bounds));
        }
        if let GeometryLayout::Points(coordinates) = layout {
            let kind = if coordinates.len() > 2 { "Point Z" } else { "Point" };
            facts.insert("geometry_types".into(), json!([kind]));
        }
        let stored = layout.stored_sides(reach.as_ref()).map(|sides| (sides, false));
        stored.or_else(|| Some((layout.computed_sides(geometries?, reach.as_ref())?, true)))
    });
    if sides.is_some() {
        let places: Map<String, Value> =
            SIDES.iter().map(|side| (side.to_string(), json!([name_of_boxes, side]))).collect();
        facts.insert("covering".into(), json!({"bbox": places}));
    }
    let metadata = described(columns, of_array, &primary, Value::Object(facts));
    // Geometries that are damaged have no boxes.
    let boxes =
        sides.map(|(sides, may_refuse)| StructColumn { name: name_of_boxes, members: sides.into(), may_refuse });
    Ok((Some(metadata), boxes))
}

/// Removes the geometries from the columns of a table and returns them; those of points are computed. `None` if the table
/// has none.
pub fn take_geometries(columns: &mut Vec<Column>, of_array: &[Metadatum]) -> Option<Column> {
    if let Some(name) = primary(columns, of_array) {
        let number = columns.iter().position(|column| column.field.name == name)?;
        return Some(columns.remove(number));
    }
    match GeometryLayout::of(columns, of_array, None)? {
        GeometryLayout::Points(coordinates) => Some(points(&free_name(columns, POINTS), &coordinates)),
        GeometryLayout::Centres(_) | GeometryLayout::Boxes(_) => None,
    }
}

/// Returns the column of the radius of points, if TileDB-SOMA noted that they are circles.
fn radius(name: &str, coordinates: &[Column], of_array: &[Metadatum]) -> Option<Column> {
    let radius = float(of_array, "soma_geometry")?;
    let is_radius = value(of_array, "soma_geometry_type").as_deref() == Some(RADIUS);
    let rows = coordinates.first().filter(|_| is_radius)?.cells();
    let values = Repeat::new(radius.to_le_bytes(), rows.checked_mul(8)?);
    Some(Column::fixed(Field::new(name, Datatype::Float64), vec![rows], Arc::new(values)))
}

/// Returns the column of the identifiers of features, as GDAL or TileDB-SOMA name it: integers without nulls.
pub fn identifiers<'c>(columns: &'c [Column], of_array: &[Metadatum]) -> Option<&'c Column> {
    let of_soma = || value(of_array, "soma_object_type").map(|_| JOINID.to_owned());
    let name = value(of_array, IDENTIFIERS).or_else(of_soma)?;
    let found = columns.iter().find(|column| column.field.name == name)?;
    let Field { datatype, values_per_cell, labels, .. } = &found.field;
    let is_integer = matches!(datatype.kind(), Kind::Signed | Kind::Unsigned) && datatype.time_unit().is_none();
    let is_number = is_integer && *datatype != Datatype::Bool && *values_per_cell == Some(1) && labels.is_none();
    (is_number && found.validity.is_none()).then_some(found)
}

/// Returns a name that no column has: this one, or with the first number that is free. Readers such as DuckDB do not
/// distinguish capitals.
fn free_name(columns: &[Column], name: &str) -> String {
    let taken: HashSet<String> = columns.iter().map(|column| column.field.name.to_lowercase()).collect();
    let numbered = (2u64..).map(|number| format!("{name}_{number}"));
    let mut names = [name.to_owned()].into_iter().chain(numbered);
    names.find(|name| !taken.contains(name)).unwrap_or_else(|| name.to_owned())
}

/// Returns whether a field is a geometry.
fn is_geometry(field: &Field, of_gdal: &str) -> bool {
    let is_of_gdal = field.datatype == Datatype::Blob && field.name == of_gdal;
    field.values_per_cell.is_none() && (field.datatype == Datatype::GeomWkb || is_of_gdal)
}

/// Returns the names of the geometry columns.
fn geometries<'a>(columns: &'a [Column], of_array: &[Metadatum]) -> Vec<&'a String> {
    let of_gdal = name_of_gdal(of_array);
    let fields = columns.iter().map(|column| &column.field);
    fields.filter(|field| is_geometry(field, &of_gdal)).map(|field| &field.name).collect()
}

/// Returns the name of the geometry column that readers take.
fn primary(columns: &[Column], of_array: &[Metadatum]) -> Option<String> {
    let (all, of_gdal) = (geometries(columns, of_array), name_of_gdal(of_array));
    all.iter().find(|name| ***name == of_gdal).or(all.first()).map(|name| (*name).clone())
}

/// Returns the metadata of columns of which one is a geometry; `facts` are about the primary one.
fn described(columns: &[Column], of_array: &[Metadatum], primary: &str, facts: Value) -> String {
    let system = value(of_array, SYSTEM).and_then(|text| system(&text)).unwrap_or(Value::Null);
    let column = |name: &String| {
        let mut column = json!({"encoding": "WKB", "geometry_types": [], "crs": system});
        if let (true, Some(column), Some(facts)) = (name == primary, column.as_object_mut(), facts.as_object()) {
            column.extend(facts.clone());
        }
        (name.clone(), column)
    };
    let columns: Map<String, Value> = geometries(columns, of_array).into_iter().map(column).collect();
    json!({"version": "1.1.0", "primary_column": primary, "columns": columns}).to_string()
}

/// Returns the PROJJSON of a coordinate system that is stored as such, or as well-known text.
fn system(text: &str) -> Option<Value> {
    let text = Some(text).filter(|text| text.len() <= wkt::MAX_LENGTH)?;
    let stored = json::parse::<Value>(text, cancellation::check).ok();
    let stored = stored.filter(|system| system.get("type").is_some_and(Value::is_string));
    stored.or_else(|| projjson(text))
}

/// Returns a sentence if the geometries of an array have a coordinate system that GeoParquet cannot hold.
pub fn unusable_system(of_array: &[Metadatum]) -> Option<String> {
    let has_geometries =
        value(of_array, GEOMETRY).is_some() || value(of_array, "dataset_type").as_deref() == Some("geometry");
    let text = value(of_array, SYSTEM).filter(|text| has_geometries && !text.trim().is_empty())?;
    system(&text).is_none().then(|| {
        format!(
            "the coordinate system of the geometries (metadata key {SYSTEM}) is not PROJJSON, nor well-known text that can be \
             expressed in it; GeoParquet files say that it is unknown"
        )
    })
}

/// Returns a finite number in the metadata of an array.
fn float(of_array: &[Metadatum], key: &str) -> Option<f64> {
    let found = of_array.iter().find(|metadatum| metadatum.key == key)?;
    let bytes = found.value.as_slice().try_into().ok().filter(|_| found.datatype == Datatype::Float64)?;
    Some(f64::from_le_bytes(bytes)).filter(|number| number.is_finite())
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

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use tilefs_base::error::Error;
    use tilefs_reader::array::ValueBounds;

    use super::*;
    use crate::column::ColumnStatistics;
    use crate::parquet::{ParquetFile, parquet_file};
    use tilefs_base::content::Content;

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

    fn numbers(name: &str, values: &[f64]) -> Column {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Column::fixed(Field::new(name, Datatype::Float64), vec![values.len() as u64], Arc::new(bytes))
    }

    fn number(key: &str, value: f64) -> Metadatum {
        Metadatum { key: key.into(), datatype: Datatype::Float64, value: value.to_le_bytes().into() }
    }

    fn in_file(
        columns: &mut Vec<Column>,
        of_array: &[Metadatum],
        ranges: CoordinateRanges,
    ) -> (Value, Option<StructColumn>) {
        let (text, boxes) = in_parquet(columns, of_array, || ranges, |placed| placed.reach().map(Some)).unwrap();
        (text.map_or(Value::Null, |text| serde_json::from_str(&text).unwrap()), boxes)
    }

    fn ranges(all: &[(&str, [f64; 2])]) -> CoordinateRanges {
        all.iter().map(|(name, range)| ((*name).to_owned(), *range)).collect()
    }

    /// Bounds of a column, which are those of all of its rows.
    struct Between([f64; 2]);

    impl ColumnStatistics for Between {
        fn bounds(&self, _: Range<u64>) -> Result<Option<ValueBounds>> {
            let [least, greatest] = self.0.map(|bound| bound.to_le_bytes().to_vec());
            Ok(Some(ValueBounds { least, greatest, ..ValueBounds::default() }))
        }

        fn nulls(&self, _: Range<u64>) -> Result<Option<u64>> {
            Ok(Some(0))
        }
    }

    fn bounded(name: &str, values: &[f64]) -> Column {
        let ends = [f64::min as fn(f64, f64) -> f64, f64::max].map(|end| values.iter().copied().reduce(end).unwrap());
        Column { statistics: Some(Arc::new(Between(ends))), ..numbers(name, values) }
    }

    fn bounds_of(side: &Column) -> Option<[f64; 2]> {
        let bounds = side.statistics.as_ref()?.bounds(0..1).unwrap()?;
        Some([bounds.least, bounds.greatest].map(|bound| f64::from_le_bytes(bound.try_into().unwrap())))
    }

    /// Points in well-known binary.
    fn geometries(name: &str, datatype: Datatype, places: &[[f64; 2]]) -> Column {
        let point = |[x, y]: &[f64; 2]| [&[1u8, 1, 0, 0, 0][..], &x.to_le_bytes(), &y.to_le_bytes()].concat();
        let offsets: Vec<u8> = (0..=places.len() as u64).flat_map(|row| (21 * row).to_le_bytes()).collect();
        let field = Field::new(name, datatype).with_values_per_cell(None);
        let values: Vec<u8> = places.iter().flat_map(point).collect();
        Column::variable(field, vec![places.len() as u64], Arc::new(values), Arc::new(offsets))
    }

    /// A layer of GDAL with geometries at some places, and the noted number and extent of others.
    fn layer(places: &[[f64; 2]]) -> (Vec<Column>, Vec<Metadatum>) {
        let centres = vec![1.0; places.len()];
        let columns =
            vec![bounded("_X", &centres), bounded("_Y", &centres), geometries("wkb_geometry", Datatype::Blob, places)];
        let count = (places.len() as i64).to_le_bytes().into();
        let count = Metadatum { key: "FEATURE_COUNT".into(), datatype: Datatype::Int64, value: count };
        let sides = ["MINX", "MINY", "MAXX", "MAXY"];
        let extent = sides.map(|side| number(&format!("LAYER_EXTENT_{side}"), 1.0));
        let pads = [number("PAD_X", 0.0), number("PAD_Y", 0.0)];
        (columns, [text("dataset_type", "geometry"), count].into_iter().chain(extent).chain(pads).collect())
    }

    /// Another program has replaced features by others that reach farther; their number is the same.
    #[test]
    fn bounds_hold_whatever_the_metadata_say() {
        let (columns, metadata) = layer(&[[1.0, 1.0], [-7.0, 100.0], [3.0, 2.0]]);
        let (found, boxes) = in_file(&mut columns.clone(), &metadata, Vec::new());
        let column = &found["columns"]["wkb_geometry"];
        assert_eq!((&column["bbox"], &column["geometry_types"]), (&json!([-7.0, 1.0, 3.0, 100.0]), &json!([])));
        assert_eq!(column["covering"]["bbox"]["xmax"], json!(["bbox", "xmax"]));
        let boxes = boxes.unwrap();
        assert!(
            boxes.name == "bbox" && boxes.may_refuse && boxes.members.iter().map(|side| &side.field.name).eq(SIDES)
        );
        for (side, ends) in boxes.members.iter().zip([[-7.0, 3.0], [1.0, 100.0], [-7.0, 3.0], [1.0, 100.0]]) {
            let [least, greatest] = bounds_of(side).unwrap();
            assert!(least <= ends[0] && ends[1] <= greatest, "{ends:?} in {least}..{greatest}");
            // Near the geometries that reach farthest.
            assert!(least >= ends[0] - 1e-9 && greatest <= ends[1] + 1e-9, "{ends:?} in {least}..{greatest}");
        }
        // What cannot be gone through has no bounds, and still has boxes.
        let unknown = in_parquet(&mut columns.clone(), &metadata, Vec::new, |_| Ok(None)).unwrap().1.unwrap();
        assert!(unknown.members.iter().all(|side| side.statistics.is_none()));
        let failed = in_parquet(&mut columns.clone(), &metadata, Vec::new, |_| Err(Error::Cancelled));
        assert!(failed.is_err());
    }

    #[test]
    fn other_blobs_have_no_boxes() {
        let (columns, metadata) = layer(&[[1.0, 1.0]]);
        let (found, boxes) = in_file(&mut columns.clone(), &metadata[1..], Vec::new());
        assert!(boxes.is_none() && found["columns"]["wkb_geometry"].get("covering").is_none());
    }

    #[test]
    fn computed_columns_have_names_that_no_other_has() {
        let (columns, metadata) = layer(&[[1.0, 1.0]]);
        for (own, name) in [(&["bbox"][..], "bbox_2"), (&["BBOX", "Bbox_2", "bbox_4"], "bbox_3"), (&[], "bbox")] {
            let own = own.iter().map(|name| numbers(name, &[0.0]));
            let mut columns: Vec<Column> = columns.iter().cloned().chain(own).collect();
            let (found, boxes) = in_file(&mut columns, &metadata, Vec::new());
            assert_eq!(boxes.unwrap().name, name);
            assert_eq!(found["columns"]["wkb_geometry"]["covering"]["bbox"]["ymin"], json!([name, "ymin"]));
        }
        let mut points = ["_X", "_Y", "Geometry", "bbox"].map(|name| numbers(name, &[1.0])).to_vec();
        let (found, boxes) = in_file(&mut points, &metadata, Vec::new());
        assert_eq!((&found["primary_column"], boxes.unwrap().name.as_str()), (&json!("geometry_2"), "bbox_2"));
        assert_eq!(points.last().unwrap().field.name, "geometry_2");
    }

    #[test]
    fn identifiers_are_integers_that_the_metadata_name() {
        let of = |name: &str, datatype| Column::fixed(Field::new(name, datatype), vec![1], Arc::new(vec![0; 8]));
        let of_gdal = [text("FID_ATTRIBUTE_NAME", "FID")];
        let of_soma = [text("soma_object_type", "SOMAGeometryDataFrame")];
        let columns = [of("a", Datatype::Int64), of("FID", Datatype::Int64), of("soma_joinid", Datatype::UInt64)];
        let found = |metadata: &[Metadatum]| Some(identifiers(&columns, metadata)?.field.name.clone());
        assert_eq!(found(&of_gdal).as_deref(), Some("FID"));
        assert_eq!(found(&of_soma).as_deref(), Some("soma_joinid"));
        assert_eq!(found(&[]), None);
        let nullable = of("FID", Datatype::Int64).with_validity(Arc::new(vec![1]));
        for other in
            [nullable, of("FID", Datatype::Float64), of("FID", Datatype::DateTimeDay), of("fid", Datatype::Int64)]
        {
            assert!(identifiers(&[other], &of_gdal).is_none());
        }
    }

    #[test]
    fn points_are_their_coordinates() {
        let of_gdal = vec![text("dataset_type", "geometry")];
        let space = r#"[{"name": "x", "unit": null}, {"name": "y", "unit": null}]"#;
        let of_soma = vec![text("soma_object_type", "SOMAPointCloudDataFrame"), text("soma_coordinate_space", space)];
        for (names, metadata, kind) in [
            (&["_X", "_Y"][..], &of_gdal, "Point"),
            (&["_X", "_Y", "_Z"], &of_gdal, "Point Z"),
            (&["x", "y"], &of_soma, "Point"),
        ] {
            let mut columns: Vec<Column> = names.iter().map(|name| numbers(name, &[1.0, 2.0])).collect();
            let ends: Vec<(&str, [f64; 2])> = names.iter().map(|name| (*name, [1.0, 2.0])).collect();
            let (found, boxes) = in_file(&mut columns, metadata, ranges(&ends));
            let column = &found["columns"]["geometry"];
            assert_eq!((&found["primary_column"], &column["geometry_types"]), (&json!("geometry"), &json!([kind])));
            assert_eq!(column["bbox"], json!([vec![1.0; names.len()], vec![2.0; names.len()]].concat()));
            assert_eq!(columns.last().unwrap().field.name, "geometry");
            let axes: Vec<Arc<dyn Content>> = columns[..2].iter().map(|column| column.values.clone()).collect();
            for (number, side) in boxes.unwrap().members.iter().enumerate() {
                assert!(Arc::ptr_eq(&side.values, &axes[number % 2]));
            }
            let mut without = vec![numbers("other", &[1.0])];
            assert_eq!(in_file(&mut without, metadata, Vec::new()).0, Value::Null);
        }
    }

    #[test]
    fn dimensions_of_soma_are_the_sides_if_they_hold_their_geometries() {
        let space = r#"[{"name": "x"}, {"name": "y"}]"#;
        let metadata = [text("soma_object_type", "SOMAGeometryDataFrame"), text("soma_coordinate_space", space)];
        let names = ["x__min", "y__min", "x__max", "y__max"].map(|name| format!("tiledb__internal__{name}"));
        for (place, holds) in [([0.5, -1.0], true), ([0.5, 2.5], false)] {
            let ends = [-1.0, -1.0, 2.0, 2.0];
            let mut columns: Vec<Column> = names.iter().zip(ends).map(|(name, end)| bounded(name, &[end])).collect();
            columns.push(geometries("soma_geometry", Datatype::GeomWkb, &[place]));
            let (found, boxes) = in_file(&mut columns, &metadata, Vec::new());
            let bounds = json!([place[0], place[1], place[0], place[1]]);
            assert_eq!(found["columns"]["soma_geometry"]["bbox"], bounds);
            let boxes = boxes.unwrap();
            assert_eq!(boxes.may_refuse, !holds);
            for (number, (side, end)) in boxes.members.iter().zip(ends).enumerate() {
                assert_eq!(Arc::ptr_eq(&side.values, &columns[number].values), holds);
                let [least, greatest] = bounds_of(side).unwrap();
                let reached = if holds { end } else { place[number % 2] };
                assert!(least <= reached && reached <= greatest, "{reached} in {least}..{greatest}");
            }
        }
    }

    /// Returns the Parquet file of a layer of two points of which the second begins with another byte; `number` is its
    /// number in another column.
    fn file_of_layer(first_byte: u8, number: f64) -> ParquetFile {
        let point = |byte: u8| [&[byte, 1, 0, 0, 0][..], &[0; 16]].concat();
        let geometries = [point(1), point(first_byte)].concat();
        let offsets = Arc::new([0u64, 21, 42].map(u64::to_le_bytes).concat());
        let field = Field::new("wkb_geometry", Datatype::Blob).with_values_per_cell(None);
        let mut columns = vec![
            numbers("_X", &[0.0, 0.0]),
            numbers("_Y", &[0.0, 0.0]),
            Column::variable(field, vec![2], Arc::new(geometries), offsets),
            numbers("number", &[-number, number]),
        ];
        let (text, boxes) = in_parquet(&mut columns, &layer(&[[0.0; 2]]).1, Vec::new, |_| Ok(None)).unwrap();
        let metadata = vec![(KEY.to_owned(), text.unwrap())];
        parquet_file(&columns, Some(&boxes.unwrap()), None, metadata).unwrap().0
    }

    #[test]
    fn a_damaged_geometry_makes_no_page_of_another_column_unreadable() {
        const PAGE: usize = 4096;
        let page = |file: &ParquetFile, number: usize| {
            let start = number * PAGE;
            let mut bytes = vec![0; PAGE.min(file.len() as usize - start)];
            file.read_at(start as u64, &mut bytes).map(|()| bytes)
        };
        let [damaged, intact, other] =
            [(9, 1.5), (1, 1.5), (1, -2.5)].map(|(byte, number)| file_of_layer(byte, number));
        assert_eq!((damaged.len(), other.len()), (intact.len(), intact.len()));
        let (mut refused, mut of_numbers) = (0, 0);
        for number in 0..(intact.len() as usize).div_ceil(PAGE) {
            let has_numbers = page(&intact, number).unwrap() != page(&other, number).unwrap();
            of_numbers += usize::from(has_numbers);
            match page(&damaged, number) {
                Ok(_) => {}
                Err(_) => {
                    refused += 1;
                    assert!(!has_numbers, "page {number} has values of another column");
                }
            }
        }
        assert!(refused > 0 && of_numbers > 0);
        // Readers begin with the end of the file.
        let last = page(&damaged, damaged.len() as usize / PAGE).unwrap();
        assert!(last.ends_with(b"PAR1"));
    }
}
