//! Single values: a number or a text.

use std::sync::Arc;

use tilefs_reader::array::dense::IndexBox;

use super::encoding;
use crate::column::{Column, FormatResult};
use crate::zarr::Node;
use crate::zarr::array::{Array, bytes_of};
use crate::zarr::types::ZarrType;

/// Returns one value, without an axis.
///
/// # Errors
/// [`Unrepresentable`](crate::Unrepresentable) for values that have no type in Zarr.
pub fn scalar(value: Column) -> FormatResult<Node> {
    let kind = ZarrType::of(&value.field)?;
    value.check()?;
    let attributes = match value.field.values_per_cell {
        None => encoding("string", "0.2.0"),
        Some(_) => encoding("numeric-scalar", "0.2.0"),
    };
    let (data_type, codecs, fill_value) = (kind.data_type.clone(), kind.codecs.clone(), kind.fill_value.clone());
    let chunk_bytes = kind.cell_size().and_then(|size| bytes_of(&[], size));
    let make = move |_: &IndexBox| kind.chunk(value.clone(), &[]);
    Ok(Node::Array(Arc::new(Array {
        shape: Vec::new(),
        chunk: Vec::new(),
        data_type,
        codecs,
        fill_value,
        attributes,
        dimensions: Vec::new(),
        chunk_bytes,
        make: Box::new(make),
    })))
}
