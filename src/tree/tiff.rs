//! `tiff/`: the attributes of a raster as images.

use std::sync::Arc;

use tilefs_export::boxes::Boxes;
use tilefs_export::content::Content;
use tilefs_export::tiff::{check, tiff};
use tilefs_format::error::Result;

use super::builder::FolderBuilder;
use super::fields::FieldFolder;
use super::rasters::{self, Rasters};
use super::subarray::{DenseBoxes, FieldId};
use super::texts::Format;

/// Adds an image for each attribute of a dense array that can be one.
pub fn add_to(builder: &mut FolderBuilder, fields: &FieldFolder) {
    for id in fields.attributes() {
        let name = format!("{}.tif", fields.names.of_field(id));
        match check(&fields.describe(id), fields.schema().dimensions.len()) {
            Err(reason) => builder.leave_out(&name, reason),
            Ok(()) => {
                let file = fields.file(move |fields| picture(fields, id));
                builder.add(name, Format::Tiff, Some(&fields.user_name(id)), file);
            }
        }
    }
}

fn picture(fields: &FieldFolder, id: FieldId) -> Result<Arc<dyn Content>> {
    let fields = &rasters::without_padding(fields)?;
    let rasters = Rasters::of(fields)?;
    let field = rasters.describe(id)?;
    let scene = rasters.scene(id, &field)?;
    let cells: Arc<dyn Boxes> = Arc::new(DenseBoxes::new(fields.subarray.clone(), id, field)?);
    Ok(tiff(&cells, &scene)?)
}
