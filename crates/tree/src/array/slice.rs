//! `slice/` and `islice/`: folders whose names are selections, each with the structure of its array's folder.

use std::sync::Arc;

use tilefs_base::error::Result;
use tilefs_select::{Addressing, SelectionError};
use tilefs_vfs::node::lazy::FixedFolder;
use tilefs_vfs::node::named::NamedFolder;
use tilefs_vfs::node::{Entry, Node};

use crate::array::explain::FieldFolderKind;
use crate::fields::FieldFolder;

/// Makes the folder of the files of a slice.
type MakeFiles = fn(&FieldFolder, FieldFolderKind) -> Result<FixedFolder>;

/// Returns the folder of every selection of an array, by its name. It lists only those of the `named` selections, given
/// with their names, that select something here: those given for a group need not fit all of its arrays.
pub fn slices(whole: FieldFolder, by: Addressing, named: Vec<(String, String)>, make: MakeFiles) -> NamedFolder {
    let (modified, all, listed) = (whole.modified, whole.subarray.clone(), named.clone());
    let folders = NamedFolder::new(modified, move |name| {
        let selection = named.iter().find(|(known, _)| known == name).map_or(name, |(_, selection)| selection);
        match whole.subarray.select(selection, by) {
            Ok(subarray) => {
                let fields = FieldFolder { subarray, ..whole.clone() };
                let place = match by {
                    Addressing::Coordinate => "slice",
                    Addressing::Position => "islice",
                };
                let kind = FieldFolderKind::Slice(format!("{place}/{name}"));
                let mut folder = make(&fields, kind)?;
                let subarray = fields.subarray;
                folder.holds(move || subarray.memory());
                Ok(Ok(Node::Folder(Arc::new(folder))))
            }
            Err(SelectionError { cause: Some(cause), .. }) => Err(*cause),
            Err(error) => {
                log::debug!("slice {selection}: {}", error.message);
                Ok(Err(Some(error.into_error(selection).to_string())))
            }
        }
    });
    folders.listing(move || {
        let named = listed.iter().filter(|(_, selection)| all.select(selection, by).is_ok());
        Ok(named.map(|(name, _)| Entry::folder(name)).collect())
    })
}
