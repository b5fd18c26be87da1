//! The header of a generic tile, the container of nearly all metadata (the format's "Generic Tile").
//!
//! An ordinary tile (chunks) follows the header, filtered by the pipeline that the header stores.

use tilefs_base::error::{Error, Locate, Result};

use super::cursor::Cursor;
use super::datatype::Datatype;
use super::pipeline::{Filter, Pipeline};
use super::version::{NEWEST, OLDEST, check_version};

/// The greatest expansion factor of DEFLATE. A larger claim is damage.
const MAX_EXPANSION: u64 = 1032;

/// The largest metadata that are accepted, in bytes.
const MAX_TILE: u64 = 8 << 30;

/// The header of a generic tile.
#[derive(Debug, Clone, PartialEq)]
pub struct GenericTileHeader {
    /// Format version of the library that wrote the tile. It may be newer than the version of the tile's content.
    pub version: u32,
    /// Bytes that follow the header.
    pub persisted_size: u64,
    /// Bytes after unfiltering. At most 8 GiB, and no more than DEFLATE can make of the persisted size.
    pub tile_size: u64,
    /// The type of the tile's cells.
    pub datatype: Datatype,
    /// The length of a cell in bytes.
    pub cell_size: u64,
    /// Whether the tile is encrypted.
    pub encrypted: bool,
    /// One GZIP filter; encrypted tiles also list the encryption here.
    pub pipeline: Pipeline,
    /// Bytes of the header itself: the offset of the data from the start of the header.
    pub header_size: usize,
}

impl GenericTileHeader {
    /// Bytes of the fields before the pipeline.
    const FIXED_SIZE: usize = 34;

    /// The longest header. A read of this many bytes, or to the end of the file, contains the whole header.
    pub const MAX_SIZE: usize = Self::FIXED_SIZE + 222;

    /// Reads the header at the start of `bytes`; bytes after it are ignored.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for later format versions, filters that metadata do not use, more than 8 GiB, and tiles
    /// of TileDB before 1.4; [`Error::Damaged`] if the fields contradict each other.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        if is_older_than_1_4(bytes) {
            return Err(Error::unsupported("written by TileDB before 1.4"));
        }
        let mut cursor = Cursor::new(bytes);
        let version = cursor.u32("version")?;
        check_version(version).in_field("version").at(0)?;
        let persisted_size = cursor.u64("persisted size")?;
        let tile_size = cursor.u64("tile size")?;
        let datatype = Datatype::from_number(cursor.u8("datatype")?)?;
        let cell_size = cursor.u64("cell size")?;
        let encrypted = match cursor.u8("encryption type")? {
            0 => false,
            1 => true,
            other => return Err(Error::unsupported(format!("encryption type {other}"))),
        };
        let pipeline_size = cursor.u32("pipeline size")?;
        if u64::from(pipeline_size) > (Self::MAX_SIZE - Self::FIXED_SIZE) as u64 {
            return Err(cursor.error("pipeline size", format!("a filter pipeline of {pipeline_size} bytes")));
        }
        let mut inner = Cursor::new(cursor.bytes_u64(u64::from(pipeline_size), "pipeline")?);
        let pipeline = Pipeline::parse(&mut inner)?;
        inner.expect_end("pipeline")?;
        let header = GenericTileHeader {
            version,
            persisted_size,
            tile_size,
            datatype,
            cell_size,
            encrypted,
            pipeline,
            header_size: cursor.position(),
        };
        header.check()?;
        Ok(header)
    }

    fn check(&self) -> Result<()> {
        let is_aes = |filter: &&Filter| matches!(filter, Filter::Aes256Gcm);
        let is_known = |filter: &&Filter| matches!(filter, Filter::Noop | Filter::Gzip { .. } | Filter::Aes256Gcm);
        if let Some(other) = self.pipeline.filters.iter().find(|filter| !is_known(filter)) {
            return Err(Error::unsupported(format!("metadata filtered with {}", other.name())));
        }
        if self.pipeline.filters.iter().filter(is_aes).count() != usize::from(self.encrypted) {
            return Err(Error::damaged("encryption type and filter pipeline disagree").in_field("encryption type"));
        }
        if self.tile_size > MAX_TILE {
            return Err(Error::unsupported(format!("metadata of {} bytes", self.tile_size)).in_field("tile size"));
        }
        if self.tile_size > self.persisted_size.saturating_mul(MAX_EXPANSION) {
            let reason = format!("{} bytes cannot hold a tile of {}", self.persisted_size, self.tile_size);
            return Err(Error::damaged(reason).in_field("tile size"));
        }
        Ok(())
    }
}

