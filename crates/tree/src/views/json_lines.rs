//! `text/cells.jsonl`: the table as a JSON object per row, whole or in parts. What JSON cannot hold exactly is a string;
//! see [`text::json_lines`].

use std::sync::Arc;

use tilefs_base::error::Result;
use tilefs_export::column::computed::Notation;
use tilefs_export::{Column, number, text};
use tilefs_format::scalar::Scalar;
use tilefs_vfs::node::lazy::LazyFile;

use crate::cells::FieldId;
use crate::fields::{FieldFolder, xattrs};
use crate::sizing::Sizing;
use crate::views::facts::{ReadmeTask, Shown, ViewFacts};
use crate::views::parts::PARTS;
use crate::views::tables::{columns_with_fields, forward_by_rows, measured, no_tables, note_missing_columns};
use crate::views::view::{Add, Parts, View};

/// The table as lines of JSON.
pub static JSON_LINES: View = View {
    facts: ViewFacts {
        name: "JSON lines",
        folder: "text",
        files: &["cells.jsonl"],
        media_type: "application/x-ndjson",
        reader: "the table as a JSON object per row: jq, DuckDB, pandas (read_json, lines=True)",
        lacks: "the columns that text/cells.tsv lacks, and text that is not UTF-8",
        job: Some(ReadmeTask::new(17, "Tables: jq, JavaScript")),
        holds_values: true,
        shown: Shown::With("jsonl"),
        ..ViewFacts::PLAIN
    },
    fits: no_tables,
    add: Add::OfArray(|builder, fields| {
        let listing = JSON_LINES.facts.listing(&fields.shown).and(fields.listing(Sizing::Cells));
        note_missing_columns(builder, fields, "cells.jsonl", text::check_table);
        builder.add_with("cells.jsonl", &JSON_LINES.facts, file(fields), listing);
    }),
    parts: &[Parts { folder: PARTS, about: "", ending: "jsonl", sizing: |_| Sizing::Cells, make: file }],
    ..View::PLAIN
};

fn file(fields: &FieldFolder) -> LazyFile {
    file_of_lines(fields, table)
}

/// Returns the file of a table with a line per row and no header, which each part would repeat.
pub fn file_of_lines(fields: &FieldFolder, table: fn(&FieldFolder) -> Result<Arc<text::Table>>) -> LazyFile {
    let (from_front, described) = (fields.clone(), fields.clone());
    let file = fields.file(move |fields| Ok(Arc::new(measured(fields.context(), &table(fields)?)?)));
    let forward = move || forward_by_rows(&from_front, move |fields, _| Ok(Box::new(text::forward(table(fields)?))));
    file.with_forward(forward).described_by(move || xattrs::of_table(&described))
}

fn table(fields: &FieldFolder) -> Result<Arc<text::Table>> {
    let (ids, columns): (Vec<Option<FieldId>>, Vec<Column>) =
        columns_with_fields(fields, Notation::Texts)?.into_iter().unzip();
    let is_exact = |number: usize| ids.get(number).copied().flatten().is_some_and(|id| is_within_doubles(fields, id));
    Ok(text::json_lines(&columns, is_exact)?.table)
}

/// Returns whether all coordinates of a dimension are exact as doubles: its domain tells, and is the same for all slices
/// and times.
fn is_within_doubles(fields: &FieldFolder, id: FieldId) -> bool {
    let FieldId::Dimension(number) = id else { return false };
    let domain = fields.schema().dimensions.get(number).and_then(|dimension| dimension.domain.as_ref());
    let is_exact = |end: &Scalar| match *end {
        Scalar::Signed(end) => number::is_exact(end),
        Scalar::Unsigned(end) => number::is_exact(end),
        _ => false,
    };
    domain.is_some_and(|domain| is_exact(&domain.low) && is_exact(&domain.high))
}
