//! The folders of formats: the same values as files of other kinds.

pub mod arrow_parts;
pub(crate) mod chunk_series;
pub mod labels;
pub mod parts;
pub mod tables;
pub(crate) mod tiff;
pub(crate) mod zarr;
pub(crate) mod zarr2;

use std::sync::Arc;

use tilefs_export::column::extension::of_datatype;
use tilefs_export::column::{AuxiliaryCoordinates, Columns};
use tilefs_export::content::padded::longest;
use tilefs_export::hdf5::{Form, hdf5};
use tilefs_export::netcdf::netcdf;
use tilefs_export::npy::{self, Order};
use tilefs_export::text;
use tilefs_export::{Column, Content};
use tilefs_format::error::{Error, Result};

use crate::cells::{FieldId, Subarray, column};
use crate::fields::FieldFolder;
use crate::fields::builder::FolderBuilder;
use crate::fields::enums;
use crate::fields::rasters::{self, Rasters};
use crate::fields::whole_units::in_whole_units;
use crate::node::listing::Sizing;
use crate::texts::Format;
use crate::texts::shown::View;
use crate::views::tables::measured;

/// Adds the folders of all formats that can hold any of the fields.
pub fn add_folders(builder: &mut FolderBuilder, fields: &FieldFolder, is_slice: bool) {
    let is_sparse = fields.schema().is_sparse();
    let all = || fields.attributes().chain(fields.dimensions());
    explain_absence(builder, fields);
    builder.add_folder("npy", true, |npy| all().for_each(|id| add_npy(npy, fields, id)));
    builder.add_folder("text", true, |texts| {
        all().for_each(|id| add_grid(texts, fields, id));
        tables::add_texts(texts, fields);
    });
    builder.add_folder("netcdf", true, |netcdf| {
        if !is_sparse && fields.subarray.known_shape().is_some_and(|shape| shape.contains(&0)) {
            return netcdf.leave_out("array.nc", "netCDF classic has no axis of length 0");
        }
        netcdf.add_with("array.nc", Format::NetCdf, None, fields.file(netcdf_content), fields.listing_of_all());
    });
    builder.add_folder("netcdf4", fields.shown.has(View::Other), |folder| {
        add_hdf5(folder, fields, "array.nc", Form::NetCdf4);
    });
    builder
        .add_folder("hdf5", fields.shown.has(View::Other), |folder| add_hdf5(folder, fields, "array.h5", Form::Plain));
    builder.add_folder("arrow", fields.shown.has(View::Arrow), |folder| tables::add_arrow(folder, fields));
    builder.add_folder("parquet", fields.shown.has(View::Parquet), |folder| tables::add_parquet(folder, fields));
    zarr::add_to(builder, fields, is_slice);
    if !is_sparse {
        builder.add_folder("tiff", fields.shown.has(View::Tiff), |pictures| tiff::add_to(pictures, fields));
        builder.add_folder("F", fields.shown.has(View::Other), |column_major| {
            fields.attributes().for_each(|id| add_column_major(column_major, fields, id));
        });
    }
}

/// Records why an array has no views that only arrays of another kind have.
fn explain_absence(builder: &mut FolderBuilder, fields: &FieldFolder) {
    if fields.schema().is_sparse() {
        for name in ["tiff", "F"] {
            builder.folder.explain_absence(name, "only dense arrays have it; the cells of this one are rows of tables");
        }
    }
    if !fields.has_one_axis() {
        let reason = tables::no_tables(fields);
        ["arrow", "parquet"].iter().for_each(|name| builder.folder.explain_absence(name, &reason));
    }
}

/// Adds the lines of a text of variable length, beside its raw files.
pub fn add_lines(builder: &mut FolderBuilder, fields: &FieldFolder, id: FieldId) {
    if text::check_lines(&fields.describe(id)).is_ok() {
        let name = format!("{}.txt", fields.names.of_field(id));
        let file = fields.file(move |fields| Ok(text::lines(&column_of(fields, id)?)?));
        builder.add_with(name, Format::Lines, Some(&fields.user_name(id)), file, fields.listing_of_values(id));
    }
}

