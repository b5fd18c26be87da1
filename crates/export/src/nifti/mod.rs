//! NIfTI: a volume, or a series of volumes, for neuroimaging. NIfTI-1 if all axes have up to 32767 cells, else NIfTI-2.
//!
//! A header, four bytes that say that no extension follows, and the values, of which the first axis varies fastest.

mod affine;
mod header;
mod voxel;

use std::sync::Arc;

use tilefs_base::content::Content;

use crate::column::{Column, Field, FormatResult, Metadatum, Unrepresentable};
use crate::content::compose::Concat;
use crate::npy::Order;
use crate::raster::axis::ImageAxis;
use voxel::VoxelType;

/// Maximum number of axes.
const MAX_AXES: usize = 7;

/// Checks whether NIfTI can hold an attribute of an array of this rank; returns the reason if not.
pub fn check(field: &Field, rank: usize) -> FormatResult<()> {
    VoxelType::of(field)?;
    // A single row of cells is a series or a table, and no image.
    if !(2..=MAX_AXES).contains(&rank) {
        return Err(Unrepresentable::new(format!("a NIfTI image has 2 to {MAX_AXES} axes, and this array has {rank}")));
    }
    if field.nullable {
        return Err(Unrepresentable::nulls());
    }
    Ok(())
}

/// Returns the NIfTI file of a column whose values are in `order` and whose axes are `axes`. The first axis of the file is
/// the one that varies fastest.
///
/// The metadata may have the affine transform of the whole array, as `affine` (4 x 4 or 3 x 4 numbers) or as `srow_x`,
/// `srow_y` and `srow_z`, from the first three axes of the file to the coordinates; the file then has the
/// transform of the part that the column shows.
/// Scale and offset among the notes of the field are those of the file.
pub fn nifti(
    column: &Column,
    order: Order,
    axes: &[ImageAxis],
    metadata: &[Metadatum],
) -> FormatResult<Arc<dyn Content>> {
    column.check()?;
    let field = &column.field;
    check(field, column.shape.len())?;
    let (mut lengths, mut axes) = (column.shape.clone(), axes.iter().collect::<Vec<_>>());
    if order == Order::RowMajor {
        lengths.reverse();
        axes.reverse();
    }
    if lengths.contains(&0) {
        return Err(Unrepresentable::empty_axis());
    }
    let all: Vec<&Metadatum> = field.notes.iter().chain(metadata).collect();
    let affine = affine::of(&all).and_then(|whole| affine::of_part(whole, &axes));
    let header = header::header(field, VoxelType::of(field)?, &lengths, affine, &all)?;
    Ok(Arc::new(Concat::new(vec![Arc::new(header), column.values.clone()])))
}

#[cfg(test)]
mod tests;
