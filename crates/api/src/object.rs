//! The objects at a location: arrays and groups, and the members of a group.

use std::fmt;
use std::sync::Arc;

use tilefs_base::error::{Error, Result};
use tilefs_format::folder::ObjectKind;
use tilefs_reader::Metadata;

use crate::array::Array;

/// An opened array or group.
#[derive(Debug)]
pub enum Object {
    /// An array.
    Array(Array),
    /// A group.
    Group(Box<Group>),
}

impl Object {
    pub(crate) fn new(object: tilefs_reader::OpenedObject) -> Self {
        match object {
            tilefs_reader::OpenedObject::Array(array) => Object::Array(Array::new(array)),
            tilefs_reader::OpenedObject::Group(group) => Object::Group(Box::new(Group::new(*group))),
        }
    }

    /// Returns the array.
    ///
    /// # Errors
    /// [`Error::NotAnArray`] for a group.
    pub fn into_array(self) -> Result<Array> {
        match self {
            Object::Array(array) => Ok(array),
            Object::Group(group) => Err(Error::not_an_array(group.path(), "a group; open one of the arrays in it")),
        }
    }

    /// Returns the group.
    ///
    /// # Errors
    /// [`Error::Usage`] for an array.
    pub fn into_group(self) -> Result<Group> {
        match self {
            Object::Group(group) => Ok(*group),
            Object::Array(array) => Err(Error::usage(format!("{} is an array, not a group", array.path()))),
        }
    }
}

/// A group at one point in time.
pub struct Group(tilefs_reader::OpenedGroup);

/// A member: what the group states about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member(tilefs_reader::PlacedMember);

impl Group {
    pub(crate) fn new(group: tilefs_reader::OpenedGroup) -> Self {
        Group(group)
    }

    /// Returns the path or URI.
    pub fn path(&self) -> String {
        self.0.path().to_string()
    }

    /// Returns the metadata, which is read once.
    ///
    /// # Errors
    /// Any damage in the metadata.
    pub fn metadata(&self) -> Result<Arc<Metadata>> {
        self.0.metadata()
    }

    /// Returns the members: first those with a name of their own, then the others, each sorted by name. No member is
    /// opened.
    ///
    /// # Errors
    /// Any damage in the group's details. Never returns only some of the members.
    pub fn members(&self) -> Result<Vec<Member>> {
        Ok(self.0.members()?.iter().cloned().map(Member).collect())
    }

    /// Opens a member as of the time of the group.
    ///
    /// # Errors
    /// [`Error::NotAnArray`] for a member that is missing;
    /// [`Error::Unsupported`] for a group within itself; damage of an array's schema.
    pub fn open(&self, member: &Member) -> Result<Object> {
        self.0.open_object(&member.0).map(Object::new)
    }
}

impl Member {
    /// Returns the name that the group gives to the member, else the last part of its URI. Two members may have the same
    /// name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the URI as it is stored.
    pub fn uri(&self) -> &str {
        &self.0.uri
    }

    /// Returns the kind that the group states, if it does; only the member itself shows its true kind.
    pub fn kind(&self) -> Option<ObjectKind> {
        self.0.kind
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Group").field(&self.path()).finish()
    }
}
