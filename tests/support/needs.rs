//! What a check needs of the program. A check that needs something that is not there yet is skipped and counted
//! aloud; nothing is skipped otherwise.

use super::manifest::{Object, Read, Schema};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Dense attributes of fixed size.
    Dense,
    VariableLength,
    Nullable,
    Sparse,
    /// Rows in the order of libtiledb's unordered read.
    RowOrder,
    /// Layouts and structures of libraries before format version 12.
    OldVersions,
    Encryption,
    TimeTravel,
    Slices,
    Metadata,
    Enumerations,
    Groups,
    /// Dense arrays of old libraries that hold sparse fragments.
    SparseFragments,
    /// The WebP filter.
    Webp,
}

/// What is there: the allow-list, to be extended as the program grows.
const THERE: &[Need] = &[
    Need::Dense,
    Need::VariableLength,
    Need::Slices,
    Need::Nullable,
    Need::OldVersions,
    Need::Encryption,
    Need::TimeTravel,
    Need::Sparse,
    Need::RowOrder,
    Need::Webp,
    Need::Metadata,
    Need::Enumerations,
    Need::SparseFragments,
    Need::Groups,
];

impl Need {
    pub fn is_there(&self) -> bool {
        THERE.contains(self)
    }
}

/// Those of the needs that are not there; `None` if all are.
pub fn missing(needs: &[Need]) -> Option<Vec<Need>> {
    let mut missing: Vec<Need> = needs.iter().filter(|need| !need.is_there()).cloned().collect();
    missing.sort();
    missing.dedup();
    (!missing.is_empty()).then_some(missing)
}

/// What opening an object needs.
pub fn of_object(object: &Object) -> Vec<Need> {
    let mut needs = Vec::new();
    if object.is_group {
        needs.push(Need::Groups);
    }
    if object.key.is_some() {
        needs.push(Need::Encryption);
    }
    if object.schema.as_ref().is_some_and(|schema| schema.version < 12) {
        needs.push(Need::OldVersions);
    }
    let unordered = object.tags.iter().any(|tag| tag.starts_with("sparse (unordered) writes into a dense array"));
    if unordered || object.name.ends_with("tiledb_arrays/2.2/nullable_attributes") {
        needs.push(Need::SparseFragments);
    }
    needs
}

/// What reading cells of a schema needs.
pub fn of_schema(schema: &Schema) -> Vec<Need> {
    let mut needs = vec![if schema.dense { Need::Dense } else { Need::Sparse }];
    if schema.attrs.iter().any(|attr| attr.cells.is_none()) {
        needs.push(Need::VariableLength);
    }
    if schema.attrs.iter().any(|attr| attr.nullable) {
        needs.push(Need::Nullable);
    }
    if schema.attrs.iter().any(|attr| attr.webp) {
        needs.push(Need::Webp);
    }
    needs
}

/// What a read needs besides.
pub fn of_read(read: &Read) -> Vec<Need> {
    if read.window.is_some() { vec![Need::TimeTravel] } else { Vec::new() }
}
