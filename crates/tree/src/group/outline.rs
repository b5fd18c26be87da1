//! A group as lines for people: everything below it as a tree, one line per array or group.
//!
//! ```text
//! pbmc              group of 2  SOMAExperiment
//!   obs             sparse 2638 rows  SOMADataFrame
//!   ms              group of 1  SOMACollection
//!     RNA           group of 2  SOMAMeasurement
//! ```

use tilefs_base::error::Result;
use tilefs_format::folder::ObjectKind;
use tilefs_reader::array::Metadata;
use tilefs_reader::group::OpenedGroup;
use tilefs_vfs::node::quoting::in_line;

use crate::array::size_text;
use crate::fields::meta;
use crate::group::texts::NEITHER;
use crate::objects::directory::Directory;
use crate::objects::open_folder;
use crate::objects::walk::{ArrayPlace, Unreadable, Visited, WalkPlace, walk_directory, walk_group};
use crate::options::TreeOptions;

/// The metadata key under which TileDB-SOMA stores the type of an object.
const SOMA_TYPE: &str = "soma_object_type";

/// The column at which names end, unless they are longer.
const NAMES: usize = 32;

/// Passes the lines of a group to `write_line`, one by one and without line breaks, until `write_line` fails. Opens
/// each array for its line, and closes it. The line of a member contains its error, if any; an object that was shown
/// already at another place of the tree is not repeated.
///
/// `depth` limits the number of levels below the group. Members on the last level are not examined, and their lines
/// show what the group states about them: for a group with 100,000 members, that takes no longer than listing them.
///
/// # Errors
/// Those of `write_line`.
pub fn outline<E>(
    group: &OpenedGroup,
    options: &TreeOptions,
    depth: Option<usize>,
    write_line: &mut dyn FnMut(&str) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let root = group.path().shown_name();
    walk_group(group, depth, |place, visited| show(&root, place, &visited, options, write_line))
}

/// Like [`outline`], for a plain folder with arrays and groups below it.
///
/// # Errors
/// Those of `write_line`.
pub fn outline_of_directory<E>(
    directory: &Directory,
    options: &TreeOptions,
    depth: Option<usize>,
    write_line: &mut dyn FnMut(&str) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let root = directory.path().shown_name();
    walk_directory(directory, depth, |place, visited| show(&root, place, &visited, options, write_line))
}

/// Writes the line of a place.
fn show<E>(
    root: &str,
    place: WalkPlace<'_>,
    visited: &Visited<'_>,
    options: &TreeOptions,
    write_line: &mut dyn FnMut(&str) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let what = match visited {
        Visited::Group(group, members) => {
            let soma = group.metadata().map(|metadata| soma_type(&metadata)).unwrap_or_default();
            format!("group of {members}{soma}{}", future_commits(group.future_commits()))
        }
        Visited::Directory(folders) => format!("folder of {folders}"),
        Visited::Array(place) => array(*place, options).unwrap_or_else(|error| format!("array: {error}")),
        Visited::Again => "as above".to_owned(),
        Visited::Missing(reason) => format!("missing: {reason}"),
        Visited::Neither => NEITHER.to_owned(),
        Visited::Unexamined => "not looked into".to_owned(),
        Visited::UnexaminedMember(kind) => kind.map_or("array or group", ObjectKind::name).to_owned(),
        Visited::Unreadable(Unreadable::Group, error) => format!("group: {error}"),
        Visited::Unreadable(Unreadable::Directory, error) => format!("folder: {error}"),
        Visited::Unreadable(Unreadable::Unknown, error) => error.to_string(),
        // The line of the group comes next, and shows nothing of its metadata except the SOMA type.
        Visited::Unreadable(Unreadable::GroupMetadata, _) => return Ok(()),
    };
    let name = if place.depth == 0 { root } else { place.path.rsplit('/').next().unwrap_or_default() };
    let name = format!("{}{}", "  ".repeat(place.depth), in_line(name));
    write_line(&format!("{name:<NAMES$}  {}", in_line(&what)))
}

/// Returns the text after the name of an array: its kind, its shape, and its SOMA type.
fn array(place: ArrayPlace<'_>, options: &TreeOptions) -> Result<String> {
    let array = open_folder(place.context.clone(), place.folder, place.window)?;
    let soma = array.metadata().map(|metadata| soma_type(&metadata)).unwrap_or_default();
    Ok(format!("{}{soma}{}", size_text(&array, options)?, future_commits(array.future_commits())))
}

/// Returns a remark about hidden commits that lie in the future, or nothing.
fn future_commits(times: Result<Vec<u64>>) -> &'static str {
    match times {
        Ok(times) if !times.is_empty() => "  (what was committed with a time in the future is not shown)",
        // The texts of the folder report damage.
        _ => "",
    }
}

/// Returns `  SOMADataFrame`, or nothing.
fn soma_type(metadata: &Metadata) -> String {
    meta::text_value(metadata, SOMA_TYPE).map(|name| format!("  {name}")).unwrap_or_default()
}
