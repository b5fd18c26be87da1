//! Lists all arrays below a group, including those in nested groups, for commands that process each of them.

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

/// The object at a place below a group.
#[derive(Debug)]
pub enum DescendantKind {
    /// An array, with its folder.
    Array(StoreKey),
    /// A member that has nothing to read, with the reason.
    Missing(String),
    /// Something that cannot be read, such as the members of a group.
    Unreadable(Error),
}

/// Returns the arrays below a group in the order of the tree, and the errors of members and of the groups themselves.
/// An object that can be reached in several ways is returned once. Opens no array.
pub fn arrays_below(group: &Group) -> Vec<Descendant> {
    let mut walk = Walk { seen: HashSet::new(), descendants: Vec::new() };
    walk.is_new(group, group.path());
    walk.through(group, "");
    walk.descendants
}

struct Walk {
    /// Folders of arrays and groups, by canonical path.
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

    /// Walks through a group; `path` is its path. [`Group::open_member`] limits the nesting depth.
    fn through(&mut self, group: &Group, path: &str) {
        if let Err(error) = group.metadata() {
            self.add(path.to_owned(), DescendantKind::Unreadable(error));
        }
        let members = match group.members() {
            Ok(members) => NamedMembers::new(members),
            Err(error) => return self.add(path.to_owned(), DescendantKind::Unreadable(error)),
        };
        for (member, name) in members.members.iter().zip(&members.names) {
            let name = name.clone().unwrap_or_else(|| escape(&member.name));
            let path = if path.is_empty() { name } else { format!("{path}/{name}") };
            let folder = match &member.place {
                MemberPlace::Missing(reason) => {
                    self.add(path, DescendantKind::Missing(reason.clone()));
                    continue;
                }
                MemberPlace::Stored(folder) | MemberPlace::Moved(folder) => folder,
            };
            match ObjectKind::of(&*group.context().storage, folder) {
                Err(error) => self.add(path, DescendantKind::Unreadable(error)),
                Ok(None) => self.add(path, DescendantKind::Missing(NEITHER.to_owned())),
                Ok(Some(_)) if !self.is_new(group, folder) => {}
                Ok(Some(ObjectKind::Array)) => self.add(path, DescendantKind::Array(folder.clone())),
                Ok(Some(ObjectKind::Group)) => match group.open_member(folder) {
                    Ok(inner) => self.through(&inner, &path),
                    Err(error) => self.add(path, DescendantKind::Unreadable(error)),
                },
            }
        }
    }
}
