//! The metadata and data files of one fragment: footers, tile offsets and filter pipelines, which are read when a tile
//! is first requested and then cached.

use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::datatype::Datatype;
use tilefs_format::filter::{Decoder, TileContext};
use tilefs_format::fragment::sections::TileExtremes;
use tilefs_format::fragment::{
    EarlyField, EarlyFragment, FRAGMENT_METADATA, FieldFiles, FieldRecord, FragmentField, FragmentFooter, RTree,
    footer_range, schema_name, sections,
};
use tilefs_format::pipeline::Pipeline;
use tilefs_format::schema::{ArraySchema, CellValNum, Dimension, FIRST_SCHEMA};
use tilefs_storage::StoreKey;

use super::context::{IndexKey, TileStatistic};
use super::folder::ArrayFolder;
use super::folder::outline::FieldFile;
use super::folder::outline::{MetadataEnd, Outline};
use super::folder::sorted_file::SortedFile;
use super::metadata_tiles::generic_tile::{
    StoredList, decode_inline_tile_of, open_section, read_generic_tile, read_generic_tile_of, read_header,
};
use super::metadata_tiles::tile_boxes::{TileBoxes, TreeBytes, memory_of_boxes, read_boxes};
use super::metadata_tiles::tile_numbers::TileNumbers;
use super::order::wrong_tiles::{Placement, WRONG_TILES, placement};
use super::tiles::Tiles;
use super::tiles::tile_file::TileFile;

/// Up to this format version, libraries filtered the coordinate files that they added to arrays older than version 5
/// with the schema's coordinate pipeline; later versions do not filter them.
const COORDS_PIPELINE_UNTIL: u32 = 19;

/// The records of all fields in a fragment's metadata.
enum Records {
    Early(EarlyFragment),
    Footer(FragmentFooter),
}

/// The least and the greatest values of each tile of a file, if they are recorded.
pub type TileBounds = Option<(TileExtremes, TileExtremes)>;

/// The record of one file in a fragment's metadata.
struct StoredTileOffsets {
    size: u64,
    offsets: TileNumbers,
}

/// Bytes at the end of the metadata file that are read at once. They hold the footer of a fragment with a few
/// attributes, and the sections of a fragment with a few tiles.
const END_BYTES: usize = 4096;

/// The same in storage with high latency, where a larger read costs less than another request.
const REMOTE_END_BYTES: usize = 64 << 10;

/// Usual bytes of an R-tree per tile and dimension: two bounds of 64 bits, and as much again for the levels above.
const MBR_BYTES: u64 = 32;

/// An R-tree or a list of numbers may decode to this many bytes if the fragment has enough tiles, no matter how few
/// bytes are stored.
const MAX_LIST_BYTES: u64 = 4 << 30;

impl ArrayFolder {
    /// Reads the facts in a fragment's metadata that are kept in memory.
    pub(super) fn read_outline(&self, fragment: usize) -> Result<Outline> {
        let (records, schema) = self.read_records(fragment)?;
        let facts = match records {
            Records::Early(early) => early.facts,
            Records::Footer(footer) => footer.facts,
        };
        Ok(Outline { facts, schema })
    }

    /// Returns the end of a fragment's metadata file: at least `least` bytes, or the whole file if it is shorter.
    fn metadata_end(&self, fragment: usize, path: &StoreKey, least: usize) -> Result<Arc<MetadataEnd>> {
        if let Some(end) = self.ends().get(&fragment).filter(|end| end.start == 0 || end.bytes.len() >= least) {
            return Ok(end.clone());
        }
        let usual = if self.context.storage.is_remote(path) { REMOTE_END_BYTES } else { END_BYTES };
        let (bytes, size) = self.context.storage.read_end(path, usual.max(least))?;
        let end = Arc::new(MetadataEnd { start: size.saturating_sub(bytes.len() as u64), bytes });
        if end.bytes.len() <= usual {
            self.ends().put(fragment, end.clone());
        }
        Ok(end)
    }

