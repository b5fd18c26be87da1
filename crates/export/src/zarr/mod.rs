//! A Zarr hierarchy (version 3 of the format) of an array: a group with an array for each attribute and dimension, whose
//! chunks are the array's own tiles.
//!
//! * The grid of chunks is that of the space tiles, from the low end of what is shown on; no chunk is longer than its
//!   axis. A chunk on the edge is as long as the others, with the fill value behind the last cell. The only codec is
//!   `bytes`, little-endian, so that the length of a chunk is known without reading a cell.
//! * Text and bytes of variable length are `string` (`vlen-utf8`) and `variable_length_bytes` (`vlen-bytes`), the length of
//!   whose chunks takes their offsets. Numbers of variable length have no place in Zarr.
//! * The axes of a dense array are dimensions with coordinate arrays of their names. The cells of a sparse array are
//!   the dimension `cells`, and its coordinates arrays along it, in chunks of about a MiB; with one dimension the cells lie
//!   along that, and have its name.
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

pub mod anndata;
mod array;
mod json;
mod ngff;
pub mod second;
mod strings;
mod types;
mod variables;

use std::sync::Arc;

use super::boxes::{BoxedColumns, Boxes};
use super::column::{Field, FormatResult, Metadatum};
use super::dataset::Dataset;
use super::pyramid::Pyramid;

use array::Attributes;

pub use array::Array;
pub use types::Elements;

/// The name of the file that says what an array or group is.
pub const METADATA: &str = "zarr.json";

/// The folder of an array's chunks; of one without axes, the chunk.
pub const CHUNKS: &str = "c";

/// The attribute that says why something is not there which one may look for.
pub const LEFT_OUT: &str = "left_out";

/// A group or an array.
#[derive(Clone)]
pub enum Node {
    Group(Arc<Group>),
    Array(Arc<Array>),
}

/// A group: attributes, and members by their names.
#[derive(Default)]
pub struct Group {
    pub attributes: Attributes,
    pub members: Vec<(String, Node)>,
}

impl Group {
    /// The text of its `zarr.json` without the metadata of what is in it: readers look for those member by member.
    pub fn own_metadata(&self) -> String {
        json::pretty(&json::of_group(self))
    }

    /// Says why something is not here.
    pub fn leave_out(&mut self, what: &str, reason: String) {
        leave_out(&mut self.attributes, what, reason);
    }
}

fn leave_out(attributes: &mut Attributes, what: &str, reason: String) {
    let reasons = attributes.entry(LEFT_OUT).or_insert_with(|| Attributes::new().into());
    if let Some(reasons) = reasons.as_object_mut() {
        reasons.insert(what.to_owned(), reason.into());
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

/// The group of variables that share dimensions, of which it says nothing that their arrays do not.
pub fn zarr_of_dataset(dataset: &Dataset<Arc<dyn Boxes>>) -> Group {
    variables::of_dataset(dataset)
}

/// The group of a group: its metadata, and where they tell of a pyramid of pictures what OME-NGFF says of that. Its
/// members are found by who lists its folder, so nothing is consolidated. `left_out` is what it could be expected to be
/// beside, and why it is not.
pub fn of_group(metadata: &[Metadatum], left_out: Option<(&str, &str)>) -> String {
    let mut attributes: Attributes =
        metadata.iter().map(|metadatum| (metadatum.key.clone(), json::metadatum(metadatum))).collect();
    match Pyramid::of(metadata).map(|pyramid| ngff::ome(&pyramid)) {
        Some(Ok(ome)) => drop(attributes.insert("ome".to_owned(), ome)),
        Some(Err(reason)) => leave_out(&mut attributes, "ome", reason.to_string()),
        None => {}
    }
    if let Some((what, reason)) = left_out {
        leave_out(&mut attributes, what, reason.to_owned());
    }
    json::pretty(&serde_json::json!({"zarr_format": 3, "node_type": "group", "attributes": attributes}))
}

#[cfg(test)]
mod tests;
