//! Locates the chunks of a stored tile from their headers, one after the other (the format's "Tile" page).

use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::tile::ChunkHeader;
use tilefs_storage::{Storage, StoreKey};

/// A chunk and its location.
#[derive(Debug, Clone, Copy)]
pub struct StoredChunk {
    /// The offset in the file of the chunk's metadata, right after its header.
    pub offset: u64,
    pub header: ChunkHeader,
    /// The offset in the decoded tile.
    pub start: u64,
}

/// Goes from chunk to chunk of a tile in a file. Holds the most recent read.
pub struct ChunkWalk<'a> {
    window: ReadWindow<'a>,
    count: u64,
    left: u64,
    /// The offset of the next header.
    at: u64,
    /// The decoded bytes of the chunks so far, and the decoded size of the tile.
    decoded: u64,
    most: u64,
}

impl<'a> ChunkWalk<'a> {
    /// Starts at the beginning of a window that contains one tile, which decodes to `size` bytes.
    ///
    /// # Errors
    /// Errors of reading; [`Error::Damaged`] for more chunks than fit into the tile.
    pub fn new(mut window: ReadWindow<'a>, size: u64) -> Result<Self> {
        let at = window.start;
        let head = window.get(at, 8)?.first_chunk().copied();
        let count = chunk_count(head.map_or(0, u64::from_le_bytes), window.end - at).at(at)?;
        Ok(ChunkWalk { window, count, left: count, at: at + 8, decoded: 0, most: size })
    }

    /// Returns the number of chunks according to the tile.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the next chunk; `None` after the last.
    ///
    /// # Errors
    /// Errors of reading; [`Error::Damaged`] for a chunk that exceeds the tile, or is empty and not the last.
    pub fn next_chunk(&mut self) -> Result<Option<StoredChunk>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let bytes = self.window.get(self.at, ChunkHeader::SIZE)?.first_chunk().copied().unwrap_or_default();
        let (header, offset) = (ChunkHeader::parse(&bytes), self.at + ChunkHeader::SIZE as u64);
        let damaged = |reason: &str| Err(Error::damaged(reason).in_field("chunk header").at(offset));
        if header.original == 0 && self.left > 0 {
            // libtiledb writes one empty chunk after a last cell that is longer than a chunk. A hole in the file reads
            // as any number of empty chunks.
            return damaged("an empty chunk before others");
        }
        let chunk = StoredChunk { offset, header, start: self.decoded };
        self.decoded = self.decoded.saturating_add(u64::from(header.original));
        self.at = offset + header.payload_size();
        if self.at > self.window.end || self.decoded > self.most {
            return damaged("a chunk leaves its tile");
        }
        Ok(Some(chunk))
    }

    /// Returns the stored bytes of a chunk, metadata and data. Call it before the next chunk is requested.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn stored(&mut self, chunk: &StoredChunk) -> Result<&[u8]> {
        self.window.get(chunk.offset, chunk.header.payload_size() as usize)
    }

    /// Returns the decoded bytes of the chunks so far.
    pub fn decoded(&self) -> u64 {
        self.decoded
    }

    /// Returns the stored bytes of the tile after the chunks so far.
    pub fn rest(&self) -> u64 {
        self.window.end - self.at
    }
}

/// Returns the number of chunks from the head of a tile, checked against the tile's stored length.
///
/// # Errors
/// [`Error::Damaged`] for more chunks than fit.
pub fn chunk_count(count: u64, stored: u64) -> Result<u64> {
    let most = stored.saturating_sub(8) / ChunkHeader::SIZE as u64;
    if count > most {
        return Err(Error::damaged(format!("{count} chunks claimed, at most {most} fit")).in_field("number of chunks"));
    }
    Ok(count)
}

/// A part of a file from which small consecutive pieces are read, with fewer and larger reads.
pub struct ReadWindow<'a> {
    storage: &'a dyn Storage,
    path: &'a StoreKey,
    end: u64,
    /// The offset of the most recently read bytes.
    start: u64,
    bytes: Vec<u8>,
    /// The minimum size of a read, except at the end.
    least: usize,
}

impl<'a> ReadWindow<'a> {
    /// A window from `start` to `end`, with reads of at least `least` bytes. `front` holds its first bytes, which were
    /// read already.
    pub fn new(
        storage: &'a dyn Storage,
        path: &'a StoreKey,
        start: u64,
        end: u64,
        front: Vec<u8>,
        least: usize,
    ) -> Self {
        ReadWindow { storage, path, end, start, bytes: front, least }
    }

