//! The generated files that explain an array: README.txt, schema.json, schema.txt, fragments.tsv. All are made from one
//! [`Description`], so they agree.

mod commands;
mod description;
mod filters;
mod fragments;
mod json;
mod readme;
mod schema_text;
mod size;
#[cfg(test)]
mod testing;
mod value;
mod views;

pub use description::{AxisSummary, CellsSummary, CoveredBox, Description, ImagePart};
pub use filters::{filter_json, filter_text, pipeline_text};
pub use fragments::{FragmentFacts, FragmentsTsv};
pub use json::schema_json;
pub use readme::readme;
pub use schema_text::schema_text;
pub use size::{counted, dense_text, rows_text, sparse_text};
pub use value::with_large_integers_as_text;
pub use views::{line as view_line, views_txt};
