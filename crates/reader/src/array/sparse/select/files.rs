//! The files of one fragment that hold a column: cells of a fixed size, or cells of variable size.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::memory;
use tilefs_format::fragment::{FieldFiles, FragmentField};
use tilefs_format::pipeline::Filter;
use tilefs_format::scalar::Scalar;
use tilefs_storage::StoreKey;

use super::cells::TileCells;
use crate::array::OpenedArray;
use crate::array::folder::outline::{FieldFile, Outline};
use crate::array::order::key::AxisColumn;
use crate::array::tiles::Tiles;
use crate::array::tiles::reader::{TileReader, add_pieces};
use crate::array::tiles::unit::{TileUnit, drop_untouched};
use crate::array::tiles::value_plan::{ValueCopy, ValuePlan};
use crate::array::tiles::var_tiles::{OffsetReader, VarTiles};
use crate::read::{Batches, Decoding, Fetcher, UnitCopy};

/// Returns the coordinates along each dimension of the cells of one tile of a sparse fragment.
///
/// # Errors
/// Any damage in the tile; [`Error::Unsupported`] for string dimensions.
pub fn coordinates_of_tile(array: &OpenedArray, fragment: usize, tile: u64, cells: u64) -> Result<Vec<Vec<Scalar>>> {
    let outline = array.outline(fragment)?;
    let all = TileCells { tile, in_tile: cells, first: 0, count: cells };
    let mut axes = Vec::with_capacity(outline.schema.dimensions.len());
    for (number, dimension) in outline.schema.dimensions.iter().enumerate() {
        if dimension.is_variable() {
            return Err(Error::unsupported("coordinates of text here").in_field(&dimension.name));
        }
        let size = dimension.datatype.size();
        let file = FixedFile::of_dimension(array, fragment, number)?;
        let mut bytes = memory::zeros(cells, size, "the coordinates of a tile")?;
        file.read(all, &mut bytes)?;
        axes.push(bytes.chunks_exact(size).map(|one| Scalar::parse(dimension.datatype, one)).collect::<Result<_>>()?);
    }
    Ok(axes)
}

/// One fixed-size column's cells in a fragment.
pub enum FixedFile {
    /// A file of its own.
    Own { tiles: Arc<Tiles>, cell_size: usize },
    /// Coordinates along one of the dimensions that share a file, as before format version 5.
    Zipped {
        tiles: Arc<Tiles>,
        cell_size: usize,
        dimension: usize,
        dimensions: usize,
        /// Whether the file stores coordinates cell by cell; otherwise, within each tile, dimension by dimension.
        interleaved: bool,
    },
    /// The fragment lacks the field: every cell has this value.
    Fill(Vec<u8>),
}

/// Where a cell's bytes are in its decoded tile.
pub struct BytesInTile {
    pub tiles: Arc<Tiles>,
    /// The decoded size of the tile.
    pub tile_bytes: u64,
    pub bytes: Range<u64>,
}

/// The first format version in which every dimension has files of its own.
const SPLIT_COORDINATES_SINCE: u32 = 5;

/// Returns the field of a fragment that has the coordinates along a dimension.
pub fn field_of_dimension(outline: &Outline, dimension: usize) -> FragmentField {
    match outline.facts.version >= SPLIT_COORDINATES_SINCE {
        true => FragmentField::Dimension(dimension),
        false => FragmentField::Coordinates,
    }
}

impl FixedFile {
    /// Opens the coordinates along a dimension in a visible fragment.
    ///
    /// # Errors
    /// Any damage in the file's metadata.
    pub fn of_dimension(array: &OpenedArray, fragment: usize, dimension: usize) -> Result<Self> {
        let outline = array.outline(fragment)?;
        let number = array.number(fragment);
        let own = outline.schema.dimensions.get(dimension);
        let own = own.ok_or_else(|| Error::damaged(format!("the fragment has no dimension {dimension}")))?;
        let cell_size = own.datatype.size();
        if outline.facts.version >= SPLIT_COORDINATES_SINCE {
            let tiles = array
                .folder()
                .tiles(number, FragmentField::Dimension(dimension), FieldFile::Data)
                .in_field(&own.name)?;
            return Ok(FixedFile::Own { tiles, cell_size });
        }
        let tiles = array.folder().tiles(number, FragmentField::Coordinates, FieldFile::Data)?;
        // Version 1 split the coordinates only if a compressor followed.
        let interleaved =
            outline.facts.version == 1 && !outline.schema.coords_filters.filters.iter().any(Filter::is_compressor);
        let dimensions = outline.schema.dimensions.len();
        Ok(FixedFile::Zipped { tiles, cell_size, dimension, dimensions, interleaved })
    }

