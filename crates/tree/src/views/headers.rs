//! The small files that tell programs how to read the raw file of a raster: `.hdr`, `.vrt`, `.nhdr`, `.mhd`.

use std::sync::Arc;

use tilefs_export::Column;
use tilefs_export::column::FormatResult;
use tilefs_export::column::extension::of_datatype;
use tilefs_export::raster::Scene;
use tilefs_export::raster::{envi, sidecar};

use crate::cells::{FieldId, column};
use crate::fields::FieldFolder;
use crate::fields::rasters::Rasters;
use crate::node::lazy::LazyFile;
use crate::node::quoting::path_word;
use crate::views::builder::FolderBuilder;
use crate::views::commands::{Command, FileFinder, called};
use crate::views::view::{Add, Job, Shown, TEXT, Task, View};

/// The ENVI header of a raw file.
pub static ENVI: View = View {
    name: "ENVI header",
    files: &["NAME.EXT.hdr"],
    media_type: TEXT,
    reader: "ENVI header: ENVI, GDAL, R (terra), SPy",
    lacks: "text, blobs, 8-bit signed integers, cells of varying size, and other than 2 or 3 axes",
    add: Add::OfFields(add_envi),
    ..View::PLAIN
};

/// GDAL's virtual raster over a raw file.
pub static VRT: View = View {
    name: "GDAL virtual raster",
    files: &["NAME.vrt"],
    reader: "GDAL's virtual raster: QGIS, GDAL, rasterio, R (terra)",
    lacks: "text, blobs, 8-bit signed integers, cells of varying size, and a single axis",
    job: Some(Job::new(14, "Rasters: GDAL, QGIS")),
    shown: Shown::With("vrt"),
    add: Add::OfFields(|builder, fields, id| {
        let fits = sidecar::check_vrt(&fields.describe(id), fields.schema().dimensions.len()).is_ok();
        add_header(builder, fields, id, &VRT, fits.then_some(("vrt", sidecar::vrt)));
    }),
    commands: &[(Task::Raster, gdal)],
    ..View::PLAIN
};

/// Headers of images over a raw file.
pub static SIDECAR: View = View {
    name: "sidecar",
    files: &["NAME.nhdr", "NAME.mhd"],
    media_type: TEXT,
    reader: "header of an image: ITK, 3D Slicer, ParaView, ImageJ",
    lacks: "text, blobs, cells of varying size, nulls, and more than 16 axes",
    shown: Shown::WithAll,
    add: Add::OfFields(|builder, fields, id| {
        let is_image = sidecar::check_image(&fields.describe(id), fields.schema().dimensions.len()).is_ok();
        let can_mhd = is_image && sidecar::can_mhd_name(&data_file(fields, id));
        add_header(builder, fields, id, &SIDECAR, is_image.then_some(("nhdr", sidecar::nhdr)));
        add_header(builder, fields, id, &SIDECAR, can_mhd.then_some(("mhd", sidecar::mhd)));
    }),
    ..View::PLAIN
};

/// Writes the header of an image whose raw file has the given name.
type ImageHeader = fn(&Column, &Scene, &str) -> FormatResult<Vec<u8>>;

/// Returns the name of the raw file of a field.
fn data_file(fields: &FieldFolder, id: FieldId) -> String {
    format!("{}.{}", fields.names.of_field(id), of_datatype(fields.describe(id).datatype))
}

/// Returns whether a field is an attribute of a dense array.
fn is_dense_attribute(fields: &FieldFolder, id: FieldId) -> bool {
    matches!(id, FieldId::Attribute(_)) && !fields.schema().is_sparse()
}

fn add_envi(builder: &mut FolderBuilder, fields: &FieldFolder, id: FieldId) {
    if !is_dense_attribute(fields, id) {
        return;
    }
    let name = format!("{}.hdr", data_file(fields, id));
    match envi::check(&fields.describe(id), fields.schema().dimensions.len()) {
        Err(reason) => builder.leave_out(&name, reason),
        Ok(()) => builder.add(name, &ENVI, Some(&fields.user_name(id)), header(fields, id, envi::header)),
    }
}

/// Adds a header for an attribute of a dense array: `form` is the ending of its name and what writes it.
fn add_header(
    builder: &mut FolderBuilder,
    fields: &FieldFolder,
    id: FieldId,
    view: &'static View,
    form: Option<(&str, ImageHeader)>,
) {
    let Some((ending, write)) = form.filter(|_| is_dense_attribute(fields, id)) else { return };
    let data = data_file(fields, id);
    let file = header(fields, id, move |column, scene| write(column, scene, &data));
    builder.add_unlisted(format!("{}.{ending}", fields.names.of_field(id)), view, Some(&fields.user_name(id)), file);
}

/// Returns a file that `write` makes from the column and its properties as a raster.
fn header(
    fields: &FieldFolder,
    id: FieldId,
    write: impl Fn(&Column, &Scene) -> FormatResult<Vec<u8>> + Send + Sync + 'static,
) -> LazyFile {
    fields.file(move |fields| {
        let rasters = Rasters::of(fields)?;
        let field = rasters.describe(id)?;
        let scene = rasters.scene(id, &field)?;
        Ok(Arc::new(write(&column(&*fields.subarray, id, field)?, &scene)?))
    })
}

fn gdal(finder: &FileFinder<'_>) -> Option<Command> {
    let (attribute, file) = finder.find(&VRT, |_| true)?;
    let purpose = format!("{} as a raster in GDAL and QGIS", called(attribute));
    Some(Command::new(purpose, format!("gdalinfo {}", path_word(&finder.path(file)))))
}
