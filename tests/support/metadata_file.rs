//! The generic tiles in front of the footer of a fragment metadata file, and the same file with one of them replaced.

use tilefs_format::generic_tile::GenericTileHeader;

/// Returns the start and end of each generic tile at the start of a file.
pub fn generic_tiles(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut tiles = Vec::new();
    let mut at = 0;
    while let Ok(header) = GenericTileHeader::parse(&bytes[at..]) {
        let end = (at + header.header_size).saturating_add(header.persisted_size as usize);
        if end > bytes.len() || end <= at {
            break;
        }
        tiles.push((at, end));
        at = end;
    }
    tiles
}

/// Replaces the generic tile that starts at `start`. Adjusts the footer's offsets of the tiles after it.
pub fn replace_generic_tile(bytes: &mut Vec<u8>, start: usize, tile: &[u8]) {
    let tiles = generic_tiles(bytes);
    let end = tiles.iter().find(|(at, _)| *at == start).map_or(bytes.len(), |(_, end)| *end);
    let moved = (tile.len() as u64).wrapping_sub((end - start) as u64);
    let later: Vec<u64> = tiles.iter().map(|(at, _)| *at as u64).filter(|at| *at > start as u64).collect();
    let mut at = tiles.last().map_or(end, |(_, end)| *end);
    while at + 8 <= bytes.len() {
        let offset = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        if later.contains(&offset) {
            bytes[at..at + 8].copy_from_slice(&offset.wrapping_add(moved).to_le_bytes());
            at += 8;
        } else {
            at += 1;
        }
    }
    bytes.splice(start..end, tile.iter().copied());
}
