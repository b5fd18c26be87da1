//! Results of passes over cells, saved for later mounts: how many rows there are, which cells they are, and where
//! values and lines of variable length begin.
//!
//! An entry is found by the [`Inputs`] of the result, which a recorder made of all that the result depends on. Nothing is
//! saved about arrays that are read with a key.

use tilefs_base::error::Result;
use tilefs_base::inputs::{Inputs, Recorded};
use tilefs_base::statistics::{Counter, Statistic, Value};
use tilefs_storage::IndexStore;

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

    /// Returns the entry of a result, if there is one and `decode` accepts it.
    pub fn get<T>(&self, inputs: &Inputs, decode: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
        let found = self.store.as_ref()?.read(inputs.key()).and_then(|bytes| decode(&bytes));
        let counter = if found.is_some() { &self.found } else { &self.not_found };
        counter.add(1);
        found
    }

    /// Returns what an entry has, or makes it and saves the entry. Without inputs, nothing is saved.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn get_or_make<T>(
        &self,
        inputs: Option<Inputs>,
        decode: impl FnOnce(&[u8]) -> Option<T>,
        encode: impl FnOnce(&T) -> Vec<u8>,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let Some(inputs) = inputs else { return make() };
        if let Some(known) = self.get(&inputs, decode) {
            return Ok(known);
        }
        let made = make()?;
        self.put(&inputs, &encode(&made));
        Ok(made)
    }

    /// As [`SavedIndexes::get_or_make`], for a result of a pass over `cells` cells, rows of a text or of values, that is
    /// made of `source` and of nothing else: `make` captures nothing. Results of few cells are not saved.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn get_or_make_of<S: Recorded + ?Sized, T>(
        &self,
        (what, cells): (&'static str, u64),
        source: &S,
        decode: impl FnOnce(&[u8]) -> Option<T>,
        encode: impl FnOnce(&T) -> Vec<u8>,
        make: fn(&S) -> Result<T>,
    ) -> Result<T> {
        self.get_or_make(self.inputs_of((what, cells), source), decode, encode, || {
            let made = make(source)?;
            self.measured_rows.add(cells);
            Ok(made)
        })
    }

    /// Returns the inputs of a result of a pass over `cells` cells that is made of `source`. `None` if it is not saved:
    /// there is no store, or the cells are few, or some inputs cannot be recorded.
    pub fn inputs_of(&self, (what, cells): (&'static str, u64), source: &(impl Recorded + ?Sized)) -> Option<Inputs> {
        if self.is_worth(cells) { Inputs::of(what, source) } else { None }
    }

    /// Returns whether anything is saved.
    pub fn has_store(&self) -> bool {
        self.store.is_some()
    }

    /// Returns whether there is an entry of a result, valid or not.
    pub fn has(&self, inputs: &Inputs) -> bool {
        self.store.as_ref().is_some_and(|store| store.has(inputs.key()))
    }

    /// Saves the entry of a result.
    pub fn put(&self, inputs: &Inputs, bytes: &[u8]) {
        if let Some(store) = &self.store {
            self.written.add(1);
            store.write(inputs.key(), bytes);
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
