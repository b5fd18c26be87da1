//! The stored bytes of a cell's values: the file, the tile and the chunks that hold them, the filters to undo, and the
//! bytes that a read of this cell fetches.

use std::iter;
use std::ops::Range;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::memory;
use tilefs_format::fragment::FragmentField;
use tilefs_format::pipeline::Pipeline;
use tilefs_storage::StoreKey;

use super::place::CellPlace;
use crate::array::folder::outline::FieldFile;
use crate::array::sparse::select::cells::TileCells;
use crate::array::sparse::select::files::{BytesInTile, FixedFile, field_of_dimension, string_tiles};
use crate::array::tiles::Tiles;
use crate::array::tiles::offsets::OFFSET;
use crate::array::tiles::reader::TileReader;
use crate::array::tiles::unit::TileUnit;
use crate::array::tiles::var_tiles::VarTiles;
use crate::array::{FieldId, OpenedArray};
use crate::read::{Batches, Decoding, Unit as _};

/// The most bytes of a value that are decoded.
const MAX_VALUE: u64 = 64 << 10;

/// The most chunks of a value that are listed.
const MAX_CHUNKS: usize = 64;

/// The part of a value that a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValuePart {
    /// The value itself, or a coordinate.
    Values,
    /// Where the value begins in its tile.
    Offsets,
    /// Whether there is a value.
    Validity,
}

/// Bytes of a file that are read together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedBytes {
    /// The offset in the file.
    pub offset: u64,
    /// The number of bytes.
    pub length: u64,
}

/// A chunk of a tile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkPlace {
    /// Its number in the tile.
    pub number: usize,
    /// The offset in the file of the metadata of its filters, after which its data follow.
    pub offset: u64,
    /// The bytes of this metadata.
    pub metadata: u32,
    /// The bytes of its filtered data.
    pub filtered: u32,
    /// The bytes of the decoded tile that it holds.
    pub decoded: Range<u64>,
}

/// Where a part of a value is stored.
#[derive(Debug)]
pub struct StoredValue {
    /// The part.
    pub part: ValuePart,
    /// The file.
    pub file: StoreKey,
    /// The filters in the order in which the writer applied them.
    pub filters: Pipeline,
    /// The decoded size of the whole tile.
    pub tile_bytes: u64,
    /// The bytes of the value in the decoded tile.
    pub bytes: Range<u64>,
    /// The number of chunks of the tile; 0 if it is stored in another way.
    pub chunk_count: usize,
    /// The chunks with bytes of the value, as far as they are listed.
    pub chunks: Vec<ChunkPlace>,
    /// The bytes that a read of this cell alone fetches.
    pub fetched: Vec<FetchedBytes>,
    /// The first bytes of the value, decoded from these, or why they cannot be.
    pub value: Result<Vec<u8>>,
}

/// Returns where the parts of a field's value are stored, for a cell of a fragment that counts: offsets before values,
/// then the validity. Returns none if the fragment lacks the attribute. What is wrong with the stored bytes is in
/// [`StoredValue::value`].
///
/// # Errors
/// If the fragment does not count; any damage in the metadata that locate the value.
pub fn stored_values(array: &OpenedArray, field: FieldId, place: &CellPlace) -> Result<Vec<StoredValue>> {
    let visible = array.fragments.iter().position(|number| *number == place.fragment);
    let visible = visible.ok_or_else(|| Error::internal("a fragment that does not count"))?;
    let cells = TileCells { tile: place.tile, in_tile: place.in_tile, first: place.cell, count: 1 };
    let value = StoredCell { array, visible, cells };
    let found = match field {
        FieldId::Attribute(number) => value.of_attribute(number),
        FieldId::Dimension(number) => value.of_dimension(number),
    };
    found.in_fragment(array.fragment_name(visible)).in_array(array.path())
}

/// A cell of a fragment that counts.
struct StoredCell<'a> {
    array: &'a OpenedArray,
    /// The number of the fragment among those that count.
    visible: usize,
    cells: TileCells,
}

