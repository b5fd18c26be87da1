//! A group as lines for people: everything below it as a tree, one line per array or group.
//!
//! ```text
//! pbmc              group of 2  SOMAExperiment
//!   obs             sparse 2638 rows  SOMADataFrame
//!   ms              group of 1  SOMACollection
//!     RNA           group of 2  SOMAMeasurement
//! ```

use std::collections::HashSet;
use std::sync::Arc;

use tilefs_format::error::Result;
use tilefs_format::group::MemberType;
use tilefs_format::text;
use tilefs_reader::array::{Context, Metadata, ObjectKind, TimeWindow};
use tilefs_reader::group::{Group, MemberPlace};
use tilefs_reader::storage::StoreKey;

use super::array::size_text;
use super::directory::{Directory, Inside};
use super::group_texts::{NEITHER, NamedMembers};
use super::names::escape;
use super::open::open_folder;
use super::options::OpenOptions;
use super::texts::in_line;

/// The metadata key under which TileDB-SOMA stores the type of an object.
const SOMA_TYPE: &str = "soma_object_type";

/// The column at which names end, unless they are longer.
const NAMES: usize = 32;

/// Passes the lines of a group to `write_line`, one by one and without line breaks, until `write_line` fails. Opens each array for
/// its line, and closes it. The line of a member contains its error, if any; an object that was shown already at
/// another place of the tree is not repeated.
///
/// `depth` limits the number of levels below the group. Members on the last level are not examined, and their lines
/// show what the group states about them: for a group with 100,000 members, that takes no longer than listing them.
///
/// # Errors
/// Those of `write_line`.
pub fn outline<E>(
    group: &Group,
    options: &OpenOptions,
    depth: Option<usize>,
    write_line: &mut dyn FnMut(&str) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let mut outline = Outline { options, depth, shown: HashSet::new(), write_line };
    outline.is_new(group, group.path());
    let name = group.path().shown_name();
    outline.group(group, &name, 0)
}

/// Like [`outline`], for a plain folder with arrays and groups below it.
///
/// # Errors
/// Those of `write_line`.
pub fn outline_of_directory<E>(
    directory: &Directory,
    options: &OpenOptions,
    depth: Option<usize>,
    write_line: &mut dyn FnMut(&str) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let mut outline = Outline { options, depth, shown: HashSet::new(), write_line };
    outline.directory(directory, &directory.path().shown_name(), 0)
}

struct Outline<'a, E> {
    options: &'a OpenOptions,
    /// The last level that has lines; the group itself is level 0.
    depth: Option<usize>,
    /// Folders of arrays and groups already shown, by canonical path.
    shown: HashSet<StoreKey>,
    write_line: &'a mut dyn FnMut(&str) -> std::result::Result<(), E>,
}

impl<E> Outline<'_, E> {
    fn is_new(&mut self, group: &Group, folder: &StoreKey) -> bool {
        self.shown.insert(group.context().storage.canonical(folder))
    }

    /// Shows a folder. [`Directory::inside`] limits the nesting depth.
    fn directory(&mut self, directory: &Directory, name: &str, depth: usize) -> std::result::Result<(), E> {
        let folders = match directory.folders() {
            Ok(folders) => folders,
            Err(error) => return self.line(depth, name, &format!("folder: {error}")),
        };
        self.line(depth, name, &format!("folder of {}", folders.names.len()))?;
        if self.depth == Some(depth) {
            return Ok(());
        }
        for name in &folders.names {
            let Some(folder) = folders.path(name) else { continue };
            if self.depth == Some(depth + 1) {
                self.line(depth + 1, name, "not looked into")?;
                continue;
            }
            if !self.shown.insert(directory.context().storage.canonical(folder)) {
                self.line(depth + 1, name, "as above")?;
                continue;
            }
            match directory.inside(folder) {
                Ok(Inside::Array) => {
                    let what = array(directory.context(), directory.window(), folder, self.options);
                    let what = what.unwrap_or_else(|error| format!("array: {error}"));
                    self.line(depth + 1, name, &what)?;
                }
                Ok(Inside::Group(group)) => self.group(&group, name, depth + 1)?,
                Ok(Inside::Directory(inner)) => self.directory(&inner, name, depth + 1)?,
                Err(error) => self.line(depth + 1, name, &error.to_string())?,
            }
        }
        Ok(())
    }

    fn line(&mut self, depth: usize, name: &str, what: &str) -> std::result::Result<(), E> {
        let name = format!("{}{}", "  ".repeat(depth), in_line(name));
        (self.write_line)(&format!("{name:<NAMES$}  {}", in_line(what)))
    }

    /// Shows a group. [`Group::open_member`] limits the nesting depth.
    fn group(&mut self, group: &Group, name: &str, depth: usize) -> std::result::Result<(), E> {
        let members = match group.members() {
            Ok(members) => NamedMembers::new(members),
            Err(error) => return self.line(depth, name, &format!("group: {error}")),
        };
        let soma = group.metadata().map(|metadata| soma_type(&metadata)).unwrap_or_default();
        self.line(depth, name, &format!("group of {}{soma}", members.members.len()))?;
        if self.depth == Some(depth) {
            return Ok(());
        }
        for (member, name) in members.members.iter().zip(&members.names) {
            let name = name.clone().unwrap_or_else(|| escape(&member.name));
            let folder = match &member.place {
                MemberPlace::Missing(reason) => {
                    self.line(depth + 1, &name, &format!("missing: {reason}"))?;
                    continue;
                }
                MemberPlace::Stored(folder) | MemberPlace::Moved(folder) => folder,
            };
            if self.depth == Some(depth + 1) {
                let stated = match member.member_type {
                    MemberType::Array => "array",
                    MemberType::Group => "group",
                    MemberType::Unknown => "array or group",
                };
                self.line(depth + 1, &name, stated)?;
                continue;
            }
            match ObjectKind::of(&*group.context().storage, folder) {
                Err(error) => self.line(depth + 1, &name, &error.to_string())?,
                Ok(None) => self.line(depth + 1, &name, NEITHER)?,
                Ok(Some(_)) if !self.is_new(group, folder) => self.line(depth + 1, &name, "as above")?,
                Ok(Some(ObjectKind::Array)) => {
                    let what = array(group.context(), group.window(), folder, self.options);
                    let what = what.unwrap_or_else(|error| format!("array: {error}"));
                    self.line(depth + 1, &name, &what)?;
                }
                Ok(Some(ObjectKind::Group)) => match group.open_member(folder) {
                    Ok(inner) => self.group(&inner, &name, depth + 1)?,
                    Err(error) => self.line(depth + 1, &name, &format!("group: {error}"))?,
                },
            }
        }
        Ok(())
    }
}

/// Returns the text behind the name of an array: its kind, its shape, and its SOMA type.
fn array(context: &Arc<Context>, window: TimeWindow, path: &StoreKey, options: &OpenOptions) -> Result<String> {
    let array = open_folder(context.clone(), path, window)?;
    let soma = array.metadata().map(|metadata| soma_type(&metadata)).unwrap_or_default();
    Ok(format!("{}{soma}", size_text(&array, options)?))
}

/// Returns `  SOMADataFrame`, or nothing.
fn soma_type(metadata: &Metadata) -> String {
    let stored = metadata.get(SOMA_TYPE).and_then(|value| text::decode(value.datatype, value.bytes()?));
    stored.map(|name| format!("  {name}")).unwrap_or_default()
}
