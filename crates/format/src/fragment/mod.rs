//! Fragment metadata of every format version (the format's "Fragment Metadata" page).
//!
//! Versions 1 and 2 store everything in one generic tile: [`EarlyFragment`]. From version 3, an unfiltered footer at
//! the end of the file ([`FragmentFooter`]) locates the sections, each a generic tile of its own: [`RTree`] reads the
//! R-tree, [`sections`] all other sections. One file of the array may also have copies of many footers:
//! [`parse_consolidated_footers`].

mod consolidated;
mod early;
mod facts;
mod field;
mod footer;
mod rtree;
#[cfg(test)]
mod rtree_tests;
pub mod sections;
#[cfg(test)]
mod tests;

pub use consolidated::{FooterCopy, FooterReader, parse_consolidated_footers};
pub use early::{EarlyField, EarlyFragment};
pub use facts::{FragmentFacts, SIGNED_TIMES_SINCE};
pub use field::{FieldFiles, FragmentField};
pub use footer::{FieldRecord, FragmentFooter, footer_range, schema_name};
pub use rtree::{BoxCursor, Descent, Pages, RTree, RTreeLayout, ReadAt};

/// The metadata file of every fragment.
pub const FRAGMENT_METADATA: &str = "__fragment_metadata.tdb";
