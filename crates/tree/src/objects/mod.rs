//! Opens stored arrays and groups by their folders.

pub mod directory;
pub(crate) mod members;
pub mod opened_later;
pub mod walk;

use std::sync::Arc;

use tilefs_base::error::{Locate, Result};
use tilefs_format::folder::ObjectKind;
use tilefs_reader::OpenedObject;
use tilefs_reader::array::FolderListing;
use tilefs_reader::array::{ArrayFolder, Context, OpenedArray, TimeWindow, object_kind};
use tilefs_reader::group::OpenedGroup;
use tilefs_reader::group::changes::note;
use tilefs_storage::StoreKey;

/// Opens the array in a folder.
///
/// # Errors
/// As for [`ArrayFolder::open`] and [`OpenedArray::open`]; an error about a key names the array that requires it.
pub fn open_folder(context: Arc<Context>, path: &StoreKey, window: TimeWindow) -> Result<Arc<OpenedArray>> {
    note(&context, path).in_array(path)?;
    let listing = FolderListing::read(&*context.storage, path).in_array(path)?;
    open_listed(context, listing, window)
}

/// Opens the array or group in the folder of a member, as of the group's window; `None` if there is neither.
///
/// # Errors
/// As for [`open_folder`] and [`OpenedGroup::open_member`].
pub fn open_member(group: &OpenedGroup, path: &StoreKey) -> Result<Option<OpenedObject>> {
    let context = group.context();
    Ok(match object_kind(&*context.storage, path)? {
        Some(ObjectKind::Array) => Some(OpenedObject::Array(open_folder(context.clone(), path, group.window())?)),
        Some(ObjectKind::Group) => Some(OpenedObject::Group(Box::new(group.open_member(path)?))),
        None => None,
    })
}

/// Like [`open_folder`], for a folder that has just been listed.
///
/// # Errors
/// As for [`open_folder`].
pub fn open_listed(context: Arc<Context>, listing: FolderListing, window: TimeWindow) -> Result<Arc<OpenedArray>> {
    let path = listing.root().clone();
    let opened =
        ArrayFolder::open_listed(context, listing).and_then(|folder| OpenedArray::open(Arc::new(folder), window));
    opened.map(Arc::new).in_array(path)
}
