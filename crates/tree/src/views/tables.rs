//! The files in which a cell is a row: tables as text, in Arrow and in Parquet, and matrices by coordinates.
//!
//! Sparse arrays have them, and dense ones with one dimension, which is then the first column.

use std::fmt::Display;
use std::sync::Arc;

use tilefs_export::arrow::arrow;
use tilefs_export::column::microseconds::{in_microseconds, is_in_nanoseconds};
use tilefs_export::parquet::{self, parquet};
use tilefs_export::text::matrix_market;
use tilefs_export::text::{self, Measured, Style, Table, TextRows};
use tilefs_export::{Column, Content, Forward};
use tilefs_format::datatype::Datatype;
use tilefs_format::error::{Error, Result};
use tilefs_vcf::Notation;
use tilefs_vcf::table::CallRows;

use crate::cells::{FieldId, MAX_PART_ROWS, Subarray};
use crate::domains::TableView;
use crate::domains::soma::matrix::matrix_domain;
use crate::fields::FieldFolder;
use crate::fields::builder::FolderBuilder;
use crate::fields::coordinates::dimension_labels;
use crate::fields::row_labels::row_labels;
use crate::fields::table_notes::notes;
use crate::fields::xattrs;
use crate::node::lazy::LazyFile;
use crate::node::listing::Sizing;
use crate::texts::Format;
use crate::texts::shown::View;
use crate::views::parts::{MakeFile, PARTS, PartByPart, PartsFolder};
use crate::views::{column_of, labelled_column_of};