    /// Reads a fragment's metadata; for version 3 and later, only the footer.
    fn read_records(&self, fragment: usize) -> Result<(Records, Arc<ArraySchema>)> {
        let read = self.read_records_once(fragment);
        if read.is_err() {
            // The file may have been cut short, and whole the next time.
            self.ends().pop(&fragment);
        }
        read
    }

    fn read_records_once(&self, fragment: usize) -> Result<(Records, Arc<ArraySchema>)> {
        let Some(entry) = self.fragment(fragment) else {
            return Err(Error::internal(format!("no fragment number {fragment}")));
        };
        let folder = self.directory().folder_of(entry);
        let path = folder.join(FRAGMENT_METADATA);
        let storage = &*self.context.storage;
        if entry.times.version < 3 {
            let schema = self.schema(FIRST_SCHEMA)?;
            let names = self.directory().names(storage, &entry.path)?;
            let has_coordinates = names.iter().any(|one| one.name == "__coords.tdb");
            let payload = read_generic_tile(&self.context, &path, 0)?;
            let early = EarlyFragment::parse(&payload, has_coordinates, &schema).in_file(&path)?;
            return Ok((Records::Early(early), schema));
        }
        let end = self.metadata_end(fragment, &path, 0)?;
        let size = end.start + end.bytes.len() as u64;
        let last_8 = end.bytes.last_chunk().copied().unwrap_or_default();
        // Before version 10 an array had only one schema, which determines the length of the footer.
        let first_schema = if entry.times.version < 10 { Some(self.schema(FIRST_SCHEMA)?) } else { None };
        let range = footer_range(entry.times.version, first_schema.as_deref(), size, last_8).in_file(&path)?;
        // A footer with many attributes is longer than the bytes read so far.
        let end = self.metadata_end(fragment, &path, (size - range.start) as usize)?;
        let footer = end.behind(range.start).and_then(|footer| footer.get(..(range.end - range.start) as usize));
        let footer = footer.ok_or_else(|| Error::damaged("the file changes while it is read").in_file(&path))?;
        let schema = self.schema(schema_name(footer).in_file(&path)?)?;
        let footer = FragmentFooter::parse(footer, entry.times.version, &schema)
            .in_file(&path)
            .locate(|place| place.offset = place.offset.map(|offset| offset + range.start))?;
        Ok((Records::Footer(footer), schema))
    }

    fn records(&self, fragment: usize) -> Result<Arc<Records>> {
        let key = IndexKey::Records(self.first_file(fragment));
        self.context.indexes.get_or_load(key, || {
            let (records, _) = self.read_records(fragment)?;
            // The outline may come from a copy of the footer.
            let is_same = match &records {
                Records::Early(early) => early.facts == self.outline(fragment)?.facts,
                Records::Footer(footer) => footer.facts == self.outline(fragment)?.facts,
            };
            if !is_same {
                let reason = "the footer differs from its copy in the consolidated fragment metadata";
                return Err(Error::damaged(reason).in_file(FRAGMENT_METADATA));
            }
            let weight = match &records {
                Records::Early(early) => {
                    let lists = early.fields.iter().map(|field| {
                        field.tile_offsets.capacity() + field.var_offsets.capacity() + field.var_sizes.capacity()
                    });
                    early.mbrs.layout.memory() + early.mbrs.bytes.len() + 8 * lists.sum::<usize>()
                }
                Records::Footer(footer) => size_of_val(&*footer.records),
            };
            Ok((records, weight))
        })
    }

