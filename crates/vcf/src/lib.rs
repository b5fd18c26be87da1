//! Variant calls of TileDB-VCF datasets as VCF, BCF, and the files of PLINK.
//!
//! A dataset has an array of variant calls, with a cell for each record of each sample, and an array with the headers
//! of the source files, without their line of column names. Records longer than the dataset's anchor gap have
//! additional cells, called *anchors*, so that a search by position finds them: each anchor repeats the record at
//! another coordinate. [`DatasetLayout`] describes the coordinates.
//!
//! Decoding is pure: [`Header`], [`fields`] and [`Record`] take bytes and return values or text.
//!
//! Source: the sources of TileDB-VCF (`libtiledbvcf/src/dataset`, `write` and `read`), and htslib's `vcf.h` for the
//! in-memory values that TileDB-VCF stores.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

mod bcf;
mod bgzf;
mod columns;
pub mod dataset;
mod definitions;
pub mod fields;
pub mod file;
mod header;
mod known_names;
mod layout;
mod line;
mod merge;
mod plink;
mod record;
mod record_columns;
mod reference;
mod tabix;
pub mod table;

pub use bcf::{BcfHeader, BcfRecords};
pub use bgzf::{Bgzf, BgzfForward};
pub use columns::FieldColumns;
pub use definitions::{Definitions, FieldKind, Filters};
pub use header::Header;
pub use layout::{CellPositions, ContigStretch, Contigs, DatasetLayout, PositionWindow, sample_numbers};
pub use line::Line;
pub use merge::{FileRecord, LineRule, MergedFile, MergedLines, Merger};
pub use plink::fam;
pub use record::Record;
pub use record_columns::{push_alleles, push_filters, push_id};
pub use reference::ReferenceGenome;
pub use tabix::{IndexFormat, csi_of_bcf, tabix};

use tilefs_base::error::{Error, Result};

/// Rejects a text with a character that ends a field or a line of VCF, or with one of `others`, which end parts of it.
fn check_text<'a>(text: &'a [u8], others: &[u8], what: &str) -> Result<&'a [u8]> {
    match text.iter().find(|byte| byte.is_ascii_control() || others.contains(byte)) {
        Some(byte) => Err(Error::damaged(format!("{what} with the character {:?}", char::from(*byte)))),
        None => Ok(text),
    }
}

/// Returns an empty list with the memory of a list of as large items, which may borrow from elsewhere.
fn emptied<T, U>(mut list: Vec<T>) -> Vec<U> {
    list.clear();
    // The standard library collects items of the same size in place.
    list.into_iter().filter_map(|_| None).collect()
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct VcfReadme;
