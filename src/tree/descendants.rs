//! All arrays below a group, of the groups in it too, for commands that work through every one.

use std::collections::HashSet;

use tilefs_format::error::Error;
use tilefs_reader::array::ObjectKind;
use tilefs_reader::group::{Group, MemberPlace};
use tilefs_reader::storage::StoreKey;

use super::group_texts::{NEITHER, NamedMembers};
use super::names::escape;

/// A place below a group.
#[derive(Debug)]
pub struct Descendant {
    /// Its path in the tree; empty for the group itself.
    pub path: String,
    pub kind: DescendantKind,
}

/// What is at a place below a group.
#[derive(Debug)]
pub enum DescendantKind {
    /// An array, and its folder.
    Array(StoreKey),
    /// A member of which nothing is left to read, and why.
    Absent(String),
    /// Something that cannot be read, such as the members of a group.
    Wrong(Error),
}

/// The arrays below a group in the order of the tree, and what is wrong with members and with the groups themselves.
/// What can be reached in several ways comes once. No array is opened.
pub fn arrays_below(group: &Group) -> Vec<Descendant> {
    let mut walk = Walk { seen: HashSet::new(), descendants: Vec::new() };
    walk.is_new(group, group.path());
    walk.through(group, "");
    walk.descendants
}

struct Walk {
    /// Folders of arrays and groups, by their canonical path.
    seen: HashSet<StoreKey>,
    descendants: Vec<Descendant>,
}

impl Walk {
    fn is_new(&mut self, group: &Group, folder: &StoreKey) -> bool {
        self.seen.insert(group.context().storage.canonical(folder))
    }

    fn add(&mut self, path: String, kind: DescendantKind) {
        self.descendants.push(Descendant { path, kind });
    }

    /// `path` is that of the group. Groups in groups are as deep as [`Group::open_member`] lets them be.
    fn through(&mut self, group: &Group, path: &str) {
        if let Err(error) = group.metadata() {
            self.add(path.to_owned(), DescendantKind::Wrong(error));
        }
        let members = match group.members() {
            Ok(members) => NamedMembers::new(members),
            Err(error) => return self.add(path.to_owned(), DescendantKind::Wrong(error)),
        };
        for (member, name) in members.members.iter().zip(&members.names) {
            let name = name.clone().unwrap_or_else(|| escape(&member.name));
            let path = if path.is_empty() { name } else { format!("{path}/{name}") };
            let folder = match &member.place {
                MemberPlace::Missing(reason) => {
                    self.add(path, DescendantKind::Absent(reason.clone()));
                    continue;
                }
                MemberPlace::Stored(folder) | MemberPlace::Moved(folder) => folder,
            };
            match ObjectKind::of(&*group.context().storage, folder) {
                Err(error) => self.add(path, DescendantKind::Wrong(error)),
                Ok(None) => self.add(path, DescendantKind::Absent(NEITHER.to_owned())),
                Ok(Some(_)) if !self.is_new(group, folder) => {}
                Ok(Some(ObjectKind::Array)) => self.add(path, DescendantKind::Array(folder.clone())),
                Ok(Some(ObjectKind::Group)) => match group.open_member(folder) {
                    Ok(inner) => self.through(&inner, &path),
                    Err(error) => self.add(path, DescendantKind::Wrong(error)),
                },
            }
        }
    }
}
