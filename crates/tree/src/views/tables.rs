//! The tables of an array, in which a cell is a row: their columns, and what all their formats have in common.
//!
//! Sparse arrays have them, and dense ones with one dimension, which is then the first column.

use std::sync::Arc;

use tilefs_base::content::Forward;
use tilefs_base::error::{Error, Result};
use tilefs_export::column::FormatResult;
use tilefs_export::column::computed::Notation;
use tilefs_export::text::{Measured, Table};
use tilefs_export::{Column, Field};
use tilefs_reader::array::Context;

use crate::cells::{FieldId, MAX_PART_ROWS};
use crate::fields::FieldFolder;
use crate::fields::array_form::ComputedTable;
use crate::fields::columns::labelled_column_of;
use crate::fields::coordinates::dimension_labels;
use crate::fields::row_labels::row_labels;
use crate::views::builder::FolderBuilder;
use crate::views::parts::PartByPart;

/// Returns the reason if an array has no tables: it is dense and has several dimensions.
pub fn no_tables(fields: &FieldFolder) -> std::result::Result<(), String> {
    if fields.has_one_axis() {
        return Ok(());
    }
    let dimensions = fields.schema().dimensions.len();
    Err(format!(
        "a dense array of {dimensions} dimensions is no table: tables are of sparse arrays, and of dense ones with one \
         dimension; npy/, netcdf/ and zarr/ have its values"
    ))
}

/// Notes where the stored columns are instead of which a table shows computed ones.
pub fn note_fields(builder: &mut FolderBuilder, fields: &FieldFolder, name: &str) {
    if let Some(table) = computed_table(fields) {
        builder.leave_out(name, table.about_stored());
    }
}

/// Notes the stored columns that the file of a table lacks; `check` returns the reason.
pub fn note_missing_columns(
    builder: &mut FolderBuilder,
    fields: &FieldFolder,
    file: &str,
    check: fn(&Field) -> FormatResult<()>,
) {
    if computed_table(fields).is_some() {
        return;
    }
    for id in fields.dimensions().chain(fields.attributes()) {
        let mut field = fields.describe(id);
        // For an enumeration, only the type of the codes matters here.
        if fields.has_labels(id) {
            field = field.with_values_per_cell(Some(1)).with_nullable(false);
        }
        if let Err(reason) = check(&field) {
            builder.leave_out(file, format!("its column {} is missing: {reason}", column_name(fields, id)));
        }
    }
}

fn computed_table(fields: &FieldFolder) -> Option<&dyn ComputedTable> {
    fields.form.table.as_ref()?.computed()
}

/// Measures rows of text, or restores the result of an earlier mount.
pub fn measured(context: &Context, table: &Arc<Table>) -> Result<Measured> {
    let decode = |bytes: &[u8]| Measured::of_saved(table.clone(), bytes);
    let make = |table: &Arc<Table>| Measured::new(table.clone());
    context.saved.get_or_make_of(("text", table.rows()), table, decode, Measured::to_bytes, make)
}

/// Returns a table in sequence, as `make` makes it of some rows; its second argument tells whether they are the first.
/// If rows, or the bytes of texts, would have to be counted before the first row can be shown, it is made part by part.
///
/// # Errors
/// Those of `make`, and of counting rows.
pub fn forward_by_rows(
    fields: &FieldFolder,
    make: impl Fn(&FieldFolder, bool) -> Result<Box<dyn Forward>> + Send + 'static,
) -> Result<Box<dyn Forward>> {
    let is_variable = |id: FieldId| fields.describe(id).values_per_cell.is_none();
    let has_texts = fields.dimensions().chain(fields.attributes()).any(is_variable);
    if fields.subarray.row_count()?.exact().is_some_and(|rows| !has_texts || rows <= MAX_PART_ROWS) {
        return make(fields, true);
    }
    let of_part = fields.clone();
    let make = move |subarray, is_first| make(&FieldFolder { subarray, ..of_part.clone() }, is_first);
    Ok(Box::new(PartByPart::new(fields.subarray.clone(), make)?))
}

