//! The sections of fragment metadata that are lists: tile offsets, tile sizes, processed conditions.
//!
//! Each function takes the unfiltered payload of a section's generic tile and wants it used up.

use crate::cursor::Cursor;
use crate::error::{Error, Locate, Result};

/// A count and that many numbers: any of the offset and size sections.
///
/// # Errors
/// [`Error::Damaged`] when the payload is longer or shorter than its count says.
pub fn parse_u64_list(payload: &[u8]) -> Result<Vec<u64>> {
    let mut cursor = Cursor::new(payload);
    let list = u64_list(&mut cursor, "list")?;
    cursor.expect_end("end of section")?;
    Ok(list)
}

/// As [`parse_u64_list`], for the offsets of `tiles` tiles in a file of `file_size` bytes. Tile `i` ends where
/// the next begins, the last at `file_size`.
///
/// # Errors
/// [`Error::Damaged`] also when the offsets are not as many as the tiles, go backwards, or leave the file.
pub fn parse_tile_offsets(payload: &[u8], tiles: u64, file_size: u64) -> Result<Vec<u64>> {
    let offsets = parse_u64_list(payload)?;
    check_tile_offsets(&offsets, tiles, file_size)?;
    Ok(offsets)
}

/// The checks of [`parse_tile_offsets`], for lists that came otherwise.
///
/// # Errors
/// [`Error::Damaged`] as said there.
pub fn check_tile_offsets(offsets: &[u64], tiles: u64, file_size: u64) -> Result<()> {
    check_count(offsets, tiles)?;
    if !offsets.is_sorted() {
        return Err(Error::damaged("tile offsets that go backwards").in_field("tile offsets"));
    }
    match offsets.last() {
        Some(&last) if last > file_size => {
            Err(Error::damaged(format!("tile at {last} of a file of {file_size} bytes")).in_field("tile offsets"))
        }
        _ => Ok(()),
    }
}

/// As [`parse_u64_list`], for the unfiltered sizes of `tiles` tiles of variable-size values. The sizes
/// themselves are only claims.
///
/// # Errors
/// [`Error::Damaged`] also when the sizes are not as many as the tiles.
pub fn parse_tile_sizes(payload: &[u8], tiles: u64) -> Result<Vec<u64>> {
    let sizes = parse_u64_list(payload)?;
    check_count(&sizes, tiles)?;
    Ok(sizes)
}

fn check_count(list: &[u64], tiles: u64) -> Result<()> {
    if list.len() as u64 == tiles {
        Ok(())
    } else {
        Err(Error::damaged(format!("{} entries for {tiles} tiles", list.len())).in_field("number of tiles"))
    }
}

/// The processed conditions (from version 15): names of the delete files that the fragment has already applied,
/// relative to the array without a leading slash. Cells in `dci.tdb` are positions in this list.
///
/// # Errors
/// [`Error::Damaged`] when the list does not fill the payload.
pub fn parse_processed_conditions(payload: &[u8]) -> Result<Vec<String>> {
    let mut cursor = Cursor::new(payload);
    let count = cursor.u64("number of conditions")?;
    let count = cursor.checked_count(count, 8, "number of conditions")?;
    let mut names = Vec::new();
    for _ in 0..count {
        names.push(cursor.text64("condition")?.to_owned());
    }
    cursor.expect_end("end of section")?;
    Ok(names)
}

/// The least and the greatest value of a field in a fragment, as they are stored; both are empty for types that have
/// no order, for cells of several values, and where no cell has a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extremes {
    pub least: Vec<u8>,
    pub greatest: Vec<u8>,
}

/// The extremes of each of a fragment's `slots` fields, from its statistics (from version 12).
///
/// # Errors
/// [`Error::Damaged`] when the statistics do not fill the payload.
pub fn parse_extremes(payload: &[u8], slots: usize) -> Result<Vec<Extremes>> {
    let mut cursor = Cursor::new(payload);
    let slots = cursor.checked_count(slots as u64, 32, "statistics")?;
    let extremes = (0..slots).map(|_| {
        let (least, greatest) = (cursor.str64("least value")?.to_vec(), cursor.str64("greatest value")?.to_vec());
        cursor.u64("sum")?;
        cursor.u64("nulls")?;
        Ok(Extremes { least, greatest })
    });
    let extremes = extremes.collect::<Result<_>>()?;
    cursor.expect_end("end of section")?;
    Ok(extremes)
}

/// The least, or the greatest, values of a field in each tile of a fragment (from version 11).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TileExtremes {
    fixed: Vec<u8>,
    var: Vec<u8>,
    /// Bytes of each value; `None` where these vary, and `fixed` has their offsets.
    size: Option<usize>,
}

impl TileExtremes {
    /// Reads those of `tiles` tiles of values of `size` bytes, `None` for a size of their own. There are none for types
    /// that have no order, and for cells of several values.
    ///
    /// # Errors
    /// [`Error::Damaged`] when they are not as many as the tiles, or do not fill the payload.
    pub fn parse(payload: &[u8], tiles: u64, size: Option<usize>) -> Result<Option<Self>> {
        let mut cursor = Cursor::new(payload);
        let (fixed, var) = (cursor.u64("bytes of extremes")?, cursor.u64("bytes of extremes of variable size")?);
        let fixed = cursor.checked_count(fixed, 1, "bytes of extremes")?;
        let fixed = cursor.bytes(fixed, "extremes")?.to_vec();
        let var = cursor.checked_count(var, 1, "bytes of extremes of variable size")?;
        let var = cursor.bytes(var, "extremes of variable size")?.to_vec();
        cursor.expect_end("end of section")?;
        if fixed.is_empty() {
            return Ok(None);
        }
        if tiles.checked_mul(size.unwrap_or(8) as u64) != Some(fixed.len() as u64) {
            return Err(Error::damaged(format!("{} bytes of extremes for {tiles} tiles", fixed.len())));
        }
        Ok(Some(TileExtremes { fixed, var, size }))
    }

    /// That of a tile.
    pub fn get(&self, tile: u64) -> Option<&[u8]> {
        let tile = usize::try_from(tile).ok()?;
        if let Some(size) = self.size {
            return self.fixed.chunks_exact(size).nth(tile);
        }
        let offsets = self.fixed.as_chunks().0;
        let offset =
            |tile: usize| offsets.get(tile).and_then(|offset| usize::try_from(u64::from_le_bytes(*offset)).ok());
        self.var.get(offset(tile)?..offset(tile + 1).unwrap_or(self.var.len()))
    }

    /// Bytes of memory that this takes, about.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.fixed.len() + self.var.len()
    }
}

/// A count and that many numbers, at the cursor.
pub(super) fn u64_list(cursor: &mut Cursor<'_>, field: &str) -> Result<Vec<u64>> {
    let count = cursor.u64(field)?;
    let count = cursor.checked_count(count, 8, field)?;
    (0..count).map(|_| cursor.u64(field)).collect()
}
