//! The metadata of an array or a group: its keys and values as of a window of time.

use std::collections::BTreeMap;
use std::path::Path;

use super::folder::Context;
use super::generic::read_generic_tile;
use super::timed_files::files_in_force;
use super::window::TimeWindow;
use crate::error::{Locate, Result};
use crate::format::folder::METADATA;
use crate::format::metadata::{MetadataEntry, MetadataValue, parse_metadata};

/// Keys in byte order, as TileDB lists them, with their typed values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    values: BTreeMap<Vec<u8>, MetadataValue>,
}

impl Metadata {
    /// Reads what is in force in a window of the array or group in the folder `root`. Without `__meta`, as before
    /// format version 4, there is nothing.
    ///
    /// # Errors
    /// [`Error::Damaged`](crate::error::Error::Damaged) naming the file, [`Error::Key`](crate::error::Error::Key)
    /// where it is encrypted and the key is missing or wrong: never some keys without the others.
    pub fn read(context: &Context, root: &Path, window: TimeWindow) -> Result<Self> {
        Self::read_files(context, root, window).in_array(root)
    }

    fn read_files(context: &Context, root: &Path, window: TimeWindow) -> Result<Self> {
        let mut metadata = Metadata::default();
        for one in files_in_force(&*context.storage, &root.join(METADATA), window)? {
            let payload = read_generic_tile(&*context.storage, &one.file, 0, context.key.as_deref())?;
            metadata.apply(parse_metadata(&payload).in_file(&one.file)?);
        }
        Ok(metadata)
    }

    /// What one file does to the keys, entry after entry.
    fn apply(&mut self, entries: Vec<MetadataEntry>) {
        for entry in entries {
            match entry.value {
                Some(value) => self.values.insert(entry.key, value),
                None => self.values.remove(&entry.key),
            };
        }
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&MetadataValue> {
        self.values.get(key.as_bytes())
    }

    /// All keys in byte order. A key is text by custom, any bytes by format.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &MetadataValue)> {
        self.values.iter().map(|(key, value)| (key.as_slice(), value))
    }
}

impl FromIterator<(Vec<u8>, MetadataValue)> for Metadata {
    fn from_iter<I: IntoIterator<Item = (Vec<u8>, MetadataValue)>>(values: I) -> Self {
        Metadata { values: values.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::datatype::Datatype;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn entry(key: u8, value: Option<u8>) -> MetadataEntry {
        let value = value.map(|byte| MetadataValue { datatype: Datatype::UInt8, count: 1, bytes: vec![byte] });
        MetadataEntry { key: vec![key], value }
    }

    proptest! {
        #[test]
        fn the_last_entry_of_a_key_counts(files in prop::collection::vec(
            prop::collection::vec((0u8..4, prop::option::of(any::<u8>())), 0..6), 0..4)) {
            let mut metadata = Metadata::default();
            let mut last = HashMap::new();
            for file in &files {
                metadata.apply(file.iter().map(|&(key, value)| entry(key, value)).collect());
                last.extend(file.iter().copied());
            }
            last.retain(|_, value| value.is_some());
            let found: HashMap<u8, Option<u8>> =
                metadata.iter().map(|(key, value)| (key[0], value.bytes.first().copied())).collect();
            prop_assert_eq!(metadata.len(), last.len());
            prop_assert_eq!(found, last);
        }
    }
}
