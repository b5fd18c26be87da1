//! The identity of the cells of an array: a key of everything that determines what they are, which results that are saved
//! for later mounts depend on.

use tilefs_base::entry_key::EntryKey;
use tilefs_base::entry_key::KeyWriter;
use tilefs_base::error::Result;
use tilefs_base::inputs::{Recorded, Recorder};
use tilefs_format::name::TimestampedName;
use tilefs_format::schema::ArraySchema;

use super::OpenedArray;

/// Records the cells of the array. Its labels are arrays of their own, and its metadata and the values of its
/// enumerations are constants of whatever is made of them. An array with damaged footers is unknown.
impl Recorded for OpenedArray {
    fn record(&self, recorder: &mut Recorder) {
        recorder.add_array(self.identity().ok().flatten());
    }
}

impl OpenedArray {
    /// Returns a key of everything that determines the cells: the array's location, its schema, the visible fragments with
    /// their footers, the deletes, and the time window as far as it affects cells. `None` if nothing is saved.
    ///
    /// # Errors
    /// Any damage in footers.
    fn identity(&self) -> Result<Option<EntryKey>> {
        let context = self.context();
        if !context.saved.has_store() || context.key.is_some() {
            return Ok(None);
        }
        self.identity.get_or_make(|| self.make_identity()).copied().map(Some)
    }

    fn make_identity(&self) -> Result<EntryKey> {
        let mut key = KeyWriter::new();
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
