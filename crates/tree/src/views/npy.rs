//! `npy/`: the values of a field, or its mask of nulls, as a NumPy file.

use tilefs_export::npy::{self, Order};

use crate::cells::FieldId;
use crate::fields::FieldFolder;
use crate::fields::columns::column_of;
use crate::node::listing::Sizing;
use crate::node::quoting::{literal, shell_word};
use crate::views::builder::FolderBuilder;
use crate::views::commands::{Command, FileFinder, called};
use crate::views::view::{Add, Job, Task, View, WebCommand};

/// NumPy's own form.
pub static NPY: View = View {
    name: "npy",
    folder: "npy",
    files: &["NAME.npy", "NAME.valid.npy"],
    reader: "NumPy (load, memory-mapped), Julia, R (RcppCNPy)",
    lacks: "cells of varying size, units, and nulls, which NAME.valid.npy marks",
    job: Some(Job::new(8, "Arrays in memory: NumPy")),
    holds_values: true,
    add: Add::OfFields(add),
    commands: &[(Task::Memory, load)],
    web: Some(WebCommand { place: 3, about: "In NumPy", write: load_url }),
    ..View::PLAIN
};

fn add(builder: &mut FolderBuilder, fields: &FieldFolder, id: FieldId) {
    let name = format!("{}.npy", fields.names.of_field(id));
    match npy::check(&fields.describe(id)) {
        Err(reason) => builder.leave_out(&name, reason),
        Ok(()) => {
            let file = fields.file(move |fields| Ok(npy::npy(&column_of(fields, id)?, Order::RowMajor)?));
            builder.add_with(name, &NPY, Some(&fields.user_name(id)), file, fields.listing(Sizing::Count));
        }
    }
    // Whether each cell has a value, even if NumPy cannot hold the values themselves.
    if fields.describe(id).nullable {
        let name = format!("{}.valid.npy", fields.names.of_field(id));
        let file = fields.file(move |fields| Ok(npy::validity(&column_of(fields, id)?, Order::RowMajor)?));
        builder.add_with(name, &NPY, Some(&fields.user_name(id)), file, fields.listing(Sizing::Count));
    }
}

fn load(finder: &FileFinder<'_>) -> Option<Command> {
    let (attribute, file) = finder.find(&NPY, |one| !one.is_variable())?;
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
