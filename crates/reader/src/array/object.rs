//! What a folder is: an array, a group, or neither (the format's object types).

use tilefs_format::error::Result;
use tilefs_format::folder::{GROUP_DETAILS, GROUP_MARKER, SCHEMAS};
use tilefs_format::schema::FIRST_SCHEMA;

use crate::storage::{Listed, Storage, StoreKey};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    Array,
    Group,
}

impl ObjectKind {
    /// What a folder is. Lists it. In an object store `None` also where there is none.
    ///
    /// # Errors
    /// [`Error::Missing`](tilefs_format::error::Error::Missing) where a local storage has no such folder, as one that another is
    /// about to take the place of, [`Error::Io`](tilefs_format::error::Error::Io) when it is there and cannot be listed.
    pub fn of(storage: &dyn Storage, folder: &StoreKey) -> Result<Option<Self>> {
        let names = storage.list_in(&storage.know(folder)?, "")?;
        Ok(Self::of_entries(&names.unwrap_or_default()))
    }

    /// What a folder with these entries is. An array may not also be a group, so arrays are looked for first, as
    /// libtiledb does.
    pub fn of_entries(entries: &[Listed]) -> Option<Self> {
        let has = |name: &str| entries.iter().any(|one| one.name == name);
        // What has such a name and is something else, as a link to nowhere, is for those to refuse who look into it.
        if has(SCHEMAS) || has(FIRST_SCHEMA) {
            Some(ObjectKind::Array)
        } else if has(GROUP_DETAILS) || has(GROUP_MARKER) {
            Some(ObjectKind::Group)
        } else {
            None
        }
    }
}
