//! The folders of formats: the same values as files of other kinds.

use std::sync::Arc;

use super::fields::{FieldFolder, column_of};
use super::made::{FixedFolder, MadeFile};
use super::shown::FieldId;
use crate::error::{Error, Result};
use crate::export::column::Columns;
use crate::export::netcdf::netcdf;
use crate::export::npy::{self, Order};
use crate::export::{Content, Misfit};

/// Adds the folders of all formats that can hold any of the fields.
pub fn add_folders(folder: &mut FixedFolder, fields: &FieldFolder) {
    let mut npy = FixedFolder::new(fields.modified);
    for id in fields.attributes().chain(fields.dimensions()) {
        add_npy(&mut npy, fields, id);
    }
    add_unless_empty(folder, "npy", npy);
    let mut netcdf = FixedFolder::new(fields.modified);
    let this = fields.clone();
    netcdf.add_file("array.nc", MadeFile::new(fields.modified, move || netcdf_content(&this)));
    folder.add_folder("netcdf", netcdf);
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
