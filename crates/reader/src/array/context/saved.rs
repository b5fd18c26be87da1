//! Results of passes over cells, saved for later mounts: how many rows there are, which cells they are, and where
//! values and lines of variable length begin.
//!
//! The key of an entry includes everything that it depends on:
//! [`OpenedArray::identity`](crate::array::OpenedArray::identity) and the kind of result. An array that has changed has
//! other entries, so nothing has to be invalidated. Nothing is saved about arrays that are read with a key.

use tilefs_format::error::Result;

use crate::statistics::{Counter, Statistic, Value};
use tilefs_storage::{EntryKey, IndexStore};

/// Increment this with each change of the contents or meaning of entries, including how cells become rows and rows
/// become text: then entries of other versions are not found.
pub const ENCODING: u32 = 3;

/// The saved results, and counters of results that had to be computed.
#[derive(Debug, Default)]
pub struct SavedIndexes {
    store: Option<IndexStore>,
    /// Results of a pass over fewer cells are not saved.
    least_cells: u64,
    found: Counter,
    not_found: Counter,
    written: Counter,
    merged_cells: Counter,
    measured_rows: Counter,
}

impl SavedIndexes {
    /// Saves results of passes over at least `least_cells` cells in a store.
    pub fn new(store: IndexStore, least_cells: u64) -> Self {
        SavedIndexes { store: Some(store), least_cells, ..Self::default() }
    }

    /// Returns the entry of a key, if there is one and `decode` accepts it.
    pub fn get<T>(&self, key: &EntryKey, decode: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
        let found = self.store.as_ref()?.read(key).and_then(|bytes| decode(&bytes));
        let counter = if found.is_some() { &self.found } else { &self.not_found };
        counter.add(1);
        found
    }

    /// Returns what an entry has, or makes it and saves the entry. Without a key, nothing is saved.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn get_or_make<T>(
        &self,
        key: Option<EntryKey>,
        decode: impl FnOnce(&[u8]) -> Option<T>,
        encode: impl FnOnce(&T) -> Vec<u8>,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let Some(key) = key else { return make() };
        if let Some(known) = self.get(&key, decode) {
            return Ok(known);
        }
        let made = make()?;
        self.put(&key, &encode(&made));
        Ok(made)
    }

    /// Returns whether anything is saved.
    pub fn has_store(&self) -> bool {
        self.store.is_some()
    }

    /// Returns whether there is an entry for a key, valid or not.
    pub fn has(&self, key: &EntryKey) -> bool {
        self.store.as_ref().is_some_and(|store| store.has(key))
    }

    /// Saves an entry under a key.
    pub fn put(&self, key: &EntryKey, bytes: &[u8]) {
        if let Some(store) = &self.store {
            self.written.add(1);
            store.write(key, bytes);
        }
    }

    /// Returns whether the result of a pass over this many cells is saved.
    pub fn is_worth(&self, cells: u64) -> bool {
        self.store.is_some() && cells >= self.least_cells
    }

    /// Returns how many bytes a single result may take in several entries, so that others are not evicted.
    pub fn most_of_one(&self) -> u64 {
        self.store.as_ref().map_or(0, |store| store.most() / 4)
    }

    /// Counts cells that were read to determine which of them are rows.
    pub(crate) fn note_merged(&self, cells: u64) {
        self.merged_cells.add(cells);
    }

    /// Counts rows that were read to determine where each begins in a text or among values of variable length.
    pub fn note_measured(&self, rows: u64) {
        self.measured_rows.add(rows);
    }

    /// Returns the counters of saved values.
    pub fn statistics(&self) -> Vec<Statistic> {
        [
            ("index_hits", "Results that an earlier mount had saved", &self.found),
            ("index_misses", "Results that were not saved", &self.not_found),
            ("index_writes", "Results that were saved", &self.written),
            ("merged_cells", "Cells that were gone through to find the rows", &self.merged_cells),
            ("measured_rows", "Rows that were gone through to find where each begins", &self.measured_rows),
        ]
        .map(|(name, help, counter)| Statistic::new(name, help, Value::Total(counter.get())))
        .into()
    }
}
