//! `slice/` of a group that is one dataset: parts of all of its variables, such as `slice/time=2001-07,lat=40..50/`.

use std::sync::Arc;
use std::time::SystemTime;

use tilefs_base::error::Error;
use tilefs_vfs::node::Node;
use tilefs_vfs::node::named::NamedFolder;

use crate::domains::cf::files::{MakeDataset, files};

/// The name of the folder.
pub const SLICE: &str = "slice";

/// Returns `slice/`: its folders are found by name, and never listed.
pub fn dataset_slices(dataset: MakeDataset, modified: SystemTime) -> NamedFolder {
    NamedFolder::new(modified, move |name| match dataset()?.select(name) {
        Ok(part) => Ok(Ok(Node::Folder(Arc::new(files(&Arc::new(part), modified)?)))),
        Err(error @ Error::Usage { .. }) => Ok(Err(Some(error.to_string()))),
        Err(error) => Err(error),
    })
}
