//! Single values: a number or a text.

use std::sync::Arc;

use super::encoding;
use crate::column::{Column, FormatResult};
use crate::zarr::ZarrNode;
use crate::zarr::array::{ArrayLayout, ZarrArray};
use crate::zarr::types::ZarrType;

/// Returns one value, without an axis.
///
/// # Errors
/// [`Unrepresentable`](crate::Unrepresentable) for values that have no type in Zarr.
pub fn scalar(value: Column) -> FormatResult<ZarrNode> {
    let kind = ZarrType::of(&value.field)?;
    value.check()?;
    let attributes = match value.field.values_per_cell {
        None => encoding("string", "0.2.0"),
        Some(_) => encoding("numeric-scalar", "0.2.0"),
    };
    let layout = ArrayLayout { chunk: Vec::new(), dimensions: Vec::new(), attributes };
    Ok(ZarrNode::Array(Arc::new(ZarrArray::new(Vec::new(), kind, layout, move |_| Ok(value.clone())))))
}
