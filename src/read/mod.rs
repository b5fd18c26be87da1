//! How decoded bytes are had.

mod output;

pub use output::Output;
