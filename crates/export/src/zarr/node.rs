//! The groups and arrays of a Zarr hierarchy.

use std::sync::Arc;

use super::array::{Attributes, ZarrArray};

/// The name of the file that describes an array or group.
pub const METADATA: &str = "zarr.json";

/// The attribute that gives the reasons why expected members are missing.
pub const LEFT_OUT: &str = "left_out";

/// A group or an array.
#[derive(Clone)]
pub enum ZarrNode {
    /// A group.
    Group(Arc<ZarrGroup>),
    /// An array.
    Array(Arc<ZarrArray>),
}

/// A group: attributes, and members by name.
#[derive(Default)]
pub struct ZarrGroup {
    /// The user's attributes.
    pub attributes: Attributes,
    /// The members of the group, by name.
    pub members: Vec<(String, ZarrNode)>,
}

impl ZarrGroup {
    /// Records why something is missing.
    pub fn leave_out(&mut self, what: &str, reason: String) {
        let reasons = self.attributes.entry(LEFT_OUT).or_insert_with(|| Attributes::new().into());
        if let Some(reasons) = reasons.as_object_mut() {
            reasons.insert(what.to_owned(), reason.into());
        }
    }
}
