//! An array as of a time window: its schema, its visible fragments, and the values and statistics of their attributes.

use std::sync::Arc;

use tilefs_base::entry_key::EntryKey;
use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::enumeration::Enumeration;
use tilefs_format::fragment::FragmentField;
use tilefs_format::name::TimestampedName;
use tilefs_format::scalar::Scalar;
use tilefs_format::schema::{ArraySchema, ArrayType};
use tilefs_storage::StoreKey;
use tilefs_threads::single_flight::SingleFlight;

use super::context::{Context, TileStatistic};
use super::directory::window::TimeWindow;
use super::folder::ArrayFolder;
use super::folder::enumeration_pages::EnumerationPages;
use super::folder::outline::{FieldFile, Outline};
use super::metadata::Metadata;
use super::tiles::Tiles;
use super::tiles::var_tiles::VarTiles;

/// Above this number of fragments, statistics are not read, because each fragment takes a read of its own.
const MAX_FRAGMENTS_FOR_EXTREMES: usize = 256;

/// An array as of a time window: the schema in force at its end, and the visible fragments, oldest first. Fragments are
/// numbered in that order. Memory: 8 bytes per visible fragment.
pub struct OpenedArray {
    pub(super) folder: Arc<ArrayFolder>,
    pub(super) window: TimeWindow,
    pub(super) schema: Arc<ArraySchema>,
    /// The numbers of the visible fragments in the folder, oldest first.
    pub(super) fragments: Vec<usize>,
    metadata: SingleFlight<Arc<Metadata>>,
    pub(super) identity: SingleFlight<EntryKey>,
    /// The folders of the arrays of which this one is a label, outermost first. None of them may be a label of this
    /// array.
    pub(super) around: Vec<StoreKey>,
}

impl OpenedArray {
    /// Opens an array. Reads the schema, but no fragment, except for footers of fragments with the same times that were
    /// consolidated and not vacuumed.
    ///
    /// # Errors
    /// [`Error::Damaged`] or [`Error::Unsupported`] if the schema cannot be read, [`Error::Key`] for an encrypted array
    /// without its key.
    pub fn open(folder: Arc<ArrayFolder>, window: TimeWindow) -> Result<Self> {
        let schema = folder.directory().schema_at(window);
        let schema = schema.ok_or_else(|| Error::damaged("the array has no schema").in_array(folder.path()))?;
        let name = schema.name.clone();
        Self::open_with(folder, window, &name)
    }

    /// As [`OpenedArray::open`], with the schema of this name.
    pub(super) fn open_with(folder: Arc<ArrayFolder>, window: TimeWindow, schema: &str) -> Result<Self> {
        folder.read_ahead(schema, window);
        let schema = folder.schema(schema)?;
        let fragments = folder.fragments_to_read(window, &schema)?;
        let (metadata, identity) = (SingleFlight::new(), SingleFlight::new());
        Ok(OpenedArray { folder, window, schema, fragments, metadata, identity, around: Vec::new() })
    }

    /// Returns the same array with the fragments that consolidations have replaced. Those are visible at earlier times;
    /// reading them together with the other fragments would return outdated cells.
    pub(super) fn with_replaced(&self) -> Self {
        let is_sparse = self.schema.array_type == ArrayType::Sparse;
        let fragments = self.folder.directory().committed_fragments(self.window, is_sparse);
        let (folder, schema) = (self.folder.clone(), self.schema.clone());
        let (metadata, identity, around) = (SingleFlight::new(), SingleFlight::new(), self.around.clone());
        OpenedArray { folder, window: self.window, schema, fragments, metadata, identity, around }
    }

    /// Returns an array of these fragments alone, oldest first, by their numbers in the folder.
    pub(super) fn of_fragments(&self, schema: Arc<ArraySchema>, fragments: Vec<usize>) -> Self {
        let (folder, around) = (self.folder.clone(), self.around.clone());
        let (metadata, identity) = (SingleFlight::new(), SingleFlight::new());
        OpenedArray { folder, window: self.window, schema, fragments, metadata, identity, around }
    }

    /// Returns the same state of the array, with the storage, caches and key of another context. Reads nothing and
    /// takes no locks, so that a forked child can call it with a context of its own.
    pub fn in_context(&self, context: Arc<Context>) -> Self {
        let folder = Arc::new(self.folder.in_context(context));
        let (schema, fragments, around) = (self.schema.clone(), self.fragments.clone(), self.around.clone());
        let (metadata, identity) = (SingleFlight::new(), SingleFlight::new());
        OpenedArray { folder, window: self.window, schema, fragments, metadata, identity, around }
    }

