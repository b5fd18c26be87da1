//! Splits a stored tile into chunks: a count, then per chunk three lengths, the filter metadata and the filtered data.

use tilefs_base::error::Result;

use crate::cursor::Cursor;
use crate::tile::ChunkHeader;

/// One chunk of a stored tile.
#[derive(Debug, Clone, Copy)]
pub struct Chunk<'a> {
    /// Length of the unfiltered data.
    pub original_bytes: u32,
    /// The metadata of all filters of the pipeline.
    pub metadata: &'a [u8],
    /// The filtered data.
    pub data: &'a [u8],
}

/// An iterator over the chunks of a whole stored tile. Bytes after the last chunk are an error.
#[derive(Debug, Clone)]
pub struct Chunks<'a> {
    cursor: Cursor<'a>,
    left: usize,
}

impl<'a> Chunks<'a> {
    /// Starts at the first chunk.
    ///
    /// # Errors
    /// [`tilefs_base::error::Error::Damaged`] if the tile is too short for the number of chunks that it claims.
    pub fn new(tile: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(tile);
        let count = cursor.u64("number of chunks")?;
        let left = cursor.checked_count(count, ChunkHeader::SIZE, "number of chunks")?;
        if left == 0 && !cursor.is_at_end() {
            return Err(cursor.error("number of chunks", "bytes follow a tile without chunks"));
        }
        Ok(Chunks { cursor, left })
    }

    fn read(&mut self) -> Result<Chunk<'a>> {
        let header = self.cursor.bytes(ChunkHeader::SIZE, "chunk header")?;
        let header = header.try_into().map_err(|_| self.cursor.error("chunk header", "of the wrong length"))?;
        let header = ChunkHeader::parse(header);
        let metadata = self.cursor.bytes_u64(header.metadata.into(), "chunk metadata")?;
        let data = self.cursor.bytes_u64(header.filtered.into(), "chunk data")?;
        if self.left == 0 && !self.cursor.is_at_end() {
            return Err(self.cursor.error("chunks", "bytes follow the last chunk"));
        }
        Ok(Chunk { original_bytes: header.original, metadata, data })
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Result<Chunk<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let chunk = self.read();
        if chunk.is_err() {
            self.left = 0;
        }
        Some(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_comes_before_data() {
        let tile = [1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, b'm', b'd', b'd'];
        let chunks: Vec<_> = Chunks::new(&tile).unwrap().map(Result::unwrap).collect();
        assert_eq!(chunks.len(), 1);
        assert_eq!((chunks[0].original_bytes, chunks[0].metadata, chunks[0].data), (9, &b"m"[..], &b"dd"[..]));
        for cut in 0..tile.len() {
            let result: Result<Vec<_>> = Chunks::new(&tile[..cut]).and_then(|chunks| chunks.collect());
            assert!(result.is_err(), "cut at {cut}");
        }
        let longer = [&tile[..], &[0]].concat();
        assert!(Chunks::new(&longer).unwrap().collect::<Result<Vec<_>>>().is_err());
    }

    #[test]
    fn counts_are_bounded_by_the_tile() {
        assert!(Chunks::new(&u64::MAX.to_le_bytes()).is_err());
        assert_eq!(Chunks::new(&[0; 8]).unwrap().count(), 0);
        assert!(Chunks::new(&[0; 9]).is_err());
    }
}
