//! What the array's metadata says of its table, for readers of Parquet and Arrow: the frame of pandas that was stored, and
//! which columns are geometries.

use tilefs_export::{Column, Metadatum, geoparquet, pandas};

use super::fields::FieldFolder;
use super::meta;

/// The metadata of the file of a table, by key.
///
/// Metadata that cannot be read tell nothing, which is logged: the values of the table are as right without.
pub fn notes(fields: &FieldFolder, columns: &[Column]) -> Vec<(String, String)> {
    let metadata: Vec<Metadatum> = match fields.subarray.array().metadata() {
        Ok(metadata) => meta::for_formats(&metadata),
        Err(error) => {
            log::warn!("a table says nothing of its index and geometries: {error}");
            Vec::new()
        }
    };
    let frame = pandas::Frame::of(&metadata).metadata(columns);
    let geometries = geoparquet::metadata(columns, &metadata);
    let geometries = geometries.map(|geometries| (geoparquet::KEY.to_owned(), geometries));
    [(pandas::KEY.to_owned(), frame)].into_iter().chain(geometries).collect()
}
