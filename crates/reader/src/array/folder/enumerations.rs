//! The enumerations of an array. Each is read on demand and cached for all views of the array.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::enumeration::Enumeration;
use tilefs_format::folder::{ENUMERATIONS, SCHEMAS};
use tilefs_storage::StoreKey;

use crate::array::context::{Context, IndexKey, Indexes};
use crate::array::folder::enumeration_pages::EnumerationPages;
use crate::array::metadata_tiles::generic_tile::{GenericTile, read_generic_tile};

/// Cache keys of enumerations, by file name. Extending an enumeration writes a new file, so a file never changes.
/// Memory: the names; the values are in the cache.
#[derive(Default)]
pub struct Enumerations {
    owner: OnceLock<u64>,
    numbers: Mutex<HashMap<String, u64>>,
}

impl Enumerations {
    /// Returns the enumeration with this name that a file in the folder of an array holds.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the file is missing, does not parse or is that of another enumeration; [`Error::Key`] as
    /// for all encrypted data.
    pub fn get(&self, context: &Context, folder: &StoreKey, name: &str, file: &str) -> Result<Arc<Enumeration>> {
        let key = self.key(&context.indexes, file);
        let enumeration = context.indexes.get_or_load(key, || {
            let enumeration = read(context, &path(folder, file), name)?;
            let weight = enumeration.memory();
            Ok((enumeration, weight))
        });
        enumeration.in_array(folder)
    }

    /// Returns the same enumeration page by page.
    ///
    /// # Errors
    /// As for [`Enumerations::get`].
    pub fn pages(&self, context: &Arc<Context>, folder: &StoreKey, name: &str, file: &str) -> Result<EnumerationPages> {
        let stored = self.get(context, folder, name, file)?.stored_values();
        let tile = GenericTile::open(context, &path(folder, file)).in_array(folder)?;
        Ok(EnumerationPages::new(context, tile, stored))
    }

    fn key(&self, indexes: &Indexes, file: &str) -> IndexKey {
        let owner = *self.owner.get_or_init(|| indexes.new_owner());
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let next = numbers.len() as u64;
        IndexKey::Enumeration(owner, *numbers.entry(file.to_owned()).or_insert(next))
    }
}

/// Returns the path of a file with an enumeration.
fn path(folder: &StoreKey, file: &str) -> StoreKey {
    folder.join(SCHEMAS).join(ENUMERATIONS).join(file)
}

fn read(context: &Context, file: &StoreKey, name: &str) -> Result<Enumeration> {
    let payload = read_generic_tile(context, file, 0)?;
    let enumeration = Enumeration::parse(&payload).in_file(file)?;
    if enumeration.name != name {
        return Err(Error::damaged(format!("it is the enumeration {:?}", enumeration.name))
            .in_field(name)
            .in_file(file));
    }
    Ok(enumeration)
}
