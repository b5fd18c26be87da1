//! The raw files of attributes and dimensions: values, coordinates, offsets and validity.

use tilefs_format::datatype::Kind;
use tilefs_format::schema::{Attribute, CellValNum};
use tilefs_vfs::node::ExtendedAttributes;
use tilefs_vfs::node::lazy::LazyFile;
use tilefs_vfs::node::quoting::{literal, path_word, shell_word};

use crate::cells::FieldId;
use crate::fields::{FieldFolder, xattrs};
use crate::sizing::Sizing;
use crate::views::builder::{DeclaredFile, FilesOfField};
use crate::views::commands::{Command, FileFinder, called, is_number, od};
use crate::views::facts::ViewFacts;
use crate::views::view::{Add, CellBytes, CommandTask, View};

/// The values, end to end, little-endian.
pub static RAW: View = View {
    facts: ViewFacts {
        name: "raw",
        files: &["NAME.EXT"],
        reader: "values, little-endian, row-major: NumPy (fromfile, memmap), R (readBin), Fortran, C, od",
        lacks: "types, shapes and nulls, which schema.json and NAME.valid.u8 have",
        holds_values: true,
        ..ViewFacts::PLAIN
    },
    cell_bytes: CellBytes::Values,
    add: Add::OfFields(|files| match files.id {
        FieldId::Attribute(_) => add_values(files, &RAW.facts),
        FieldId::Dimension(_) => {}
    }),
    commands: &[(CommandTask::FirstValues, first_values), (CommandTask::R, r)],
    ..View::PLAIN
};

/// Coordinates along an axis, or of each cell, end to end.
pub static COORDINATES: View = View {
    facts: ViewFacts {
        name: "coordinates",
        files: &["dims/NAME.EXT"],
        reader: "coordinates, little-endian: as for values",
        lacks: "types and units, which schema.json has",
        ..ViewFacts::PLAIN
    },
    cell_bytes: CellBytes::Values,
    add: Add::OfFields(|files| match files.id {
        FieldId::Dimension(_) => add_values(files, &COORDINATES.facts),
        FieldId::Attribute(_) => {}
    }),
    ..View::PLAIN
};

/// The offsets of values of variable length.
pub static OFFSETS: View = View {
    facts: ViewFacts {
        name: "offsets",
        files: &["NAME.offsets.u64"],
        reader: "where each value begins in the file of values; 8 bytes each",
        lacks: "the values themselves",
        ..ViewFacts::PLAIN
    },
    cell_bytes: CellBytes::Offsets,
    add: Add::OfFields(add_offsets),
    ..View::PLAIN
};

/// Which cells of a nullable attribute have a value.
pub static VALIDITY: View = View {
    facts: ViewFacts {
        name: "validity",
        files: &["NAME.valid.u8"],
        reader: "1 for valid and 0 for null, a byte each",
        lacks: "the values themselves",
        ..ViewFacts::PLAIN
    },
    cell_bytes: CellBytes::Validity,
    add: Add::OfFields(add_validity),
    ..View::PLAIN
};

fn add_values(files: &mut FilesOfField<'_>, view: &'static ViewFacts) {
    let name = files.raw_name();
    let bytes = length(files.known_cells(), files.field.cell_size());
    let listing = files.fields.listing_of_values(&files.field);
    files.add_with(DeclaredFile { name, view, bytes, listing }, |fields, id| {
        described(fields, id, fields.file(move |fields| fields.subarray.values(id)), xattrs::of_values)
    });
}

fn add_offsets(files: &mut FilesOfField<'_>) {
    if files.field.values_per_cell.is_some() {
        return;
    }
    let name = files.name("offsets.u64");
    let bytes = length(files.known_cells().and_then(|cells| cells.checked_add(1)), Some(8));
    let listing = files.fields.listing(Sizing::Count);
    files.add_with(DeclaredFile { name, view: &OFFSETS.facts, bytes, listing }, |fields, id| {
        described(fields, id, fields.file(move |fields| fields.subarray.offsets(id)), xattrs::of_offsets)
    });
}

fn add_validity(files: &mut FilesOfField<'_>) {
    if !files.field.nullable {
        return;
    }
    let name = files.name("valid.u8");
    let (bytes, listing) = (length(files.known_cells(), Some(1)), files.fields.listing(Sizing::Count));
    files.add_with(DeclaredFile { name, view: &VALIDITY.facts, bytes, listing }, |fields, id| {
        let file = fields.file(move |fields| Ok(fields.subarray.validity(id)?.content()));
        described(fields, id, file, xattrs::of_validity)
    });
}

fn described(
    fields: &FieldFolder,
    id: FieldId,
    file: LazyFile,
    describe: fn(&FieldFolder, FieldId) -> ExtendedAttributes,
) -> LazyFile {
    let fields = fields.clone();
    file.described_by(move || describe(&fields, id))
}

/// Returns the length of a file of cells of one size.
fn length(cells: Option<u64>, cell_size: Option<u64>) -> Option<u64> {
    cells.zip(cell_size).and_then(|(cells, size)| cells.checked_mul(size))
}

fn first_values(finder: &FileFinder<'_>) -> Option<Command> {
    let (attribute, file) = finder.find(&RAW.facts, is_number)?;
    let command = format!(
        "od -An {} -N{} {}",
        od(attribute.datatype)?,
        10 * attribute.datatype.size(),
        path_word(&finder.values(file))
    );
    let what = if attribute.enumeration.is_some() { "codes" } else { "values" };
    Some(Command::new(format!("The first ten {what} of {}", called(attribute)), command))
}

fn r(finder: &FileFinder<'_>) -> Option<Command> {
    let single = |one: &Attribute| one.cell_count == CellValNum::Fixed(1);
    let (attribute, file) = finder.find(&RAW.facts, |one| is_number(one) && single(one) && r_type(one).is_some())?;
    let (what, rest) = r_type(attribute)?;
    let size = attribute.datatype.size();
    let path = literal(&finder.values(file));
    let program = format!("readBin({path}, {what}, n=10, size={size}, endian=\"little\"{rest})");
    Some(Command::new(format!("{} in R", called(attribute)), format!("Rscript -e {}", shell_word(&program))))
}

/// Returns the arguments of `readBin` for a type; it has no unsigned numbers of four bytes and no integers of eight.
fn r_type(attribute: &Attribute) -> Option<(&'static str, &'static str)> {
    match (attribute.datatype.kind(), attribute.datatype.size()) {
        (Kind::Float, _) => Some(("\"numeric\"", "")),
        (Kind::Signed, 1 | 2 | 4) => Some(("\"integer\"", "")),
        (Kind::Unsigned, 1 | 2) => Some(("\"integer\"", ", signed=FALSE")),
        _ => None,
    }
}