    /// Returns the name of the file of the coordinates along a dimension in a visible fragment.
    ///
    /// # Errors
    /// Any damage in the fragment's metadata.
    pub fn name_of_dimension(array: &OpenedArray, fragment: usize, dimension: usize) -> Result<String> {
        let outline = array.outline(fragment)?;
        Ok(FieldFiles::of(field_of_dimension(&outline, dimension), outline.facts.version, &outline.schema)?.data())
    }

    /// Opens the cells of an attribute (given its number in the array's schema) or their validity. If the fragment
    /// lacks the attribute, every cell is `fill`.
    ///
    /// # Errors
    /// As [`OpenedArray::attribute_tiles`].
    pub fn of_attribute(
        array: &OpenedArray,
        fragment: usize,
        attribute: usize,
        file: FieldFile,
        fill: &[u8],
    ) -> Result<Self> {
        if !array.has_attribute(fragment, attribute)? {
            return Ok(FixedFile::Fill(fill.to_vec()));
        }
        let tiles = array.attribute_tiles(fragment, attribute, file)?;
        Ok(FixedFile::Own { tiles, cell_size: fill.len() })
    }

    /// Opens one of the fields that hold times or the numbers of delete conditions.
    ///
    /// # Errors
    /// Any damage in the file's metadata.
    pub fn of_marks(array: &OpenedArray, fragment: usize, field: FragmentField) -> Result<Self> {
        let tiles = array.folder().tiles(array.number(fragment), field, FieldFile::Data)?;
        Ok(FixedFile::Own { tiles, cell_size: size_of::<u64>() })
    }

    /// Returns the path of the file; `None` if the fragment lacks the field.
    pub fn path(&self) -> Option<&StoreKey> {
        match self {
            FixedFile::Fill(_) => None,
            FixedFile::Own { tiles, .. } | FixedFile::Zipped { tiles, .. } => Some(tiles.file.path()),
        }
    }

    /// Reads some cells of a tile into `out`.
    ///
    /// # Errors
    /// Any damage in the data that is needed for them.
    pub fn read(&self, cells: TileCells, out: &mut [u8]) -> Result<()> {
        self.copy(cells, out, |tiles, size, start, out| tiles.read(cells.tile, size, start, out))
    }

    /// Reads some cells of a tile into `out` from their [units](FixedFile::units), which `reader` provides.
    ///
    /// # Errors
    /// Any damage in these units.
    pub fn read_planned(
        &self,
        cells: TileCells,
        reader: &mut TileReader,
        batches: &mut Batches<'_, TileUnit>,
        out: &mut [u8],
    ) -> Result<()> {
        self.copy(cells, out, |_, _, start, out| reader.copy(batches, start, out))
    }

