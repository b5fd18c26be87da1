//! The unit of decoding: the part of a tile that is decoded at once, and how.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::memory;
use tilefs_format::filter::{Decoder, Scratch, StoredOrder};
use tilefs_format::tile::ChunkHeader;

use super::Tiles;
use super::offsets::{OFFSET, OffsetTiles};
use super::reorder::to_row_major;
use super::tile_file::expect_size;
use crate::array::folder::sorted_file::SortedFile;
use crate::array::metadata_tiles::chunk_walk::{StoredChunk, chunk_count};
use crate::cache::{BufferPool, PooledBuffer};
use crate::read::{Decoded, StoredRange, Unit, UnitKey, UnitPart};

/// A stored chunk may exceed its decoded size by the framing of each filter; more than this is damage.
const MAX_EXPANSION: u64 = 1 << 20;

/// The part of a tile that is decoded at once, and how.
#[derive(Clone)]
pub struct TileUnit {
    pub(super) tiles: Arc<Tiles>,
    pub(super) tile: u64,
    /// The offset of the unit's bytes in the decoded tile.
    pub(super) start: u64,
    /// The number of bytes to which the unit decodes.
    pub(super) size: u64,
    pub(super) form: UnitForm,
}

#[derive(Clone)]
pub(super) enum UnitForm {
    Tile,
    Chunk(u32, StoredChunk),
    /// A tile that is stored in column-major order and converted to row-major order once decoded: the extents of the
    /// tile, and the size of a cell in bytes.
    RowMajor(Arc<[usize]>, usize),
    /// Values with their offsets, for this number of cells.
    VariableSize(Arc<OffsetTiles>, u64),
    /// Stored in another order: values, which are decoded to the array's order, or raw coordinates of a size.
    Sorted(Arc<Decoder>),
    SortedCoordinates(Arc<StoredOrder>, usize),
}

/// Removes the units, from number `first` on, that are not marked.
pub fn keep_marked(units: &mut Vec<TileUnit>, first: usize, marks: Vec<bool>) {
    let mut marks = marks.into_iter();
    let mut number = 0;
    units.retain(|_| {
        number += 1;
        number <= first || marks.next().unwrap_or(true)
    });
}

/// Removes the units, from number `first` on, that contain no byte of some ranges of their tile. The units are in the
/// order of the tile; no range is empty.
pub fn drop_untouched(ranges: impl Iterator<Item = Range<u64>>, first: usize, units: &mut Vec<TileUnit>) {
    let own: Vec<Range<u64>> = units.get(first..).unwrap_or_default().iter().map(TileUnit::range).collect();
    let mut is_touched = vec![false; own.len()];
    for range in ranges {
        let number = own.partition_point(|unit| unit.end <= range.start);
        let touched = own.iter().zip(&mut is_touched).skip(number).take_while(|(unit, _)| unit.start < range.end);
        touched.for_each(|(_, is_touched)| *is_touched = true);
    }
    keep_marked(units, first, is_touched);
}

impl TileUnit {
    /// Returns the range of the unit's bytes in the decoded tile.
    pub fn range(&self) -> Range<u64> {
        self.start..self.start + self.size
    }

    /// Returns the tiles of offsets and the size of this tile's offsets, if they are separate from the values.
    fn offset_bytes(&self) -> Option<(&Arc<Tiles>, u64)> {
        match &self.form {
            UnitForm::VariableSize(offsets, cells) => {
                let is_folded = *cells > 0 && offsets.tiles.file.has_no_chunks(self.tile).unwrap_or(false);
                (!is_folded).then(|| (&offsets.tiles, cells.saturating_mul(OFFSET)))
            }
            _ => None,
        }
    }

    /// Returns the offset of the unit's stored bytes in the file.
    fn stored_offset(&self) -> Result<u64> {
        match &self.form {
            UnitForm::Chunk(_, chunk) => Ok(chunk.offset),
            _ => Ok(self.tiles.file.stored_range(self.tile)?.0),
        }
    }

    fn decode_at_place(&self, stored: &[u8], buffers: &Arc<BufferPool>, scratch: &mut Scratch) -> Result<Decoded> {
        if let UnitForm::VariableSize(..) = self.form {
            return self.decode_variable_size(stored, buffers, scratch);
        }
        let mut bytes = self.tiles.file.take_buffer(self.size, buffers)?;
        self.decode_fixed_size(stored, &mut bytes, buffers, scratch)?;
        Ok(Decoded::of_bytes(self.start, bytes))
    }

