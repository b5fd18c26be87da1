//! The array's metadata about its table, for readers of Parquet and Arrow: the pandas frame that was stored, and the
//! geometry columns.

use tilefs_export::tables::{geoparquet, pandas};
use tilefs_export::{Column, Metadatum};

use crate::fields::FieldFolder;
use crate::fields::meta;

/// Returns the metadata of the file of a table, by key. Columns that are geometries according to the array's metadata
/// get the type of geometries.
///
/// Metadata that cannot be read are logged and ignored: no other column depends on them.
pub fn notes(fields: &FieldFolder, columns: &mut [Column]) -> Vec<(String, String)> {
    let metadata: Vec<Metadatum> = match fields.subarray.array().metadata() {
        Ok(metadata) => meta::for_formats(&metadata),
        Err(error) => {
            log::warn!("a table has no metadata about its index and geometries: {error}");
            Vec::new()
        }
    };
    geoparquet::retype_geometries(columns, &metadata);
    let frame = pandas::PandasFrame::of(&metadata).metadata(columns);
    let geometries = geoparquet::metadata(columns, &metadata);
    let geometries = geometries.map(|geometries| (geoparquet::KEY.to_owned(), geometries));
    [(pandas::KEY.to_owned(), frame)].into_iter().chain(geometries).collect()
}