/// Recognises the header of TileDB before 1.4, which has no version: compressed size, tile size, datatype (`u8`), cell
/// size, compressor, level. Its cells are single chars, which today's header does not have at those offsets.
fn is_older_than_1_4(bytes: &[u8]) -> bool {
    let read = || -> Result<bool> {
        let mut cursor = Cursor::new(bytes);
        let compressed_size = cursor.u64("")?;
        let _tile_size = cursor.u64("")?;
        let datatype = cursor.u8("")?;
        let cell_size = cursor.u64("")?;
        let compressor = cursor.u8("")?;
        // Today's header starts with its version, 1 to 23. No schema compresses to so few bytes.
        let no_version = !(u64::from(OLDEST)..=u64::from(NEWEST)).contains(&(compressed_size & 0xffff_ffff));
        Ok(no_version
            && compressed_size < 1 << 40
            && datatype == Datatype::Char as u8
            && cell_size == 1
            && compressor < 16)
    };
    read().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an unencrypted header of version 22, for a payload of 100 bytes stored in 50 bytes.
    fn plain() -> Vec<u8> {
        let mut bytes = vec![22, 0, 0, 0, 50, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, 0, 0, 0, 0, 4];
        bytes.extend([1, 0, 0, 0, 0, 0, 0, 0, 0, 18, 0, 0, 0]);
        bytes.extend([0, 0, 1, 0, 1, 0, 0, 0, 1, 5, 0, 0, 0, 1, 1, 0, 0, 0]);
        bytes
    }

    fn encrypted() -> Vec<u8> {
        let mut bytes = plain();
        bytes[29] = 1;
        bytes[30] = 23;
        bytes[38] = 2;
        bytes.extend([11, 0, 0, 0, 0]);
        bytes
    }

    #[test]
    fn plain_and_encrypted_headers() {
        let mut bytes = plain();
        bytes.extend([7; 5]);
        let header = GenericTileHeader::parse(&bytes).unwrap();
        assert_eq!((header.version, header.persisted_size, header.tile_size), (22, 50, 100));
        assert_eq!((header.header_size, header.encrypted), (52, false));
        let header = GenericTileHeader::parse(&encrypted()).unwrap();
        assert_eq!((header.header_size, header.encrypted), (57, true));
        assert_eq!(header.pipeline.filters, [Filter::Gzip { level: 1 }, Filter::Aes256Gcm]);
    }

    #[test]
    fn every_truncation_is_damage() {
        let bytes = encrypted();
        for length in 0..bytes.len() {
            assert!(matches!(GenericTileHeader::parse(&bytes[..length]), Err(Error::Damaged { .. })), "{length}");
        }
    }

    #[test]
    fn contradictions_are_refused() {
        for (offset, value) in
            [(0, 24), (0, 0), (19, 1), (20, 99), (29, 2), (29, 1), (30, 17), (30, 19), (33, 1), (47, 2)]
        {
            let mut bytes = plain();
            bytes[offset] = value;
            bytes.push(0);
            assert!(GenericTileHeader::parse(&bytes).is_err(), "byte {offset} = {value}");
        }
    }

    #[test]
    fn sizes_are_bounded() {
        let sized = |persisted: u64, tile: u64| {
            let mut bytes = plain();
            bytes[4..12].copy_from_slice(&persisted.to_le_bytes());
            bytes[12..20].copy_from_slice(&tile.to_le_bytes());
            GenericTileHeader::parse(&bytes)
        };
        assert!(sized(50, 50 * MAX_EXPANSION).is_ok());
        assert!(matches!(sized(50, 50 * MAX_EXPANSION + 1), Err(Error::Damaged { .. })));
        assert!(sized(u64::MAX, MAX_TILE).is_ok());
        assert!(matches!(sized(u64::MAX, MAX_TILE + 1), Err(Error::Unsupported { .. })));
    }

    #[test]
    fn headers_before_1_4_are_recognised() {
        let mut bytes = Vec::new();
        bytes.extend(118u64.to_le_bytes());
        bytes.extend(150u64.to_le_bytes());
        bytes.push(4);
        bytes.extend(1u64.to_le_bytes());
        bytes.extend([1, 255, 255, 255, 255]);
        bytes.extend([0; 118]);
        let error = GenericTileHeader::parse(&bytes).unwrap_err();
        assert!(error.to_string().contains("before 1.4"), "{error}");
    }
}
