//! `text/NAME.txt`: the values of a field in columns of fixed width, or the labels of its codes, one per line.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::Result;
use tilefs_export::text;
use tilefs_format::datatype::Kind;
use tilefs_format::schema::Attribute;
use tilefs_vfs::node::quoting::path_word;

use crate::cells::FieldId;
use crate::fields::FieldFolder;
use crate::fields::columns::labelled_column_of;
use crate::sizing::Sizing;
use crate::views::builder::{DeclaredFile, FilesOfField};
use crate::views::commands::{Command, FileFinder, called, is_number};
use crate::views::facts::{Shown, TEXT, ViewFacts};
use crate::views::lines::LINES;
use crate::views::tables::measured;
use crate::views::text_tables::TSV;
use crate::views::view::{Add, CommandTask, View};

/// Numbers in columns of fixed width, one row of the array per line.
pub static GRID: View = View {
    facts: ViewFacts {
        name: "text",
        folder: "text",
        files: &["NAME.txt"],
        media_type: TEXT,
        reader: "numbers in columns: awk, gnuplot, R (read.table), NumPy (loadtxt)",
        lacks: "cells of varying size, UTF-16 and UTF-32",
        holds_values: true,
        shown: Shown::Alone("text"),
        ..ViewFacts::PLAIN
    },
    add: Add::OfFields(add),
    commands: &[(CommandTask::FirstRows, first_rows), (CommandTask::Mean, mean)],
    ..View::PLAIN
};

/// Declares the values as text. Codes of an enumeration are shown as labels: one per line along one axis, where they need
/// no fixed width.
fn add(files: &mut FilesOfField<'_>) {
    // Texts of any length have lines instead.
    if let Err(reason) = text::check_grid(&files.field) {
        if text::check_lines(&files.field).is_err() {
            files.leave_out(files.name("txt"), reason);
        }
        return;
    }
    let in_lines = files.fields.has_one_axis() && files.fields.has_labels(files.id);
    let (view, sizing) = if in_lines { (&LINES.facts, Sizing::Cells) } else { (&GRID.facts, Sizing::Count) };
    let (name, listing) = (files.name("txt"), view.listing(&files.fields.shown).and(files.fields.listing(sizing)));
    files.add_with(DeclaredFile { name, view, bytes: None, listing }, |fields, id| {
        fields.file(move |fields| values(fields, id, in_lines))
    });
}

fn values(fields: &FieldFolder, id: FieldId, in_lines: bool) -> Result<Arc<dyn Content>> {
    let column = labelled_column_of(fields, id)?;
    // Labels of several numbers have no text, so codes are shown.
    if in_lines && column.field.labels.is_some() {
        let table = text::label_lines(&column)?;
        return Ok(Arc::new(measured(fields.context(), &table)?));
    }
    Ok(text::grid(&column)?)
}

const MEAN_OF_INTEGERS: &str =
    r#"{for (i = 1; i <= NF; i++) if ($i !~ /N/) {n++; s += $i}} END {if (n) printf "%.10g\n", s / n}"#;

/// The mean of both infinities is no number; `m` is then a text of both, in any order.
const MEAN_OF_FLOATS: &str = concat!(
    r#"{for (i = 1; i <= NF; i++) if ($i ~ /inf/) f[$i]; else if ($i !~ /N/) {n++; s += $i}} "#,
    r#"END {for (k in f) m = m k; if (m ~ /f./) print "nan"; else if (m) print m; else if (n) printf "%.10g\n", s / n}"#
);

/// Returns the command for the first rows, unless a table shows them.
fn first_rows(finder: &FileFinder<'_>) -> Option<Command> {
    if finder.any(&TSV.facts).is_some() {
        return None;
    }
    let (attribute, file) = finder.find(&GRID.facts, |_| true)?;
    let purpose = format!("The first rows of {} as text", called(attribute));
    Some(Command::new(purpose, format!("head -3 {}", path_word(&finder.values(file)))))
}

/// Returns a command that computes a mean. Codes have none; dates and times are left out because text does not show
/// them as numbers. The command skips `NA`, for null, and `NaN`. All versions of awk print the same: they read `inf` and
/// print large integers in different ways, so that infinite values are kept as texts and the number has a format.
fn mean(finder: &FileFinder<'_>) -> Option<Command> {
    let is_quantity =
        |one: &Attribute| is_number(one) && one.enumeration.is_none() && one.datatype.time_unit().is_none();
    let (attribute, file) = finder.find(&GRID.facts, is_quantity)?;
    let program = match attribute.datatype.kind() {
        Kind::Float => MEAN_OF_FLOATS,
        _ => MEAN_OF_INTEGERS,
    };
    let command = format!("awk '{program}' {}", path_word(&finder.values(file)));
    Some(Command::new(format!("The mean of {}", called(attribute)), command))
}
