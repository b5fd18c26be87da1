//! Walks through everything below a group or a plain folder, in the order of the tree, for commands that show or
//! process all of it.
//!
//! An object that links lead to several times is visited once. Memory: the members of the groups on the way, and a path
//! for each array and group seen.

use std::sync::Arc;

use tilefs_base::error::Error;
use tilefs_format::folder::ObjectKind;
use tilefs_reader::array::{Context, TimeWindow, Visits, object_kind};
use tilefs_reader::group::{MemberPlace, OpenedGroup, PlacedMember};
use tilefs_storage::StoreKey;

use crate::names::escape;
use crate::objects::directory::{Directory, Inside};
use crate::objects::members::NamedMembers;

/// A place in the tree.
#[derive(Debug, Clone, Copy)]
pub struct WalkPlace<'a> {
    /// The names on the way to it and its own, separated by slashes; empty for the root.
    pub path: &'a str,
    /// Number of names.
    pub depth: usize,
}

/// The result of visiting a place.
pub enum Visited<'a> {
    /// A group, with its number of members, which are visited next.
    Group(&'a OpenedGroup, usize),
    /// A plain folder, with the number of folders in it, which are visited next.
    Directory(usize),
    /// An array, which has not been opened.
    Array(ArrayPlace<'a>),
    /// An array or group that was visited at another place.
    Again,
    /// A member of a group that is not where the group says, with the reason.
    Missing(&'a str),
    /// A member of a group that is neither an array nor a group.
    Neither,
    /// A folder on the last level, which is not examined.
    Unexamined,
    /// A member of a group on the last level, which is not examined, with the kind that the group states.
    UnexaminedMember(Option<ObjectKind>),
    /// Something that cannot be read: the members of a group, the entries of a folder, or what a folder is.
    Unreadable(Unreadable, Error),
}

/// The reason why something cannot be read, or the kind of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    Group,
    /// Only the metadata of a group, which is visited next.
    GroupMetadata,
    Directory,
    Unknown,
}

/// An array to open.
#[derive(Clone, Copy)]
pub struct ArrayPlace<'a> {
    pub context: &'a Arc<Context>,
    pub window: TimeWindow,
    pub folder: &'a StoreKey,
}

/// Visits a group and everything below it, down to `depth` levels if given, until `visit` fails. Opens groups but no
/// arrays. Objects on the last level are not examined: for a group with 100,000 members, one level takes no longer than
/// listing them.
///
/// # Errors
/// Those of `visit`.
pub fn walk_group<E>(
    group: &OpenedGroup,
    depth: Option<usize>,
    mut visit: impl FnMut(WalkPlace<'_>, Visited<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut walk = Walk { depth, visits: Visits::new(), visit: &mut visit };
    walk.visits.is_first(group.context(), group.path());
    walk.group(group, WalkPlace { path: "", depth: 0 })
}

/// Like [`walk_group`], for a plain folder with arrays and groups somewhere below it.
///
/// # Errors
/// Those of `visit`.
pub fn walk_directory<E>(
    directory: &Directory,
    depth: Option<usize>,
    mut visit: impl FnMut(WalkPlace<'_>, Visited<'_>) -> Result<(), E>,
) -> Result<(), E> {
    Walk { depth, visits: Visits::new(), visit: &mut visit }.directory(directory, WalkPlace { path: "", depth: 0 })
}

struct Walk<'a, E> {
    /// The last level; the root is level 0.
    depth: Option<usize>,
    visits: Visits,
    visit: &'a mut dyn FnMut(WalkPlace<'_>, Visited<'_>) -> Result<(), E>,
}

impl<E> Walk<'_, E> {
    /// Visits a group. [`OpenedGroup::open_member`] limits the nesting depth.
    fn group(&mut self, group: &OpenedGroup, place: WalkPlace<'_>) -> Result<(), E> {
        if let Err(error) = group.metadata() {
            (self.visit)(place, Visited::Unreadable(Unreadable::GroupMetadata, error))?;
        }
        let members = match group.members() {
            Ok(members) => NamedMembers::new(members),
            Err(error) => return (self.visit)(place, Visited::Unreadable(Unreadable::Group, error)),
        };
        (self.visit)(place, Visited::Group(group, members.members.len()))?;
        if self.depth == Some(place.depth) {
            return Ok(());
        }
        for (member, name) in members.members.iter().zip(&members.names) {
            let path = joined(place.path, &name.clone().unwrap_or_else(|| escape(&member.name)));
            self.member(group, member, WalkPlace { path: &path, depth: place.depth + 1 })?;
        }
        Ok(())
    }

    fn member(&mut self, group: &OpenedGroup, member: &PlacedMember, place: WalkPlace<'_>) -> Result<(), E> {
        let folder = match &member.place {
            MemberPlace::Missing(reason) => return (self.visit)(place, Visited::Missing(reason)),
            MemberPlace::Stored(folder) | MemberPlace::Moved(folder) => folder,
        };
        if self.depth == Some(place.depth) {
            return (self.visit)(place, Visited::UnexaminedMember(member.kind));
        }
        let context = group.context();
        let visited = match object_kind(&*context.storage, folder) {
            Err(error) => Visited::Unreadable(Unreadable::Unknown, error),
            Ok(None) => Visited::Neither,
            Ok(Some(_)) if !self.visits.is_first(context, folder) => Visited::Again,
            Ok(Some(ObjectKind::Array)) => Visited::Array(ArrayPlace { context, window: group.window(), folder }),
            Ok(Some(ObjectKind::Group)) => match group.open_member(folder) {
                Ok(inner) => return self.group(&inner, place),
                Err(error) => Visited::Unreadable(Unreadable::Group, error),
            },
        };
        (self.visit)(place, visited)
    }

    /// Visits a plain folder. [`Directory::inside`] limits the nesting depth.
    fn directory(&mut self, directory: &Directory, place: WalkPlace<'_>) -> Result<(), E> {
        let folders = match directory.folders() {
            Ok(folders) => folders,
            Err(error) => return (self.visit)(place, Visited::Unreadable(Unreadable::Directory, error)),
        };
        (self.visit)(place, Visited::Directory(folders.names.len()))?;
        if self.depth == Some(place.depth) {
            return Ok(());
        }
        for (name, folder) in folders.names.iter().filter_map(|name| Some((name, folders.path(name)?))) {
            let path = joined(place.path, name);
            self.inside(directory, folder, WalkPlace { path: &path, depth: place.depth + 1 })?;
        }
        Ok(())
    }

    fn inside(&mut self, directory: &Directory, folder: &StoreKey, place: WalkPlace<'_>) -> Result<(), E> {
        if self.depth == Some(place.depth) {
            return (self.visit)(place, Visited::Unexamined);
        }
        let context = directory.context();
        if !self.visits.is_first(context, folder) {
            return (self.visit)(place, Visited::Again);
        }
        let visited = match directory.inside(folder) {
            Ok(Inside::Group(group)) => return self.group(&group, place),
            Ok(Inside::Directory(inner)) => return self.directory(&inner, place),
            Ok(Inside::Array) => Visited::Array(ArrayPlace { context, window: directory.window(), folder }),
            Err(error) => Visited::Unreadable(Unreadable::Unknown, error),
        };
        (self.visit)(place, visited)
    }
}

/// Returns the path of a name below another path.
pub fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") }
}
