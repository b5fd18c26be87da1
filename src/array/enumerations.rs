//! Enumerations of an array, each read when it is first wanted and kept for all views of the array.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::Array;
use super::folder::Context;
use super::generic::read_generic_tile;
use crate::error::{Error, Locate, Result};
use crate::format::enumeration::Enumeration;
use crate::format::folder::{ENUMERATIONS, SCHEMAS};

/// What was read, by the name of the file. Extending an enumeration writes another file, so none ever changes.
#[derive(Default)]
pub struct Enumerations {
    known: Mutex<HashMap<String, Arc<Enumeration>>>,
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
        let known = || self.folder().enumerations.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(enumeration) = known().get(file) {
            return Ok(enumeration.clone());
        }
        let enumeration = read(self.context(), &self.path().join(SCHEMAS).join(ENUMERATIONS).join(file), name);
        let enumeration = Arc::new(enumeration.in_array(self.path())?);
        known().insert(file.to_owned(), enumeration.clone());
        Ok(enumeration)
    }
}

fn read(context: &Context, file: &std::path::Path, name: &str) -> Result<Enumeration> {
    let payload = read_generic_tile(&*context.storage, file, 0, context.key.as_deref())?;
    let enumeration = Enumeration::parse(&payload).in_file(file)?;
    if enumeration.name != name {
        return Err(Error::damaged(format!("it is the enumeration {:?}", enumeration.name))
            .in_field(name)
            .in_file(file));
    }
    Ok(enumeration)
}
