//! The files that describe groups and arrays, in each version of the format.

use super::node::{METADATA, ZarrNode};
use super::{json, second};

/// A version of the format. Both versions describe the same chunks, in different files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZarrVersion {
    /// For readers that do not know the third: see [`second`].
    Second,
    /// `zarr.json`.
    Third,
}

impl ZarrVersion {
    /// Returns the names of the files that describe a group, without those about its members.
    pub fn files_of_group(self) -> &'static [&'static str] {
        match self {
            ZarrVersion::Second => &[second::GROUP, second::ATTRIBUTES],
            ZarrVersion::Third => &[METADATA],
        }
    }
}

impl ZarrNode {
    /// Returns the names of the files that describe it.
    pub fn files(&self, version: ZarrVersion) -> &'static [&'static str] {
        match (version, self) {
            (ZarrVersion::Third, _) => &[METADATA],
            (ZarrVersion::Second, ZarrNode::Array(_)) => &[second::ARRAY, second::ATTRIBUTES],
            (ZarrVersion::Second, ZarrNode::Group(_)) => &[second::GROUP, second::ATTRIBUTES, second::CONSOLIDATED],
        }
    }

    /// Returns the text of one of these files. `zarr.json` of a group contains the metadata of all its members.
    pub fn text(&self, file: &str) -> String {
        match file {
            METADATA => json::text(self),
            _ => second::text(self, file),
        }
    }

    /// Returns the text of such a file without the metadata of members, which readers then look up one by one.
    pub fn own_text(&self, file: &str) -> String {
        match file {
            METADATA => json::own_text(self),
            _ => second::text(self, file),
        }
    }
}