    fn decode_fixed_size(
        &self,
        stored: &[u8],
        out: &mut [u8],
        buffers: &Arc<BufferPool>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let tiles = &*self.tiles;
        match &self.form {
            UnitForm::Tile => decode_chunks(stored, &tiles.decoder, out, scratch),
            UnitForm::Sorted(decoder) => decode_chunks(stored, decoder, out, scratch),
            UnitForm::SortedCoordinates(order, size) => order.restore(*size, stored, out),
            UnitForm::RowMajor(extents, cell_size) => {
                let mut column_major = tiles.file.take_buffer(self.size, buffers)?;
                decode_chunks(stored, &tiles.decoder, &mut column_major, scratch)?;
                to_row_major(&column_major, extents, *cell_size, out);
                Ok(())
            }
            UnitForm::Chunk(_, chunk) => {
                let (metadata, data) = stored.split_at(chunk.header.metadata as usize);
                tiles.decoder.decode(metadata, data, out, scratch)
            }
            UnitForm::VariableSize(..) => Err(Error::internal("cells of variable size decoded as of one size")),
        }
    }

    fn decode_variable_size(&self, stored: &[u8], buffers: &Arc<BufferPool>, scratch: &mut Scratch) -> Result<Decoded> {
        let UnitForm::VariableSize(offset_tiles, cells) = &self.form else {
            return Err(Error::internal("a tile of cells of one size decoded as of variable size"));
        };
        let tiles = &*self.tiles;
        let (mut offsets, bytes) = match self.offset_bytes() {
            None => tiles.decode_strings(stored, self.size, *cells, buffers, scratch)?,
            Some((file, size)) => {
                let (_, length) = file.file.stored_range(self.tile)?;
                let (stored_offsets, stored) = stored.split_at(length as usize);
                let decoded = file.decode_tile(stored_offsets, size, buffers, scratch).in_file(file.file.path())?;
                let mut offsets = allocate_offsets(0)?;
                // One for each decoded offset, and the end.
                offsets.reserve_exact(decoded.len() / OFFSET as usize + 1);
                offsets.extend(decoded.as_chunks().0.iter().copied().map(u64::from_le_bytes));
                (offsets, tiles.decode_tile(stored, self.size, buffers, scratch)?)
            }
        };
        offset_tiles.check_first(self.tile, &offsets)?;
        offsets.push(self.size);
        offset_tiles.check(self.tile, 0, &offsets, self.size)?;
        Ok(Decoded { bytes, offsets, start: self.start })
    }
}

impl Unit for TileUnit {
    fn key(&self) -> UnitKey {
        let part = match &self.form {
            UnitForm::Tile | UnitForm::Sorted(_) | UnitForm::SortedCoordinates(..) => UnitPart::Tile,
            UnitForm::Chunk(number, _) => UnitPart::Chunk(*number),
            UnitForm::RowMajor(..) => UnitPart::RowMajor,
            UnitForm::VariableSize(..) => UnitPart::VariableSize,
        };
        UnitKey { file: self.tiles.file.number(), tile: self.tile, part }
    }

    fn start(&self) -> u64 {
        self.start
    }

    fn size(&self) -> u64 {
        self.size.saturating_add(self.offset_bytes().map_or(0, |(_, bytes)| bytes))
    }

    fn in_turn(&self) -> u64 {
        self.tiles.by_turns
    }

    fn for_each_stored<'a>(&'a self, visit: &mut dyn FnMut(StoredRange<'a>)) -> Result<()> {
        let tiles = &*self.tiles;
        if let UnitForm::Chunk(_, chunk) = &self.form {
            let length = chunk.header.payload_size();
            plausible(length, self.size).in_file(tiles.file.path()).at(chunk.offset)?;
            tiles.file.expect_stored(chunk.offset, length)?;
            visit(StoredRange { file: tiles.file.path(), offset: chunk.offset, length });
            return Ok(());
        }
        let most = match &self.form {
            // Also if the offsets are in the values.
            UnitForm::VariableSize(_, cells) => self.size.saturating_add(cells.saturating_mul(OFFSET)),
            _ => self.size,
        };
        if most > tiles.file.most_at_once() {
            let what = match &self.form {
                UnitForm::VariableSize(_, cells) => format!("{} bytes in {cells} cells", self.size),
                _ => format!("{most} bytes"),
            };
            let what = format!("{what} that can only be decoded together, more than --cache-size");
            return Err(Error::unsupported(what).in_file(tiles.file.path()));
        }
        if let Some((offsets, size)) = self.offset_bytes() {
            let (offset, length) = offsets.file.stored_range(self.tile).in_file(offsets.file.path())?;
            plausible(length, size).in_file(offsets.file.path()).at(offset)?;
            offsets.file.expect_stored(offset, length)?;
            visit(StoredRange { file: offsets.file.path(), offset, length });
        }
        let (offset, length) = tiles.file.stored_range(self.tile).in_file(tiles.file.path())?;
        // Bounds the buffer: a small tile has few chunks, each with a header and some framing.
        match &self.form {
            UnitForm::SortedCoordinates(..) if length != self.size => {
                let reason = format!("{length} stored bytes instead of {}", self.size);
                return Err(Error::damaged(reason).in_file(tiles.file.path()).at(offset));
            }
            _ => plausible(length, most).in_file(tiles.file.path()).at(offset)?,
        }
        tiles.file.expect_stored(offset, length)?;
        visit(StoredRange { file: tiles.file.path(), offset, length });
        Ok(())
    }