impl StoredCell<'_> {
    fn of_attribute(&self, number: usize) -> Result<Vec<StoredValue>> {
        let array = self.array;
        if !array.has_attribute(self.visible, number)? {
            return Ok(Vec::new());
        }
        let attribute = array.schema().attributes.get(number).ok_or_else(|| Error::internal("no such attribute"))?;
        let field = FragmentField::Attribute(array.own_attribute(self.visible, number)?);
        let open = |file, fill: &[u8]| FixedFile::of_attribute(array, self.visible, number, file, fill);
        let mut found = match attribute.is_variable() {
            true => self.variable(&array.attribute_var_tiles(self.visible, number)?, field)?,
            false => {
                let file = open(FieldFile::Data, &attribute.fill)?;
                self.fixed(&file, field, FieldFile::Data, ValuePart::Values)?.into_iter().collect()
            }
        };
        if attribute.nullable {
            let file = open(FieldFile::Validity, &[attribute.fill_validity])?;
            found.extend(self.fixed(&file, field, FieldFile::Validity, ValuePart::Validity)?);
        }
        Ok(found)
    }

    fn of_dimension(&self, number: usize) -> Result<Vec<StoredValue>> {
        let dimensions = &self.array.schema().dimensions;
        let dimension = dimensions.get(number).ok_or_else(|| Error::internal("no such dimension"))?;
        let outline = self.array.outline(self.visible)?;
        let field = field_of_dimension(&outline, number);
        if dimension.is_variable() {
            return self.variable(&string_tiles(self.array, self.visible, number)?, field);
        }
        let file = FixedFile::of_dimension(self.array, self.visible, number)?;
        Ok(self.fixed(&file, field, FieldFile::Data, ValuePart::Values)?.into_iter().collect())
    }

    /// Returns where a value of a fixed size is stored.
    fn fixed(
        &self,
        file: &FixedFile,
        field: FragmentField,
        kind: FieldFile,
        part: ValuePart,
    ) -> Result<Option<StoredValue>> {
        let Some(BytesInTile { tiles, tile_bytes, bytes }) = file.bytes_of(self.cells)? else { return Ok(None) };
        let mut units = Vec::new();
        let planned = file.units(&[self.cells], &mut units);
        let value = planned.and_then(|()| self.decode(&units, &bytes));
        let fetched = self.fetched(&tiles, &units)?;
        Ok(Some(self.value_in(part, &tiles, (field, kind), (tile_bytes, bytes), fetched, value)?))
    }

    /// Returns where a value of variable size is stored: its offset, unless that is among the values, and the value.
    fn variable(&self, tiles: &VarTiles, field: FragmentField) -> Result<Vec<StoredValue>> {
        let TileCells { tile, in_tile, first, .. } = self.cells;
        let (offset_tiles, value_tiles) = tiles.files();
        let is_folded = offset_tiles.file.has_no_chunks(tile)?;
        let (mut units, mut ends) = (Vec::new(), [0; 2]);
        let planned = tiles.plan_offsets(tile, in_tile, iter::once(self.cells.range()), &mut units);
        let read = planned.and_then(|mut reader| {
            reader.read(&mut self.batches(&units), first, &mut ends)?;
            Ok(ends[0]..ends[1])
        });
        let mut found = Vec::new();
        if !is_folded {
            let bytes = first.saturating_mul(OFFSET)..first.saturating_add(1).saturating_mul(OFFSET);
            let value = read.as_ref().map(|bytes| bytes.start.to_le_bytes().to_vec()).map_err(Error::clone);
            let (size, fetched) = (in_tile.saturating_mul(OFFSET), self.fetched(offset_tiles, &units)?);
            let file = (field, FieldFile::Data);
            found.push(self.value_in(ValuePart::Offsets, offset_tiles, file, (size, bytes), fetched, value)?);
        }
        let bytes = match (read, is_folded) {
            (Ok(bytes), _) => bytes,
            (Err(_), false) => return Ok(found),
            (Err(error), true) => return Err(error),
        };
        let mut units = Vec::new();
        let planned = tiles.value_units(tile, in_tile, bytes.clone(), &mut units);
        let value = planned.and_then(|()| self.decode(&units, &bytes));
        let fetched = if bytes.is_empty() && !is_folded { Vec::new() } else { self.fetched(value_tiles, &units)? };
        let (size, file) = (tiles.size(tile)?, (field, FieldFile::Var));
        found.push(self.value_in(ValuePart::Values, value_tiles, file, (size, bytes), fetched, value)?);
        Ok(found)
    }

    fn batches<'u>(&'u self, units: &'u [TileUnit]) -> Batches<'u, TileUnit> {
        Batches::new(&self.array.context().fetcher, units, Decoding::OnThisThread)
    }

    /// Decodes the first bytes of a value from the units of its tile.
    fn decode(&self, units: &[TileUnit], bytes: &Range<u64>) -> Result<Vec<u8>> {
        let length = bytes.end.saturating_sub(bytes.start).min(MAX_VALUE);
        let mut out = memory::zeros(length, 1, "a value")?;
        TileReader::new(0..units.len()).copy(&mut self.batches(units), bytes.start, &mut out)?;
        Ok(out)
    }

    /// Returns the stored bytes of units that are in a file; those of the tile if it is too large for memory, so that no
    /// unit is planned.
    fn fetched(&self, tiles: &Tiles, units: &[TileUnit]) -> Result<Vec<FetchedBytes>> {
        let mut fetched = Vec::new();
        for unit in units.iter().take(MAX_CHUNKS) {
            unit.for_each_stored(&mut |range| {
                if range.file == tiles.file.path() {
                    fetched.push(FetchedBytes { offset: range.offset, length: range.length });
                }
            })?;
        }
        if units.is_empty() {
            let (offset, length) = tiles.file.stored_range(self.cells.tile).in_file(tiles.file.path())?;
            fetched.push(FetchedBytes { offset, length });
        }
        Ok(fetched)
    }

    /// Returns the place of a part of the value: bytes of a tile of some size in a file of a field.
    fn value_in(
        &self,
        part: ValuePart,
        tiles: &Tiles,
        (field, kind): (FragmentField, FieldFile),
        (tile_bytes, bytes): (u64, Range<u64>),
        fetched: Vec<FetchedBytes>,
        value: Result<Vec<u8>>,
    ) -> Result<StoredValue> {
        let array = self.array;
        let outline = array.outline(self.visible)?;
        let (filters, ..) = array.folder().filtering(array.number(self.visible), &outline, field, kind)?;
        let (file, filters) = (tiles.file.path().clone(), filters.clone());
        let (chunk_count, chunks) = match tiles.has_chunks_of_cells() {
            // Damage in the headers of chunks is also met by whoever decodes the value.
            true => chunks_with(tiles, self.cells.tile, tile_bytes, &bytes).unwrap_or_default(),
            false => Default::default(),
        };
        Ok(StoredValue { part, file, filters, tile_bytes, bytes, chunk_count, chunks, fetched, value })
    }
}

/// Returns the number of chunks of a tile, and those with some bytes of it.
fn chunks_with(tiles: &Tiles, tile: u64, size: u64, bytes: &Range<u64>) -> Result<(usize, Vec<ChunkPlace>)> {
    let index = tiles.file.chunk_index(tile, size)?;
    let placed = index.chunks.iter().enumerate().map(|(number, chunk)| ChunkPlace {
        number,
        offset: chunk.offset,
        metadata: chunk.header.metadata,
        filtered: chunk.header.filtered,
        decoded: chunk.start..chunk.start.saturating_add(chunk.header.original.into()),
    });
    let holding = placed.filter(|chunk| chunk.decoded.start < bytes.end && bytes.start < chunk.decoded.end);
    Ok((index.chunks.len(), holding.take(MAX_CHUNKS).collect()))
}
