//! The files of one fragment that hold a column: cells of one size, or cells of any size.

use std::ops::Range;
use std::sync::Arc;

use tilefs_format::error::{Error, Locate, Result};
use tilefs_format::fragment::{Field, FieldFiles};
use tilefs_format::pipeline::Filter;
use tilefs_format::scalar::Scalar;

use crate::memory;

use super::cells::TileCells;
use super::key::AxisColumn;
use crate::array::Array;
use crate::array::fragment::FieldFile;
use crate::array::tiles::{TileReader, TileUnit, Tiles};
use crate::array::var_tiles::{VarReader, VarTiles};
use crate::read::Batches;
use crate::storage::StoreKey;

/// The coordinates along each dimension of the cells of one tile of a sparse fragment.
///
/// # Errors
/// Any damage in the tile; [`Error::Unsupported`] for string dimensions.
pub fn coordinates_of_tile(array: &Array, fragment: usize, tile: u64, cells: u64) -> Result<Vec<Vec<Scalar>>> {
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

/// One column's cells in a fragment, all of one size.
pub enum FixedFile {
    /// A file of nothing else.
    Own { tiles: Arc<Tiles>, cell_size: usize },
    /// Coordinates along one of the dimensions that share a file, as before format version 5.
    Zipped {
        tiles: Arc<Tiles>,
        cell_size: usize,
        dimension: usize,
        dimensions: usize,
        /// Cell by cell rather than, within each tile, dimension by dimension.
        interleaved: bool,
    },
    /// Every cell is this.
    Fill(Vec<u8>),
}

/// Format version since which every dimension has files of its own.
const SPLIT_COORDINATES_SINCE: u32 = 5;

impl FixedFile {
    /// The coordinates along a dimension in a visible fragment.
    ///
    /// # Errors
    /// Any damage in the metadata of the file.
    pub fn of_dimension(array: &Array, fragment: usize, dimension: usize) -> Result<Self> {
        let outline = array.outline(fragment)?;
        let number = array.number(fragment);
        let own = outline.schema.dimensions.get(dimension);
        let own = own.ok_or_else(|| Error::damaged(format!("the fragment has no dimension {dimension}")))?;
        let cell_size = own.datatype.size();
        if outline.facts.version >= SPLIT_COORDINATES_SINCE {
            let tiles =
                array.folder().tiles(number, Field::Dimension(dimension), FieldFile::Data).in_field(&own.name)?;
            return Ok(FixedFile::Own { tiles, cell_size });
        }
        let tiles = array.folder().tiles(number, Field::Coordinates, FieldFile::Data)?;
        // Version 1 split the coordinates only for the sake of a compressor.
        let interleaved =
            outline.facts.version == 1 && !outline.schema.coords_filters.filters.iter().any(Filter::is_compressor);
        let dimensions = outline.schema.dimensions.len();
        Ok(FixedFile::Zipped { tiles, cell_size, dimension, dimensions, interleaved })
    }

    /// The name of the file of the coordinates along a dimension in a visible fragment.
    ///
    /// # Errors
    /// Any damage in the fragment's metadata.
    pub fn name_of_dimension(array: &Array, fragment: usize, dimension: usize) -> Result<String> {
        let outline = array.outline(fragment)?;
        let version = outline.facts.version;
        let field = if version >= SPLIT_COORDINATES_SINCE { Field::Dimension(dimension) } else { Field::Coordinates };
        Ok(FieldFiles::of(field, version, &outline.schema)?.data())
    }

    /// The cells of an attribute (by its number in the array's schema) or their validity, or where the fragment
    /// lacks the attribute, `fill`.
    ///
    /// # Errors
    /// As [`Array::attribute_tiles`].
    pub fn of_attribute(
        array: &Array,
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

    /// One of the fields that count milliseconds or conditions.
    ///
    /// # Errors
    /// Any damage in the metadata of the file.
    pub fn of_marks(array: &Array, fragment: usize, field: Field) -> Result<Self> {
        let tiles = array.folder().tiles(array.number(fragment), field, FieldFile::Data)?;
        Ok(FixedFile::Own { tiles, cell_size: size_of::<u64>() })
    }

    /// Where the cells are stored, if they are.
    pub fn path(&self) -> Option<&StoreKey> {
        match self {
            FixedFile::Fill(_) => None,
            FixedFile::Own { tiles, .. } | FixedFile::Zipped { tiles, .. } => Some(tiles.path()),
        }
    }

    /// Fills `out` with some cells of a tile.
    ///
    /// # Errors
    /// Any damage in what is needed for them.
    pub fn read(&self, cells: TileCells, out: &mut [u8]) -> Result<()> {
        self.copy(cells, out, |tiles, size, start, out| tiles.read(cells.tile, size, start, out))
    }

    /// Fills `out` with some cells of a tile, from their [units](FixedFile::units), which `reader` has.
    ///
    /// # Errors
    /// Any damage in these.
    pub fn read_planned(
        &self,
        cells: TileCells,
        mut reader: TileReader,
        batches: &mut Batches<'_, TileUnit>,
        out: &mut [u8],
    ) -> Result<()> {
        self.copy(cells, out, |_, _, start, out| reader.copy(batches, start, out))
    }

    /// `read` is given the tiles, the decoded size of the tile, where to begin in it, and what to fill.
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

    /// Adds the units that hold some cells of a tile.
    ///
    /// # Errors
    /// Any damage in the index of the tile's chunks.
    pub fn units(&self, cells: TileCells, units: &mut Vec<TileUnit>) -> Result<()> {
        let (tiles, cell_size) = match self {
            FixedFile::Fill(_) => return Ok(()),
            FixedFile::Zipped { tiles, cell_size, dimensions, interleaved: true, .. } => {
                (tiles, cell_size * dimensions)
            }
            FixedFile::Own { tiles, cell_size } | FixedFile::Zipped { tiles, cell_size, .. } => (tiles, *cell_size),
        };
        let start = self.start(cells);
        tiles.units(cells.tile, self.tile_size(cells)?, start..start + cells.count * cell_size as u64, units)
    }

    /// Decoded bytes of the tile that these cells are in.
    fn tile_size(&self, cells: TileCells) -> Result<u64> {
        let cell_size = match self {
            FixedFile::Own { cell_size, .. } => Some(*cell_size),
            FixedFile::Zipped { cell_size, dimensions, .. } => cell_size.checked_mul(*dimensions),
            FixedFile::Fill(_) => Some(0),
        };
        let size = cell_size.and_then(|cell_size| cells.in_tile.checked_mul(cell_size as u64));
        size.ok_or_else(|| Error::damaged("a tile of more than 2^64 bytes"))
    }

    /// Where these cells start in the decoded tile; the whole tile is known to fit 64 bits.
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

/// One column's cells in a fragment, each of its own size.
pub enum VarFile {
    Stored(VarTiles),
    /// Every cell is this.
    Fill(Vec<u8>),
}

impl VarFile {
    /// The coordinates along a string dimension in a visible fragment.
    ///
    /// # Errors
    /// Any damage in the metadata of the files.
    pub fn of_dimension(array: &Array, fragment: usize, dimension: usize) -> Result<Self> {
        let tiles = array.folder().var_tiles(array.number(fragment), Field::Dimension(dimension), 1)?;
        Ok(VarFile::Stored(tiles))
    }

    /// The cells of an attribute (by its number in the array's schema), or where the fragment lacks it, its fill
    /// value.
    ///
    /// # Errors
    /// As [`Array::attribute_var_tiles`].
    pub fn of_attribute(array: &Array, fragment: usize, attribute: usize) -> Result<Self> {
        if !array.has_attribute(fragment, attribute)? {
            return Ok(VarFile::Fill(array.schema().attributes[attribute].fill.clone()));
        }
        Ok(VarFile::Stored(array.attribute_var_tiles(fragment, attribute)?))
    }

    /// What all cells of a tile take, in bytes, as the metadata say.
    ///
    /// # Errors
    /// [`Error::Damaged`] when there is no such tile, or it takes more than 64 bits count.
    pub fn tile_size(&self, tile: u64, in_tile: u64) -> Result<u64> {
        match self {
            VarFile::Stored(tiles) => tiles.size(tile),
            VarFile::Fill(fill) => {
                in_tile.checked_mul(fill.len() as u64).ok_or_else(|| Error::damaged("a tile of more than 2^64 bytes"))
            }
        }
    }

    /// Reads cells of the tile that these cells are in.
    ///
    /// # Errors
    /// As [`VarTiles::reader`].
    pub fn reader(&self, cells: TileCells) -> Result<VarCells<'_>> {
        match self {
            VarFile::Stored(tiles) => tiles.reader(cells.tile, cells.in_tile).map(VarCells::Stored),
            VarFile::Fill(fill) => Ok(VarCells::Fill(fill)),
        }
    }

    /// Adds the units that hold where some cells of a tile begin and end.
    ///
    /// # Errors
    /// As [`VarTiles::offset_units`].
    pub fn offset_units(&self, cells: TileCells, units: &mut Vec<TileUnit>) -> Result<()> {
        match self {
            VarFile::Stored(tiles) => tiles.offset_units(cells.tile, cells.in_tile, cells.first, cells.count, units),
            VarFile::Fill(_) => Ok(()),
        }
    }

    /// The tiles, unless every cell is the same value.
    pub fn tiles(&self) -> Option<&VarTiles> {
        match self {
            VarFile::Stored(tiles) => Some(tiles),
            VarFile::Fill(_) => None,
        }
    }

    /// Adds the units that hold some bytes of the values of the tile that these cells are in.
    ///
    /// # Errors
    /// As [`VarTiles::value_units`].
    pub fn value_units(&self, cells: TileCells, bytes: Range<u64>, units: &mut Vec<TileUnit>) -> Result<()> {
        match self {
            VarFile::Stored(tiles) => tiles.value_units(cells.tile, cells.in_tile, bytes, units),
            VarFile::Fill(_) => Ok(()),
        }
    }

    /// Appends some cells of a tile to a column.
    ///
    /// # Errors
    /// Any damage in what is needed for them, [`Error::Unsupported`] when they do not fit in memory.
    pub fn append(&self, cells: TileCells, column: &mut AxisColumn) -> Result<()> {
        let mut reader = self.reader(cells)?;
        let mut offsets = vec![0; cells.count as usize + 1];
        reader.offsets(cells.first, &mut offsets)?;
        let (from, to) = (offsets[0], offsets[cells.count as usize]);
        let before = column.bytes.len();
        let length = (to - from) as usize;
        if length > MOST_STRINGS {
            return Err(Error::unsupported(format!("{length} bytes of coordinates in {} cells", cells.count)));
        }
        // Before there is room made: whether the tile has so many bytes, of which so far only a number was read.
        self.value_units(cells, from..to, &mut Vec::new())?;
        memory::resize(&mut column.bytes, before.saturating_add(length), "the values of a tile")?;
        reader.copy(from, &mut column.bytes[before..])?;
        if column.offsets.is_empty() {
            column.offsets.push(0);
        }
        column.offsets.extend(offsets[1..].iter().map(|offset| offset - from + before as u64));
        Ok(())
    }
}

/// Cells of one tile of a [`VarFile`].
pub enum VarCells<'a> {
    Stored(VarReader<'a>),
    Fill(&'a [u8]),
}

impl VarCells<'_> {
    /// Where cells from cell `first` of the tile start in its values: fills `out`, whose last entry may be the end
    /// of the last cell.
    ///
    /// # Errors
    /// As [`VarReader::offsets`].
    pub fn offsets(&mut self, first: u64, out: &mut [u64]) -> Result<()> {
        match self {
            VarCells::Stored(reader) => reader.offsets(first, out),
            VarCells::Fill(fill) => {
                for (cell, offset) in (first..).zip(out) {
                    *offset = cell * fill.len() as u64;
                }
                Ok(())
            }
        }
    }

    /// Copies the tile's values from byte `start`.
    ///
    /// # Errors
    /// As [`VarReader::copy`].
    pub fn copy(&mut self, start: u64, out: &mut [u8]) -> Result<()> {
        match self {
            VarCells::Stored(reader) => reader.copy(start, out),
            VarCells::Fill(fill) => {
                let skipped = (start % fill.len().max(1) as u64) as usize;
                out.iter_mut().zip(fill.iter().cycle().skip(skipped)).for_each(|(out, byte)| *out = *byte);
                Ok(())
            }
        }
    }
}

/// Bytes of the strings of one dimension that are looked at together.
const MOST_STRINGS: usize = 1 << 30;
