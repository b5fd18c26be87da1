//! What the commands ask of arrays, in one place.

use std::path::Path;
use std::sync::Arc;

use super::failure::Failure;
use tilefs::error::Error;
use tilefs::tree::grammar::By;
use tilefs::tree::{self, Folder, Node, OpenOptions, Stored};

/// The root of the tree of an array or a group.
pub fn open(array: &Path, options: &OpenOptions) -> Result<Arc<dyn Folder>, Failure> {
    let stored = tree::open_stored(array, options)?;
    match &stored {
        Stored::Array(array) => tree::array::check_slices(array, options)?,
        Stored::Group(group) => tree::array::check_slices_below(group, options)?,
    }
    Ok(tree::root(stored, options)?)
}

/// What a path in the tree leads to; an empty path is the root.
pub fn find(root: &Arc<dyn Folder>, path: &str) -> Result<Node, Failure> {
    let mut node = Node::Folder(Arc::clone(root));
    for name in path.split('/').filter(|name| !name.is_empty() && *name != ".") {
        let found = match &node {
            Node::Folder(folder) => folder.lookup(name)?,
            Node::File(_) => None,
        };
        node = found.ok_or_else(|| {
            match &node {
                Node::Folder(folder) => folder.why_absent(name).map(Failure::failed),
                Node::File(_) => None,
            }
            .unwrap_or_else(|| Failure::from(Error::NotFound { path: path.to_owned() }))
        })?;
    }
    Ok(node)
}

/// What a selection means for this array, or why it means nothing, in lines for people. It may stand after `slice/`,
/// and those of positions stand after `islice/`.
pub fn explain_slice(array: &Path, options: &OpenOptions, selection: &str) -> Result<String, Failure> {
    let (by, selection) = match (selection.strip_prefix("islice/"), selection.strip_prefix("slice/")) {
        (Some(positions), _) => (By::Position, positions),
        (_, coordinates) => (By::Coordinate, coordinates.unwrap_or(selection)),
    };
    let selection = selection.strip_suffix('/').unwrap_or(selection);
    let array = tree::open_array(array, options)?;
    tree::array::meaning(&array, options, selection, by)?.map_err(|explanation| {
        // More than a line: the caret stands under the place that is wrong.
        eprintln!("tilefs: the selection selects nothing:\n{}", explanation.trim_end());
        Failure::failed("")
    })
}