    /// Returns the folder that is read.
    pub fn folder(&self) -> &Arc<ArrayFolder> {
        &self.folder
    }

    /// Returns the storage, caches and key that all arrays of a mount share.
    pub fn context(&self) -> &Arc<Context> {
        &self.folder.context
    }

    /// Returns the array's path or URI.
    pub fn path(&self) -> &StoreKey {
        self.folder.path()
    }

    /// Returns whether requests for the array's files have high latency.
    pub fn is_remote(&self) -> bool {
        self.context().storage.is_remote(self.path())
    }

    /// Returns the time window.
    pub fn window(&self) -> TimeWindow {
        self.window
    }

    /// Returns the time of the newest commit that the array shows, in milliseconds since 1970.
    pub fn last_commit(&self) -> Option<u64> {
        self.folder.directory().commit_times().into_iter().rfind(|&time| time <= self.window.end)
    }

    /// Returns the times of the commits that the array does not show and that lay in the future when it was listed, in
    /// ascending order.
    ///
    /// # Errors
    /// As [`ArrayFolder::commit_times`].
    pub fn future_commits(&self) -> Result<Vec<u64>> {
        self.folder.future_commits(self.window)
    }

    /// Returns the schema in force at the end of the time window.
    pub fn schema(&self) -> &ArraySchema {
        &self.schema
    }

    /// Returns the metadata as of the window, which is read once.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the file; [`Error::Key`] if it is encrypted and the key is missing or wrong.
    pub fn metadata(&self) -> Result<Arc<Metadata>> {
        let read = || {
            let names = self.folder.directory().metadata_names(&*self.context().storage).in_array(self.path())?;
            Ok(Arc::new(Metadata::read_listed(self.context(), self.path(), &names, self.window)?))
        };
        self.metadata.get_or_retry(read).cloned()
    }

    /// Returns the enumeration with this name in the schema in force at the end of the window, with the values of that
    /// time.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the schema has no such enumeration; [`Error::Damaged`] if its file is missing, does not
    /// parse or is that of another enumeration; [`Error::Key`] as for all encrypted data.
    pub fn enumeration(&self, name: &str) -> Result<Arc<Enumeration>> {
        self.folder.enumerations.get(self.context(), self.path(), name, self.enumeration_file(name)?)
    }

    /// Returns the same enumeration for readers that want some of its values: it is read page by page.
    ///
    /// # Errors
    /// As for [`OpenedArray::enumeration`].
    pub fn enumeration_pages(&self, name: &str) -> Result<EnumerationPages> {
        self.folder.enumerations.pages(self.context(), self.path(), name, self.enumeration_file(name)?)
    }

    fn enumeration_file(&self, name: &str) -> Result<&str> {
        self.schema().enumeration_file(name).ok_or_else(|| Error::NotFound { path: name.to_owned() })
    }

    /// Returns the number of visible fragments.
    pub fn fragment_count(&self) -> usize {
        self.fragments.len()
    }

    /// Returns the number in the folder of a visible fragment.
    pub(super) fn number(&self, fragment: usize) -> usize {
        self.fragments.get(fragment).copied().unwrap_or(usize::MAX)
    }

    /// Returns the name of a visible fragment.
    pub fn fragment_name(&self, fragment: usize) -> &str {
        self.folder.fragment(self.number(fragment)).map_or("", |entry| entry.name())
    }

    /// Returns the times in the name of a visible fragment.
    pub fn fragment_times(&self, fragment: usize) -> Option<TimestampedName> {
        self.folder.fragment(self.number(fragment)).map(|entry| entry.times)
    }

