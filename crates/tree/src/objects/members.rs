//! The members of a group by their names in the tree.

use std::collections::HashMap;
use std::sync::Arc;

use tilefs_base::error::Result;
use tilefs_reader::OpenedObject;
use tilefs_reader::group::{OpenedGroup, PlacedMember};
use tilefs_storage::StoreKey;

use crate::names::{FileNames, OF_GROUPS};
use crate::objects::open_member;

/// The members of a group and their names in the tree.
pub struct NamedMembers {
    pub members: Arc<Vec<PlacedMember>>,
    /// In the order of the members. Missing ones have no name.
    pub names: Vec<Option<String>>,
    /// The index of the member of each name.
    pub by_name: HashMap<String, usize>,
}

impl NamedMembers {
    pub fn new(members: Arc<Vec<PlacedMember>>) -> Self {
        let mut files = FileNames::new(OF_GROUPS);
        let mut give = |member: &PlacedMember| member.place.path().map(|_| files.give(&member.name, &[""]));
        let names: Vec<Option<String>> = members.iter().map(&mut give).collect();
        let by_name = names.iter().enumerate().filter_map(|(number, name)| Some((name.clone()?, number))).collect();
        NamedMembers { members, names, by_name }
    }

    /// Returns the folder of the member of a name in the tree.
    pub fn path(&self, name: &str) -> Option<&StoreKey> {
        self.members.get(*self.by_name.get(name)?)?.place.path()
    }

    /// Opens the member of a name in the tree, in the group that has these members; `None` if there is none.
    ///
    /// # Errors
    /// As for [`open_member`].
    pub fn open(&self, group: &OpenedGroup, name: &str) -> Result<Option<OpenedObject>> {
        self.path(name).map_or(Ok(None), |path| open_member(group, path))
    }
}
