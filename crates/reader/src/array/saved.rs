//! Results of passes over cells, saved for later mounts: how many rows there are, which cells they are, and where
//! values and lines of variable length begin.
//!
//! The key of an entry includes everything that it depends on: [`Array::identity`] and the kind of result. An array
//! that has changed has other entries, so nothing has to be invalidated. Nothing is saved about arrays that are read
//! with a key.

use tilefs_format::error::Result;
use tilefs_format::name::TimestampedName;
use tilefs_format::schema::ArraySchema;
use tilefs_storage::{EntryKey, IndexStore, KeyWriter};

use super::Array;
use crate::statistics::{Counter, Statistic, Value};

/// Increment this with each change of the contents or meaning of entries, including how cells become rows and rows
/// become text: then entries of other versions are not found.
const ENCODING: u32 = 3;

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

impl Array {
    /// Returns a key of everything that determines what the array shows: its location, its schema, the visible
    /// fragments with their footers, the deletes, and the time window as far as it affects cells. `None` if nothing is
    /// saved.
    ///
    /// # Errors
    /// Any damage in footers.
    pub fn identity(&self) -> Result<Option<EntryKey>> {
        let context = self.context();
        if context.saved.store.is_none() || context.key.is_some() {
            return Ok(None);
        }
        self.identity.get_or_make(|| self.make_identity()).copied().map(Some)
    }

    fn make_identity(&self) -> Result<EntryKey> {
        let mut key = KeyWriter::new();
        key.part(format_args!("{} {ENCODING}", env!("CARGO_PKG_VERSION")));
        key.part(self.context().storage.identity(self.path())?);
        key.part(schema_text(&self.schema));
        let deletes = self.folder.directory().visible_conditions(self.window);
        let mut latest = 0;
        for delete in &deletes {
            key.part(&delete.marker);
            latest = latest.max(delete.times.t2);
        }
        self.read_outlines();
        let mut identity = Vec::new();
        for fragment in 0..self.fragment_count() {
            let facts = &self.outline(fragment)?.facts;
            let entry = self.folder.fragment(self.number(fragment));
            key.bytes(entry.map_or(&[], |entry| entry.path.as_bytes()));
            identity.clear();
            facts.append_identity(&mut identity);
            key.bytes(&identity);
            latest = latest.max(entry.map_or(0, |entry| entry.times.t2));
            if facts.has_delete_metadata {
                // Cells may have been deleted after the last of them was written.
                for name in self.folder.processed_conditions(self.number(fragment))?.iter() {
                    latest = latest.max(TimestampedName::parse(name)?.map_or(u64::MAX, |times| times.t2));
                }
            }
        }
        // If nothing is later, the end of the window has no effect; in most mounts it is the present time.
        let end = if self.window.end > latest { u64::MAX } else { self.window.end };
        key.part(format_args!("{} {end}", self.window.start));
        Ok(key.finish())
    }
}

/// Encodes sums that [`decode_sums`] accepts.
pub fn encode_sums(sums: &[u64]) -> Vec<u8> {
    sums.iter().flat_map(|sum| sum.to_le_bytes()).collect()
}

/// Decodes `count` sums, of which the first is 0 and none is less than the one before; `None` for other bytes.
pub fn decode_sums(bytes: &[u8], count: usize) -> Option<Vec<u64>> {
    let (sums, []) = bytes.as_chunks() else { return None };
    let sums: Vec<u64> = sums.iter().map(|sum| u64::from_le_bytes(*sum)).collect();
    (sums.len() == count && sums.first() == Some(&0) && sums.is_sorted()).then_some(sums)
}

/// Returns the complete contents of a schema as text.
fn schema_text(schema: &ArraySchema) -> String {
    let ArraySchema {
        version,
        array_type,
        allows_duplicates,
        tile_order,
        cell_order,
        capacity,
        coords_filters,
        offsets_filters,
        validity_filters,
        dimensions,
        attributes,
        labels,
        enumerations,
        current_domain,
        names: _,
    } = schema;
    let orders = (version, array_type, allows_duplicates, tile_order, cell_order, capacity);
    let filters = (coords_filters, offsets_filters, validity_filters);
    format!("{orders:?} {filters:?} {dimensions:?} {attributes:?} {labels:?} {enumerations:?} {current_domain:?}")
}