    /// Returns the number of cells that a visible fragment stores, or the cells of its box if it is dense.
    ///
    /// # Errors
    /// As [`ArrayFolder::outline`]; [`Error::Damaged`] for more than 2^64 cells.
    pub fn fragment_cells(&self, fragment: usize) -> Result<u64> {
        let outline = self.outline(fragment)?;
        let facts = &outline.facts;
        let too_many = || Error::damaged("more than 2^64 cells").in_fragment(self.fragment_name(fragment));
        if !facts.dense {
            let full = facts.sparse_tiles.saturating_sub(1).checked_mul(outline.schema.capacity);
            let last = if facts.sparse_tiles == 0 { 0 } else { facts.last_tile_cells };
            return full.and_then(|full| full.checked_add(last)).ok_or_else(too_many);
        }
        let Some(ranges) = facts.non_empty_ranges() else { return Ok(0) };
        let lengths = ranges.iter().map(|range| range.high.distance_above(&range.low)?.checked_add(1));
        lengths.into_iter().try_fold(1u64, |cells, length| cells.checked_mul(length?)).ok_or_else(too_many)
    }

    /// Returns the facts in the footer of a visible fragment.
    ///
    /// # Errors
    /// As [`ArrayFolder::outline`].
    pub fn outline(&self, fragment: usize) -> Result<Arc<Outline>> {
        self.folder.outline(self.number(fragment))
    }

    /// Returns the oldest format version by whose rules the cells of a fragment may be sorted: the fragment's own or,
    /// if the fragment was consolidated, the version of the array's first schema. Consolidation merges the cells of
    /// fragments without sorting them, so cells that an older library sorted by other rules stay out of order.
    ///
    /// # Errors
    /// As [`ArrayFolder::outline`].
    pub(crate) fn sorting_version(&self, fragment: usize) -> Result<u32> {
        let own = self.outline(fragment)?.facts.version;
        let is_consolidated =
            self.folder.fragment(self.number(fragment)).is_some_and(|entry| entry.times.t1 != entry.times.t2);
        match self.folder.directory().schemas() {
            [first, _, ..] if is_consolidated => {
                // Of a schema that cannot be read, nothing is known.
                Ok(self.folder.schema(&first.name).map_or(0, |schema| schema.version.min(own)))
            }
            _ => Ok(own),
        }
    }

    /// Reads the footers of all visible fragments in batches, for callers that need all of them.
    pub fn read_outlines(&self) {
        self.folder.read_outlines(&self.fragments);
    }

    /// Returns the tiles of one file of an attribute (by its number in this array's schema) in a visible fragment.
    ///
    /// # Errors
    /// As [`ArrayFolder::tiles`]; [`Error::Unsupported`] if the fragment has the attribute with another cell size,
    /// which happens when an attribute was dropped and added again.
    pub(crate) fn attribute_tiles(&self, fragment: usize, attribute: usize, file: FieldFile) -> Result<Arc<Tiles>> {
        let field = FragmentField::Attribute(self.own_attribute(fragment, attribute)?);
        self.folder.tiles(self.number(fragment), field, file).in_field(&self.schema.attributes[attribute].name)
    }

    /// Returns the tiles of a variable-size attribute (by its number in this array's schema) in a visible fragment.
    ///
    /// # Errors
    /// As [`OpenedArray::attribute_tiles`].
    pub(crate) fn attribute_var_tiles(&self, fragment: usize, attribute: usize) -> Result<VarTiles> {
        let field = FragmentField::Attribute(self.own_attribute(fragment, attribute)?);
        let wanted = &self.schema.attributes[attribute];
        self.folder.var_tiles(self.number(fragment), field, wanted.datatype.size()).in_field(&wanted.name)
    }

    /// Returns whether a fragment has values of an attribute. It has none if its schema lacks the attribute, or if the
    /// attribute has a variable size in only one of the two schemas.
    ///
    /// # Errors
    /// If the fragment's schema cannot be read.
    pub fn has_attribute(&self, fragment: usize, attribute: usize) -> Result<bool> {
        let outline = self.outline(fragment)?;
        let wanted = &self.schema.attributes[attribute];
        let own = outline.schema.attribute_named(&wanted.name).and_then(|number| outline.schema.attributes.get(number));
        Ok(own.is_some_and(|own| own.is_variable() == wanted.is_variable()))
    }

