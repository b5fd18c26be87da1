//! `text/NAME.mtx`: an attribute of a sparse matrix in the coordinate form of Matrix Market.

use tilefs_export::text::matrix_market;
use tilefs_vfs::node::quoting::path_word;

use crate::cells::FieldId;
use crate::cells::matrix::matrix_domain;
use crate::fields::FieldFolder;
use crate::fields::columns::column_of;
use crate::sizing::Sizing;
use crate::views::builder::FolderBuilder;
use crate::views::commands::{Command, FileFinder, called};
use crate::views::facts::{ReadmeTask, Shown, ViewFacts};
use crate::views::view::{Add, CommandTask, View};

/// A sparse matrix.
pub static MATRIX_MARKET: View = View {
    facts: ViewFacts {
        name: "Matrix Market",
        folder: "text",
        files: &["NAME.mtx"],
        reader: "a sparse matrix: SciPy (mmread), R (Matrix), Julia",
        lacks: "text, dates, nulls, cells of several values, and other than two dimensions of integers",
        job: Some(ReadmeTask::new(7, "Sparse matrices: SciPy, scanpy, R, Julia")),
        holds_values: true,
        shown: Shown::WithAll,
        ..ViewFacts::PLAIN
    },
    add: Add::OfArray(|builder, fields| {
        if fields.schema().is_sparse() {
            fields.attributes().for_each(|id| add(builder, fields, id));
        }
    }),
    commands: &[(CommandTask::Matrix, first_cells)],
    ..View::PLAIN
};

fn add(builder: &mut FolderBuilder, fields: &FieldFolder, id: FieldId) {
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
    let listing = MATRIX_MARKET.facts.listing(&fields.shown).and(fields.listing(Sizing::Cells));
    builder.add_of(name, &MATRIX_MARKET.facts, Some(&fields.user_name(id)), file, listing);
}

fn first_cells(finder: &FileFinder<'_>) -> Option<Command> {
    let (attribute, file) = finder.find(&MATRIX_MARKET.facts, |_| true)?;
    let purpose = format!("{} as a matrix, for scipy.io.mmread, scanpy and R's readMM", called(attribute));
    Some(Command::new(purpose, format!("head -3 {}", path_word(&finder.path(file)))))
}
