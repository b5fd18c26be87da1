//! The folders of formats: the same values as files of other kinds.

use std::sync::Arc;

use super::builder::FolderBuilder;
use super::enums;
use super::fields::FieldFolder;
use super::made::MadeFile;
use super::meta;
use super::rasters::georeference;
use super::shown::{FieldId, column};
use super::texts::Format;
use crate::error::{Error, Result};
use crate::export::arrow::arrow;
use crate::export::column::Columns;
use crate::export::extension::of_datatype;
use crate::export::netcdf::netcdf;
use crate::export::npy::{self, Order};
use crate::export::text::matrix_market::{self, MatrixDomain};
use crate::export::text::{self, Style};
use crate::export::{Column, Content, Misfit};
use crate::format::scalar::Scalar;

/// Adds the folders of all formats that can hold any of the fields.
pub fn add_folders(builder: &mut FolderBuilder, fields: &FieldFolder) {
    let is_sparse = fields.schema().is_sparse();
    let all = || fields.attributes().chain(fields.dimensions());
    builder.add_folder("npy", true, |npy| all().for_each(|id| add_npy(npy, fields, id)));
    builder.add_folder("text", true, |texts| {
        all().for_each(|id| add_grid(texts, fields, id));
        if is_sparse {
            add_tables(texts, fields);
            fields.attributes().for_each(|id| add_matrix_market(texts, fields, id));
        }
    });
    builder.add_folder("netcdf", true, |netcdf| {
        if !is_sparse && fields.shown.known_shape().is_some_and(|shape| shape.contains(&0)) {
            return netcdf.leave_out("array.nc", "netCDF classic has no axis of length 0");
        }
        let this = fields.clone();
        let file = MadeFile::new(fields.modified, move || netcdf_content(&this));
        netcdf.add("array.nc", Format::NetCdf, None, file);
    });
    if is_sparse {
        builder.add_folder("arrow", false, |folder| {
            let this = fields.clone();
            let make = move || Ok(arrow(&table_columns(&this)?).map_err(misfit)?.content);
            folder.add("cells.arrow", Format::Arrow, None, MadeFile::new(fields.modified, make));
        });
    } else {
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
        builder.add(name, Format::Lines, Some(&fields.user_name(id)), MadeFile::new(fields.modified, make));
    }
}

fn add_npy(builder: &mut FolderBuilder, fields: &FieldFolder, id: FieldId) {
    let name = format!("{}.npy", fields.names.of_field(id));
    match npy::check(&fields.describe(id)) {
        Err(reason) => builder.leave_out(&name, reason),
        Ok(()) => {
            let this = fields.clone();
            let make = move || npy::npy(&column_of(&this, id)?, Order::RowMajor).map_err(misfit);
            builder.add(name, Format::Npy, Some(&fields.user_name(id)), MadeFile::new(fields.modified, make));
        }
    }
}

fn add_grid(builder: &mut FolderBuilder, fields: &FieldFolder, id: FieldId) {
    if text::check_grid(&fields.describe(id)).is_ok() {
        let this = fields.clone();
        let make = move || text::grid(&column_of(&this, id)?).map_err(misfit);
        let name = format!("{}.txt", fields.names.of_field(id));
        builder.add(name, Format::Grid, Some(&fields.user_name(id)), MadeFile::new(fields.modified, make));
    }
}

/// The table of all columns, tab-separated, and for those who ask comma-separated.
fn add_tables(builder: &mut FolderBuilder, fields: &FieldFolder) {
    let file = |style: Style| {
        let this = fields.clone();
        let make = move || Ok(text::table(&table_columns(&this)?, style).map_err(misfit)?.content);
        MadeFile::new(fields.modified, make)
    };
    builder.add("cells.tsv", Format::Tsv, None, file(Style::Tsv));
    builder.add_unlisted("cells.csv", Format::Csv, None, file(Style::Csv));
}

/// All columns of a table: the coordinates and the attributes, with their labels.
fn table_columns(fields: &FieldFolder) -> Result<Vec<Column>> {
    fields.dimensions().chain(fields.attributes()).map(|id| labelled_column_of(fields, id)).collect()
}

/// The coordinate form of an attribute of a matrix.
fn add_matrix_market(builder: &mut FolderBuilder, fields: &FieldFolder, id: FieldId) {
    let [rows, columns] = [0, 1].map(FieldId::Dimension);
    if fields.schema().dimensions.len() != 2
        || matrix_market::check(&fields.describe(rows), &fields.describe(columns), &fields.describe(id)).is_err()
    {
        return;
    }
    let this = fields.clone();
    let make = move || {
        let domain = matrix_domain(&this)?;
        let [rows, columns, values] = [column_of(&this, rows)?, column_of(&this, columns)?, column_of(&this, id)?];
        matrix_market::matrix_market(&rows, &columns, &values, domain).map_err(misfit)
    };
    let name = format!("{}.mtx", fields.names.of_field(id));
    let file = MadeFile::new(fields.modified, make);
    builder.add_unlisted(name, Format::MatrixMarket, Some(&fields.user_name(id)), file);
}

/// More rows than this are no size for a matrix in other programs: then it ends with the last row there is.
const MOST_ROWS: u64 = i32::MAX as u64;

/// From where to where the two dimensions of a matrix go.
fn matrix_domain(fields: &FieldFolder) -> Result<MatrixDomain> {
    let array = fields.shown.array();
    let schema = array.schema();
    let mut domain = MatrixDomain { first: [0; 2], lengths: [0; 2] };
    for (number, dimension) in schema.dimensions.iter().enumerate().take(2) {
        let current = schema.current_domain.as_ref().and_then(|ranges| ranges.get(number));
        let Some(range) = current.or(dimension.domain.as_ref()) else { continue };
        let mut length = range.high.distance_above(&range.low).map_or(u64::MAX, |last| last.saturating_add(1));
        if length > MOST_ROWS {
            length = 0;
            for fragment in 0..array.fragment_count() {
                let outline = array.outline(fragment)?;
                let found = outline.facts.non_empty_domain.as_deref().and_then(|ranges| ranges.get(number));
                let last = found.and_then(|found| found.high.distance_above(&range.low));
                length = length.max(last.map_or(0, |last| last.saturating_add(1)));
            }
        }
        domain.first[number] = match range.low {
            Scalar::Signed(low) => i128::from(low),
            Scalar::Unsigned(low) => i128::from(low),
            _ => 0,
        };
        domain.lengths[number] = length;
    }
    Ok(domain)
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
    let (name, user_name) = (fields.names.of_field(id), fields.user_name(id));
    let this = fields.clone();
    let raw = MadeFile::new(fields.modified, move || values(&this));
    builder.add(format!("{name}.{}", of_datatype(field.datatype)), Format::RawColumnMajor, Some(&user_name), raw);
    if npy::check(&field).is_ok() {
        let this = fields.clone();
        let make = move || {
            let column = Column { values: values(&this)?, ..column_of(&this, id)? };
            npy::npy(&column, Order::ColumnMajor).map_err(misfit)
        };
        builder.add(format!("{name}.npy"), Format::Npy, Some(&user_name), MadeFile::new(fields.modified, make));
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
