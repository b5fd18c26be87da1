//! The raw files of the fields of an array, without the tree around them.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::Result;
use tilefs_format::schema::ArrayType;
use tilefs_reader::array::OpenedArray;
use tilefs_tree::Extent;
use tilefs_tree::cells::dense::{DenseArray, DenseSubarray};
use tilefs_tree::cells::sparse::SparseSubarray;
use tilefs_tree::cells::{FieldId, Subarray, describe_field};

/// Returns all cells that an array's folder shows.
pub fn subarray(array: Arc<OpenedArray>) -> Result<Box<dyn Subarray>> {
    if array.schema().array_type == ArrayType::Sparse {
        return Ok(Box::new(SparseSubarray::new(array, false)));
    }
    let dense = Arc::new(DenseArray::new(array)?);
    let (selection, _) = dense.default_selection(Extent::NonEmpty)?;
    Ok(Box::new(DenseSubarray::new(dense, selection)))
}

/// Returns the fields of a subarray: its attributes and, in a sparse array, its dimensions, because each row has
/// coordinates.
pub fn fields(subarray: &dyn Subarray) -> impl Iterator<Item = FieldId> + use<> {
    let schema = subarray.array().schema();
    let dimensions = if schema.array_type == ArrayType::Sparse { schema.dimensions.len() } else { 0 };
    (0..schema.attributes.len()).map(FieldId::Attribute).chain((0..dimensions).map(FieldId::Dimension))
}

/// Returns the raw files of one field: values, and offsets and validity if it has them.
pub fn contents(subarray: &dyn Subarray, field: FieldId) -> Result<Vec<Arc<dyn Content>>> {
    let described = describe_field(field, subarray.array().schema(), "field");
    let mut contents = vec![subarray.values(field)?];
    if described.values_per_cell.is_none() {
        contents.push(subarray.offsets(field)?);
    }
    if described.nullable {
        contents.push(subarray.validity(field)?.content());
    }
    Ok(contents)
}
