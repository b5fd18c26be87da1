//! Reads generic tiles, the containers of all metadata but the footer, from stored files.

use std::path::Path;

use crate::error::{Error, Locate, Result};
use crate::filter::{Key, decode_generic_tile};
use crate::format::generic_tile::GenericTileHeader;
use crate::storage::Storage;

/// No metadata structure of a readable array comes near this size.
const MOST_PAYLOAD: u64 = 4 << 30;

/// Reads the header of the generic tile at `offset` of a file.
///
/// # Errors
/// [`Error::Io`] and [`Error::Damaged`] naming file and offset.
pub fn read_header(storage: &dyn Storage, path: &Path, offset: u64) -> Result<GenericTileHeader> {
    let file = storage.open(path)?;
    let available = file.len().saturating_sub(offset);
    let mut head = vec![0; available.min(GenericTileHeader::MOST_SIZE as u64) as usize];
    file.read_at(offset, &mut head).in_file(path)?;
    GenericTileHeader::parse(&head).in_file(path).at(offset)
}

/// Reads the payload of the generic tile at `offset` of a file.
///
/// # Errors
/// [`Error::Io`] and [`Error::Damaged`] naming file and offset; [`Error::Key`] when the tile is encrypted and
/// the key is missing or wrong, or the other way round.
pub fn read_generic_tile(storage: &dyn Storage, path: &Path, offset: u64, key: Option<&Key>) -> Result<Vec<u8>> {
    let header = read_header(storage, path, offset)?;
    let file = storage.open(path)?;
    let start = offset + header.header_size as u64;
    let left = file.len().saturating_sub(start);
    if header.persisted_size > left || header.tile_size > MOST_PAYLOAD {
        let reason =
            format!("{} bytes for a tile of {} claimed, {left} are left", header.persisted_size, header.tile_size);
        return Err(Error::damaged(reason).in_field("persisted size").in_file(path).at(offset));
    }
    let mut stored = vec![0; header.persisted_size as usize];
    file.read_at(start, &mut stored).in_file(path)?;
    decode_generic_tile(&header.pipeline, header.encrypted, header.tile_size, &stored, key).in_file(path).at(offset)
}

/// As [`read_generic_tile`], for a generic tile that is in memory.
///
/// # Errors
/// As there, without the file.
pub fn decode_inline_tile(bytes: &[u8], key: Option<&Key>) -> Result<Vec<u8>> {
    let header = GenericTileHeader::parse(bytes)?;
    let end = (header.header_size as u64).checked_add(header.persisted_size).and_then(|end| usize::try_from(end).ok());
    let stored = end
        .and_then(|end| bytes.get(header.header_size..end))
        .ok_or_else(|| Error::damaged("the tile is longer than its copy").in_field("persisted size"))?;
    decode_generic_tile(&header.pipeline, header.encrypted, header.tile_size, stored, key)
}
