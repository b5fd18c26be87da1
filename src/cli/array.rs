//! What the commands ask of arrays, in one place.

use std::path::Path;
use std::sync::Arc;

use tilefs_reader::storage::is_object_uri;
use tilefs_reader::threads;

use super::failure::Failure;
use tilefs::read_ahead::MAX_WINDOW;
use tilefs::tree::grammar::By;
use tilefs::tree::suggest::suggestion;
use tilefs::tree::{self, Folder, MountedTree, Node, OpenOptions, Stored};

/// Threads that read ahead where requests are waits.
const FAR_READ_AHEAD_WORKERS: usize = 32;

/// Bytes that all readers there are read ahead of, at most: what a fast link brings in half a second.
const FAR_READ_AHEAD_WINDOW: u64 = 128 << 20;

/// All readers together are read ahead of by no more than one part in this many of the cache.
const SHARE: u64 = 8;

/// Whether this is an array in an object store.
pub fn is_far(array: &Path) -> bool {
    array.to_str().is_some_and(is_object_uri)
}

/// How many threads are to read ahead: no more than decode, nor than there are cores, since who answers a reader decodes
/// too; where requests are waits as many as should be under way.
pub fn read_ahead_workers(array: &Path, options: &OpenOptions) -> usize {
    if is_far(array) { options.threads.max(FAR_READ_AHEAD_WORKERS) } else { options.threads.min(threads::cores()) }
}

/// Bytes that all readers together are read ahead of, at most.
pub fn read_ahead_window(array: &Path, options: &OpenOptions) -> u64 {
    let most = if is_far(array) { FAR_READ_AHEAD_WINDOW } else { MAX_WINDOW };
    most.min(options.cache_size / SHARE)
}

/// The root of the tree of an array or a group.
pub fn open(array: &Path, options: &OpenOptions) -> Result<Arc<dyn Folder>, Failure> {
    Ok(tree::root(open_checked(array, options)?, options)?)
}

/// The tree of an array or a group, to be mounted.
pub fn open_tree(array: &Path, options: &OpenOptions) -> Result<MountedTree, Failure> {
    Ok(MountedTree::new(open_checked(array, options)?, options)?)
}

/// An array or a group that has the slices which the options name.
fn open_checked(array: &Path, options: &OpenOptions) -> Result<Stored, Failure> {
    let stored = tree::open_stored(array, options)?;
    match &stored {
        Stored::Array(array) => tree::array::check_slices(array, options)?,
        Stored::Group(group) => tree::array::check_slices_below(group, options)?,
        // Nobody waits for all arrays below it to be opened; where a slice selects nothing it is missing.
        Stored::Directory(_) => {}
    }
    Ok(stored)
}

/// What a path in the tree leads to; an empty path is the root. Failures name the path.
pub fn find(root: &Arc<dyn Folder>, path: &str) -> Result<Node, Failure> {
    let mut node = Node::Folder(Arc::clone(root));
    for name in path.split('/').filter(|name| !name.is_empty() && *name != ".") {
        let found = match &node {
            Node::Folder(folder) => folder.lookup(name).map_err(|error| Failure::from(error).about(path))?,
            Node::File(_) => None,
        };
        node = found.ok_or_else(|| {
            let why = match &node {
                Node::Folder(folder) => folder.why_absent(name),
                Node::File(_) => None,
            };
            let why = why.unwrap_or_else(|| match suggestion(&**root, path) {
                Some(meant) => format!("no such file; did you mean {meant}?"),
                None => "no such file".to_owned(),
            });
            Failure::failed(why).about(path)
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
