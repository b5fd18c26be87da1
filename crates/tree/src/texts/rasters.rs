//! raster.json: what is known of the dense attributes of an array as rasters, for programs that draw them. The facts are
//! those of the tags of TIFF files: position, coordinate system, padding, and for each band scale, unit and colours.
//!
//! Positions count the shown cells. Inapplicable keys are omitted; numbers that JSON does not have are texts.

use serde_json::{Map, Value, json};
use tilefs_base::error::Result;
use tilefs_export::geo::bands::Band;
use tilefs_export::number;

use crate::fields::FieldFolder;
use crate::fields::rasters::Rasters;

/// Maximum number of attributes, and of bands of each, that are described.
const MAX_ATTRIBUTES: usize = 200;
const MAX_BANDS: usize = 256;

/// Maximum length of a palette and of a list of categories.
const MAX_CLASSES: usize = 1 << 16;

/// Returns the text of raster.json.
///
/// # Errors
/// Fails if metadata, or labels that have coordinates, cannot be read.
pub fn raster_json(fields: &FieldFolder) -> Result<String> {
    let rasters = Rasters::of(fields)?;
    let mut all = Map::new();
    if let Some(placed) = rasters.georeference_of_all()? {
        all.insert("row_dimension".to_owned(), placed.lines.into());
        all.insert("column_dimension".to_owned(), placed.samples.into());
        if let Some(transform) = placed.place.transform {
            all.insert("transform".to_owned(), transform.into_iter().map(number_json).collect());
        }
        if !placed.place.system.is_empty() {
            all.insert("system".to_owned(), placed.place.system.into());
        }
        all.insert("has_labels".to_owned(), placed.are_labelled.into());
    }
    let mut attributes = Vec::new();
    for id in fields.attributes().take(MAX_ATTRIBUTES) {
        let field = rasters.describe(id)?;
        let scene = rasters.scene(id, &field)?;
        let mut one = Map::new();
        let mut put = |key: &str, value: Option<Value>| value.map(|value| one.insert(key.to_owned(), value));
        put("name", Some(field.name.clone().into()));
        put("rows", scene.lines.map(Value::from));
        put("columns", scene.samples.map(Value::from));
        put("band_dimension", scene.band_axis.map(Value::from));
        put("no_data", field.no_data.as_ref().and_then(|bytes| number::text(field.datatype, bytes)).map(Value::from));
        put("bands", Some(scene.bands.each().take(MAX_BANDS).map(band).collect()));
        attributes.push(Value::Object(one));
    }
    all.insert("attributes".to_owned(), attributes.into());
    Ok(serde_json::to_string_pretty(&Value::Object(all)).unwrap_or_default() + "\n")
}

fn band(band: &Band) -> Value {
    let mut all = Map::new();
    let mut put = |key: &str, value: Option<Value>| value.map(|value| all.insert(key.to_owned(), value));
    put("name", band.description.clone().map(Value::from));
    put("no_data", band.no_data.clone().map(Value::from));
    put("unit", band.unit.clone().map(Value::from));
    put("scale", band.scale.map(number_json));
    put("offset", band.offset.map(number_json));
    put("colour", band.colour.clone().map(Value::from));
    let palette = || band.palette.iter().take(MAX_CLASSES).map(|colour| json!(colour)).collect();
    put("palette", (!band.palette.is_empty()).then(palette));
    let categories = || band.categories.iter().take(MAX_CLASSES).map(|name| json!(name)).collect();
    put("categories", (!band.categories.is_empty()).then(categories));
    Value::Object(all)
}

fn number_json(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or_else(|| value.to_string().to_lowercase().into(), Value::Number)
}
