//! Writes array schemas, and generic tiles, in which metadata are stored.

use super::cells::{Axis, Cells, Field};

/// The format version of all generated arrays.
pub const VERSION: u32 = 22;

/// The bytes of a chunk's data.
const CHUNK: usize = 65536;

/// A pipeline without filters: the maximum chunk size, and the number of filters.
const NO_FILTERS: [u8; 8] = [0, 0, 1, 0, 0, 0, 0, 0];

/// The bytes before the chunks: the header, the pipeline, and the number of chunks.
const HEAD: usize = 34 + NO_FILTERS.len() + 8;

/// Returns the length of a generic tile with a payload of this length.
pub fn generic_tile_len(payload: usize) -> usize {
    HEAD + payload + 12 * payload.div_ceil(CHUNK)
}

/// Writes a payload as a generic tile without filters.
pub fn generic_tile(payload: &[u8]) -> Vec<u8> {
    const CHAR: u8 = 4;
    let length = generic_tile_len(payload.len());
    let mut tile = Vec::with_capacity(length);
    tile.extend(VERSION.to_le_bytes());
    tile.extend((length as u64 - 42).to_le_bytes());
    tile.extend((payload.len() as u64).to_le_bytes());
    tile.push(CHAR);
    tile.extend(1u64.to_le_bytes());
    tile.push(0); // not encrypted
    tile.extend((NO_FILTERS.len() as u32).to_le_bytes());
    tile.extend(NO_FILTERS);
    tile.extend((payload.len().div_ceil(CHUNK) as u64).to_le_bytes());
    for chunk in payload.chunks(CHUNK) {
        [chunk.len() as u32, chunk.len() as u32, 0].iter().for_each(|number| tile.extend(number.to_le_bytes()));
        tile.extend(chunk);
    }
    tile
}

/// Returns the payload of the schema of a sparse array without filters.
pub fn schema(cells: &dyn Cells, capacity: u64) -> Vec<u8> {
    const SPARSE: u8 = 1;
    const ROW_MAJOR: u8 = 0;
    let mut bytes = VERSION.to_le_bytes().to_vec();
    bytes.extend([0, SPARSE, ROW_MAJOR, ROW_MAJOR]); // no duplicates
    bytes.extend(capacity.to_le_bytes());
    // The pipelines of coordinates, offsets and validity.
    bytes.extend(NO_FILTERS.repeat(3));
    bytes.extend((cells.dimensions().len() as u32).to_le_bytes());
    for (field, axis) in cells.dimensions().iter().zip(cells.axes()) {
        put_field(field, &mut bytes);
        put_axis(axis, &mut bytes);
    }
    bytes.extend((cells.attributes().len() as u32).to_le_bytes());
    for field in cells.attributes() {
        put_field(field, &mut bytes);
        let fill = field.datatype.fill().repeat(field.values.unwrap_or(1) as usize);
        bytes.extend((fill.len() as u64).to_le_bytes());
        bytes.extend(fill);
        bytes.extend([0; 3]); // not nullable, validity of the fill value, no order
        bytes.extend(0u32.to_le_bytes()); // no enumeration
    }
    // No labels, no enumerations, an empty current domain of version 0.
    bytes.extend([0; 12]);
    bytes.push(1);
    bytes
}

fn put_field(field: &Field, to: &mut Vec<u8>) {
    to.extend((field.name.len() as u32).to_le_bytes());
    to.extend(field.name.bytes());
    to.push(field.datatype as u8);
    to.extend(field.values.unwrap_or(u32::MAX).to_le_bytes());
    to.extend(NO_FILTERS);
}

fn put_axis(axis: &Axis, to: &mut Vec<u8>) {
    to.extend(16u64.to_le_bytes());
    to.extend(axis.domain.0.to_le_bytes());
    to.extend(axis.domain.1.to_le_bytes());
    to.push(0); // there is an extent
    to.extend(axis.extent.to_le_bytes());
}
