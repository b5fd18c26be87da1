//! A Zarr hierarchy (version 3 of the format) of an array: a group with an array for each attribute and dimension, whose
//! chunks are the array's own tiles.
//!
//! * The grid of chunks is that of the space tiles, from the low end of what is shown on; no chunk is longer than its
//!   axis. A chunk on the edge is as long as the others, with the fill value behind the last cell. The only codec is
//!   `bytes`, little-endian, so that the length of a chunk is known without reading a cell.
//! * Text and bytes of variable length are `string` (`vlen-utf8`) and `variable_length_bytes` (`vlen-bytes`), the length of
//!   whose chunks takes their offsets. Numbers of variable length have no place in Zarr.
//! * The axes of a dense array are dimensions with coordinate arrays of their names. The cells of a sparse array are
//!   the dimension `cells`, and its coordinates arrays along it, in chunks of about a MiB.
//! * Several values a cell are a dimension more, `NAME_values`; text of one fixed length is `null_terminated_bytes`.
//! * What is said of arrays follows the CF conventions, as in netCDF: dates are counts "since 1970-01-01" (years, months
//!   and weeks become days), the coordinates of a raster those of the centres of its pixels, with the coordinate system in
//!   `crs`.
//! * What marks missing values is the attribute `_FillValue`, encoded as xarray has it: see
//!   [`Field::no_data`](super::Field). The `fill_value` is the array's own.
//! * Nulls hold `_FillValue` where a value is free for it, else what the array has stored; `NAME_valid` is false for them.
//! * The labels of an enumeration are `NAME_labels`, and up to 256 of them `flag_meanings`.
//! * The metadata are attributes of the group, those of one field alone of its array. All metadata are consolidated in
//!   the group's `zarr.json`.

mod json;
mod ngff;
mod strings;
mod types;
mod variables;

use std::sync::Arc;

use serde_json::{Map, Value};

use super::boxes::{BoxedColumns, box_of_tile};
use super::column::{Field, FormatResult, Metadatum};
use super::content::Content;
use super::pyramid::Pyramid;
use crate::array::dense::IndexBox;
use crate::error::Result;

/// The name of the file that says what an array or group is.
pub const METADATA: &str = "zarr.json";

/// The folder of an array's chunks; of one without axes, the chunk.
pub const CHUNKS: &str = "c";

/// A group or an array.
#[derive(Clone)]
pub enum Node {
    Group(Arc<Group>),
    Array(Arc<Array>),
}

/// A group: attributes, and members by their names.
#[derive(Default)]
pub struct Group {
    pub attributes: Map<String, Value>,
    pub members: Vec<(String, Node)>,
}

/// Makes the content of a chunk from the box of the array's cells in it.
type MakeChunk = Box<dyn Fn(&IndexBox) -> Result<Arc<dyn Content>> + Send + Sync>;

/// An array: what its `zarr.json` says, and its chunks.
pub struct Array {
    shape: Vec<u64>,
    /// The lengths of a chunk, as many as `shape` has.
    chunk: Vec<u64>,
    data_type: Value,
    codecs: Value,
    fill_value: Value,
    attributes: Map<String, Value>,
    dimensions: Vec<String>,
    /// Bytes of a chunk, where that is the same for all.
    chunk_bytes: Option<u64>,
    make: MakeChunk,
}

impl Array {
    /// How many chunks there are along each axis.
    pub fn grid(&self) -> Vec<u64> {
        self.shape.iter().zip(&self.chunk).map(|(length, chunk)| length.div_ceil(*chunk)).collect()
    }

    /// Bytes of every chunk, where they are all as long.
    pub fn chunk_bytes(&self) -> Option<u64> {
        self.chunk_bytes
    }

    /// The chunk of these numbers, one along each axis; `None` where there is none.
    ///
    /// # Errors
    /// When metadata that is needed cannot be read or, of cells of variable length, their offsets.
    pub fn chunk(&self, numbers: &[u64]) -> Result<Option<Arc<dyn Content>>> {
        box_of_tile(&self.shape, &self.chunk, numbers).map(|cells| (self.make)(&cells)).transpose()
    }
}

impl Node {
    /// The text of its `zarr.json`.
    pub fn metadata(&self) -> String {
        json::text(self)
    }
}

/// Whether a Zarr array can hold a field, and if not why.
pub fn check(field: &Field) -> FormatResult<()> {
    types::ZarrType::of(field).map(drop)
}

/// The group of an array. Columns that Zarr cannot hold are left out.
pub fn zarr(columns: &BoxedColumns) -> Group {
    variables::group(columns)
}

/// The group of a group: its metadata, and where they tell of a pyramid of pictures what OME-NGFF says of that. Its
/// members are found by who lists its folder, so nothing is consolidated.
pub fn of_group(metadata: &[Metadatum]) -> String {
    let mut attributes: Map<String, Value> =
        metadata.iter().map(|metadatum| (metadatum.key.clone(), json::metadatum(metadatum))).collect();
    if let Some(ome) = Pyramid::of(metadata).and_then(|pyramid| ngff::ome(&pyramid)) {
        attributes.insert("ome".to_owned(), ome);
    }
    json::pretty(&serde_json::json!({"zarr_format": 3, "node_type": "group", "attributes": attributes}))
}

#[cfg(test)]
mod tests;
