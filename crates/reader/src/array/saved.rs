//! What takes a pass over cells to find out, saved for later mounts: how many rows there are, which cells they are, and where
//! values and lines of variable length begin.
//!
//! An entry is found by all that it depends on: [`Array::identity`] and what is told about the array. So an array that has
//! changed has other entries, and nothing has to be removed. Of an array that is read with a key nothing is saved.

use tilefs_format::error::Result;
use tilefs_format::name::TimestampedName;
use tilefs_format::schema::ArraySchema;

use super::Array;
use crate::statistics::{Counter, Statistic, Value};
use crate::storage::{EntryKey, IndexStore, KeyWriter};

/// Counts up with each change of what entries hold or mean, also of how cells become rows and rows become text: entries of
/// other programs are then not found.
const ENCODING: u32 = 2;

/// What is saved, and what had to be found out because it was not.
#[derive(Debug, Default)]
pub struct SavedIndexes {
    store: Option<IndexStore>,
    /// What takes a pass over fewer cells is not worth an entry.
    least_cells: u64,
    found: Counter,
    not_found: Counter,
    written: Counter,
    merged_cells: Counter,
    measured_rows: Counter,
}

impl SavedIndexes {
    /// Saves in a store what takes a pass over so many cells or more.
    pub fn new(store: IndexStore, least_cells: u64) -> Self {
        SavedIndexes { store: Some(store), least_cells, ..Self::default() }
    }

    /// What is saved under a key, if there is anything and `decode` makes something of it.
    pub fn get<T>(&self, key: &EntryKey, decode: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
        let found = self.store.as_ref()?.read(key).and_then(|bytes| decode(&bytes));
        let counter = if found.is_some() { &self.found } else { &self.not_found };
        counter.add(1);
        found
    }

    /// Whether something is saved under a key, be it whole or not.
    pub fn has(&self, key: &EntryKey) -> bool {
        self.store.as_ref().is_some_and(|store| store.has(key))
    }

    /// Saves something under a key.
    pub fn put(&self, key: &EntryKey, bytes: &[u8]) {
        if let Some(store) = &self.store {
            self.written.add(1);
            store.write(key, bytes);
        }
    }

    /// Whether anything is saved that takes a pass over so many cells.
    pub fn is_worth(&self, cells: u64) -> bool {
        self.store.is_some() && cells >= self.least_cells
    }

    /// How many bytes one thing may take in several entries, so that others stay.
    pub fn most_of_one(&self) -> u64 {
        self.store.as_ref().map_or(0, |store| store.most() / 4)
    }

    /// Counts cells that were gone through to find out which are rows.
    pub fn note_merged(&self, cells: u64) {
        self.merged_cells.add(cells);
    }

    /// Counts rows that were gone through to find out where each begins in a text or among values of variable length.
    pub fn note_measured(&self, rows: u64) {
        self.measured_rows.add(rows);
    }

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
    /// The key of all that is told about the array as it is seen: where it is, its schema, the fragments that are visible
    /// with what their footers say, the deletes, and the window of time as far as it decides about cells. `None` where
    /// nothing is saved.
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
        // Where nothing is later, the end decides nothing: it is the present in most mounts.
        let end = if self.window.end > latest { u64::MAX } else { self.window.end };
        key.part(format_args!("{} {end}", self.window.start));
        Ok(key.finish())
    }
}

/// All that a schema says.
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
