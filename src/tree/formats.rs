//! The folders of formats: the same values as files of other kinds.

use std::sync::Arc;

use super::builder::FolderBuilder;
use super::enums;
use super::fields::FieldFolder;
use super::made::MadeFile;
use super::meta;
use super::shown::{FieldId, column};
use super::texts::Format;
use crate::error::{Error, Result};
use crate::export::column::Columns;
use crate::export::extension::of_datatype;
use crate::export::georeference::Georeference;
use crate::export::netcdf::netcdf;
use crate::export::npy::{self, Order};
use crate::export::text::{self, Style};
use crate::export::{Column, Content, Misfit};

/// The metadata key under which GDAL keeps where a raster lies.
const GDAL_METADATA: &str = "_gdal";

/// Adds the folders of all formats that can hold any of the fields.
pub fn add_folders(builder: &mut FolderBuilder, fields: &FieldFolder) {
    let is_sparse = fields.schema().is_sparse();
    let all = || fields.attributes().chain(fields.dimensions());
    builder.add_folder("npy", true, |npy| all().for_each(|id| add_npy(npy, fields, id)));
    builder.add_folder("text", true, |texts| {
        all().for_each(|id| add_grid(texts, fields, id));
        if is_sparse {
            add_tables(texts, fields);
        }
    });
    builder.add_folder("netcdf", true, |netcdf| {
        let this = fields.clone();
        let file = MadeFile::new(fields.modified, move || netcdf_content(&this));
        netcdf.add("array.nc", Format::NetCdf, None, file);
    });
    if !is_sparse {
        builder.add_folder("F", false, |column_major| {
            fields.attributes().for_each(|id| add_column_major(column_major, fields, id));
        });
    }
}

/// The lines of a text of any length, beside its other raw files.
pub fn add_lines(builder: &mut FolderBuilder, fields: &FieldFolder, id: FieldId) {
    if text::check_lines(&fields.describe(id)).is_ok() {
        let this = fields.clone();
        let make = move || text::lines(&column_of(&this, id)?).map_err(misfit);
        let name = format!("{}.txt", fields.names.of_field(id));
        builder.add(name, Format::Lines, Some(fields.user_name(id)), MadeFile::new(fields.modified, make));
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

fn add_npy(builder: &mut FolderBuilder, fields: &FieldFolder, id: FieldId) {
    let name = format!("{}.npy", fields.names.of_field(id));
    match npy::check(&fields.describe(id)) {
        Err(reason) => builder.leave_out(&name, reason),
        Ok(()) => {
            let this = fields.clone();
            let make = move || npy::npy(&column_of(&this, id)?, Order::RowMajor).map_err(misfit);
            builder.add(name, Format::Npy, Some(fields.user_name(id)), MadeFile::new(fields.modified, make));
        }
    }
}

fn add_grid(builder: &mut FolderBuilder, fields: &FieldFolder, id: FieldId) {
    if text::check_grid(&fields.describe(id)).is_ok() {
        let this = fields.clone();
        let make = move || text::grid(&column_of(&this, id)?).map_err(misfit);
        let name = format!("{}.txt", fields.names.of_field(id));
        builder.add(name, Format::Grid, Some(fields.user_name(id)), MadeFile::new(fields.modified, make));
    }
}

/// The table of all columns, tab-separated, and for those who ask comma-separated.
fn add_tables(builder: &mut FolderBuilder, fields: &FieldFolder) {
    let file = |style: Style| {
        let this = fields.clone();
        MadeFile::new(fields.modified, move || {
            let all = this.dimensions().chain(this.attributes());
            let columns = all.map(|id| labelled_column_of(&this, id)).collect::<Result<Vec<_>>>()?;
            Ok(text::table(&columns, style).map_err(misfit)?.content)
        })
    };
    builder.add("cells.tsv", Format::Tsv, None, file(Style::Tsv));
    builder.add_unlisted("cells.csv", Format::Csv, None, file(Style::Csv));
}

/// The raw file in column-major order and its NumPy form.
fn add_column_major(builder: &mut FolderBuilder, fields: &FieldFolder, id: FieldId) {
    let field = fields.describe(id);
    if field.values_per_cell.is_none() {
        return;
    }
    let values = move |fields: &FieldFolder| -> Result<Arc<dyn Content>> {
        let values = fields.shown.column_major_values(id)?;
        values.ok_or_else(|| Error::unsupported("only attributes of dense arrays have a column-major order"))
    };
    let (name, user_name) = (fields.names.of_field(id), Some(fields.user_name(id)));
    let this = fields.clone();
    let raw = MadeFile::new(fields.modified, move || values(&this));
    builder.add(format!("{name}.{}", of_datatype(field.datatype)), Format::RawColumnMajor, user_name, raw);
    if npy::check(&field).is_ok() {
        let this = fields.clone();
        let make = move || {
            let column = Column { values: values(&this)?, ..column_of(&this, id)? };
            npy::npy(&column, Order::ColumnMajor).map_err(misfit)
        };
        builder.add(format!("{name}.npy"), Format::Npy, user_name, MadeFile::new(fields.modified, make));
    }
}

fn netcdf_content(fields: &FieldFolder) -> Result<Arc<dyn Content>> {
    let metadata = fields.shown.array().metadata()?;
    let columns = Columns {
        sparse: fields.schema().is_sparse(),
        dimensions: fields.dimensions().map(|id| column_of(fields, id)).collect::<Result<_>>()?,
        attributes: fields.attributes().map(|id| labelled_column_of(fields, id)).collect::<Result<_>>()?,
        metadata: meta::for_formats(&metadata),
        georeference: georeference(fields),
    };
    Ok(netcdf(&columns).map_err(misfit)?.file.content)
}

/// A column of a field.
///
/// # Errors
/// As [`column`].
fn column_of(fields: &FieldFolder, id: FieldId) -> Result<Column> {
    column(&*fields.shown, id, fields.describe(id))
}

/// A column of a field, with the labels of its enumeration.
fn labelled_column_of(fields: &FieldFolder, id: FieldId) -> Result<Column> {
    let mut field = fields.describe(id);
    if let FieldId::Attribute(number) = id {
        field.labels = enums::labels(fields.shown.array(), number)?;
    }
    column(&*fields.shown, id, field)
}

fn misfit(misfit: Misfit) -> Error {
    Error::unsupported(misfit.to_string())
}