    /// Returns the tiles of one file. `field` numbers attributes and dimensions as in the fragment's own schema.
    ///
    /// # Errors
    /// Any damage in the metadata of this file, [`Error::Unsupported`] for its filters.
    pub fn tiles(&self, fragment: usize, field: FragmentField, file: FieldFile) -> Result<Arc<Tiles>> {
        let outline = self.outline(fragment)?;
        let number = self.file_number(fragment, &outline, field, file)?;
        self.context.indexes.get_or_load(IndexKey::Tiles(number), || {
            let stored = self.tile_file(fragment, &outline, field, file)?;
            let sorted = SortedFile::of(&outline, field, file);
            let decoder = match sorted {
                Some(SortedFile::Coordinates { .. }) => Decoder::unfiltered(),
                _ => self.decoder(fragment, &outline, field, file).in_file(file_name(&outline, field, file)?)?,
            };
            let mut tiles = Tiles::new(&self.context, stored, decoder, outline.facts.tiles_of_a_row(&outline.schema));
            if let Some(sorted) = sorted {
                tiles = tiles.sorted(sorted, self.sorted_cells(fragment, &outline)?);
            }
            let weight = tiles.memory();
            Ok((tiles, weight))
        })
    }

    /// Returns one file of a fragment, as it is stored.
    pub(super) fn tile_file(
        &self,
        fragment: usize,
        outline: &Outline,
        field: FragmentField,
        file: FieldFile,
    ) -> Result<TileFile> {
        let number = self.file_number(fragment, outline, field, file)?;
        let record = self.file_record(fragment, field, file)?;
        let path = self.fragment_file(fragment, &file_name(outline, field, file)?);
        TileFile::new(&self.context, number, path, record.offsets, record.size)
    }

    /// Returns the decoded size of each tile of a variable-size field, in bytes.
    ///
    /// # Errors
    /// Any damage in that section of the metadata.
    pub fn var_sizes(&self, fragment: usize, field: FragmentField) -> Result<Arc<TileNumbers>> {
        let outline = self.outline(fragment)?;
        let number = self.file_number(fragment, &outline, field, FieldFile::Var)?;
        self.context.indexes.get_or_load(IndexKey::VarSizes(number), || {
            let tiles = self.tile_count(fragment, &outline)?;
            let sizes = match &*self.records(fragment)? {
                Records::Early(early) => {
                    early.field(field).map(|field| field.var_sizes.clone()).unwrap_or_default().into()
                }
                Records::Footer(footer) => {
                    let record = record_of(footer, field)?;
                    let [sizes, offsets] = [record.var_sizes, record.tile_offsets];
                    self.numbers_of_tiles(fragment, &outline.facts, sizes, offsets, tiles).in_field("var sizes")?
                }
            };
            let weight = sizes.memory();
            Ok((sizes, weight))
        })
    }

    /// Returns the boxes of a sparse fragment's tiles, and the boxes of the levels above them.
    ///
    /// # Errors
    /// Any damage in the R-tree, including a box that does not contain the boxes below it, or a number of leaves other
    /// than the number of tiles.
    pub fn mbrs(&self, fragment: usize) -> Result<Arc<TileBoxes>> {
        let outline = self.outline(fragment)?;
        let key = IndexKey::Mbrs(self.first_file(fragment));
        self.context.indexes.get_or_load(key, || {
            let mbrs = match (&*self.records(fragment)?, outline.facts.rtree_offset()) {
                (Records::Early(early), _) => {
                    RTree { layout: early.mbrs.layout.clone(), bytes: TreeBytes::Whole(early.mbrs.bytes.clone()) }
                }
                (Records::Footer(_), Some(offset)) => self.read_rtree(fragment, &outline, offset)?,
                (Records::Footer(_), None) => return Err(Error::damaged("a fragment without an R-tree")),
            };
            if mbrs.tiles() != outline.facts.sparse_tiles {
                let reason = format!("{} boxes for {} tiles", mbrs.tiles(), outline.facts.sparse_tiles);
                let name = self.fragment(fragment).map_or("", |entry| entry.name());
                let error = Error::damaged(reason).in_field("R-tree").in_file(FRAGMENT_METADATA);
                return Err(error.in_fragment(name).in_array(self.path()));
            }
            let weight = memory_of_boxes(&mbrs);
            Ok((mbrs, weight))
        })
    }

