//! Enumerations of an array, each read when it is first wanted and kept in the cache for all views of the array.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tilefs_format::enumeration::Enumeration;
use tilefs_format::error::{Error, Locate, Result};
use tilefs_format::folder::{ENUMERATIONS, SCHEMAS};

use super::Array;
use super::context::{Context, IndexKey, Indexes};
use super::generic::read_generic_tile;
use crate::storage::StoreKey;

/// Where the cache has enumerations, by the names of their files. Extending one writes another file, so none ever
/// changes. Memory: the names; what they hold is the cache's.
#[derive(Default)]
pub struct Enumerations {
    owner: OnceLock<u64>,
    numbers: Mutex<HashMap<String, u64>>,
}

impl Enumerations {
    fn key(&self, indexes: &Indexes, file: &str) -> IndexKey {
        let owner = *self.owner.get_or_init(|| indexes.new_owner());
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let next = numbers.len() as u64;
        IndexKey::Enumeration(owner, *numbers.entry(file.to_owned()).or_insert(next))
    }
}

impl Array {
    /// The enumeration of this name in the schema in force at the end of the window: extended ones have the values
    /// that they had then.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the schema has none of that name; [`Error::Damaged`] when its file is missing, does
    /// not parse or is another enumeration's; [`Error::Key`] as for all that is encrypted.
    pub fn enumeration(&self, name: &str) -> Result<Arc<Enumeration>> {
        let Some(file) = self.schema().enumeration_file(name) else {
            return Err(Error::NotFound { path: name.to_owned() });
        };
        let context = self.context();
        let key = self.folder().enumerations.key(&context.indexes, file);
        let path = || self.path().join(SCHEMAS).join(ENUMERATIONS).join(file);
        let enumeration = context.indexes.get_or_load(key, || {
            let enumeration = read(context, &path(), name)?;
            let weight = enumeration.memory();
            Ok((enumeration, weight))
        });
        enumeration.in_array(self.path())
    }
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
