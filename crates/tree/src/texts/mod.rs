//! The generated files that explain an array: README.txt, schema.json, schema.txt, fragments.tsv. All are made from one
//! [`Description`], so they agree. raster.json has what formats of images take.

mod commands;
mod description;
mod fragments;
mod json;
#[cfg(test)]
mod manual;
mod rasters;
mod readme;
mod schema_text;
#[cfg(test)]
pub(crate) mod testing;
mod views;

pub use description::{CellsSummary, Description};
pub use fragments::{FragmentLine, FragmentsTsv};
pub use json::schema_json;
pub use rasters::raster_json;
pub use readme::readme;
pub use schema_text::schema_text;
pub use views::{line as view_line, views_txt};