    fn read_rtree(&self, fragment: usize, outline: &Outline, offset: u64) -> Result<TileBoxes> {
        let dimensions = outline.schema.dimensions.len() as u64;
        let expected = outline.facts.sparse_tiles.saturating_mul(MBR_BYTES.saturating_mul(dimensions));
        let (version, schema) = (outline.facts.version, &*outline.schema);
        let most = self.context.budget().rtree_level();
        self.with_section(fragment, offset, expected, |section| read_boxes(section, version, schema, most))
            .in_field("R-tree")
    }

    /// Reads a section of a fragment's metadata with one number per tile.
    pub(super) fn numbers(&self, fragment: usize, offset: u64, tiles: u64) -> Result<TileNumbers> {
        self.with_section(fragment, offset, list_bytes(tiles), |section| TileNumbers::read(section, tiles))
    }

    /// Passes a section of a fragment's metadata to `read`; the section may decode to `expected` bytes.
    fn with_section<T>(
        &self,
        fragment: usize,
        offset: u64,
        expected: u64,
        read: impl FnOnce(StoredList<'_>) -> Result<T>,
    ) -> Result<T> {
        let path = self.fragment_file(fragment, FRAGMENT_METADATA);
        let is_here = self.ends().get(&fragment).is_some_and(|end| end.behind(offset).is_some());
        let section = match is_here {
            true => self.section(fragment, offset, expected).map(StoredList::Whole),
            false => open_section(&self.context, &path, offset, expected.min(MAX_LIST_BYTES)),
        };
        let name = self.fragment(fragment).map_or("", |entry| entry.name());
        section
            .and_then(|section| read(section).in_file(FRAGMENT_METADATA).at(offset))
            .in_fragment(name)
            .in_array(self.path())
    }

    /// Returns the delete conditions that a fragment has already applied. The delete condition index of a cell refers
    /// to this list.
    ///
    /// # Errors
    /// Any damage in that section.
    pub(crate) fn processed_conditions(&self, fragment: usize) -> Result<Arc<Vec<String>>> {
        let outline = self.outline(fragment)?;
        let key = IndexKey::Conditions(self.first_file(fragment));
        self.context.indexes.get_or_load(key, || {
            let names = match outline.facts.processed_conditions_offset() {
                Some(offset) => {
                    let payload = self.section(fragment, offset, 0).in_field("processed conditions")?;
                    sections::parse_processed_conditions(&payload).in_file(FRAGMENT_METADATA).at(offset)?
                }
                None => Vec::new(),
            };
            let weight = names.iter().map(|name| name.capacity() + size_of::<String>()).sum();
            Ok((names, weight))
        })
    }

    /// Returns the extremes of all fields of a fragment, by slot; `None` if its format version has none.
    ///
    /// # Errors
    /// Any damage in that section.
    pub fn extremes(&self, fragment: usize) -> Result<Option<Vec<sections::Extremes>>> {
        self.tile_count(fragment, &*self.outline(fragment)?)?;
        let Records::Footer(FragmentFooter { facts, statistics_offset: Some(offset), .. }) =
            &*self.records(fragment)?
        else {
            return Ok(None);
        };
        let payload = self.section(fragment, *offset, 0).in_field("fragment statistics")?;
        let extremes = sections::parse_extremes(&payload, facts.slot_count());
        extremes.map(Some).in_field("fragment statistics").in_file(FRAGMENT_METADATA).at(*offset)
    }

    /// Returns the least and the greatest value of an attribute in each tile of a fragment. Each value has `size`
    /// bytes, or variable size. Returns `None` if the fragment's version or the attribute's type has no such values.
    ///
    /// # Errors
    /// Any damage in those sections.
    pub(crate) fn tile_extremes(
        &self,
        fragment: usize,
        attribute: usize,
        size: Option<usize>,
    ) -> Result<Arc<TileBounds>> {
        let (outline, field) = (self.outline(fragment)?, FragmentField::Attribute(attribute));
        let key = IndexKey::TileExtremes(self.file_number(fragment, &outline, field, FieldFile::Data)?);
        self.context.indexes.get_or_load(key, || {
            let tiles = self.tile_count(fragment, &outline)?;
            let records = self.records(fragment)?;
            let Records::Footer(footer) = &*records else { return Ok((None, size_of::<TileBounds>())) };
            let record = record_of(footer, field)?;
            if record.tile_minima == 0 || record.tile_maxima == 0 {
                return Ok((None, size_of::<TileBounds>()));
            }
            let read = |offset: u64| {
                let expected = tiles.saturating_mul(size.unwrap_or(8) as u64);
                let payload = self.section(fragment, offset, expected).in_field("tile extremes")?;
                TileExtremes::parse(&payload, tiles, size)
                    .in_field("tile extremes")
                    .in_file(FRAGMENT_METADATA)
                    .at(offset)
            };
            let bounds = read(record.tile_minima)?.zip(read(record.tile_maxima)?);
            let weight =
                bounds.as_ref().map_or(size_of::<TileBounds>(), |(least, most)| least.memory() + most.memory());
            Ok((bounds, weight))
        })
    }

    /// Returns a number of an attribute in each tile of a fragment. Returns `None` if the fragment's version or the
    /// attribute's type has no such numbers.
    ///
    /// # Errors
    /// Any damage in that section.
    pub(crate) fn tile_statistic(
        &self,
        fragment: usize,
        attribute: usize,
        statistic: TileStatistic,
    ) -> Result<Arc<Option<TileNumbers>>> {
        let (outline, field) = (self.outline(fragment)?, FragmentField::Attribute(attribute));
        let key = IndexKey::TileStatistic(statistic, self.file_number(fragment, &outline, field, FieldFile::Data)?);
        self.context.indexes.get_or_load(key, || {
            let records = self.records(fragment)?;
            let offset = match (&*records, statistic) {
                (Records::Early(_), _) => 0,
                (Records::Footer(footer), TileStatistic::Sum) => record_of(footer, field)?.tile_sums,
                (Records::Footer(footer), TileStatistic::Nulls) => record_of(footer, field)?.tile_null_counts,
            };
            let tiles = self.tile_count(fragment, &outline)?;
            let read = || self.numbers(fragment, offset, tiles).in_field("tile statistics");
            let numbers = if offset == 0 { None } else { Some(read()?) };
            let weight = size_of::<Option<TileNumbers>>() + numbers.as_ref().map_or(0, TileNumbers::memory);
            Ok((numbers, weight))
        })
    }

    /// Returns the number of tiles of every field of a fragment. Dense fragments of some old releases have extra tiles
    /// after the tiles of their box; the extra tiles hold no cells.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a dense fragment whose writer may have put cells into wrong tiles; [`Error::Damaged`]
    /// if the count does not fit 64 bits; any damage in the metadata that decides a doubtful count.
    pub(super) fn tile_count(&self, fragment: usize, outline: &Outline) -> Result<u64> {
        let (facts, schema) = (&outline.facts, &outline.schema);
        let due = facts.tile_count(schema)?;
        let (true, Some(ranges)) = (facts.dense, facts.non_empty_ranges()) else { return Ok(due) };
        if !WRONG_TILES.contains(&facts.version) {
            return Ok(due);
        }
        let placement = placement(&schema.dimensions, schema.tile_order, &ranges);
        if placement == Placement::Right || !WRONG_TILES.contains(&self.writer_version(fragment)?) {
            return Ok(due);
        }
        match placement {
            // Writes in global order are not split, so they have exactly the tiles of their box.
            Placement::Followed(written) | Placement::Elsewhere(written)
                if written != due && self.has_tiles(fragment, due)? =>
            {
                Ok(due)
            }
            Placement::Followed(written) if self.has_tiles(fragment, written)? => Ok(written),
            _ => {
                let what = "a dense write from coordinate 0 on by libtiledb 2.3 to 2.9, which may have left cells out \
                            where the domain of an INT8 or INT16 dimension begins below 0";
                Err(Error::unsupported(what).in_file(FRAGMENT_METADATA))
            }
        }
    }

    /// Returns whether the first attribute of a fragment has this number of tiles.
    fn has_tiles(&self, fragment: usize, count: u64) -> Result<bool> {
        let records = self.records(fragment)?;
        let Records::Footer(footer) = &*records else { return Ok(false) };
        let record = record_of(footer, FragmentField::Attribute(0))?;
        match self.numbers(fragment, record.tile_offsets, count) {
            Ok(_) => Ok(true),
            Err(Error::Damaged { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the number of a file of a fragment for cache keys. The metadata file has the first number.
    fn file_number(&self, fragment: usize, outline: &Outline, field: FragmentField, file: FieldFile) -> Result<u64> {
        let slot = outline.facts.slot(field).ok_or_else(|| Error::damaged(format!("the fragment has no {field:?}")))?;
        Ok(self.first_file(fragment) + 1 + 3 * slot as u64 + file as u64)
    }

    /// Returns the payload of a section of a fragment's metadata, which may decode to `expected` bytes.
    pub(super) fn section(&self, fragment: usize, offset: u64, expected: u64) -> Result<Vec<u8>> {
        let path = self.fragment_file(fragment, FRAGMENT_METADATA);
        let most = self.context.budget().bytes() as u64;
        let name = self.fragment(fragment).map_or("", |entry| entry.name());
        let end = self.ends().get(&fragment).cloned();
        let payload = match end.as_ref().and_then(|end| end.behind(offset)) {
            Some(bytes) => decode_inline_tile_of(&self.context, bytes, expected.min(most)).in_file(&path).at(offset),
            None => read_generic_tile_of(&self.context, &path, offset, expected.min(most)),
        };
        if payload.is_err() {
            // Read again the next time: the file may have been incomplete.
            self.ends().pop(&fragment);
        }
        payload.in_fragment(name).in_array(self.path())
    }

    /// Returns the recorded size of a file, and the offsets of its tiles, one per tile of the fragment.
    fn file_record(&self, fragment: usize, field: FragmentField, file: FieldFile) -> Result<StoredTileOffsets> {
        let outline = self.outline(fragment)?;
        let tiles = self.tile_count(fragment, &outline)?;
        let records = self.records(fragment)?;
        let (size, offsets, section): (u64, TileNumbers, u64) = match &*records {
            Records::Early(early) => {
                let none = EarlyField::default();
                let record = early.field(field).unwrap_or(&none);
                match file {
                    FieldFile::Data => (record.file_size, record.tile_offsets.clone().into(), 0),
                    FieldFile::Var => (record.var_file_size, record.var_offsets.clone().into(), 0),
                    FieldFile::Validity => (0, Vec::new().into(), 0),
                }
            }
            Records::Footer(footer) => {
                let record = record_of(footer, field)?;
                let (size, section) = match file {
                    FieldFile::Data => (record.file_size, record.tile_offsets),
                    FieldFile::Var => (record.var_file_size, record.var_offsets),
                    FieldFile::Validity => (record.validity_file_size, record.validity_offsets),
                };
                (size, self.numbers_of_tiles(fragment, &outline.facts, section, section, tiles)?, section)
            }
        };
        // Offsets in pages are checked tile by tile, when they are used.
        if let TileNumbers::Listed(offsets) = &offsets {
            sections::check_tile_offsets(offsets, tiles, size).in_file(FRAGMENT_METADATA).at(section)?;
        }
        Ok(StoredTileOffsets { size, offsets })
    }

    /// Returns the decoder of a file: its pipeline, bound to the type and cell size that it filters.
    fn decoder(&self, fragment: usize, outline: &Outline, field: FragmentField, file: FieldFile) -> Result<Decoder> {
        let (pipeline, context) = self.tile_context(fragment, outline, field, file)?;
        Decoder::new(pipeline, &context)
    }

    /// Returns the pipeline of a file and its context.
    pub(super) fn tile_context<'a>(
        &self,
        fragment: usize,
        outline: &'a Outline,
        field: FragmentField,
        file: FieldFile,
    ) -> Result<(&'a Pipeline, TileContext)> {
        let (pipeline, datatype, cell_size) = self.filtering(fragment, outline, field, file)?;
        let (format_version, key) = (outline.facts.version, self.context.key.clone());
        let mut context = TileContext { datatype, cell_size, format_version, writer_version: None, key };
        if Decoder::depends_on_writer(pipeline, &context) {
            context.writer_version = Some(self.writer_version(fragment)?);
        }
        Ok((pipeline, context))
    }

    /// Returns the pipeline of a file, and the type and cell size that it filters.
    pub(super) fn filtering<'a>(
        &self,
        fragment: usize,
        outline: &'a Outline,
        field: FragmentField,
        file: FieldFile,
    ) -> Result<(&'a Pipeline, Datatype, usize)> {
        let schema = &*outline.schema;
        Ok(match (file, field) {
            (FieldFile::Validity, _) => (&schema.validity_filters, Datatype::UInt8, 1),
            (_, FragmentField::Timestamps | FragmentField::DeleteTimestamps | FragmentField::DeleteConditionIndex) => {
                (&schema.coords_filters, Datatype::UInt64, 8)
            }
            (_, FragmentField::Coordinates) => {
                let datatype = schema.dimensions.first().map_or(Datatype::UInt64, |dimension| dimension.datatype);
                (&schema.coords_filters, datatype, datatype.size() * schema.dimensions.len())
            }
            (_, FragmentField::Attribute(number)) => {
                let attribute =
                    schema.attributes.get(number).ok_or_else(|| Error::damaged("no such attribute in the schema"))?;
                match (file, attribute.cell_count) {
                    (FieldFile::Data, CellValNum::Variable) => (&schema.offsets_filters, Datatype::UInt64, 8),
                    _ => {
                        let size = attribute.cell_size().unwrap_or(attribute.datatype.size());
                        (&attribute.filters, attribute.datatype, size)
                    }
                }
            }
            (_, FragmentField::Dimension(number)) => {
                let dimension =
                    schema.dimensions.get(number).ok_or_else(|| Error::damaged("no such dimension in the schema"))?;
                match (file, dimension.cell_count) {
                    (FieldFile::Data, CellValNum::Variable) => (&schema.offsets_filters, Datatype::UInt64, 8),
                    _ => (
                        self.dimension_pipeline(fragment, schema, dimension)?,
                        dimension.datatype,
                        dimension.datatype.size(),
                    ),
                }
            }
        })
    }

    /// Returns the format version of the library that wrote a fragment, which may be newer than the fragment's.
    fn writer_version(&self, fragment: usize) -> Result<u32> {
        let path = self.fragment_file(fragment, FRAGMENT_METADATA);
        Ok(read_header(&*self.context.storage, &path, 0)?.version)
    }

    /// Returns the pipeline of a dimension. A dimension without its own filters has the coordinate pipeline, except in
    /// fragments that releases since 2.17 added to arrays whose schema is older than version 5.
    fn dimension_pipeline<'a>(
        &self,
        fragment: usize,
        schema: &'a ArraySchema,
        dimension: &'a Dimension,
    ) -> Result<&'a Pipeline> {
        let own = &dimension.filters;
        if own.filters.is_empty() && schema.version < 5 && self.writer_version(fragment)? > COORDS_PIPELINE_UNTIL {
            return Ok(own);
        }
        Ok(schema.coordinate_filters(dimension))
    }
}

/// Returns the bytes of a list with one number per tile. Equal numbers compress a thousandfold.
pub(super) fn list_bytes(tiles: u64) -> u64 {
    tiles.saturating_add(1).saturating_mul(8)
}

/// Returns the name of a file of a field.
fn file_name(outline: &Outline, field: FragmentField, file: FieldFile) -> Result<String> {
    let files = FieldFiles::of(field, outline.facts.version, &outline.schema)?;
    Ok(match file {
        FieldFile::Data => files.data(),
        FieldFile::Var => files.var(),
        FieldFile::Validity => files.validity(),
    })
}

fn record_of(footer: &FragmentFooter, field: FragmentField) -> Result<FieldRecord> {
    footer.record(field).copied().ok_or_else(|| Error::damaged(format!("the fragment has no {field:?}")))
}