/// Returns all columns: the coordinates, the labels of the dimensions, and the attributes with the labels of their
/// enumerations, under their names in the array. A nameless one gets the name of its files. If a domain computes the
/// columns, only these use `notation`.
pub fn columns(fields: &FieldFolder, notation: Notation) -> Result<Vec<Column>> {
    Ok(columns_with_fields(fields, notation)?.into_iter().map(|(_, column)| column).collect())
}

/// Like [`columns`], each with its dimension or attribute, if its values are those of one.
pub fn columns_with_fields(fields: &FieldFolder, notation: Notation) -> Result<Vec<(Option<FieldId>, Column)>> {
    let Some(table) = computed_table(fields) else { return stored_columns(fields, |_| true) };
    let mut all = fields.dimensions().chain(fields.attributes());
    let (ids, stored): (Vec<FieldId>, Vec<Column>) = own_columns_of(fields, &mut all, |_| true)?.into_iter().unzip();
    let columns = table.columns(&fields.subarray, stored, notation)?.into_iter();
    Ok(columns.map(|(stored, column)| (stored.and_then(|index| ids.get(index).copied()), column)).collect())
}

/// Like [`columns_with_fields`], but returns only the stored columns whose names are wanted.
pub fn stored_columns(
    fields: &FieldFolder,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<(Option<FieldId>, Column)>> {
    let own = |ids: &mut dyn Iterator<Item = FieldId>| own_columns_of(fields, ids, &is_wanted);
    let with_field = |(id, column)| (Some(id), column);
    let dimensions = own(&mut fields.dimensions())?.into_iter().map(with_field);
    let attributes = own(&mut fields.attributes())?.into_iter().map(with_field);
    let labels = label_columns(fields)?.into_iter().filter(|label| is_wanted(&label.field.name));
    Ok(dimensions.chain(labels.map(|label| (None, label))).chain(attributes).collect())
}

/// Checks that the table has these columns.
///
/// # Errors
/// [`Error::Usage`] for the first that it does not have.
pub fn check_columns(fields: &FieldFolder, names: Option<&[String]>) -> Result<()> {
    let mut known = own_columns(fields);
    known.extend(label_columns(fields)?.into_iter().map(|label| label.field.name));
    match names.unwrap_or_default().iter().find(|name| !known.contains(name)) {
        Some(name) => Err(unknown_column(fields, name)),
        None => Ok(()),
    }
}

pub fn unknown_column(fields: &FieldFolder, name: &str) -> Error {
    let path = fields.subarray.array().path();
    Error::usage(format!("{path} has no column {name:?}; it has {}", own_columns(fields).join(", ")))
}

/// Returns the columns of some dimensions and attributes whose names are wanted.
fn own_columns_of(
    fields: &FieldFolder,
    ids: &mut dyn Iterator<Item = FieldId>,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<(FieldId, Column)>> {
    let named = |id| {
        let name = column_name(fields, id);
        is_wanted(&name).then(|| {
            let mut column = labelled_column_of(fields, id)?;
            column.field.name = name;
            Ok((
                id,
                match &fields.form.table {
                    Some(form) => form.of_stored(column),
                    None => column,
                },
            ))
        })
    };
    ids.filter_map(named).collect()
}

/// Returns the labels of the dimensions, under names that no other column has.
fn label_columns(fields: &FieldFolder) -> Result<Vec<Column>> {
    let mut labels = dimension_labels(fields)?;
    labels.extend(row_labels(fields)?);
    let mut taken: Vec<String> = own_columns(fields);
    for label in &mut labels {
        while taken.contains(&label.field.name) {
            label.field.name.push_str("_label");
        }
        taken.push(label.field.name.clone());
    }
    Ok(labels)
}

/// Returns the names of the columns of dimensions and attributes.
fn own_columns(fields: &FieldFolder) -> Vec<String> {
    fields.dimensions().chain(fields.attributes()).map(|id| column_name(fields, id)).collect()
}

/// Returns the name of a column: that of its field in the array, or of its files if it has none.
fn column_name(fields: &FieldFolder, id: FieldId) -> String {
    let name = fields.user_name(id);
    if name.is_empty() { fields.names.of_field(id).to_owned() } else { name.into_owned() }
}
