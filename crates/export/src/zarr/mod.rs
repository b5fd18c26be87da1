//! A Zarr hierarchy (version 3 of the format) of an array: a group with an array for each attribute and dimension,
//! whose chunks are the array's own tiles.
//!
//! * The chunk grid is that of the space tiles, starting at the low end of the part shown; no chunk is longer than its
//!   axis. Chunks on the edge are padded with the fill value to the length of a whole chunk. The only codec is
//!   `bytes`, little-endian, so the length of a chunk is known without reading a cell.
//! * Text and bytes of variable length are `string` (`vlen-utf8`) and `variable_length_bytes` (`vlen-bytes`); the
//!   length of their chunks requires their offsets. Zarr cannot store numbers of variable length.
//! * The axes of a dense array are dimensions with coordinate arrays of the same names. The cells of a sparse array are
//!   the dimension `cells`, and their coordinates are arrays along it, in chunks of about one MiB; if the array has
//!   only one dimension, the cells lie along that dimension, and have its name.
//! * Several values per cell are an additional dimension, `NAME_values`; text of fixed length is
//!   `null_terminated_bytes`.
//! * Attributes follow the CF conventions, as in netCDF: dates are counts "since 1970-01-01" (years, months and weeks
//!   become days), and the coordinates of a raster are those of its pixel centres, with the coordinate system in `crs`.
//! * The marker of missing values is the attribute `_FillValue`, encoded as xarray does: see
//!   [`Field::no_data`](crate::Field). The `fill_value` is the array's own.
//! * Nulls hold `_FillValue` if a value is free for it, otherwise the value stored in the array; `NAME_valid` is false
//!   for them.
//! * The labels of an enumeration are `NAME_labels`, and up to 256 of them `flag_meanings`.
//! * The array's metadata are attributes of the group; those about one field are attributes of its array. All metadata
//!   are consolidated in the group's `zarr.json`.

pub mod anndata;
mod array;
mod files;
mod json;
mod ngff;
mod node;
mod numbers;
pub mod second;
mod strings;
mod types;
mod variables;

use std::sync::Arc;

use crate::column::boxes::{BoxedColumns, Boxes};
use crate::column::dataset::CfDataset;
use crate::column::{Field, FormatResult, Metadatum};
use crate::pyramid::Pyramid;

pub use array::ZarrArray;
pub use files::ZarrVersion;
pub use node::{LEFT_OUT, METADATA, ZarrGroup, ZarrNode};
pub use types::WholeElements;

/// The folder of an array's chunks; for an array without axes, the chunk itself.
pub const CHUNKS: &str = "c";

/// Checks whether a Zarr array can hold a field; returns the reason if not.
pub fn check(field: &Field) -> FormatResult<()> {
    types::ZarrType::of(field).map(drop)
}

/// Returns the group of an array. Columns that Zarr cannot hold are omitted.
pub fn zarr(columns: &BoxedColumns) -> ZarrGroup {
    variables::group(columns)
}

/// Returns the group of variables that share dimensions. Its attributes contain nothing beyond the dataset's metadata.
pub fn zarr_of_dataset(dataset: &CfDataset<Arc<dyn Boxes>>) -> ZarrGroup {
    variables::of_dataset(dataset)
}

/// Returns whether a TileDB group with this metadata has OME-NGFF metadata, whose axes have names in lower case.
pub fn is_ngff(metadata: &[Metadatum]) -> bool {
    Pyramid::of(metadata).is_some_and(|pyramid| ngff::ome(&pyramid).is_ok())
}

/// Returns the group of a TileDB group without its members: its metadata and, for an image pyramid, the OME-NGFF
/// metadata. `left_out` names a form of the group that is missing, with the reason.
pub fn of_group(metadata: &[Metadatum], left_out: Option<(&str, &str)>) -> ZarrGroup {
    let attributes = metadata.iter().map(|metadatum| (metadatum.key.clone(), json::metadatum(metadatum))).collect();
    let mut group = ZarrGroup { attributes, members: Vec::new() };
    match Pyramid::of(metadata).map(|pyramid| ngff::ome(&pyramid)) {
        Some(Ok(ome)) => drop(group.attributes.insert("ome".to_owned(), ome)),
        Some(Err(reason)) => group.leave_out("ome", reason.to_string()),
        None => {}
    }
    if let Some((what, reason)) = left_out {
        group.leave_out(what, reason.to_owned());
    }
    group
}

#[cfg(test)]
mod tests;
