//! The small files that tell programs how to read the raw file of a raster: `.hdr`, `.vrt`, `.nhdr`, `.mhd`.

use std::sync::Arc;

use tilefs_export::Column;
use tilefs_export::column::FormatResult;
use tilefs_export::raster::Scene;
use tilefs_export::raster::{envi, sidecar};
use tilefs_vfs::node::lazy::LazyFile;
use tilefs_vfs::node::quoting::path_word;

use crate::cells::{FieldId, column};
use crate::fields::FieldFolder;
use crate::fields::rasters::{Rasters, with_whole_pixels};
use crate::views::builder::FilesOfField;
use crate::views::commands::{Command, FileFinder, called};
use crate::views::facts::{ReadmeTask, Shown, TEXT, ViewFacts};
use crate::views::view::{Add, CommandTask, View};

/// The ENVI header of a raw file.
pub static ENVI: View = View {
    facts: ViewFacts {
        name: "ENVI header",
        files: &["NAME.EXT.hdr"],
        media_type: TEXT,
        reader: "ENVI header: ENVI, GDAL, R (terra), SPy",
        lacks: "text, blobs, 8-bit signed integers, cells of varying size, and other than 2 or 3 axes",
        ..ViewFacts::PLAIN
    },
    add: Add::OfFields(add_envi),
    ..View::PLAIN
};

/// GDAL's virtual raster over a raw file.
pub static VRT: View = View {
    facts: ViewFacts {
        name: "GDAL virtual raster",
        files: &["NAME.vrt"],
        reader: "GDAL's virtual raster: QGIS, GDAL, rasterio, R (terra)",
        lacks: "text, blobs, 8-bit signed integers, cells of varying size, and a single axis",
        job: Some(ReadmeTask::new(14, "Rasters: GDAL, QGIS")),
        shown: Shown::With("vrt"),
        ..ViewFacts::PLAIN
    },
    add: Add::OfFields(|files| {
        let fits = sidecar::check_vrt(&with_whole_pixels(files.fields, files.id, &files.field), files.axes()).is_ok();
        add_header(files, &VRT.facts, fits.then_some(("vrt", sidecar::vrt)));
    }),
    commands: &[(CommandTask::Raster, gdal)],
    ..View::PLAIN
};

/// Headers of images over a raw file.
pub static SIDECAR: View = View {
    facts: ViewFacts {
        name: "sidecar",
        files: &["NAME.nhdr", "NAME.mhd"],
        media_type: TEXT,
        reader: "header of an image: ITK, 3D Slicer, ParaView, ImageJ",
        lacks: "text, blobs, cells of varying size, nulls, and more than 16 axes",
        shown: Shown::WithAll,
        ..ViewFacts::PLAIN
    },
    add: Add::OfFields(|files| {
        let is_image = sidecar::check_image(&files.field, files.axes()).is_ok();
        let can_mhd = is_image && sidecar::can_mhd_name(&files.raw_name());
        add_header(files, &SIDECAR.facts, is_image.then_some(("nhdr", sidecar::nhdr)));
        add_header(files, &SIDECAR.facts, can_mhd.then_some(("mhd", sidecar::mhd)));
    }),
    ..View::PLAIN
};

/// Writes the header of an image whose raw file has the given name.
type ImageHeader = fn(&Column, &Scene, &str) -> FormatResult<Vec<u8>>;

/// Returns whether a field is an attribute of a dense array.
fn is_dense_attribute(files: &FilesOfField<'_>) -> bool {
    !files.is_dimension() && !files.fields.schema().is_sparse()
}

fn add_envi(files: &mut FilesOfField<'_>) {
    if !is_dense_attribute(files) {
        return;
    }
    let name = files.raw_name() + ".hdr";
    match envi::check(&files.field, files.axes()) {
        Err(reason) => files.leave_out(name, reason),
        Ok(()) => files.add(name, &ENVI.facts, |fields, id| header(fields, id, envi::header)),
    }
}

/// Declares a header for an attribute of a dense array: `form` is the ending of its name and what writes it.
fn add_header(files: &mut FilesOfField<'_>, view: &'static ViewFacts, form: Option<(&str, ImageHeader)>) {
    let Some((ending, write)) = form.filter(|_| is_dense_attribute(files)) else { return };
    let data = files.raw_name();
    files.add_unlisted(files.name(ending), view, |fields, id| {
        header(fields, id, move |column, scene| write(column, scene, &data))
    });
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
    let (attribute, file) = finder.find(&VRT.facts, |_| true)?;
    let purpose = format!("{} as a raster in GDAL and QGIS", called(attribute));
    Some(Command::new(purpose, format!("gdalinfo {}", path_word(&finder.path(file)))))
}
