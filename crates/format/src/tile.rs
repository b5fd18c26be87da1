//! The header of a chunk of a tile (the format's "Tile" page). A tile is a `u64` count and that many chunks; a chunk is
//! a header, its filter metadata and its filtered data.

/// The sizes of a chunk, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkHeader {
    /// Of the chunk after the whole pipeline is undone.
    pub original: u32,
    /// Of the filtered data, which come after the filter metadata.
    pub filtered: u32,
    /// Of the filter metadata, which follow the header.
    pub metadata: u32,
}

impl ChunkHeader {
    /// Bytes of the header itself.
    pub const SIZE: usize = 12;

    /// Parses a header. Any 12 bytes are valid; the caller checks the sizes.
    pub fn parse(bytes: &[u8; Self::SIZE]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *bytes;
        ChunkHeader {
            original: u32::from_le_bytes([a, b, c, d]),
            filtered: u32::from_le_bytes([e, f, g, h]),
            metadata: u32::from_le_bytes([i, j, k, l]),
        }
    }

    /// Returns the bytes of the metadata and the data after the header.
    pub fn payload_size(&self) -> u64 {
        u64::from(self.filtered) + u64::from(self.metadata)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_size_is_the_last_field() {
        let header = ChunkHeader::parse(&[1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 3, 0]);
        assert_eq!(header, ChunkHeader { original: 1, filtered: 512, metadata: 3 << 16 });
        assert_eq!(ChunkHeader::parse(&[255; 12]).payload_size(), 2 * u64::from(u32::MAX));
    }
}