    /// Calls `read` with the tiles, the decoded size of the tile, the offset in it to start at, and the buffer to fill.
    fn copy(
        &self,
        cells: TileCells,
        out: &mut [u8],
        read: impl FnOnce(&Arc<Tiles>, u64, u64, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        match self {
            FixedFile::Fill(fill) => {
                for cell in out.chunks_exact_mut(fill.len().max(1)) {
                    cell.copy_from_slice(fill);
                }
                Ok(())
            }
            FixedFile::Zipped { tiles, cell_size, dimension, dimensions, interleaved: true } => {
                let whole = cell_size * dimensions;
                let mut zipped = memory::zeros(cells.count, whole, "coordinates")?;
                read(tiles, self.tile_size(cells)?, self.start(cells), &mut zipped)?;
                let from = dimension * cell_size;
                for (out, cell) in out.chunks_exact_mut(*cell_size).zip(zipped.chunks_exact(whole)) {
                    out.copy_from_slice(&cell[from..from + cell_size]);
                }
                Ok(())
            }
            FixedFile::Own { tiles, .. } | FixedFile::Zipped { tiles, .. } => {
                read(tiles, self.tile_size(cells)?, self.start(cells), out)
            }
        }
    }

    /// Adds the units that hold some cells of a tile, given in ascending order.
    ///
    /// # Errors
    /// Any damage in the index of the tile's chunks.
    pub fn units(&self, pieces: &[TileCells], units: &mut Vec<TileUnit>) -> Result<()> {
        let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return Ok(()) };
        let (tiles, cell_size) = match self {
            FixedFile::Fill(_) => return Ok(()),
            FixedFile::Zipped { tiles, cell_size, dimensions, interleaved: true, .. } => {
                (tiles, cell_size * dimensions)
            }
            FixedFile::Own { tiles, cell_size } | FixedFile::Zipped { tiles, cell_size, .. } => (tiles, *cell_size),
        };
        let size = self.tile_size(*first)?;
        let bytes = |cells: &TileCells| {
            let start = self.start(*cells);
            start..start + cells.count * cell_size as u64
        };
        let before = units.len();
        tiles.units(first.tile, size, bytes(first).start..bytes(last).end, units)?;
        // The first and the last unit are always needed.
        if units.len() - before > 2 {
            drop_untouched(pieces.iter().map(bytes), before, units);
        }
        Ok(())
    }

    /// Returns whether the cells of a tile are contiguous in it, as they are in a column.
    pub fn is_contiguous(&self) -> bool {
        matches!(self, FixedFile::Own { .. } | FixedFile::Zipped { interleaved: false, .. })
    }

    /// Divides a read of [contiguous](FixedFile::is_contiguous) cells of a tile into the parts of their
    /// [units](FixedFile::units).
    ///
    /// # Errors
    /// [`Error::Internal`] for other units.
    pub fn add_pieces<'u, 'o>(
        &self,
        cells: TileCells,
        units: &'u [TileUnit],
        out: &'o mut [u8],
        pieces: &mut Vec<UnitCopy<'u, 'o, TileUnit>>,
    ) -> Result<()> {
        add_pieces(units, self.start(cells), out, pieces)
    }

    /// Returns where a cell's bytes are in its decoded tile; `None` if the fragment lacks the field.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a tile of more than 2^64 bytes.
    pub fn bytes_of(&self, cell: TileCells) -> Result<Option<BytesInTile>> {
        let (tiles, cell_size, skipped) = match self {
            FixedFile::Fill(_) => return Ok(None),
            FixedFile::Zipped { tiles, cell_size, dimension, interleaved: true, .. } => {
                (tiles, *cell_size as u64, (*dimension * *cell_size) as u64)
            }
            FixedFile::Own { tiles, cell_size } | FixedFile::Zipped { tiles, cell_size, .. } => {
                (tiles, *cell_size as u64, 0)
            }
        };
        let (tiles, tile_bytes, start) = (tiles.clone(), self.tile_size(cell)?, self.start(cell) + skipped);
        Ok(Some(BytesInTile { tiles, tile_bytes, bytes: start..start + cell_size }))
    }

    /// Returns the decoded size of the tile that holds these cells.
    fn tile_size(&self, cells: TileCells) -> Result<u64> {
        let cell_size = match self {
            FixedFile::Own { cell_size, .. } => Some(*cell_size),
            FixedFile::Zipped { cell_size, dimensions, .. } => cell_size.checked_mul(*dimensions),
            FixedFile::Fill(_) => Some(0),
        };
        let size = cell_size.and_then(|cell_size| cells.in_tile.checked_mul(cell_size as u64));
        size.ok_or_else(|| Error::damaged("a tile of more than 2^64 bytes"))
    }

    /// Returns the offset of these cells in the decoded tile. It fits 64 bits, because the size of the whole tile does.
    fn start(&self, cells: TileCells) -> u64 {
        match self {
            FixedFile::Own { cell_size, .. } => cells.first * *cell_size as u64,
            FixedFile::Zipped { cell_size, dimensions, interleaved: true, .. } => {
                cells.first * (cell_size * dimensions) as u64
            }
            FixedFile::Zipped { cell_size, dimension, .. } => {
                (*dimension as u64 * cells.in_tile + cells.first) * *cell_size as u64
            }
            FixedFile::Fill(_) => 0,
        }
    }
}

