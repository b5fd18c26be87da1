//! The folders of formats: the same values as files of other kinds.

use std::sync::Arc;

use super::fields::{FieldFolder, column_of};
use super::made::{FixedFolder, MadeFile};
use super::node::Node;
use super::shown::FieldId;
use crate::error::{Error, Result};
use crate::export::column::Columns;
use crate::export::extension::of_datatype;
use crate::export::netcdf::netcdf;
use crate::export::npy::{self, Order};
use crate::export::text::{self, Style};
use crate::export::{Column, Content, Misfit};

/// Adds the folders of all formats that can hold any of the fields.
pub fn add_folders(folder: &mut FixedFolder, fields: &FieldFolder) {
    let is_sparse = fields.schema().is_sparse();
    let mut npy = FixedFolder::new(fields.modified);
    let mut texts = FixedFolder::new(fields.modified);
    let mut column_major = FixedFolder::new(fields.modified);
    for id in fields.attributes().chain(fields.dimensions()) {
        add_npy(&mut npy, fields, id);
        add_grid(&mut texts, fields, id);
        if !is_sparse && matches!(id, FieldId::Attribute(_)) {
            add_column_major(&mut column_major, fields, id);
        }
    }
    if is_sparse {
        add_tables(&mut texts, fields);
    }
    let mut netcdf = FixedFolder::new(fields.modified);
    let this = fields.clone();
    netcdf.add_file("array.nc", MadeFile::new(fields.modified, move || netcdf_content(&this)));
    add_unless_empty(folder, "npy", npy);
    add_unless_empty(folder, "text", texts);
    folder.add_folder("netcdf", netcdf);
    if !column_major.is_empty() {
        folder.add_unlisted("F", Node::Folder(Arc::new(column_major)));
    }
}

/// The lines of a text attribute, beside its other raw files.
pub fn add_lines(folder: &mut FixedFolder, fields: &FieldFolder, id: FieldId) {
    if text::check_lines(&fields.describe(id)).is_ok() {
        let this = fields.clone();
        let make = move || text::lines(&column_of(&this, id)?).map_err(misfit);
        folder.add_file(format!("{}.txt", fields.names.of_field(id)), MadeFile::new(fields.modified, make));
    }
}

fn add_grid(folder: &mut FixedFolder, fields: &FieldFolder, id: FieldId) {
    if text::check_grid(&fields.describe(id)).is_ok() {
        let this = fields.clone();
        let make = move || text::grid(&column_of(&this, id)?).map_err(misfit);
        folder.add_file(format!("{}.txt", fields.names.of_field(id)), MadeFile::new(fields.modified, make));
    }
}

/// The table of all columns, tab-separated, and for those who ask comma-separated.
fn add_tables(folder: &mut FixedFolder, fields: &FieldFolder) {
    for (name, style) in [("cells.tsv", Style::Tsv), ("cells.csv", Style::Csv)] {
        let this = fields.clone();
        let make = move || {
            let all = this.dimensions().chain(this.attributes());
            let columns = all.map(|id| column_of(&this, id)).collect::<Result<Vec<_>>>()?;
            Ok(text::table(&columns, style).map_err(misfit)?.content)
        };
        let file = Node::File(Arc::new(MadeFile::new(fields.modified, make)));
        match style {
            Style::Csv => folder.add_unlisted(name, file),
            _ => folder.add(name, file),
        }
    }
}

/// The raw file in column-major order and its NumPy form.
fn add_column_major(folder: &mut FixedFolder, fields: &FieldFolder, id: FieldId) {
    let field = fields.describe(id);
    if field.values_per_cell.is_none() {
        return;
    }
    let values = move |fields: &FieldFolder| -> Result<Arc<dyn Content>> {
        let values = fields.shown.column_major_values(id)?;
        values.ok_or_else(|| Error::unsupported("only attributes of dense arrays have a column-major order"))
    };
    let name = fields.names.of_field(id);
    let this = fields.clone();
    let raw = MadeFile::new(fields.modified, move || values(&this));
    folder.add_file(format!("{name}.{}", of_datatype(field.datatype)), raw);
    if npy::check(&field).is_ok() {
        let this = fields.clone();
        let make = move || {
            let column = Column { values: values(&this)?, ..column_of(&this, id)? };
            npy::npy(&column, Order::ColumnMajor).map_err(misfit)
        };
        folder.add_file(format!("{name}.npy"), MadeFile::new(fields.modified, make));
    }
}

fn add_unless_empty(folder: &mut FixedFolder, name: &str, inner: FixedFolder) {
    if !inner.is_empty() {
        folder.add_folder(name, inner);
    }
}

fn add_npy(folder: &mut FixedFolder, fields: &FieldFolder, id: FieldId) {
    if npy::check(&fields.describe(id)).is_err() {
        return;
    }
    let this = fields.clone();
    let make = move || npy::npy(&column_of(&this, id)?, Order::RowMajor).map_err(misfit);
    folder.add_file(format!("{}.npy", fields.names.of_field(id)), MadeFile::new(fields.modified, make));
}

fn netcdf_content(fields: &FieldFolder) -> Result<Arc<dyn Content>> {
    let columns = Columns {
        sparse: fields.shown.array().schema().is_sparse(),
        dimensions: fields.dimensions().map(|id| column_of(fields, id)).collect::<Result<_>>()?,
        attributes: fields.attributes().map(|id| column_of(fields, id)).collect::<Result<_>>()?,
        metadata: Vec::new(),
        georeference: None,
    };
    Ok(netcdf(&columns).map_err(misfit)?.file.content)
}

fn misfit(misfit: Misfit) -> Error {
    Error::unsupported(misfit.to_string())
}
