//! Cells become the bytes of files: each format is a [`Content`] computed by arithmetic from offset to cell.

pub mod content;

pub use content::Content;
