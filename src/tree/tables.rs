//! The files in which a cell is a row: tables as text, in Arrow and in Parquet, and matrices by their coordinates.
//!
//! Sparse arrays have them, and dense ones with one dimension, which is then the first column.

use std::sync::Arc;

use super::builder::FolderBuilder;
use super::fields::FieldFolder;
use super::formats::{column_of, labelled_column_of, unrepresentable};
use super::lazy::LazyFile;
use super::matrix::matrix_domain;
use super::subarray::FieldId;
use super::texts::Format;
use super::xattrs;
use crate::error::Result;
use crate::export::Column;
use crate::export::arrow::arrow;
use crate::export::parquet::{self, parquet};
use crate::export::text::matrix_market;
use crate::export::text::{self, Style, Table};

/// More cells than this are not measured because somebody lists a folder.
const MOST_LISTED: u64 = 1 << 24;

/// Whether a text whose size takes a pass over all cells is better left out of listings, as `ls -l` asks for the size of
/// whatever they show: where a dense array has very many cells, of which most may never have been written.
pub fn is_unlisted(fields: &FieldFolder) -> bool {
    let cells = fields.subarray.known_shape().and_then(|shape| shape.first().copied());
    !fields.schema().is_sparse() && cells.is_some_and(|cells| cells > MOST_LISTED)
}

/// Adds the tables that are text, tab-separated and for those who ask comma-separated, and the matrices.
pub fn add_texts(builder: &mut FolderBuilder, fields: &FieldFolder) {
    if !fields.has_one_axis() {
        return;
    }
    let file = |style: Style| {
        let (this, from_front, described) = (fields.clone(), fields.clone(), fields.clone());
        let make = move || Ok(Arc::new(text_table(&this, style)?.measure()?) as _);
        LazyFile::new(fields.modified, make)
            .with_forward(move || Ok(text_table(&from_front, style)?.forward()))
            .described_by(move || xattrs::of_table(&described))
    };
    if is_unlisted(fields) {
        builder.add_unlisted("cells.tsv", Format::Tsv, None, file(Style::Tsv));
    } else {
        builder.add("cells.tsv", Format::Tsv, None, file(Style::Tsv));
    }
    builder.add_unlisted("cells.csv", Format::Csv, None, file(Style::Csv));
    if fields.schema().is_sparse() {
        fields.attributes().for_each(|id| add_matrix_market(builder, fields, id));
    }
}

/// Adds the table as an Arrow file.
pub fn add_arrow(builder: &mut FolderBuilder, fields: &FieldFolder) {
    if fields.has_one_axis() {
        let (this, described) = (fields.clone(), fields.clone());
        let make = move || Ok(arrow(&columns(&this)?).map_err(unrepresentable)?.content);
        let file = LazyFile::new(fields.modified, make).described_by(move || xattrs::of_table(&described));
        builder.add("cells.arrow", Format::Arrow, None, file);
    }
}

/// Adds the table as a Parquet file.
pub fn add_parquet(builder: &mut FolderBuilder, fields: &FieldFolder) {
    if !fields.has_one_axis() {
        return;
    }
    for id in fields.dimensions().chain(fields.attributes()) {
        let mut field = fields.describe(id);
        // The labels of an enumeration tell nothing of this that its codes do not.
        if fields.has_labels(id) {
            field = field.with_values_per_cell(Some(1)).with_nullable(false);
        }
        if let Err(reason) = parquet::check(&field) {
            let name = fields.user_name(id).into_owned();
            builder.leave_out("cells.parquet", format!("its column {name} is missing: {reason}"));
        }
    }
    let (this, described) = (fields.clone(), fields.clone());
    let make = move || {
        let mut columns = columns(&this)?;
        for (column, id) in columns.iter_mut().zip(this.dimensions().chain(this.attributes())) {
            column.summaries = this.subarray.summaries(id)?;
        }
        let tiles = this.subarray.tile_rows()?;
        Ok(parquet(&columns, tiles.as_deref()).map_err(unrepresentable)?.content)
    };
    let file = LazyFile::new(fields.modified, make).described_by(move || xattrs::of_table(&described));
    builder.add("cells.parquet", Format::Parquet, None, file);
}

fn text_table(fields: &FieldFolder, style: Style) -> Result<Arc<Table>> {
    Ok(text::table(&columns(fields)?, style).map_err(unrepresentable)?.table)
}

/// All columns: the coordinates and the attributes with their labels, under the names that they have in the array. One
/// without a name has that of its files.
fn columns(fields: &FieldFolder) -> Result<Vec<Column>> {
    let named = |id| {
        let mut column = labelled_column_of(fields, id)?;
        if !fields.user_name(id).is_empty() {
            column.field.name = fields.user_name(id).into_owned();
        }
        Ok(column)
    };
    fields.dimensions().chain(fields.attributes()).map(named).collect()
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
        let domain = matrix_domain(this.subarray.array())?;
        let [rows, columns, values] = [column_of(&this, rows)?, column_of(&this, columns)?, column_of(&this, id)?];
        matrix_market::matrix_market(&rows, &columns, &values, domain).map_err(unrepresentable)
    };
    let name = format!("{}.mtx", fields.names.of_field(id));
    let file = LazyFile::new(fields.modified, make);
    builder.add_unlisted(name, Format::MatrixMarket, Some(&fields.user_name(id)), file);
}
