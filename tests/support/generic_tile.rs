//! Generic tiles, in which schemas and metadata are stored: not encrypted, compressed as every library writes them, or
//! without filters.

/// The format version of the tiles.
pub const VERSION: u32 = 22;

/// The bytes of a chunk's data.
const CHUNK: usize = 65536;

/// A pipeline without filters: the maximum chunk size, and the number of filters.
pub const NO_FILTERS: [u8; 8] = [0, 0, 1, 0, 0, 0, 0, 0];

/// The bytes of a header without its pipeline.
const HEADER: usize = 34;

/// The number of the type CHAR.
const CHAR: u8 = 4;

/// Returns the length of a tile without filters that has a payload of this length.
pub fn unfiltered_len(payload: usize) -> usize {
    HEADER + NO_FILTERS.len() + 8 + payload + 12 * payload.div_ceil(CHUNK)
}

/// Returns a tile without filters.
pub fn unfiltered(payload: &[u8]) -> Vec<u8> {
    tile(payload, VERSION, &NO_FILTERS, |data, chunk| {
        [data.len() as u32, data.len() as u32, 0].iter().for_each(|number| chunk.extend(number.to_le_bytes()));
        chunk.extend(data);
    })
}

/// Returns a tile that is compressed with GZIP, of a format version.
#[cfg(feature = "arrays")]
pub fn compressed(payload: &[u8], version: u32) -> Vec<u8> {
    use std::io::Write as _;
    const GZIP: [u8; 18] = [0, 0, 1, 0, 1, 0, 0, 0, 1, 5, 0, 0, 0, 1, 1, 0, 0, 0];
    tile(payload, version, &GZIP, |data, chunk| {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(data).expect("compressed in memory");
        let stored = encoder.finish().expect("compressed in memory");
        // The sizes of the chunk; then its metadata: no part of metadata and one of data, with its sizes.
        for number in [data.len(), stored.len(), 16, 0, 1, data.len(), stored.len()] {
            chunk.extend((number as u32).to_le_bytes());
        }
        chunk.extend(stored);
    })
}

/// Returns a tile with a pipeline. `add` appends a chunk with some data.
fn tile(payload: &[u8], version: u32, pipeline: &[u8], add: impl Fn(&[u8], &mut Vec<u8>)) -> Vec<u8> {
    let mut chunks = (payload.len().div_ceil(CHUNK) as u64).to_le_bytes().to_vec();
    payload.chunks(CHUNK).for_each(|data| add(data, &mut chunks));
    let mut tile = version.to_le_bytes().to_vec();
    tile.extend((chunks.len() as u64).to_le_bytes());
    tile.extend((payload.len() as u64).to_le_bytes());
    tile.push(CHAR);
    tile.extend(1u64.to_le_bytes());
    tile.push(0); // not encrypted
    tile.extend((pipeline.len() as u32).to_le_bytes());
    tile.extend(pipeline);
    tile.extend(chunks);
    tile
}