    /// Returns the bytes at an offset of the file, which may not be before the previous one.
    fn get(&mut self, at: u64, length: usize) -> Result<&[u8]> {
        let left = self.end.saturating_sub(at);
        if length as u64 > left {
            return Err(Error::damaged("a chunk leaves its tile").in_field("chunk header").at(at));
        }
        let is_here = |from: u64| from.checked_add(length as u64).is_some_and(|end| end <= self.bytes.len() as u64);
        let from = match at.checked_sub(self.start).filter(|&from| is_here(from)) {
            Some(from) => from as usize,
            None => {
                self.bytes.resize(left.min(length.max(self.least) as u64) as usize, 0);
                self.storage.read_at(self.path, at, &mut self.bytes)?;
                self.start = at;
                0
            }
        };
        self.bytes
            .get(from..from + length)
            .ok_or_else(|| Error::internal("a read window without the bytes that it read"))
    }
}

#[cfg(test)]
mod tests {
    use tilefs_storage::MemoryStorage;

    use super::*;

    /// Returns the chunks of a tile of these bytes: for each its offset, its decoded size, and its stored bytes.
    fn walk(stored: &[u8], size: u64, least: usize) -> Result<Vec<(u64, u32, Vec<u8>)>> {
        let (storage, path) = (MemoryStorage::default(), StoreKey::from("/tile"));
        storage.put(path.clone(), stored.to_vec());
        let window = ReadWindow::new(&storage, &path, 0, stored.len() as u64, Vec::new(), least);
        let mut walk = ChunkWalk::new(window, size)?;
        let mut found = Vec::new();
        while let Some(chunk) = walk.next_chunk()? {
            found.push((chunk.offset, chunk.header.original, walk.stored(&chunk)?.to_vec()));
        }
        assert_eq!((walk.rest(), walk.count()), (0, found.len() as u64));
        Ok(found)
    }

    fn tile(chunks: &[(u32, &[u8])]) -> Vec<u8> {
        let mut stored = (chunks.len() as u64).to_le_bytes().to_vec();
        for (original, data) in chunks {
            stored.extend([*original, data.len() as u32, 0].iter().flat_map(|number| number.to_le_bytes()));
            stored.extend_from_slice(data);
        }
        stored
    }

    #[test]
    fn chunks_are_found_with_any_read_size() {
        let stored = tile(&[(3, b"abc"), (70_000, &[1; 5000]), (1, b"")]);
        let found = walk(&stored, 70_004, 1).unwrap();
        assert_eq!(found.iter().map(|one| (one.0, one.1)).collect::<Vec<_>>(), [(20, 3), (35, 70_000), (5047, 1)]);
        assert_eq!((&*found[0].2, &*found[1].2), (&b"abc"[..], &[1; 5000][..]));
        for least in [8, 20, 21, 4096, 1 << 20] {
            assert_eq!(walk(&stored, 70_004, least).unwrap(), found, "{least}");
        }
    }

    #[test]
    fn chunks_that_exceed_their_tile_are_damage() {
        let whole = tile(&[(3, b"abc"), (2, b"de")]);
        for (stored, size, reason) in [
            (&whole[..], 4, "a chunk leaves its tile"),
            (&whole[..whole.len() - 1], 5, "a chunk leaves its tile"),
            (&whole[..20], 5, "2 chunks claimed, at most 1 fit"),
            (&whole[..7], 5, "a chunk leaves its tile"),
            (&tile(&[(0, b""), (3, b"abc")]), 3, "an empty chunk before others"),
            (&tile(&[(3, b"abc"), (0, b""), (0, b"")]), 3, "an empty chunk before others"),
        ] {
            let error = walk(stored, size, 12).unwrap_err();
            assert!(matches!(error, Error::Damaged { .. }) && error.to_string().contains(reason), "{error}");
        }
        assert_eq!(walk(&tile(&[(0, b"")]), 0, 12).unwrap().len(), 1);
        assert_eq!(walk(&tile(&[(3, b"abc"), (0, b"none")]), 3, 12).unwrap().len(), 2);
        assert!(walk(&tile(&[]), 0, 12).unwrap().is_empty());
    }
}
