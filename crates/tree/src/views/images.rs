//! `fits/` and `nifti/`: the attributes of a dense array as images of any number of axes, for programs of astronomy and
//! neuroimaging.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_export::column::FormatResult;
use tilefs_export::fits;
use tilefs_export::nifti;
use tilefs_export::npy::Order;
use tilefs_export::raster::axis::ImageAxis;
use tilefs_export::{Column, Field};
use tilefs_format::scalar::Scalar;
use tilefs_format::schema::Dimension;

use crate::cells::{FieldId, column};
use crate::fields::FieldFolder;
use crate::fields::rasters::{self, Rasters};
use crate::views::builder::FilesOfField;
use crate::views::facts::{ReadmeTask, Shown, ViewFacts};
use crate::views::view::{Add, View, only_dense};

/// FITS images.
pub static FITS: View = View {
    facts: ViewFacts {
        name: "FITS",
        folder: "fits",
        files: &["NAME.fits"],
        media_type: "image/fits",
        reader: "FITS image, the axes reversed: astropy, DS9, IDL, GDAL",
        lacks: "text, blobs, cells of varying size, and nulls among 64-bit integers without a value for them",
        job: Some(ReadmeTask::new(18, "Images of the sky: astropy, DS9, IDL")),
        holds_values: true,
        shown: Shown::With("fits"),
        ..ViewFacts::PLAIN
    },
    fits: only_dense,
    add: Add::OfFields(|files| {
        let fits = fits::check(&files.field, files.axes());
        add_image(files, &FITS.facts, fits, |fields, id| {
            let rasters = Rasters::of(fields)?;
            let column = column(&*fields.subarray, id, rasters.describe(id)?)?;
            Ok(fits::fits(&column, &image_axes(fields), &rasters.told.notes.of_array)?)
        });
    }),
    ..View::PLAIN
};

/// Volumes of NIfTI.
pub static NIFTI: View = View {
    facts: ViewFacts {
        name: "NIfTI",
        folder: "nifti",
        files: &["NAME.nii"],
        reader: "NIfTI volume: nibabel, ITK, FSL, 3D Slicer",
        lacks: "text, blobs, dates, nulls, cells of several values but colours, and other than 2 to 7 axes",
        job: Some(ReadmeTask::new(19, "Volumes of the brain: nibabel, FSL")),
        holds_values: true,
        shown: Shown::With("nifti"),
        ..ViewFacts::PLAIN
    },
    fits: only_dense,
    add: Add::OfFields(|files| {
        let fits = nifti::check(&files.field, files.axes());
        add_image(files, &NIFTI.facts, fits, |fields, id| {
            let rasters = Rasters::of(fields)?;
            let (column, order) = volume(fields, id, rasters.describe(id)?)?;
            Ok(nifti::nifti(&column, order, &image_axes(fields), &rasters.told.notes.of_array)?)
        });
    }),
    ..View::PLAIN
};

/// Declares the image of an attribute, if the format can hold it.
fn add_image(
    files: &mut FilesOfField<'_>,
    view: &'static ViewFacts,
    fits: FormatResult<()>,
    make: fn(&FieldFolder, FieldId) -> Result<Arc<dyn Content>>,
) {
    if files.is_dimension() {
        return;
    }
    let name = view.files.concat().replace("NAME", files.fields.names.of_field(files.id));
    match fits {
        Err(reason) => files.leave_out(name, reason),
        Ok(()) => {
            files.add(name, view, |fields, id| fields.file(move |fields| make(&rasters::without_padding(fields)?, id)))
        }
    }
}

/// Returns the axes of the array, with the positions that are shown.
fn image_axes(fields: &FieldFolder) -> Vec<ImageAxis> {
    let schema = fields.schema();
    let shown = fields.subarray.selection().map_or(&[][..], |selection| selection.axes());
    let axis = |(number, dimension): (usize, &Dimension)| {
        let positions = match shown.get(number).map(|axis| axis.ranges()) {
            Some([range]) => Some((range.first, range.step)),
            _ => None,
        };
        let low = match dimension.domain.as_ref().map(|domain| &domain.low) {
            Some(Scalar::Signed(low)) => i128::from(*low),
            Some(Scalar::Unsigned(low)) => i128::from(*low),
            _ => 0,
        };
        ImageAxis { name: schema.dimension_name(number).into_owned(), datatype: dimension.datatype, low, positions }
    };
    schema.dimensions.iter().enumerate().map(axis).collect()
}

/// Returns the values of a volume, and their order. The first axis of a volume, which varies fastest, is the dimension `x`
/// if that is the array's last one, as in arrays of planes; otherwise the array's first one, as nibabel shows it.
fn volume(fields: &FieldFolder, id: FieldId, field: Field) -> Result<(Column, Order)> {
    let schema = fields.schema();
    let row_major = column(&*fields.subarray, id, field)?;
    let last = schema.dimensions.len().saturating_sub(1);
    if schema.dimension_name(last).eq_ignore_ascii_case("x") {
        return Ok((row_major, Order::RowMajor));
    }
    let values = fields.subarray.column_major_values(id)?;
    let values = values.ok_or_else(|| Error::unsupported("cells of varying size have no column-major order"))?;
    Ok((Column { values, ..row_major }, Order::ColumnMajor))
}
