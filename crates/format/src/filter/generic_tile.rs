//! The payload of generic tiles, which store schemas, fragment metadata and all other structures: chunks as in any
//! tile, with a pipeline of at most GZIP and encryption.

use std::sync::Arc;

use tilefs_base::error::{Error, Result};

use super::chunks::Chunks;
use super::decoder::{Decoder, TileContext};
use super::key::Key;
use super::scratch::Scratch;
use crate::datatype::Datatype;
use crate::pipeline::{Filter, Pipeline};

/// The upper bound of a zlib stream's expansion factor.
const MAX_EXPANSION: u64 = 1032;

/// Decodes the bytes after the header of a generic tile.
///
/// `decoder` is its [`generic_tile_decoder`], `tile_size` the length that the header claims. Memory is bounded by the
/// largest expansion of a zlib stream as long as `persisted`.
///
/// # Errors
/// Those of [`Decoder::decode`]; [`Error::Damaged`] if the payload does not decode to exactly `tile_size` bytes.
pub fn decode_generic_tile(
    decoder: &Decoder,
    tile_size: u64,
    persisted: &[u8],
    scratch: &mut Scratch,
) -> Result<Vec<u8>> {
    let mut tile = Vec::new();
    for chunk in Chunks::new(persisted)? {
        let chunk = chunk?;
        let start = tile.len();
        let end = start as u64 + u64::from(chunk.original_bytes);
        if end > tile_size || u64::from(chunk.original_bytes) > chunk.data.len() as u64 * MAX_EXPANSION {
            let length = chunk.original_bytes;
            return Err(Error::damaged(format!("a chunk of {length} bytes in a generic tile of {tile_size}")));
        }
        tile.resize(end as usize, 0);
        decoder.decode(chunk.metadata, chunk.data, &mut tile[start..], scratch)?;
    }
    if tile.len() as u64 == tile_size {
        return Ok(tile);
    }
    Err(Error::damaged(format!("a generic tile has {} of {tile_size} bytes", tile.len())))
}

/// Returns the decoder of a generic tile. `encrypted` is whether its header says that it is encrypted.
///
/// # Errors
/// [`Error::Key`] if the key is missing, or if a key is given and the tile is not encrypted, which libtiledb refuses
/// too; [`Error::Unsupported`] for a filter that generic tiles do not use.
pub fn generic_tile_decoder(pipeline: &Pipeline, encrypted: bool, key: Option<&Key>) -> Result<Decoder> {
    for filter in &pipeline.filters {
        if !matches!(filter, Filter::Noop | Filter::Gzip { .. } | Filter::Aes256Gcm) {
            return Err(Error::unsupported(format!("filter {} in a generic tile", filter.name())));
        }
    }
    let encrypted = encrypted || pipeline.filters.contains(&Filter::Aes256Gcm);
    let key = match (encrypted, key) {
        (true, None) => return Err(Error::key("the array is encrypted and no key was given")),
        (true, Some(key)) => Some(Arc::new(key.clone())),
        // Somebody without the key may have added this file to the array.
        (false, Some(_)) => return Err(Error::key("a key was given, but this is not encrypted")),
        (false, None) => None,
    };
    let context = TileContext { datatype: Datatype::Char, cell_size: 1, format_version: 0, writer_version: None, key };
    Decoder::new(pipeline, &context)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip() -> Pipeline {
        Pipeline { max_chunk_size: 65536, filters: vec![Filter::Gzip { level: 1 }] }
    }

    fn decode(pipeline: &Pipeline, encrypted: bool, size: u64, stored: &[u8], key: Option<&Key>) -> Result<Vec<u8>> {
        let decoder = generic_tile_decoder(pipeline, encrypted, key)?;
        decode_generic_tile(&decoder, size, stored, &mut Scratch::new())
    }

    fn tile(chunks: &[&[u8]]) -> Vec<u8> {
        let mut tile = (chunks.len() as u64).to_le_bytes().to_vec();
        for chunk in chunks {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(chunk).unwrap();
            let data = encoder.finish().unwrap();
            for number in [chunk.len(), data.len(), 16, 0, 1, chunk.len(), data.len()] {
                tile.extend((number as u32).to_le_bytes());
            }
            tile.extend(data);
        }
        tile
    }

    #[test]
    fn chunks_are_concatenated() {
        let stored = tile(&[b"first ", b"second"]);
        assert_eq!(decode(&gzip(), false, 12, &stored, None).unwrap(), b"first second");
        let plain = [&[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0][..], b"ab"].concat();
        assert_eq!(decode(&Pipeline::default(), false, 2, &plain, None).unwrap(), b"ab");
        assert_eq!(decode(&gzip(), false, 0, &[0; 8], None).unwrap(), b"");
    }

    #[test]
    fn a_chunk_of_nothing_needs_no_stream() {
        let mut stored = tile(&[b"first", b"", b"second"]);
        let end = stored.len();
        assert_eq!(decode(&gzip(), false, 11, &stored, None).unwrap(), b"firstsecond");
        let empty = 8 + 28 + u32::from_le_bytes(stored[12..16].try_into().unwrap()) as usize;
        let stream_bytes = u32::from_le_bytes(stored[empty + 4..empty + 8].try_into().unwrap());
        for at in [empty + 4, empty + 24] {
            stored[at..at + 4].copy_from_slice(&(stream_bytes - 2).to_le_bytes());
        }
        let stream_end = empty + 28 + stream_bytes as usize;
        stored.drain(stream_end - 2..stream_end);
        assert_eq!(stored.len(), end - 2);
        assert_eq!(decode(&gzip(), false, 11, &stored, None).unwrap(), b"firstsecond");
    }

    #[test]
    fn lengths_must_agree() {
        let stored = tile(&[b"first ", b"second"]);
        for size in [0, 6, 11, 13, u64::MAX] {
            assert!(decode(&gzip(), false, size, &stored, None).is_err(), "{size}");
        }
        for cut in 0..stored.len() {
            assert!(decode(&gzip(), false, 12, &stored[..cut], None).is_err(), "cut at {cut}");
        }
        let mut bomb = tile(&[b"x"]);
        for at in [8, 28] {
            bomb[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        }
        assert!(decode(&gzip(), false, u32::MAX.into(), &bomb, None).is_err());
    }

    #[test]
    fn wrong_use_of_keys_and_other_filters_are_refused() {
        let stored = tile(&[b"x"]);
        assert!(matches!(decode(&gzip(), true, 1, &stored, None), Err(Error::Key { .. })));
        let key = Key::parse(&[1; 32]).unwrap();
        assert!(decode(&gzip(), false, 1, &stored, None).is_ok());
        assert!(matches!(decode(&gzip(), false, 1, &stored, Some(&key)), Err(Error::Key { .. })));
        assert!(decode(&gzip(), true, 1, &stored, Some(&key)).is_err());
        let other = Pipeline { max_chunk_size: 65536, filters: vec![Filter::Zstd { level: 1 }] };
        assert!(matches!(decode(&other, false, 1, &stored, None), Err(Error::Unsupported { .. })));
    }
}
