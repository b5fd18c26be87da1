//! `text/cells.tsv`, `text/cells.csv` and `text/cells.lines.tsv`: a table of all columns as text, whole or in parts.

use std::sync::Arc;

use tilefs_base::content::Forward;
use tilefs_base::error::Result;
use tilefs_export::column::computed::Notation;
use tilefs_export::text::{self, Style};
use tilefs_vfs::node::lazy::LazyFile;
use tilefs_vfs::node::quoting::path_word;

use crate::fields::{FieldFolder, xattrs};
use crate::sizing::Sizing;
use crate::views::commands::{Command, FileFinder};
use crate::views::facts::{ReadmeTask, Shown, ViewFacts};
use crate::views::parts::{PARTS, PARTS_WITHOUT_HEADER};
use crate::views::tables::{columns, forward_by_rows, measured, no_tables, note_fields, note_missing_columns};
use crate::views::view::{Add, CellBytes, CommandTask, Parts, View};

/// The table with tabs.
pub static TSV: View = View {
    facts: ViewFacts {
        name: "tsv",
        folder: "text",
        files: &["cells.tsv"],
        media_type: "text/tab-separated-values; charset=utf-8",
        reader: "the table with tabs: cut, awk, R (read.delim), pandas, DuckDB, spreadsheets",
        lacks: "types of columns, lists of texts, UTF-16 and UTF-32",
        job: Some(ReadmeTask::new(5, "Tables: cut, sort, awk, sqlite3")),
        holds_values: true,
        shown: Shown::Alone("text"),
        ..ViewFacts::PLAIN
    },
    cell_bytes: CellBytes::Derived,
    fits: no_tables,
    add: Add::OfArray(|builder, fields| {
        let listing = TSV.facts.listing(&fields.shown).and(fields.listing(Sizing::Cells));
        note_missing_columns(builder, fields, "cells.tsv", text::check_table);
        builder.add_with("cells.tsv", &TSV.facts, whole(fields, Style::Tsv), listing);
        note_fields(builder, fields, "cells.tsv");
    }),
    parts: &[
        Parts {
            about: "the table as text in files of a million rows (ENDINGS)",
            ..parts(PARTS, "tsv", |part| whole(part, Style::Tsv))
        },
        Parts {
            about: "the same without names of columns: cat text/parts-without-header/*",
            ..parts(PARTS_WITHOUT_HEADER, "tsv", |part| text_file(part, Style::Tsv, HeaderLine::Hidden))
        },
    ],
    commands: &[(CommandTask::FirstRows, first_rows)],
};

/// The table with commas.
pub static CSV: View = View {
    facts: ViewFacts {
        name: "csv",
        folder: "text",
        files: &["cells.csv"],
        media_type: "text/csv; charset=utf-8",
        reader: "the table with commas: R (read.csv), pandas, DuckDB, spreadsheets",
        lacks: "types of columns, lists of texts, UTF-16 and UTF-32",
        job: Some(ReadmeTask::new(6, "Tables: spreadsheets")),
        holds_values: true,
        shown: Shown::With("csv"),
        ..ViewFacts::PLAIN
    },
    fits: no_tables,
    add: Add::OfArray(|builder, fields| {
        let listing = CSV.facts.listing(&fields.shown).and(fields.listing(Sizing::Cells));
        note_missing_columns(builder, fields, "cells.csv", text::check_table);
        builder.add_with("cells.csv", &CSV.facts, whole(fields, Style::Csv), listing);
    }),
    parts: &[
        parts(PARTS, "csv", |part| whole(part, Style::Csv)),
        parts(PARTS_WITHOUT_HEADER, "csv", |part| text_file(part, Style::Csv, HeaderLine::Hidden)),
    ],
    ..View::PLAIN
};

/// The table with tabs and escapes, so that each line is a row.
pub static LINES_OF_ROWS: View = View {
    facts: ViewFacts {
        name: "tsv with escapes",
        folder: "text",
        files: &["cells.lines.tsv"],
        media_type: "text/tab-separated-values; charset=utf-8",
        reader: "a line for each row, with \\n and \\t in texts, \\N for null: awk, PostgreSQL, MySQL, R",
        lacks: "types of columns, lists of texts, UTF-16 and UTF-32",
        job: Some(ReadmeTask::new(21, "Texts with line breaks: awk, PostgreSQL")),
        holds_values: true,
        shown: Shown::With("lines"),
        ..ViewFacts::PLAIN
    },
    fits: no_tables,
    add: Add::OfArray(|builder, fields| {
        let listing = LINES_OF_ROWS.facts.listing(&fields.shown).and(fields.listing(Sizing::Cells));
        note_missing_columns(builder, fields, "cells.lines.tsv", text::check_table);
        builder.add_with("cells.lines.tsv", &LINES_OF_ROWS.facts, whole(fields, Style::Escaped), listing);
    }),
    ..View::PLAIN
};

/// Returns parts whose sizes depend on all cells.
const fn parts(folder: &'static str, ending: &'static str, make: fn(&FieldFolder) -> LazyFile) -> Parts {
    Parts { folder, about: "", ending, sizing: |_| Sizing::Cells, make }
}

/// Whether a text table begins with a row of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeaderLine {
    Shown,
    Hidden,
}

fn whole(fields: &FieldFolder, style: Style) -> LazyFile {
    text_file(fields, style, HeaderLine::Shown)
}

fn text_file(fields: &FieldFolder, style: Style, header: HeaderLine) -> LazyFile {
    let (from_front, described) = (fields.clone(), fields.clone());
    let file = fields.file(move |fields| {
        let table = text_table(fields, style, header)?;
        Ok(Arc::new(measured(fields.context(), &table)?))
    });
    file.with_forward(move || forward(&from_front, style, header)).described_by(move || xattrs::of_table(&described))
}

fn forward(fields: &FieldFolder, style: Style, header: HeaderLine) -> Result<Box<dyn Forward>> {
    forward_by_rows(fields, move |fields, is_first| {
        let header = if is_first { header } else { HeaderLine::Hidden };
        Ok(Box::new(text::forward(text_table(fields, style, header)?)))
    })
}

fn text_table(fields: &FieldFolder, style: Style, header: HeaderLine) -> Result<Arc<text::Table>> {
    let columns = columns(fields, Notation::Texts)?;
    let made = match header {
        HeaderLine::Shown => text::table(&columns, style),
        HeaderLine::Hidden => text::table_without_header(&columns, style),
    };
    Ok(made?.table)
}

fn first_rows(finder: &FileFinder<'_>) -> Option<Command> {
    let file = finder.any(&TSV.facts)?;
    Some(Command::new("The first rows as a table", format!("head -3 {}", path_word(&finder.path(file)))))
}
