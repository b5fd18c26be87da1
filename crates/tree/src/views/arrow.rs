//! `arrow/`: the table as an Arrow file, whole or in parts.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_export::Column;
use tilefs_export::arrow::{self, arrow};
use tilefs_export::column::computed::Notation;
use tilefs_format::datatype::Datatype;
use tilefs_vfs::node::lazy::LazyFile;
use tilefs_vfs::node::quoting::{literal, shell_word};

use crate::fields::table_notes::notes;
use crate::fields::{FieldFolder, xattrs};
use crate::views::commands::{Command, FileFinder};
use crate::views::facts::{ReadmeTask, Shown, ViewFacts};
use crate::views::parts::PARTS;
use crate::views::tables::{columns, no_tables, note_fields, note_missing_columns, stored_columns, unknown_column};
use crate::views::view::{Add, CellBytes, CommandTask, Parts, View};

/// The table in Arrow's IPC format.
pub static ARROW: View = View {
    facts: ViewFacts {
        name: "Arrow IPC",
        folder: "arrow",
        files: &["cells.arrow"],
        media_type: "application/vnd.apache.arrow.file",
        reader: "the table: pyarrow, Polars, R (arrow)",
        lacks: "cells of 2^31 values, and text that is not UTF-8",
        job: Some(ReadmeTask::new(2, "Data frames: pandas, Polars, DuckDB, R")),
        holds_values: true,
        shown: Shown::With("arrow"),
        ..ViewFacts::PLAIN
    },
    cell_bytes: CellBytes::Derived,
    fits: no_tables,
    add: Add::OfArray(|builder, fields| {
        note_missing_columns(builder, fields, "cells.arrow", arrow::check);
        note_fields(builder, fields, "cells.arrow");
        builder.add_with("cells.arrow", &ARROW.facts, arrow_file(fields), fields.listing_of_all());
    }),
    parts: &[Parts {
        folder: PARTS,
        about: "the table in Arrow files of a million rows",
        ending: "arrow",
        sizing: FieldFolder::sizing_of_all,
        make: arrow_file,
    }],
    commands: &[(CommandTask::Frame, schema)],
};

fn arrow_file(fields: &FieldFolder) -> LazyFile {
    let described = fields.clone();
    fields.file(|fields| arrow_of(fields, None, ArrowValues::Meant)).described_by(move || xattrs::of_table(&described))
}

/// What a table of Arrow has of codes, dates and texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrowValues {
    /// What they mean: labels, dates, and text in UTF-8.
    Meant,
    /// What is stored: codes, counts, and bytes, of which there are none that Arrow cannot hold.
    Stored,
}

/// Returns the table as an Arrow file: these columns in this order, or all of them.
///
/// # Errors
/// As for the table; [`Error::Usage`] for an unknown column.
pub fn arrow_of(fields: &FieldFolder, names: Option<&[String]>, values: ArrowValues) -> Result<Arc<dyn Content>> {
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
    if values == ArrowValues::Stored {
        columns = columns.into_iter().map(as_stored).collect();
    }
    let notes = notes(fields, &mut columns);
    let exported = arrow(&columns, notes)?;
    match exported.left_out.first() {
        Some((name, reason)) => Err(Error::unsupported(format!("the column {name}: {reason}"))),
        None => Ok(exported.content),
    }
}

/// Returns a column whose type says no more of its values than how they are stored.
fn as_stored(mut column: Column) -> Column {
    let field = &mut column.field;
    field.labels = None;
    let is_text = field.is_bytes() && field.datatype.size() == 1;
    let plain = if is_text { Some(Datatype::Blob) } else { field.datatype.time_unit().map(|_| Datatype::Int64) };
    if let Some(plain) = plain {
        field.stored_as = field.stored_as.or(Some(field.datatype));
        field.datatype = plain;
    }
    column
}

fn schema(finder: &FileFinder<'_>) -> Option<Command> {
    let file = finder.any(&ARROW.facts)?;
    let path = literal(&finder.path(file));
    let program = format!("import pyarrow.feather as f; print(f.read_table({path}, memory_map=True).schema)");
    let purpose = "The table as an Arrow file, for pyarrow, Polars, DuckDB and R, without a copy";
    Some(Command::new(purpose, format!("python3 -c {}", shell_word(&program))))
}