fn add_npy(builder: &mut FolderBuilder, fields: &FieldFolder, id: FieldId) {
    let name = format!("{}.npy", fields.names.of_field(id));
    match npy::check(&fields.describe(id)) {
        Err(reason) => builder.leave_out(&name, reason),
        Ok(()) => {
            let file = fields.file(move |fields| Ok(npy::npy(&column_of(fields, id)?, Order::RowMajor)?));
            builder.add_with(name, Format::Npy, Some(&fields.user_name(id)), file, fields.listing(Sizing::Count));
        }
    }
    // Whether each cell has a value, even if NumPy cannot hold the values themselves.
    if fields.describe(id).nullable {
        let name = format!("{}.valid.npy", fields.names.of_field(id));
        let file = fields.file(move |fields| Ok(npy::validity(&column_of(fields, id)?, Order::RowMajor)?));
        builder.add_with(name, Format::Npy, Some(&fields.user_name(id)), file, fields.listing(Sizing::Count));
    }
}

/// Adds the values as text. Codes of an enumeration are shown as labels: one per line along one axis, where they need
/// no fixed width.
fn add_grid(builder: &mut FolderBuilder, fields: &FieldFolder, id: FieldId) {
    if text::check_grid(&fields.describe(id)).is_err() {
        return;
    }
    let in_lines = fields.has_one_axis() && fields.has_labels(id);
    let file = fields.file(move |fields| {
        let column = labelled_column_of(fields, id)?;
        // Labels of several numbers have no text, so codes are shown.
        if in_lines && column.field.labels.is_some() {
            let table = text::label_lines(&column)?;
            return Ok(Arc::new(measured(&*fields.subarray, format_args!("labels of {id:?}"), table)?));
        }
        Ok(text::grid(&column)?)
    });
    let name = format!("{}.txt", fields.names.of_field(id));
    let (format, sizing) = if in_lines { (Format::Lines, Sizing::Cells) } else { (Format::Grid, Sizing::Count) };
    builder.add_with(name, format, Some(&fields.user_name(id)), file, fields.listing(sizing));
}

/// Adds the raw file in column-major order and its NumPy form.
fn add_column_major(builder: &mut FolderBuilder, fields: &FieldFolder, id: FieldId) {
    let field = fields.describe(id);
    if field.values_per_cell.is_none() {
        return;
    }
    let values = move |fields: &FieldFolder| -> Result<Arc<dyn Content>> {
        let values = fields.subarray.column_major_values(id)?;
        values.ok_or_else(|| Error::unsupported("only attributes of dense arrays have a column-major order"))
    };
    let (name, user_name) = (fields.names.of_field(id), fields.user_name(id));
    let raw = fields.file(values);
    builder.add(format!("{name}.{}", of_datatype(field.datatype)), Format::RawColumnMajor, Some(&user_name), raw);
    if npy::check(&field).is_ok() {
        let file = fields.file(move |fields| {
            let column = Column { values: values(fields)?, ..column_of(fields, id)? };
            Ok(npy::npy(&column, Order::ColumnMajor)?)
        });
        builder.add(format!("{name}.npy"), Format::Npy, Some(&user_name), file);
    }
}

fn netcdf_content(fields: &FieldFolder) -> Result<Arc<dyn Content>> {
    let columns = columns_of_all(fields, Texts::Measured)?;
    Ok(netcdf(&columns)?.file.content)
}

/// Adds an HDF5 file of all fields.
fn add_hdf5(folder: &mut FolderBuilder, fields: &FieldFolder, name: &str, form: Form) {
    let file = fields.file(move |fields| hdf5(&columns_of_all(fields, Texts::Unmeasured)?, form));
    let format = match form {
        Form::NetCdf4 => Format::NetCdf4,
        Form::Plain => Format::Hdf5,
    };
    folder.add_with(name, format, None, file, fields.listing_of_all());
}

