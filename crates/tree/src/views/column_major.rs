//! `F/`: the values of an attribute of a dense array with the first axis fastest, raw and for NumPy.

use std::sync::Arc;

use tilefs_export::column::extension::of_datatype;
use tilefs_export::npy::{self, Order};
use tilefs_export::{Column, Content};
use tilefs_format::error::{Error, Result};

use crate::cells::FieldId;
use crate::fields::FieldFolder;
use crate::fields::columns::column_of;
use crate::views::builder::FolderBuilder;
use crate::views::npy::NPY;
use crate::views::view::only_dense;
use crate::views::view::{Add, Shown, View};

/// The values, first axis fastest.
pub static COLUMN_MAJOR: View = View {
    name: "raw, column-major",
    folder: "F",
    files: &["NAME.EXT", "NAME.npy"],
    reader: "values, the first dimension fastest: Fortran, R, MATLAB, Julia",
    lacks: "sparse arrays, and cells of varying size",
    holds_values: true,
    shown: Shown::WithAll,
    fits: only_dense,
    add: Add::OfFields(add),
    ..View::PLAIN
};

fn add(builder: &mut FolderBuilder, fields: &FieldFolder, id: FieldId) {
    let field = fields.describe(id);
    if matches!(id, FieldId::Dimension(_)) || field.values_per_cell.is_none() {
        return;
    }
    let values = move |fields: &FieldFolder| -> Result<Arc<dyn Content>> {
        let values = fields.subarray.column_major_values(id)?;
        values.ok_or_else(|| Error::unsupported("only attributes of dense arrays have a column-major order"))
    };
    let (name, user_name) = (fields.names.of_field(id), fields.user_name(id));
    let raw = fields.file(values);
    builder.add(format!("{name}.{}", of_datatype(field.datatype)), &COLUMN_MAJOR, Some(&user_name), raw);
    if npy::check(&field).is_ok() {
        let file = fields.file(move |fields| {
            let column = Column { values: values(fields)?, ..column_of(fields, id)? };
            Ok(npy::npy(&column, Order::ColumnMajor)?)
        });
        builder.add(format!("{name}.npy"), &NPY, Some(&user_name), file);
    }
}
