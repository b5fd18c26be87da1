//! The generated files that explain an array: README.txt, schema.json, schema.txt, fragments.tsv. All are made from one
//! [`Description`], so they agree.

pub mod shown;

mod commands;
mod description;
mod filters;
mod format;
mod fragments;
mod json;
mod quoting;
mod readme;
mod schema_text;
mod size;
#[cfg(test)]
mod testing;
mod value;
mod views;

pub use description::{AxisSummary, CellsSummary, CoveredBox, Description, FileFacts, Files, ImagePart};
pub use filters::{filter_json, filter_text, pipeline_text};
pub use format::Format;
pub use fragments::{FragmentFacts, FragmentsTsv};
pub use json::schema_json;
pub use quoting::{heading, in_line, list_of_folders, shell_word};
pub use readme::readme;
pub use schema_text::schema_text;
pub use size::{counted, dense_text, rows_text, sparse_text};
pub use value::with_large_integers_as_text;
pub use views::{line as view_line, views_txt};
