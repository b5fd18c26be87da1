//! `tiff/`: the attributes of a raster as images, with what GDAL knows of them and a TIFF cannot hold.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::Result;
use tilefs_export::column::boxes::SpacedBoxes;
use tilefs_export::tiff::{OverviewStore, check, pam_beside, tiff};
use tilefs_vfs::node::listing::Listing;
use tilefs_vfs::node::quoting::shell_word;

use crate::cells::{DenseBoxes, FieldId};
use crate::fields::FieldFolder;
use crate::fields::rasters::{self, Rasters, with_whole_pixels};
use crate::views::builder::{DeclaredFile, FilesOfField};
use crate::views::facts::{ReadmeTask, Shown, ViewFacts, WebCommand};
use crate::views::view::{Add, View, only_dense};

/// BigTIFF.
pub static TIFF: View = View {
    facts: ViewFacts {
        name: "BigTIFF",
        folder: "tiff",
        files: &["NAME.tif"],
        media_type: "image/tiff",
        reader: "BigTIFF: QGIS, GDAL, rasterio, ImageJ, tifffile",
        lacks: "text, blobs, cells of varying size, and other than 2 or 3 axes",
        job: Some(ReadmeTask::new(15, "Pictures, maps: rasterio, ImageMagick, tifffile")),
        holds_values: true,
        shown: Shown::With("tiff"),
        web: Some(WebCommand { place: 1, about: "As a raster in GDAL", write: gdal_url }),
    },
    fits: only_dense,
    add: Add::OfFields(add),
    ..View::PLAIN
};

/// GDAL's file of metadata beside a raster.
pub static RASTER_METADATA: View = View {
    facts: ViewFacts {
        name: "GDAL metadata",
        folder: "tiff",
        files: &["NAME.tif.aux.xml"],
        reader: "what the TIFF beside it cannot hold: GDAL, QGIS, rasterio",
        lacks: "pixels",
        shown: Shown::With("tiff"),
        ..ViewFacts::PLAIN
    },
    fits: only_dense,
    add: Add::OfFields(add_metadata),
    ..View::PLAIN
};

/// Declares the image of an attribute, if it can be one.
fn add(files: &mut FilesOfField<'_>) {
    if files.is_dimension() {
        return;
    }
    let name = files.name("tif");
    match check(&with_whole_pixels(files.fields, files.id, &files.field), files.axes()) {
        Err(reason) => files.leave_out(name, reason),
        Ok(()) => files.add(name, &TIFF.facts, |fields, id| fields.file(move |fields| picture(fields, id))),
    }
}

/// Declares the file beside the image of an attribute.
fn add_metadata(files: &mut FilesOfField<'_>) {
    if files.is_dimension() {
        return;
    }
    if check(&with_whole_pixels(files.fields, files.id, &files.field), files.axes()).is_err() {
        return;
    }
    let (beside, id) = (files.fields.clone(), files.id);
    // If the metadata cannot be read, the image itself reports the error.
    let is_listed = move || metadata_beside(&beside, id).is_ok_and(|text| text.is_some());
    let (name, listing) = (files.name("tif.aux.xml"), Listing::if_wanted(is_listed));
    files.add_with(DeclaredFile { name, view: &RASTER_METADATA.facts, bytes: None, listing }, |fields, id| {
        fields.file(move |fields| {
            let text = metadata_beside(fields, id)?.unwrap_or_else(|| NO_METADATA.to_owned());
            Ok(Arc::new(text.into_bytes()))
        })
    });
}

/// The text of a file that says nothing, for programs that look for it by name.
const NO_METADATA: &str = "<PAMDataset/>\n";

/// Returns all of GDAL's metadata of an image, if its tags cannot hold some of them; `None` if there are none.
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
    Ok(tiff(&cells, &scene, OverviewStore::new(subarray.array().context().clone()))?)
}

fn gdal_url(url: &str) -> String {
    format!("gdalinfo {}", shell_word(&format!("/vsicurl/{url}")))
}
