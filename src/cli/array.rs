//! Opens arrays for the commands.

use std::path::Path;
use std::sync::Arc;

use tilefs_reader::array::Budget;
use tilefs_storage::is_object_uri;
use tilefs_threads as threads;
use tilefs_tree::array::explanation::Origins;
use tilefs_tree::array::origins;
use tilefs_tree::select::{Addressing, time};
use tilefs_tree::{self as tree, MountedTree, Stored, TreeOptions};
use tilefs_vfs::node::suggest::suggestion;
use tilefs_vfs::node::why_absent;
use tilefs_vfs::read_ahead::Window;
use tilefs_vfs::{Folder, Node};

use super::failure::Failure;
use super::hints;

/// Number of prefetching threads for remote storage, where they mostly wait.
const REMOTE_READ_AHEAD_WORKERS: usize = 32;

/// Maximum number of bytes prefetched for all readers of a remote storage: half a second on a fast link.
const REMOTE_READ_AHEAD_WINDOW: u64 = 128 << 20;

/// Returns whether this is an array in an object store.
pub fn is_remote(array: &Path) -> bool {
    array.to_str().is_some_and(is_object_uri)
}

/// Returns the number of prefetching threads. Local: at most the number of decoding threads and of cores, since threads
/// that answer reads decode too. Remote: as many as there should be concurrent requests.
pub fn read_ahead_workers(array: &Path, options: &TreeOptions) -> usize {
    if is_remote(array) {
        options.reading.threads.max(REMOTE_READ_AHEAD_WORKERS)
    } else {
        options.reading.threads.min(threads::cores())
    }
}

/// Returns the limits for what is prefetched for all readers together.
pub fn read_ahead_window(array: &Path, options: &TreeOptions) -> Window {
    let most = if is_remote(array) { REMOTE_READ_AHEAD_WINDOW } else { Window::LOCAL.bytes };
    let budget = usize::try_from(options.reading.cache_size).unwrap_or(usize::MAX);
    let decoded = Budget::new(budget).read_ahead() as u64;
    Window { bytes: most.min(decoded), decoded }
}

/// Opens an array or a group, and returns the root of its tree.
pub fn open(array: &Path, options: &TreeOptions) -> Result<Arc<dyn Folder>, Failure> {
    Ok(tree::root(open_checked(array, options)?, options)?)
}

/// Opens the tree of an array or a group for mounting.
pub fn open_tree(array: &Path, options: &TreeOptions) -> Result<MountedTree, Failure> {
    Ok(MountedTree::new(open_checked(array, options)?, options)?)
}

/// Opens an array or a group, which must have been there at the time of the options.
pub fn open_stored(array: &Path, options: &TreeOptions) -> Result<Stored, Failure> {
    let stored = tree::open_stored(array, options).map_err(|error| {
        let failure = Failure::from(error);
        match hints::for_home(array) {
            Some(hint) => Failure { message: format!("{}; {hint}", failure.message), ..failure },
            None => failure,
        }
    })?;
    let Some(at) = options.reading.at else { return Ok(stored) };
    let began = match &stored {
        Stored::Array(array) => array.folder().began()?,
        Stored::Group(group) => group.began()?,
        Stored::Directory(_) => None,
    };
    match began.filter(|began| at < *began) {
        Some(began) => {
            let reason = format!("nothing was there yet; the first commit is {}", time::basic(began));
            Err(Failure::failed(reason).about(&array.display().to_string()))
        }
        None => Ok(stored),
    }
}

/// Opens an array or a group, and checks that the named slices of the options exist in it.
fn open_checked(array: &Path, options: &TreeOptions) -> Result<Stored, Failure> {
    let stored = open_stored(array, options)?;
    match &stored {
        Stored::Array(array) => tree::array::check_slices(array, options)?,
        Stored::Group(group) => tree::array::check_slices_below(group, options)?,
        // Opening all arrays below it could take long, so missing slices are not reported.
        Stored::Directory(_) => {}
    }
    Ok(stored)
}

/// Returns the node at a path in the tree; an empty path is the root. Failures name the path.
pub fn find(root: &Arc<dyn Folder>, path: &str) -> Result<Node, Failure> {
    walk(root, path, |_, _| ())
}

/// Returns what tells where the values at a path come from, and the path from the folder whose values these are.
pub fn find_origins(root: &Arc<dyn Folder>, path: &str) -> Result<(Arc<dyn Origins>, String), Failure> {
    let mut folders = Vec::new();
    if let Node::Folder(folder) = walk(root, path, |folder, rest| folders.push((folder.clone(), rest.to_owned())))? {
        // The folder of an array is opened when a name in it is looked up.
        folder.lookup("schema.txt").map_err(|error| Failure::from(error).about(path))?;
        folders.push((folder, String::new()));
    }
    let found = folders.into_iter().rev().find_map(|(folder, rest)| Some((origins::of(&*folder)?, rest)));
    found.ok_or_else(|| {
        let why = "this is of several arrays or of none; give the path of an array, or of a file in its folder";
        Failure::failed(why).about(if path.is_empty() { "." } else { path })
    })
}

/// Goes to the node at a path. Calls `visit` with each folder on the way, and the rest of the path.
fn walk(root: &Arc<dyn Folder>, path: &str, mut visit: impl FnMut(&Arc<dyn Folder>, &str)) -> Result<Node, Failure> {
    let mut node = Node::Folder(Arc::clone(root));
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    for (number, name) in names.iter().enumerate() {
        if let Node::Folder(folder) = &node {
            visit(folder, &names.get(number..).unwrap_or_default().join("/"));
        }
        let found = match &node {
            Node::Folder(folder) => folder.lookup(name).map_err(|error| Failure::from(error).about(path))?,
            Node::File(_) => None,
        };
        node = found.ok_or_else(|| {
            let why = match &node {
                Node::Folder(folder) => why_absent(&**folder, names.get(number..).unwrap_or_default()),
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

/// Returns the meaning of a selection for this array, or the reason why it is wrong, as lines for people. The selection
/// may begin with `slice/`; positions must begin with `islice/`.
pub fn explain_slice(array: &Path, options: &TreeOptions, selection: &str) -> Result<String, Failure> {
    let (by, selection) = match (selection.strip_prefix("islice/"), selection.strip_prefix("slice/")) {
        (Some(positions), _) => (Addressing::Position, positions),
        (_, coordinates) => (Addressing::Coordinate, coordinates.unwrap_or(selection)),
    };
    let selection = selection.strip_suffix('/').unwrap_or(selection);
    let array = tree::open_array(array, options)?;
    tree::array::meaning(&array, options, selection, by)?.map_err(|explanation| {
        // Several lines: the caret marks the position of the error.
        eprintln!("tilefs: the selection selects nothing:\n{}", explanation.trim_end());
        Failure::failed("")
    })
}