    fn is_stored_plain(&self) -> bool {
        match &self.form {
            UnitForm::Chunk(_, StoredChunk { header, .. }) => {
                self.tiles.decoder.is_unfiltered() && header.metadata == 0 && header.filtered == header.original
            }
            _ => false,
        }
    }

    fn decode(&self, stored: &[u8], buffers: &Arc<BufferPool>, scratch: &mut Scratch) -> Result<Decoded> {
        let decoded = self.decode_at_place(stored, buffers, scratch);
        decoded.in_file(self.tiles.file.path()).at(self.stored_offset()?)
    }

    fn decode_into(
        &self,
        stored: &[u8],
        out: &mut [u8],
        buffers: &Arc<BufferPool>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let decoded = self.decode_fixed_size(stored, out, buffers, scratch);
        decoded.in_file(self.tiles.file.path()).at(self.stored_offset()?)
    }

    fn room(&self, buffers: &Arc<BufferPool>) -> Result<PooledBuffer> {
        self.tiles.file.take_buffer(self.size, buffers).in_file(self.tiles.file.path())
    }
}

impl Tiles {
    /// Adds the units that contain a range of bytes of one tile, in the order of the tile; `size` is the decoded size
    /// of the whole tile. For a large tile this may read the index of its chunks.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a range outside the tile, and for any damage in that index.
    pub fn units(self: &Arc<Self>, tile: u64, size: u64, range: Range<u64>, units: &mut Vec<TileUnit>) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        if range.end > size {
            let reason = format!("byte {} of a tile of {size} wanted", range.end - 1);
            return Err(Error::damaged(reason).in_file(self.file.path()));
        }
        let unit = |start: u64, size: u64, form: UnitForm| TileUnit { tiles: self.clone(), tile, start, size, form };
        if let Some((file, cells)) = &self.sorted {
            let count = size / file.cell_size().max(1) as u64;
            units.push(unit(
                0,
                size,
                match file {
                    SortedFile::Values { .. } => UnitForm::Sorted(Arc::new(cells.decoder(tile, count)?)),
                    SortedFile::Coordinates { size } => UnitForm::SortedCoordinates(cells.order(tile, count)?, *size),
                },
            ));
            return Ok(());
        }
        if size <= self.whole_tile {
            units.push(unit(0, size, UnitForm::Tile));
            return Ok(());
        }
        let index = self.file.chunk_index(tile, size)?;
        if let [first, _, ..] = index.chunks[..] {
            self.usual_chunk.store(first.header.original, Ordering::Relaxed);
        }
        let first = index.chunks.partition_point(|chunk| chunk.start <= range.start).saturating_sub(1);
        for (number, chunk) in (0u32..).zip(&index.chunks).skip(first) {
            if chunk.start >= range.end {
                break;
            }
            units.push(unit(chunk.start, u64::from(chunk.header.original), UnitForm::Chunk(number, *chunk)));
        }
        Ok(())
    }

    /// Returns the key of the unit around a byte of a tile if all chunks before it have the usual size; `size` is the
    /// decoded size of the whole tile. The index of the chunks is not read, because that would be one more access to
    /// memory that no processor has cached. If a chunk has an unusual size, the unit may lack the byte.
    pub fn usual_key(&self, tile: u64, size: u64, byte: u64) -> Option<UnitKey> {
        let part = if self.sorted.is_some() || size <= self.whole_tile {
            UnitPart::Tile
        } else {
            let usual = u64::from(self.usual_chunk.load(Ordering::Relaxed));
            UnitPart::Chunk(byte.checked_div(usual)?.try_into().ok()?)
        };
        Some(UnitKey { file: self.file.number(), tile, part })
    }

    /// Returns the unit of a whole tile whose cells are stored in column-major order; it decodes to row-major order.
    pub fn row_major_unit(
        self: &Arc<Self>,
        tile: u64,
        size: u64,
        extents: &Arc<[usize]>,
        cell_size: usize,
    ) -> TileUnit {
        TileUnit { tiles: self.clone(), tile, start: 0, size, form: UnitForm::RowMajor(extents.clone(), cell_size) }
    }

    /// Returns the unit of a whole tile of values of variable size, with its offsets: `size` bytes of values in `cells`
    /// cells.
    pub fn variable_size_unit(
        self: &Arc<Self>,
        offsets: &Arc<OffsetTiles>,
        tile: u64,
        size: u64,
        cells: u64,
    ) -> TileUnit {
        TileUnit { tiles: self.clone(), tile, start: 0, size, form: UnitForm::VariableSize(offsets.clone(), cells) }
    }

    /// Decodes all chunks of a tile's stored bytes to a buffer of `size` bytes.
    fn decode_tile(
        &self,
        stored: &[u8],
        size: u64,
        buffers: &Arc<BufferPool>,
        scratch: &mut Scratch,
    ) -> Result<PooledBuffer> {
        let mut bytes = self.file.take_buffer(size, buffers)?;
        decode_chunks(stored, &self.decoder, &mut bytes, scratch)?;
        Ok(bytes)
    }

    /// Decodes a tile that stores strings and their offsets in one chunk: the start of each of `cells` strings, and the
    /// strings.
    fn decode_strings(
        &self,
        stored: &[u8],
        size: u64,
        cells: u64,
        buffers: &Arc<BufferPool>,
        scratch: &mut Scratch,
    ) -> Result<(Vec<u64>, PooledBuffer)> {
        let mut decoded = None;
        for_each_chunk(stored, |original, metadata, data| {
            if decoded.is_some() {
                return Err(Error::damaged("several chunks of strings that hold their offsets"));
            }
            expect_size(original as u64, size)?;
            let (mut offsets, mut bytes) = (allocate_offsets(cells)?, self.file.take_buffer(size, buffers)?);
            self.decoder.decode_strings(metadata, data, &mut bytes, &mut offsets, scratch)?;
            decoded = Some((offsets, bytes));
            Ok(())
        })?;
        decoded.ok_or_else(|| Error::damaged("a tile without chunks"))
    }
}

