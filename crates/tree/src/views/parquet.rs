//! `parquet/`: the table as a Parquet file, whole or in parts.

use std::sync::Arc;

use tilefs_base::error::Result;
use tilefs_export::Column;
use tilefs_export::column::computed::Notation;
use tilefs_export::column::microseconds::{in_microseconds, is_in_nanoseconds};
use tilefs_export::parquet::{self, ParquetFile, PartsMetadata, StructColumn, parquet_file};
use tilefs_format::datatype::Datatype;
use tilefs_vfs::node::lazy::LazyFile;
use tilefs_vfs::node::quoting::{literal, shell_word};

use crate::cells::{FieldId, MAX_PART_ROWS};
use crate::fields::table_notes::notes_in_parquet;
use crate::fields::{FieldFolder, xattrs};
use crate::views::builder::FolderBuilder;
use crate::views::commands::{Command, FileFinder};
use crate::views::facts::{ReadmeTask, Shown, ViewFacts, WebCommand};
use crate::views::parts::{PARTS, part_name, part_of};
use crate::views::tables::{columns_with_fields, no_tables, note_fields, note_missing_columns};
use crate::views::view::{Add, CellBytes, CommandTask, Parts, View};

/// The table in Parquet.
pub static PARQUET: View = View {
    facts: ViewFacts {
        name: "Parquet",
        folder: "parquet",
        files: &["cells.parquet"],
        media_type: "application/vnd.apache.parquet",
        reader: "the table: DuckDB, Polars, pandas, pyarrow, Spark",
        lacks: "lists of more than 65,536 numbers, days beyond 32 bits, and text that is not UTF-8",
        job: Some(ReadmeTask::new(3, "Tables and queries: DuckDB, Spark, pandas")),
        holds_values: true,
        shown: Shown::With("parquet"),
        web: Some(WebCommand { place: 2, about: "As a table in DuckDB", write: query_url }),
    },
    cell_bytes: CellBytes::Derived,
    fits: no_tables,
    add: Add::OfArray(add),
    parts: &[Parts {
        folder: PARTS,
        about: "the table in Parquet files of a million rows",
        ending: "parquet",
        sizing: FieldFolder::sizing_of_all,
        make: |part| whole_file(part, |column| column),
    }],
    commands: &[(CommandTask::Query, query)],
};

/// The same table, with microseconds instead of nanoseconds.
///
/// It is never listed, because programs that read all files of the folder as one table need each row once.
pub static PARQUET_MICROSECONDS: View = View {
    facts: ViewFacts {
        name: "Parquet, microseconds",
        folder: "parquet",
        files: &["cells.us.parquet"],
        media_type: "application/vnd.apache.parquet",
        reader: "the table with times in microseconds: Spark",
        lacks: "times between two microseconds, which are errors",
        job: Some(ReadmeTask::new(4, "Tables in Spark, which has no nanoseconds")),
        holds_values: true,
        shown: Shown::Never,
        ..ViewFacts::PLAIN
    },
    fits: no_tables,
    add: Add::OfArray(|builder, fields| {
        if fields.dimensions().chain(fields.attributes()).any(|id| is_in_nanoseconds(&fields.describe(id))) {
            let file = whole_file(fields, in_microseconds);
            builder.add_unlisted("cells.us.parquet", &PARQUET_MICROSECONDS.facts, file);
        }
    }),
    ..View::PLAIN
};

/// The row groups of all parts, for readers of many files.
///
/// It is never listed, because programs that read all files of the folder as one table would take it for another one.
pub static PARQUET_METADATA: View = View {
    facts: ViewFacts {
        name: "Parquet, metadata of the parts",
        folder: "parquet",
        files: &["_metadata"],
        media_type: "application/vnd.apache.parquet",
        reader: "the row groups of all parquet/parts: Dask, pyarrow",
        lacks: "rows, and the row groups of so many parts that it would take more than 256 MiB",
        shown: Shown::Never,
        ..ViewFacts::PLAIN
    },
    fits: no_tables,
    add: Add::OfArray(|builder, fields| {
        builder.add_unlisted("_metadata", &PARQUET_METADATA.facts, metadata_of_parts(fields));
    }),
    ..View::PLAIN
};

