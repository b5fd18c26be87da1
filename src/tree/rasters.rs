//! The small files beside the raw file of a dense attribute that tell programs how to read it.

use std::borrow::Cow;
use std::sync::Arc;

use super::builder::FolderBuilder;
use super::fields::FieldFolder;
use super::made::MadeFile;
use super::names::dimension_names;
use super::shown::{FieldId, column};
use super::texts::Format;
use crate::error::{Error, Result};
use crate::export::column::Fit;
use crate::export::extension::of_datatype;
use crate::export::georeference::Georeference;
use crate::export::{Column, Misfit, envi, sidecar};

/// The metadata key under which GDAL keeps where a raster lies.
const GDAL_METADATA: &str = "_gdal";

/// Writes the header of an image whose raw file has the given name.
type ImageHeader = fn(&Column, &str) -> Fit<Vec<u8>>;

/// Adds the ENVI header, and for those who ask for them `.vrt`, `.nhdr` and `.mhd`.
pub fn add_headers(builder: &mut FolderBuilder, fields: &FieldFolder, id: FieldId) {
    let field = fields.describe(id);
    let rank = fields.schema().dimensions.len();
    let stem = fields.names.of_field(id);
    let data_file = format!("{stem}.{}", of_datatype(field.datatype));
    let axes: Vec<String> = dimension_names(fields.schema()).map(Cow::into_owned).collect();

    let name = format!("{data_file}.hdr");
    let envi_axes = axes.clone();
    match envi::check(&field, rank) {
        Err(reason) => builder.leave_out(&name, reason),
        Ok(()) => {
            let file = header(fields, id, move |column, place| envi::header(column, &envi_axes, place));
            builder.add(name, Format::EnviHeader, Some(&fields.user_name(id)), file);
        }
    }
    if sidecar::check_vrt(&field, rank).is_ok() {
        let data = data_file.clone();
        let file = header(fields, id, move |column, place| sidecar::vrt(column, &axes, place, &data));
        builder.add_unlisted(format!("{stem}.vrt"), Format::Sidecar, Some(&fields.user_name(id)), file);
    }
    if sidecar::check_image(&field, rank).is_ok() {
        for (extension, write) in [("nhdr", sidecar::nhdr as ImageHeader), ("mhd", sidecar::mhd)] {
            let data = data_file.clone();
            let file = header(fields, id, move |column, _| write(column, &data));
            builder.add_unlisted(format!("{stem}.{extension}"), Format::Sidecar, Some(&fields.user_name(id)), file);
        }
    }
}

/// Where the last two axes of what is shown lie on the Earth, if GDAL's metadata says so.
pub fn georeference(fields: &FieldFolder) -> Option<Georeference> {
    let metadata = fields.shown.array().metadata().ok()?;
    let gdal = metadata.get(GDAL_METADATA)?;
    let whole = Georeference::from_gdal_metadata(std::str::from_utf8(&gdal.bytes).ok()?)?;
    let [.., rows, columns] = fields.shown.selection()?.axes() else { return None };
    let ([rows], [columns]) = (rows.ranges(), columns.ranges()) else { return None };
    let step = |step: i64| u64::try_from(step).ok();
    Some(whole.window(columns.first, step(columns.step)?, rows.first, step(rows.step)?))
}

/// A file that `write` makes from the column and its place on the Earth.
fn header(
    fields: &FieldFolder,
    id: FieldId,
    write: impl Fn(&Column, Option<&Georeference>) -> Fit<Vec<u8>> + Send + Sync + 'static,
) -> MadeFile {
    let this = fields.clone();
    MadeFile::new(fields.modified, move || -> Result<Arc<_>> {
        let column = column(&*this.shown, id, this.describe(id))?;
        let text = write(&column, georeference(&this).as_ref());
        Ok(Arc::new(text.map_err(|Misfit(reason)| Error::unsupported(reason))?))
    })
}
