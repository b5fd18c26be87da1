//! `F/`: the values of an attribute of a dense array with the first axis fastest, raw and for NumPy.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_export::Column;
use tilefs_export::npy::{self, Order};

use crate::cells::FieldId;
use crate::fields::FieldFolder;
use crate::fields::columns::column_of;
use crate::views::builder::FilesOfField;
use crate::views::facts::{Shown, ViewFacts};
use crate::views::npy::NPY;
use crate::views::view::{Add, CellBytes, View, only_dense};

/// The values, first axis fastest.
pub static COLUMN_MAJOR: View = View {
    facts: ViewFacts {
        name: "raw, column-major",
        folder: "F",
        files: &["NAME.EXT", "NAME.npy"],
        reader: "values, the first dimension fastest: Fortran, R, MATLAB, Julia",
        lacks: "sparse arrays, and cells of varying size",
        holds_values: true,
        shown: Shown::WithAll,
        ..ViewFacts::PLAIN
    },
    cell_bytes: CellBytes::Values,
    fits: only_dense,
    add: Add::OfFields(add),
    ..View::PLAIN
};

fn add(files: &mut FilesOfField<'_>) {
    if files.is_dimension() || files.field.values_per_cell.is_none() {
        return;
    }
    files.add(files.raw_name(), &COLUMN_MAJOR.facts, |fields, id| fields.file(move |fields| values(fields, id)));
    if npy::check(&files.field).is_ok() {
        files.add(files.name("npy"), &NPY.facts, |fields, id| {
            fields.file(move |fields| {
                let column = Column { values: values(fields, id)?, ..column_of(fields, id)? };
                Ok(npy::npy(&column, Order::ColumnMajor)?)
            })
        });
    }
}

fn values(fields: &FieldFolder, id: FieldId) -> Result<Arc<dyn Content>> {
    let values = fields.subarray.column_major_values(id)?;
    values.ok_or_else(|| Error::unsupported("only attributes of dense arrays have a column-major order"))
}
