//! The files that are added with what describes an array: texts, labels of enumerations, a stored file.

use tilefs_vfs::node::quoting::path_word;

use crate::views::commands::{Command, FileFinder};
use crate::views::facts::{ReadmeTask, ViewFacts};
use crate::views::view::{CommandTask, View};

/// The file that was stored in the array.
pub static ORIGINAL: View = View {
    facts: ViewFacts {
        name: "original file",
        folder: "contents",
        files: &["FILE"],
        reader: "the file that was stored",
        lacks: "the metadata of the array, which meta/ has",
        job: Some(ReadmeTask::new(1, "The file that is stored here, under its own name")),
        holds_values: true,
        ..ViewFacts::PLAIN
    },
    ..View::PLAIN
};

/// The labels of an enumeration.
pub static LABELS: View = View {
    facts: ViewFacts {
        name: "labels",
        folder: "enums",
        files: &["NAME.txt"],
        reader: "labels of codes: line k + 1 is code k",
        lacks: "line breaks inside a label, which become spaces",
        job: Some(ReadmeTask::new(16, "The labels that codes stand for")),
        ..ViewFacts::PLAIN
    },
    commands: &[(CommandTask::Labels, first_labels)],
    ..View::PLAIN
};

/// README.txt and similar files.
pub static EXPLANATION: View = View {
    facts: ViewFacts {
        name: "explanation",
        files: &["README.txt", "schema.json", "schema.txt", "fragments.tsv"],
        reader: "a description of the array: any pager, jq",
        lacks: "the values of cells",
        ..ViewFacts::PLAIN
    },
    ..View::PLAIN
};

fn first_labels(finder: &FileFinder<'_>) -> Option<Command> {
    let file = finder.any(&LABELS.facts)?;
    let command = format!("head -3 {}", path_word(&finder.path(file)));
    Some(Command::new("What codes stand for: line k + 1 is the label of code k", command))
}
