//! `tiff/`: the attributes of a raster as images, with what GDAL knows of them and a TIFF cannot hold.

use std::sync::Arc;

use tilefs_export::column::boxes::SpacedBoxes;
use tilefs_export::content::Content;
use tilefs_export::tiff::{OverviewStore, check, pam_beside, tiff};
use tilefs_format::error::Result;

use crate::cells::{DenseBoxes, FieldId};
use crate::fields::FieldFolder;
use crate::fields::builder::FolderBuilder;
use crate::fields::rasters::{self, Rasters};
use crate::node::listing::Listing;
use crate::texts::Format;

/// Adds an image for each attribute of a dense array that can be one.
pub fn add_to(builder: &mut FolderBuilder, fields: &FieldFolder) {
    for id in fields.attributes() {
        let name = format!("{}.tif", fields.names.of_field(id));
        match check(&fields.describe(id), fields.schema().dimensions.len()) {
            Err(reason) => builder.leave_out(&name, reason),
            Ok(()) => {
                let file = fields.file(move |fields| picture(fields, id));
                builder.add(name.clone(), Format::Tiff, Some(&fields.user_name(id)), file);
                let beside = fields.clone();
                // If the metadata cannot be read, the image itself reports the error.
                let is_listed = move || metadata_beside(&beside, id).is_ok_and(|text| text.is_some());
                let text = fields.file(move |fields| {
                    let text = metadata_beside(fields, id)?.unwrap_or_else(|| NO_METADATA.to_owned());
                    Ok(Arc::new(text.into_bytes()))
                });
                let (format, listing) = (Format::RasterMetadata, Listing::If(Arc::new(is_listed)));
                builder.add_with(format!("{name}.aux.xml"), format, Some(&fields.user_name(id)), text, listing);
            }
        }
    }
}

/// The text of a file that says nothing, for programs that look for it by name.
const NO_METADATA: &str = "<PAMDataset/>\n";

/// Returns GDAL's metadata of an image that its tags cannot hold, with the others; `None` if there are none.
fn metadata_beside(fields: &FieldFolder, id: FieldId) -> Result<Option<String>> {
    let fields = &rasters::without_padding(fields)?;
    let rasters = Rasters::of(fields)?;
    let field = rasters.describe(id)?;
    let scene = rasters.scene(id, &field)?;
    Ok(pam_beside(&field, &fields.subarray.shape()?, &scene)?)
}

fn picture(fields: &FieldFolder, id: FieldId) -> Result<Arc<dyn Content>> {
    let fields = &rasters::without_padding(fields)?;
    let rasters = Rasters::of(fields)?;
    let field = rasters.describe(id)?;
    let scene = rasters.scene(id, &field)?;
    let subarray = &fields.subarray;
    let cells: Arc<dyn SpacedBoxes> = Arc::new(DenseBoxes::new(subarray.clone(), id, field)?);
    let key = subarray.saved_key()?.map(|key| key.of(format_args!("{id:?}")));
    Ok(tiff(&cells, &scene, OverviewStore::new(subarray.array().context().clone(), key))?)
}