/// Decodes all chunks of a tile's stored bytes, one after the other; they must fill `out`.
fn decode_chunks(stored: &[u8], decoder: &Decoder, out: &mut [u8], scratch: &mut Scratch) -> Result<()> {
    let (size, mut filled) = (out.len(), 0);
    for_each_chunk(stored, |original, metadata, data| {
        let end = filled + original;
        let Some(out) = out.get_mut(filled..end) else {
            return Err(Error::damaged(format!("the chunks hold more than the {size} bytes of the tile")));
        };
        filled = end;
        decoder.decode(metadata, data, out, scratch)
    })?;
    expect_size(filled as u64, size as u64)
}

/// Allocates the offsets of `cells` strings, set to 0.
fn allocate_offsets(cells: u64) -> Result<Vec<u64>> {
    let (mut offsets, what) = (Vec::new(), "strings that can only be decoded together");
    let cells = usize::try_from(cells).unwrap_or(usize::MAX);
    // There is one more offset, the end.
    memory::resize(&mut offsets, cells.saturating_add(1), what)?;
    offsets.truncate(cells);
    Ok(offsets)
}

/// Visits (decoded size, metadata, data) of the chunks of a tile's stored bytes.
fn for_each_chunk(tile: &[u8], mut visit: impl FnMut(usize, &[u8], &[u8]) -> Result<()>) -> Result<()> {
    let damaged = || Error::damaged("a chunk leaves its tile").in_field("chunk header");
    let (head, mut rest) = tile.split_first_chunk().ok_or_else(damaged)?;
    for _ in 0..chunk_count(u64::from_le_bytes(*head), tile.len() as u64)? {
        let (header, behind) = rest.split_first_chunk::<{ ChunkHeader::SIZE }>().ok_or_else(damaged)?;
        let header = ChunkHeader::parse(header);
        let (metadata, behind) = behind.split_at_checked(header.metadata as usize).ok_or_else(damaged)?;
        let (data, behind) = behind.split_at_checked(header.filtered as usize).ok_or_else(damaged)?;
        visit(header.original as usize, metadata, data)?;
        rest = behind;
    }
    Ok(())
}

fn plausible(stored: u64, size: u64) -> Result<()> {
    if stored > size.saturating_mul(4).saturating_add(MAX_EXPANSION) {
        return Err(Error::damaged(format!("{stored} stored bytes for {size} decoded ones")));
    }
    Ok(())
}