    /// Returns the least and the greatest integer, date or time of an attribute in the visible fragments, according to
    /// their statistics, without nulls. `None` if the statistics do not show it: before format version 12, for other
    /// types and for cells of several values, and for more than 256 fragments.
    ///
    /// # Errors
    /// Any damage in the footers or statistics.
    pub fn integer_extremes(&self, attribute: usize) -> Result<Option<(i128, i128)>> {
        let Some(wanted) = self.schema.attributes.get(attribute) else { return Ok(None) };
        if self.fragment_count() > MAX_FRAGMENTS_FOR_EXTREMES {
            return Ok(None);
        }
        let mut found: Option<(i128, i128)> = None;
        for fragment in 0..self.fragment_count() {
            if !self.has_attribute(fragment, attribute)? {
                continue;
            }
            let number = self.own_attribute(fragment, attribute)?;
            if self.outline(fragment)?.schema.attributes[number].filters.is_lossy() {
                return Ok(None);
            }
            let extremes = self.folder.extremes(self.number(fragment)).in_array(self.path())?;
            let slot = self.outline(fragment)?.facts.slot(FragmentField::Attribute(number));
            let extremes = extremes.as_ref().and_then(|extremes| extremes.get(slot?));
            let integer = |value: &[u8]| match Scalar::parse(wanted.datatype, value) {
                Ok(Scalar::Signed(value)) => Some(i128::from(value)),
                Ok(Scalar::Unsigned(value)) => Some(i128::from(value)),
                _ => None,
            };
            let ends = extremes.and_then(|own| integer(&own.least).zip(integer(&own.greatest)));
            let Some((least, greatest)) = ends.filter(|(least, greatest)| least <= greatest) else { return Ok(None) };
            found = Some(found.map_or((least, greatest), |(low, high)| (low.min(least), high.max(greatest))));
        }
        Ok(found)
    }

    /// Returns the least and the greatest value of an attribute in a tile of a visible fragment, as recorded in its
    /// metadata: little-endian bytes, without nulls. `None` if there is no record for this type.
    ///
    /// # Errors
    /// Any damage in the footer or in these records.
    pub(crate) fn tile_extremes(
        &self,
        fragment: usize,
        attribute: usize,
        tile: u64,
    ) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        if !self.has_attribute(fragment, attribute)? {
            return Ok(None);
        }
        let number = self.own_attribute(fragment, attribute)?;
        let outline = self.outline(fragment)?;
        let own = &outline.schema.attributes[number];
        // The recorded values are those before the filters; a lossy filter may have changed them.
        if own.datatype != self.schema.attributes[attribute].datatype || own.filters.is_lossy() {
            return Ok(None);
        }
        let bounds = self.folder.tile_extremes(self.number(fragment), number, own.cell_size());
        let bounds = bounds.in_array(self.path())?;
        let (least, most) = match bounds.as_ref() {
            Some(bounds) => bounds,
            None => return Ok(None),
        };
        Ok(least.get(tile).zip(most.get(tile)).map(|(least, most)| (least.to_vec(), most.to_vec())))
    }

    /// Returns a number that the metadata of a visible fragment record for an attribute in a tile. `None` if there is no
    /// record.
    ///
    /// # Errors
    /// Any damage in the footer or in these records.
    pub(crate) fn tile_statistic(
        &self,
        fragment: usize,
        attribute: usize,
        tile: u64,
        statistic: TileStatistic,
    ) -> Result<Option<u64>> {
        if !self.has_attribute(fragment, attribute)? {
            return Ok(None);
        }
        let number = self.own_attribute(fragment, attribute)?;
        let numbers = self.folder.tile_statistic(self.number(fragment), number, statistic).in_array(self.path())?;
        numbers.as_ref().as_ref().map_or(Ok(None), |numbers| numbers.get(tile)).in_array(self.path())
    }

    /// Returns the number of an attribute in the schema of a fragment that has it.
    pub(super) fn own_attribute(&self, fragment: usize, attribute: usize) -> Result<usize> {
        let outline = self.outline(fragment)?;
        let wanted = &self.schema.attributes[attribute];
        let attributes = &outline.schema.attributes;
        let number = outline.schema.attribute_named(&wanted.name);
        let Some((number, own)) = number.and_then(|number| Some((number, attributes.get(number)?))) else {
            return Err(Error::damaged("the fragment lacks the attribute").in_field(&wanted.name));
        };
        // If the sizes are equal, the stored bytes are shown with the attribute's current type, as libtiledb does.
        let same = own.nullable == wanted.nullable
            && own.cell_size() == wanted.cell_size()
            && own.datatype.size() == wanted.datatype.size();
        if !same {
            return Err(Error::unsupported(format!(
                "the attribute was {} when this fragment was written and is {} now",
                own.datatype.name(),
                wanted.datatype.name()
            ))
            .in_field(&wanted.name));
        }
        Ok(number)
    }
}
