//! `NAME.txt`: a text of variable length, one value per line, beside its raw files.

use tilefs_export::text;
use tilefs_vfs::node::quoting::path_word;

use crate::fields::columns::column_of;
use crate::views::builder::{DeclaredFile, FilesOfField};
use crate::views::commands::{Command, FileFinder, called};
use crate::views::facts::{Shown, TEXT, ViewFacts};
use crate::views::view::{Add, CommandTask, View};

/// One value per line.
pub static LINES: View = View {
    facts: ViewFacts {
        name: "lines of text",
        files: &["NAME.txt"],
        media_type: TEXT,
        reader: "one value per line: cat, grep, awk, R (readLines)",
        lacks: "cells of fixed size, blobs, UTF-16 and UTF-32, and line breaks, which become spaces",
        holds_values: true,
        shown: Shown::Alone("text"),
        ..ViewFacts::PLAIN
    },
    add: Add::OfFields(add),
    commands: &[(CommandTask::FirstLines, first_lines)],
    ..View::PLAIN
};

fn add(files: &mut FilesOfField<'_>) {
    if text::check_lines(&files.field).is_ok() {
        let fields = files.fields;
        let listing = LINES.facts.listing(&fields.shown).and(fields.listing_of_values(&files.field));
        let name = files.name("txt");
        files.add_with(DeclaredFile { name, view: &LINES.facts, bytes: None, listing }, |fields, id| {
            fields.file(move |fields| Ok(text::lines(&column_of(fields, id)?)?))
        });
    }
}

fn first_lines(finder: &FileFinder<'_>) -> Option<Command> {
    let (attribute, file) = finder.find(&LINES.facts, |_| true)?;
    let purpose = format!("The first values of {}, one per line", called(attribute));
    Some(Command::new(purpose, format!("head -3 {}", path_word(&finder.values(file)))))
}
