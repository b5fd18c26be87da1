//! The object type of a folder: an array, a group, or neither.

use tilefs_base::error::Result;
use tilefs_format::folder::{GROUP_DETAILS, GROUP_MARKER, ObjectKind, SCHEMAS};
use tilefs_format::schema::FIRST_SCHEMA;
use tilefs_storage::{Listed, Storage, StoreKey};

/// Returns the kind of object that a folder holds, which it lists; `None` if it is neither an array nor a group. In an
/// object store, returns `None` also if the folder does not exist.
///
/// # Errors
/// [`Error::Missing`](tilefs_base::error::Error::Missing) if a local storage has no such folder, for example
/// while another folder is about to replace it; [`Error::Io`](tilefs_base::error::Error::Io) if the folder exists
/// but cannot be listed.
pub fn object_kind(storage: &dyn Storage, folder: &StoreKey) -> Result<Option<ObjectKind>> {
    let names = storage.list_in(&storage.know(folder)?, "")?;
    Ok(kind_of_entries(&names.unwrap_or_default()))
}

/// Returns the kind of object that a folder with these entries holds. An array cannot also be a group, so arrays are
/// recognized first, as in libtiledb.
pub fn kind_of_entries(entries: &[Listed]) -> Option<ObjectKind> {
    let has = |name: &str| entries.iter().any(|one| one.name == name);
    // The entry may be something else, such as a broken link; the code that opens it reports that.
    if has(SCHEMAS) || has(FIRST_SCHEMA) {
        Some(ObjectKind::Array)
    } else if has(GROUP_DETAILS) || has(GROUP_MARKER) {
        Some(ObjectKind::Group)
    } else {
        None
    }
}
