//! The sections of fragment metadata other than the R-tree: tile offsets, tile sizes, processed conditions, extremes.
//!
//! Each function takes the unfiltered payload of a section's generic tile, which must have no bytes left over.

use tilefs_base::error::{Error, Locate, Result};

use crate::cursor::Cursor;

/// Reads a count and that many numbers: any of the offset and size sections.
///
/// # Errors
/// [`Error::Damaged`] if the payload is longer or shorter than its count says.
pub fn parse_u64_list(payload: &[u8]) -> Result<Vec<u64>> {
    let mut cursor = Cursor::new(payload);
    let list = u64_list(&mut cursor, "list")?;
    cursor.expect_end("end of section")?;
    Ok(list)
}

/// Reads the offsets of `tiles` tiles in a file of `file_size` bytes. Each tile ends where the next begins, the last
/// one at `file_size`.
///
/// # Errors
/// Those of [`parse_u64_list`], and [`Error::Damaged`] if the number of offsets is wrong, or they decrease or leave the
/// file.
pub fn parse_tile_offsets(payload: &[u8], tiles: u64, file_size: u64) -> Result<Vec<u64>> {
    let offsets = parse_u64_list(payload)?;
    check_tile_offsets(&offsets, tiles, file_size)?;
    Ok(offsets)
}

/// Checks offsets as [`parse_tile_offsets`] does.
///
/// # Errors
/// [`Error::Damaged`] if the number of offsets is wrong, or they decrease or leave the file.
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

/// Reads the unfiltered sizes of `tiles` tiles of variable-size values. The sizes themselves are unchecked.
///
/// # Errors
/// Those of [`parse_u64_list`], and [`Error::Damaged`] if the number of sizes is wrong.
pub fn parse_tile_sizes(payload: &[u8], tiles: u64) -> Result<Vec<u64>> {
    let sizes = parse_u64_list(payload)?;
    check_count(&sizes, tiles)?;
    Ok(sizes)
}

/// Returns which entries belong to tiles, in a list of the offsets of `tiles` tiles that has more entries.
///
/// In writes in global order, release 2.2 counts the tiles of nullable attributes twice, or one and a half times if they
/// are of variable size. So each submit leaves entries of 0 after those of its tiles, in all lists of the fragment.
/// Every tile has a header, so only the first one is at 0.
///
/// # Errors
/// [`Error::Damaged`] if other than `tiles` entries belong to tiles.
pub fn entries_of_tiles(offsets: &[u64], tiles: u64) -> Result<Vec<usize>> {
    let is_tile = |(number, offset): &(usize, &u64)| *number == 0 || **offset != 0;
    let entries: Vec<usize> = offsets.iter().enumerate().filter(is_tile).map(|(number, _)| number).collect();
    if entries.len() as u64 == tiles {
        return Ok(entries);
    }
    let reason = format!("{} entries, {} of them with tiles, for {tiles} tiles", offsets.len(), entries.len());
    Err(Error::damaged(reason).in_field("number of tiles"))
}

fn check_count(list: &[u64], tiles: u64) -> Result<()> {
    if list.len() as u64 == tiles {
        Ok(())
    } else {
        Err(Error::damaged(format!("{} entries for {tiles} tiles", list.len())).in_field("number of tiles"))
    }
}

/// Reads the processed conditions (from version 15): the names of the delete files that the fragment has already
/// applied, relative to the array without a leading slash. Cells of `dci.tdb` are indexes into this list.
///
/// # Errors
/// [`Error::Damaged`] if the list does not fill the payload.
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

/// The minimum and the maximum of a field in a fragment, as stored. Both are empty for types without an order, for
/// cells of several values, and if no cell has a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extremes {
    /// The bytes of the least value.
    pub least: Vec<u8>,
    /// The bytes of the greatest value.
    pub greatest: Vec<u8>,
}

/// Reads the extremes of each of a fragment's `slots` fields from its statistics (from version 12).
///
/// # Errors
/// [`Error::Damaged`] if the statistics do not fill the payload.
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

/// The minimum, or the maximum, of a field in each tile of a fragment (from version 11).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TileExtremes {
    fixed: Vec<u8>,
    var: Vec<u8>,
    /// Bytes of each value. `None` if they vary: then `fixed` has the offsets of the values in `var`.
    size: Option<usize>,
}

impl TileExtremes {
    /// Reads the extremes of `tiles` tiles. Values have `size` bytes; `None` if they vary in size. Returns `None` for
    /// types without an order and for cells of several values.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the number of values is wrong, or they do not fill the payload.
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

    /// Returns the value of a tile.
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

    /// Returns the approximate memory of this value in bytes.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.fixed.len() + self.var.len()
    }
}

/// Reads a count and that many numbers at the cursor.
pub(super) fn u64_list(cursor: &mut Cursor<'_>, field: &str) -> Result<Vec<u64>> {
    let count = cursor.u64(field)?;
    let count = cursor.checked_count(count, 8, field)?;
    (0..count).map(|_| cursor.u64(field)).collect()
}