/// Adds the text tables, tab-separated and optionally comma-separated, and the matrices.
pub fn add_texts(builder: &mut FolderBuilder, fields: &FieldFolder) {
    if !fields.has_one_axis() {
        let reason = no_tables(fields);
        ["cells.tsv", "cells.csv"].iter().for_each(|name| builder.folder.explain_absence(name, &reason));
        return;
    }
    let listing = fields.listing(Sizing::Cells);
    builder.add_with("cells.tsv", Format::Tsv, None, text_file(fields, Style::Tsv, Header::Shown), listing);
    let listing = fields.listing_if_shown(View::Csv, Sizing::Cells);
    builder.add_with("cells.csv", Format::Csv, None, text_file(fields, Style::Csv, Header::Shown), listing);
    for (name, header) in [(PARTS, Header::Shown), (PARTS_WITHOUT_HEADER, Header::Hidden)] {
        let formats: [(&'static str, Style); 2] = [("tsv", Style::Tsv), ("csv", Style::Csv)];
        let formats = formats.map(|(ending, style)| -> (_, Box<MakeFile>) {
            (ending, Box::new(move |part| text_file(part, style, header)))
        });
        builder.add_parts(name, PartsFolder::new(fields.clone(), Sizing::Cells, formats.into()));
    }
    note_fields(builder, fields, "cells.tsv");
    if fields.schema().is_sparse() {
        fields.attributes().for_each(|id| add_matrix_market(builder, fields, id));
    }
}

/// Returns the reason why an array has no tables: it is dense and has several dimensions.
pub fn no_tables(fields: &FieldFolder) -> String {
    let dimensions = fields.schema().dimensions.len();
    format!(
        "a dense array of {dimensions} dimensions is no table: tables are of sparse arrays, and of dense ones with one \
         dimension; npy/, netcdf/ and zarr/ have its values"
    )
}

/// Notes where the blobs of variant calls are, because the table shows columns of their fields instead.
fn note_fields(builder: &mut FolderBuilder, fields: &FieldFolder, name: &str) {
    if matches!(fields.table_view, Some(TableView::Calls(_))) {
        let reason =
            "its columns info_NAME and fmt_NAME are the fields in info and fmt, whose bytes are in info.u8 and fmt.u8";
        builder.leave_out(name, reason);
    }
}

/// The folder of parts that can be concatenated: no part begins with a row of names.
const PARTS_WITHOUT_HEADER: &str = "parts-without-header";

/// Whether a text table begins with a row of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Header {
    Shown,
    Hidden,
}

fn text_file(fields: &FieldFolder, style: Style, header: Header) -> LazyFile {
    let (from_front, described) = (fields.clone(), fields.clone());
    let file = fields.file(move |fields| {
        let table = text_table(fields, style, header)?;
        let digest = match &fields.table_view {
            Some(TableView::Calls(variants)) => format!(" of variants {}", variants.digest()?),
            _ => String::new(),
        };
        Ok(Arc::new(measured(&*fields.subarray, format_args!("text {style:?} {header:?}{digest}"), table)?))
    });
    file.with_forward(move || forward(&from_front, style, header)).described_by(move || xattrs::of_table(&described))
}

/// Measures rows of text, or restores the result of an earlier mount. `what` distinguishes them from other texts of the
/// same rows.
pub fn measured<T: TextRows>(subarray: &dyn Subarray, what: impl Display, table: Arc<T>) -> Result<Measured<T>> {
    let saved = &subarray.array().context().saved;
    let key = subarray.saved_key()?.map(|key| key.of(what));
    let decode = |bytes: &[u8]| Measured::of_saved(table.clone(), bytes);
    saved.get_or_make(key, decode, Measured::to_bytes, || {
        saved.note_measured(table.rows());
        Measured::new(table.clone())
    })
}

/// Returns a table in sequence. If rows, or the bytes of texts, would have to be counted before the first row can be
/// shown, it is made part by part.
fn forward(fields: &FieldFolder, style: Style, header: Header) -> Result<Box<dyn Forward>> {
    let is_variable = |id: FieldId| fields.describe(id).values_per_cell.is_none();
    let has_texts = fields.dimensions().chain(fields.attributes()).any(is_variable);
    if fields.subarray.row_count()?.exact().is_some_and(|rows| !has_texts || rows <= MAX_PART_ROWS) {
        return Ok(Box::new(text::forward(text_table(fields, style, header)?)));
    }
    let of_part = fields.clone();
    let make = move |subarray, is_first| -> Result<Box<dyn Forward>> {
        let header = if is_first { header } else { Header::Hidden };
        Ok(Box::new(text::forward(text_table(&FieldFolder { subarray, ..of_part.clone() }, style, header)?)))
    };
    Ok(Box::new(PartByPart::new(fields.subarray.clone(), make)?))
}

/// Adds the table as an Arrow file.
pub fn add_arrow(builder: &mut FolderBuilder, fields: &FieldFolder) {
    if fields.has_one_axis() {
        note_fields(builder, fields, "cells.arrow");
        builder.add_with("cells.arrow", Format::Arrow, None, arrow_file(fields), fields.listing_of_all());
        let make: Box<MakeFile> = Box::new(arrow_file);
        builder.add_parts(PARTS, PartsFolder::new(fields.clone(), fields.sizing_of_all(), vec![("arrow", make)]));
    }
}

fn arrow_file(fields: &FieldFolder) -> LazyFile {
    let described = fields.clone();
    fields.file(|fields| arrow_of(fields, None)).described_by(move || xattrs::of_table(&described))
}

/// Returns the table as an Arrow file: these columns in this order, or all of them.
///
/// # Errors
/// As for the table; [`Error::Usage`] for an unknown column.
pub fn arrow_of(fields: &FieldFolder, names: Option<&[String]>) -> Result<Arc<dyn Content>> {
    let Some(names) = names else {
        let mut columns = columns(fields, Notation::Lists)?;
        let notes = notes(fields, &mut columns);
        return Ok(arrow(&columns, notes)?.content);
    };
    let made = stored_columns(fields, |name| names.iter().any(|wanted| wanted == name))?;
    let pick = |name: &String| {
        let found = made.iter().find(|(_, column)| column.field.name == *name);
        found.map(|(_, column)| column.clone()).ok_or_else(|| unknown_column(fields, name))
    };
    let mut columns: Vec<Column> = names.iter().map(pick).collect::<Result<_>>()?;
    let notes = notes(fields, &mut columns);
    let exported = arrow(&columns, notes)?;
    match exported.left_out.first() {
        Some((name, reason)) => Err(Error::unsupported(format!("the column {name}: {reason}"))),
        None => Ok(exported.content),
    }
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

fn unknown_column(fields: &FieldFolder, name: &str) -> Error {
    let path = fields.subarray.array().path();
    Error::usage(format!("{path} has no column {name:?}; it has {}", own_columns(fields).join(", ")))
}

/// Adds the table as a Parquet file and, if dates are in nanoseconds, also with microseconds, which Spark reads.
pub fn add_parquet(builder: &mut FolderBuilder, fields: &FieldFolder) {
    if !fields.has_one_axis() {
        return;
    }
    for id in fields.dimensions().chain(fields.attributes()) {
        let mut field = fields.describe(id);
        // For an enumeration, only the type of the codes matters here.
        if fields.has_labels(id) {
            field = field.with_values_per_cell(Some(1)).with_nullable(false);
        }
        if let Err(reason) = parquet::check(&field) {
            let name = fields.user_name(id).into_owned();
            builder.leave_out("cells.parquet", format!("its column {name} is missing: {reason}"));
        }
    }
    note_fields(builder, fields, "cells.parquet");
    let file = parquet_file(fields, |column| column);
    builder.add_with("cells.parquet", Format::Parquet, None, file, fields.listing_of_all());
    if fields.dimensions().chain(fields.attributes()).any(|id| is_in_nanoseconds(&fields.describe(id))) {
        // Unlisted, because programs that read all files of the folder as one table need each row once.
        let file = parquet_file(fields, in_microseconds);
        builder.add_unlisted("cells.us.parquet", Format::ParquetMicroseconds, None, file);
    }
    let make: Box<MakeFile> = Box::new(|part| parquet_file(part, |column| column));
    builder.add_parts(PARTS, PartsFolder::new(fields.clone(), fields.sizing_of_all(), vec![("parquet", make)]));
}

/// Returns the table as a Parquet file; `change` is applied to each column.
fn parquet_file(fields: &FieldFolder, change: fn(Column) -> Column) -> LazyFile {
    let described = fields.clone();
    let file = fields.file(move |fields| {
        let with_statistics = |(id, mut column): (Option<FieldId>, Column)| -> Result<Column> {
            if let Some(id) = id {
                column.statistics = fields.subarray.statistics(id)?;
            }
            Ok(column)
        };
        let columns = columns_with_fields(fields, Notation::Lists)?;
        let columns = columns.into_iter().map(with_statistics).collect::<Result<Vec<_>>>()?;
        let mut columns: Vec<Column> = columns.into_iter().map(change).collect();
        let notes = notes(fields, &mut columns);
        let tiles = fields.subarray.tile_rows()?;
        Ok(parquet(&columns, tiles.as_deref(), notes)?.content)
    });
    file.described_by(move || xattrs::of_table(&described))
}

fn text_table(fields: &FieldFolder, style: Style, header: Header) -> Result<Arc<Table>> {
    let columns = columns(fields, Notation::Texts)?;
    let made = match header {
        Header::Shown => text::table(&columns, style),
        Header::Hidden => text::table_without_header(&columns, style),
    };
    Ok(made?.table)
}

/// Returns all columns: the coordinates, the labels of the dimensions, and the attributes with the labels of their
/// enumerations, under their names in the array. A nameless one gets the name of its files. The columns of variant
/// calls are described in [`VariantTables`](tilefs_vcf::table::VariantTables), and only they use `notation`.
fn columns(fields: &FieldFolder, notation: Notation) -> Result<Vec<Column>> {
    Ok(columns_with_fields(fields, notation)?.into_iter().map(|(_, column)| column).collect())
}

/// Like [`columns`], each with its dimension or attribute, if its values are those of one.
fn columns_with_fields(fields: &FieldFolder, notation: Notation) -> Result<Vec<(Option<FieldId>, Column)>> {
    let Some(TableView::Calls(variants)) = &fields.table_view else { return stored_columns(fields, |_| true) };
    let mut all = fields.dimensions().chain(fields.attributes());
    let (ids, stored): (Vec<FieldId>, Vec<Column>) = own_columns_of(fields, &mut all, |_| true)?.into_iter().unzip();
    let subarray = fields.subarray.clone();
    let rows = CallRows { stored, origin: Box::new(move |row| subarray.origin(row)) };
    let columns = variants.columns(rows, notation)?.into_iter();
    Ok(columns.map(|one| (one.stored.and_then(|number| ids.get(number).copied()), one.column)).collect())
}

/// Like [`columns_with_fields`], but returns only the columns whose names are wanted, and those of variant calls as
/// stored.
fn stored_columns(fields: &FieldFolder, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<(Option<FieldId>, Column)>> {
    let own = |ids: &mut dyn Iterator<Item = FieldId>| own_columns_of(fields, ids, &is_wanted);
    let with_field = |(id, column)| (Some(id), column);
    let dimensions = own(&mut fields.dimensions())?.into_iter().map(with_field);
    let attributes = own(&mut fields.attributes())?.into_iter().map(with_field);
    let labels = label_columns(fields)?.into_iter().filter(|label| is_wanted(&label.field.name));
    Ok(dimensions.chain(labels.map(|label| (None, label))).chain(attributes).collect())
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
            let is_text = column.field.datatype == Datatype::Char && column.offsets.is_some();
            if is_text && matches!(fields.table_view, Some(TableView::Statistics)) {
                column.field.datatype = Datatype::StringUtf8;
            }
            Ok((id, column))
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

/// Adds the coordinate form of an attribute of a matrix.
fn add_matrix_market(builder: &mut FolderBuilder, fields: &FieldFolder, id: FieldId) {
    let [rows, columns] = [0, 1].map(FieldId::Dimension);
    if fields.schema().dimensions.len() != 2
        || matrix_market::check(&fields.describe(rows), &fields.describe(columns), &fields.describe(id)).is_err()
    {
        return;
    }
    let file = fields.file(move |fields| {
        let domain = matrix_domain(fields.subarray.array())?;
        let [rows, columns, values] = [column_of(fields, rows)?, column_of(fields, columns)?, column_of(fields, id)?];
        Ok(matrix_market::matrix_market(&rows, &columns, &values, domain)?)
    });
    let name = format!("{}.mtx", fields.names.of_field(id));
    let listing = fields.listing_if_shown(View::Other, Sizing::Cells);
    builder.add_with(name, Format::MatrixMarket, Some(&fields.user_name(id)), file, listing);
}
