//! `text/cells.geojsonl`: the table as a feature of GeoJSON per row, for arrays with geometries.
//!
//! Coordinates are in the array's own system. Readers of GeoJSON take them for degrees of longitude and latitude. A
//! feature has the identifier that GDAL or TileDB-SOMA gave it; its column is a property, too.

use std::collections::HashSet;
use std::sync::Arc;

use tilefs_base::error::Result;
use tilefs_export::column::computed::Notation;
use tilefs_export::{Unrepresentable, text};
use tilefs_format::datatype::Datatype;

use crate::fields::FieldFolder;
use crate::fields::table_notes::features;
use crate::sizing::Sizing;
use crate::views::facts::{ReadmeTask, Shown, ViewFacts};
use crate::views::json_lines::file_of_lines;
use crate::views::tables::{columns, no_tables};
use crate::views::view::{Add, View};

/// The table as lines of GeoJSON.
pub static GEOJSON: View = View {
    facts: ViewFacts {
        name: "GeoJSON lines",
        folder: "text",
        files: &["cells.geojsonl"],
        media_type: "application/x-ndjson",
        reader: "a feature of GeoJSON per row: GDAL (GeoJSONSeq), GeoPandas, jq",
        lacks: "coordinate systems, and what text/cells.jsonl cannot hold",
        job: Some(ReadmeTask::new(20, "Features: GDAL, QGIS")),
        holds_values: true,
        shown: Shown::With("geojson"),
        ..ViewFacts::PLAIN
    },
    fits: |fields| if may_have_geometries(fields) { Ok(()) } else { Err("it has no geometries".to_owned()) },
    add: Add::OfArray(|builder, fields| {
        if may_have_geometries(fields) {
            let listing = GEOJSON.facts.listing(&fields.shown).and(fields.listing(Sizing::Cells));
            let file = file_of_lines(fields, table);
            builder.add_with("cells.geojsonl", &GEOJSON.facts, file, listing);
        }
    }),
    ..View::PLAIN
};

/// Returns whether the schema allows geometries: it has well-known binary, or dimensions as GDAL or TileDB-SOMA give them
/// to points. Only the metadata show whether it has them.
fn may_have_geometries(fields: &FieldFolder) -> bool {
    if no_tables(fields).is_err() {
        return false;
    }
    let schema = fields.schema();
    let is_geometry = |datatype, name: &str| match datatype {
        Datatype::GeomWkb => true,
        Datatype::Blob | Datatype::UInt8 => name == "wkb_geometry",
        _ => false,
    };
    let mut attributes = schema.attributes.iter().filter(|attribute| attribute.is_variable());
    let floats = schema.dimensions.iter().filter(|dimension| dimension.datatype == Datatype::Float64);
    let names: HashSet<&str> = schema.dimensions.iter().map(|dimension| dimension.name.as_str()).collect();
    attributes.any(|attribute| is_geometry(attribute.datatype, &attribute.name))
        || floats.count() > 1 && (names.contains("_X") && names.contains("_Y") || names.contains("soma_joinid"))
}

fn table(fields: &FieldFolder) -> Result<Arc<text::Table>> {
    let features = features(fields, columns(fields, Notation::Texts)?);
    let features = features.ok_or_else(|| Unrepresentable::new("the metadata name no geometries"))?;
    Ok(text::geojson_lines(&features.geometries, features.identifiers.as_ref(), &features.properties)?.table)
}