/// Whether a format pads texts, and therefore needs the length of the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Texts {
    Measured,
    Unmeasured,
}

/// Returns all fields with their coordinates, metadata and georeference, for formats that can hold them all.
fn columns_of_all(fields: &FieldFolder, texts: Texts) -> Result<Columns> {
    let fields = &rasters::without_padding(fields)?;
    let rasters = Rasters::of(fields)?;
    // An earlier mount may have saved the length of a field's longest text.
    let field_column = |id: FieldId| -> Result<Column> {
        let mut column = column(&*fields.subarray, id, rasters.describe_all(id)?)?;
        if let Some(offsets) = text_offsets(&column).filter(|_| texts == Texts::Measured) {
            column.longest = saved_longest(&*fields.subarray, id, offsets)?;
        }
        Ok(column)
    };
    let label_column = |column: Column| if texts == Texts::Measured { padded(column) } else { Ok(column) };
    let (mut dimensions, mut auxiliary) = (Vec::new(), Vec::new());
    let sparse = fields.schema().is_sparse();
    // The coordinates of the cells are then those of an axis.
    let has_one_dimension = sparse && fields.dimensions().count() == 1;
    for (axis, id) in fields.dimensions().enumerate() {
        let coordinates = rasters.coordinates(axis)?;
        dimensions.push(match coordinates.main {
            Some(labels) => label_column(in_whole_units(labels)?)?,
            None if has_one_dimension => in_whole_units(field_column(id)?)?,
            None => field_column(id)?,
        });
        for coordinates in coordinates.auxiliary {
            auxiliary.push(AuxiliaryCoordinates { axis, column: label_column(coordinates)? });
        }
    }
    Ok(Columns {
        sparse,
        dimensions,
        auxiliary,
        attributes: fields.attributes().map(field_column).collect::<Result<_>>()?,
        metadata: rasters.notes.of_array.clone(),
        georeference: rasters.georeference_of_all()?,
    })
}

/// Returns the column with the length of its longest text.
pub(super) fn padded(mut column: Column) -> Result<Column> {
    if let Some(offsets) = text_offsets(&column) {
        column.longest = longest(offsets)?;
    }
    Ok(column)
}

/// Returns the offsets of a column of texts of variable length.
fn text_offsets(column: &Column) -> Option<&dyn Content> {
    let is_text = column.field.datatype.is_string() && column.field.datatype.size() == 1;
    column.offsets.as_deref().filter(|_| is_text)
}

/// Returns the length in bytes of the longest text of a field, possibly saved by an earlier mount; `None` if finding it
/// takes too long.
fn saved_longest(subarray: &dyn Subarray, id: FieldId, offsets: &dyn Content) -> Result<Option<u64>> {
    let saved = &subarray.array().context().saved;
    let key = subarray.saved_key()?.map(|key| key.of(format_args!("longest of {id:?}")));
    let decode = |bytes: &[u8]| Some(u64::from_le_bytes(bytes.try_into().ok()?));
    if let Some(longest) = key.and_then(|key| saved.get(&key, decode)) {
        return Ok(Some(longest));
    }
    let found = longest(offsets)?;
    if let Some(longest) = found {
        saved.note_measured((offsets.len() / size_of::<u64>() as u64).saturating_sub(1));
        if let Some(key) = key {
            saved.put(&key, &longest.to_le_bytes());
        }
    }
    Ok(found)
}

/// Returns a column of a field.
///
/// # Errors
/// As for [`column`].
pub(super) fn column_of(fields: &FieldFolder, id: FieldId) -> Result<Column> {
    column(&*fields.subarray, id, fields.describe(id))
}

/// Returns a column of a field, with the labels of its enumeration.
pub(super) fn labelled_column_of(fields: &FieldFolder, id: FieldId) -> Result<Column> {
    let mut field = fields.describe(id);
    if let FieldId::Attribute(number) = id {
        field.labels = enums::labels(fields.subarray.array(), number)?;
    }
    column(&*fields.subarray, id, field)
}