fn add(builder: &mut FolderBuilder, fields: &FieldFolder) {
    note_missing_columns(builder, fields, "cells.parquet", parquet::check);
    note_fields(builder, fields, "cells.parquet");
    let file = whole_file(fields, |column| column);
    builder.add_with("cells.parquet", &PARQUET.facts, file, fields.listing_of_all());
}

/// Returns the table as a Parquet file; `change` is applied to each column.
fn whole_file(fields: &FieldFolder, change: fn(Column) -> Column) -> LazyFile {
    let described = fields.clone();
    let file = fields.file(move |fields| Ok(Arc::new(table(fields, change)?.file(fields)?)));
    file.described_by(move || xattrs::of_table(&described))
}

/// The name that GeoPandas gives to geometries.
pub const GEOMETRY: &str = "geometry";

/// Returns the table as a Parquet file for programs that look for geometries in a column of the usual name.
pub fn file_of_shapes(fields: &FieldFolder) -> LazyFile {
    whole_file(fields, |mut column| {
        if column.field.datatype == Datatype::GeomWkb {
            column.field.name = GEOMETRY.to_owned();
        }
        column
    })
}

/// The columns of a table, each with what is known of its values.
struct ParquetTable {
    columns: Vec<Column>,
    /// The boxes around geometries.
    boxes: Option<StructColumn>,
    /// The metadata of the table, by key.
    notes: Vec<(String, String)>,
}

impl ParquetTable {
    fn file(&self, fields: &FieldFolder) -> Result<ParquetFile> {
        let tiles = fields.subarray.tile_rows()?;
        Ok(parquet_file(&self.columns, self.boxes.as_ref(), tiles.as_deref(), self.notes.clone())?.0)
    }
}

/// Returns the table.
fn table(fields: &FieldFolder, change: fn(Column) -> Column) -> Result<ParquetTable> {
    let sorted_by = fields.subarray.sorted_by()?;
    let with_statistics = |(id, mut column): (Option<FieldId>, Column)| -> Result<Column> {
        if let Some(id) = id {
            column.statistics = fields.subarray.statistics(id)?;
            column.sort_rank = sorted_by.iter().position(|&sorted| id == FieldId::Dimension(sorted));
        }
        Ok(column)
    };
    let columns = columns_with_fields(fields, Notation::Lists)?;
    let columns = columns.into_iter().map(with_statistics).collect::<Result<Vec<_>>>()?;
    let mut columns: Vec<Column> = columns.into_iter().map(change).collect();
    let (notes, boxes) = notes_in_parquet(fields, &mut columns)?;
    Ok(ParquetTable { columns, boxes, notes })
}

/// Returns the metadata of all files in `parts/`.
fn metadata_of_parts(fields: &FieldFolder) -> LazyFile {
    let described = fields.clone();
    let file = fields.file(move |fields| {
        let mut starts = fields.subarray.part_starts(MAX_PART_ROWS)?;
        if starts.is_empty() {
            starts.push(0);
        }
        // Readers take the description of the rows from here, not from the parts.
        let notes = table(fields, |column| column)?.notes;
        let (files, fields) = (starts.len(), fields.clone());
        let metadata = PartsMetadata::new(files, move |number| {
            let subarray = part_of(&fields.subarray, number, MAX_PART_ROWS)?;
            let part = FieldFolder { subarray, ..fields.clone() };
            let table = ParquetTable { notes: notes.clone(), ..table(&part, |column| column)? };
            let name = part_name(starts.get(number).copied().unwrap_or_default(), "parquet");
            Ok((format!("{PARTS}/{name}"), table.file(&part)?))
        })?;
        Ok(Arc::new(metadata))
    });
    file.described_by(move || xattrs::of_table(&described))
}

fn query(finder: &FileFinder<'_>) -> Option<Command> {
    let file = finder.any(&PARQUET.facts)?;
    let query = format!("SELECT count(*) FROM '{}'", finder.path(file).replace('\'', "''"));
    let program = format!("import duckdb; print(duckdb.sql({}))", literal(&query));
    let purpose = "A query of the table, which reads the columns and rows that it needs";
    Some(Command::new(purpose, format!("python3 -c {}", shell_word(&program))))
}

fn query_url(url: &str) -> String {
    format!("duckdb -c {}", shell_word(&format!("FROM '{url}' LIMIT 5")))
}
