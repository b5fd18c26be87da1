//! `npy/`: the values of a field, or its mask of nulls, as a NumPy file.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::Result;
use tilefs_export::npy::{self, Order};
use tilefs_vfs::node::quoting::{literal, shell_word};

use crate::cells::FieldId;
use crate::fields::FieldFolder;
use crate::fields::columns::column_of;
use crate::sizing::Sizing;
use crate::views::builder::{DeclaredFile, FilesOfField};
use crate::views::commands::{Command, FileFinder, called};
use crate::views::facts::{ReadmeTask, Shown, ViewFacts, WebCommand};
use crate::views::view::{Add, CellBytes, CommandTask, View};

/// NumPy's own form.
pub static NPY: View = View {
    facts: ViewFacts {
        name: "npy",
        folder: "npy",
        files: &["NAME.npy", "NAME.valid.npy"],
        reader: "NumPy (load, memory-mapped), Julia, R (RcppCNPy)",
        lacks: "cells of varying size, units, and nulls, which NAME.valid.npy marks",
        job: Some(ReadmeTask::new(8, "Arrays in memory: NumPy")),
        holds_values: true,
        shown: Shown::Alone("npy"),
        web: Some(WebCommand { place: 3, about: "In NumPy", write: load_url }),
        ..ViewFacts::PLAIN
    },
    cell_bytes: CellBytes::NumPy,
    add: Add::OfFields(add),
    commands: &[(CommandTask::Memory, load)],
    ..View::PLAIN
};

fn add(files: &mut FilesOfField<'_>) {
    let name = files.name("npy");
    match npy::check(&files.field) {
        Err(reason) => files.leave_out(name, reason),
        Ok(()) => add_counted(files, name, |fields, id| Ok(npy::npy(&column_of(fields, id)?, Order::RowMajor)?)),
    }
    // Whether each cell has a value, even if NumPy cannot hold the values themselves.
    if files.field.nullable {
        let name = files.name("valid.npy");
        add_counted(files, name, |fields, id| Ok(npy::validity(&column_of(fields, id)?, Order::RowMajor)?));
    }
}

/// Declares a file whose size depends on the number of cells.
fn add_counted(
    files: &mut FilesOfField<'_>,
    name: String,
    make: fn(&FieldFolder, FieldId) -> Result<Arc<dyn Content>>,
) {
    let listing = NPY.facts.listing(&files.fields.shown).and(files.fields.listing(Sizing::Count));
    files.add_with(DeclaredFile { name, view: &NPY.facts, bytes: None, listing }, |fields, id| {
        fields.file(move |fields| make(fields, id))
    });
}

fn load(finder: &FileFinder<'_>) -> Option<Command> {
    let (attribute, file) = finder.find(&NPY.facts, |one| !one.is_variable())?;
    let program = format!("import numpy; print(numpy.load({}, mmap_mode=\"r\"))", literal(&finder.values(file)));
    let purpose = format!("{} in NumPy, without a copy", called(attribute));
    Some(Command::new(purpose, format!("python3 -c {}", shell_word(&program))))
}

fn load_url(url: &str) -> String {
    let code = format!(
        "import io, numpy, urllib.request; print(numpy.load(io.BytesIO(urllib.request.urlopen({url:?}).read())))"
    );
    format!("python3 -c {}", shell_word(&code))
}