/// One variable-size column's cells in a fragment.
pub enum VarFile {
    Stored(VarTiles),
    /// The fragment lacks the field: every cell has this value.
    Fill(Vec<u8>),
}

impl VarFile {
    /// Opens the cells of an attribute, given its number in the array's schema. If the fragment lacks the attribute,
    /// every cell is its fill value.
    ///
    /// # Errors
    /// As [`OpenedArray::attribute_var_tiles`].
    pub fn of_attribute(array: &OpenedArray, fragment: usize, attribute: usize) -> Result<Self> {
        if !array.has_attribute(fragment, attribute)? {
            return Ok(VarFile::Fill(array.schema().attributes[attribute].fill.clone()));
        }
        Ok(VarFile::Stored(array.attribute_var_tiles(fragment, attribute)?))
    }

    /// Returns the bytes of all `in_tile` cells of a tile, according to the metadata.
    ///
    /// # Errors
    /// [`Error::Damaged`] if there is no such tile, or its size does not fit 64 bits.
    pub fn tile_size(&self, tile: u64, in_tile: u64) -> Result<u64> {
        match self {
            VarFile::Stored(tiles) => tiles.size(tile),
            VarFile::Fill(fill) => {
                in_tile.checked_mul(fill.len() as u64).ok_or_else(|| Error::damaged("a tile of more than 2^64 bytes"))
            }
        }
    }

    /// Plans a read of the offsets of some cells of one tile, and of the end of each piece; pieces are in ascending
    /// order. Adds the units of the offsets, and returns a reader of the offsets.
    ///
    /// # Errors
    /// As [`VarTiles::plan_offsets`].
    pub fn plan_offsets(&self, pieces: &[TileCells], units: &mut Vec<TileUnit>) -> Result<OffsetReader> {
        // Without cells there is nothing to read.
        let Some(TileCells { tile, in_tile, .. }) = pieces.first() else { return Ok(OffsetReader::Fill(0)) };
        match self {
            VarFile::Stored(tiles) => tiles.plan_offsets(*tile, *in_tile, pieces.iter().map(TileCells::range), units),
            VarFile::Fill(fill) => Ok(OffsetReader::Fill(fill.len() as u64)),
        }
    }
}

/// Returns the tiles of the coordinates along a string dimension in a visible fragment.
///
/// # Errors
/// Any damage in the metadata of the files.
pub fn string_tiles(array: &OpenedArray, fragment: usize, dimension: usize) -> Result<VarTiles> {
    array.folder().var_tiles(array.number(fragment), FragmentField::Dimension(dimension), 1)
}

/// Appends some cells of a tile to a column.
///
/// # Errors
/// Any damage in the data that is needed for them, [`Error::Unsupported`] if they do not fit in memory.
pub fn append_strings(fetcher: &Fetcher, tiles: &VarTiles, cells: TileCells, column: &mut AxisColumn) -> Result<()> {
    let (mut units, mut offsets) = (Vec::new(), vec![0; cells.count as usize + 1]);
    let mut reader = tiles.plan_offsets(cells.tile, cells.in_tile, std::iter::once(cells.range()), &mut units)?;
    reader.read(&mut Batches::new(fetcher, &units, Decoding::OnThisThread), cells.first, &mut offsets)?;
    let (from, to) = (offsets[0], offsets[cells.count as usize]);
    let before = column.bytes.len();
    let length = (to - from) as usize;
    if length > MOST_STRINGS {
        return Err(Error::unsupported(format!("{length} bytes of coordinates in {} cells", cells.count)));
    }
    if length > 0 {
        let mut plan = ValuePlan::default();
        // Before allocating: this fails if the tile has fewer bytes. So far only its claimed size was read.
        plan.add(0, tiles, cells.tile, cells.in_tile, [ValueCopy { from, to: before, length }])?;
        memory::resize(&mut column.bytes, before.saturating_add(length), "the values of a tile")?;
        plan.read(fetcher, &mut column.bytes, |_, result| result)?;
    }
    if column.offsets.is_empty() {
        column.offsets.push(0);
    }
    column.offsets.extend(offsets[1..].iter().map(|offset| offset - from + before as u64));
    Ok(())
}

/// Bytes of the strings of one dimension that are checked together.
const MOST_STRINGS: usize = 1 << 30;
