//! The saved form of the index of a variable-size column: where the values of its rows start.

use tilefs_format::cursor::Cursor;

/// The bytes at which the values of a segment's blocks start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentIndex {
    pub bytes: u64,
    /// Empty for a cell slab.
    pub blocks: Vec<BlockStart>,
}

/// The row and the byte at which a block starts, counted from the start of its segment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BlockStart {
    pub row: u64,
    pub byte: u64,
}

/// The indexes of all segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedVarIndex {
    pub segments: Vec<SegmentIndex>,
}

impl SavedVarIndex {
    /// Returns the bytes of all values.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).fold(0, u64::saturating_add)
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for segment in &self.segments {
            out.extend(segment.bytes.to_le_bytes());
            out.extend((segment.blocks.len() as u64).to_le_bytes());
            for block in &segment.blocks {
                out.extend(block.row.to_le_bytes());
                out.extend(block.byte.to_le_bytes());
            }
        }
        out
    }

    /// Decodes an index; `None` if the bytes are malformed, or blocks do not ascend.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (mut cursor, mut segments, mut total) = (Cursor::new(bytes), Vec::new(), 0u64);
        while !cursor.is_at_end() {
            let (bytes, blocks) = (cursor.u64("bytes").ok()?, cursor.u64("blocks").ok()?);
            let blocks = cursor.checked_count(blocks, size_of::<BlockStart>(), "blocks").ok()?;
            total = total.checked_add(bytes)?;
            let mut segment = SegmentIndex { bytes, blocks: Vec::with_capacity(blocks) };
            let mut before = BlockStart::default();
            for number in 0..blocks {
                let block = BlockStart { row: cursor.u64("row").ok()?, byte: cursor.u64("byte").ok()? };
                let follows = block.row >= before.row && block.byte >= before.byte && block.byte <= bytes;
                if !follows || (number == 0 && block != before) {
                    return None;
                }
                segment.blocks.push(block);
                before = block;
            }
            segments.push(segment);
        }
        Some(SavedVarIndex { segments })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_saved_is_read_and_other_bytes_break_nothing(
            segments in prop::collection::vec(prop::collection::vec((0u64..9, 0u64..9), 0..5), 0..5),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let segments = segments.into_iter().map(|steps| {
                let mut at = BlockStart::default();
                let mut blocks = Vec::new();
                for (rows, bytes) in steps {
                    blocks.push(at);
                    at = BlockStart { row: at.row + rows, byte: at.byte + bytes };
                }
                SegmentIndex { bytes: at.byte, blocks }
            });
            let index = SavedVarIndex { segments: segments.collect() };
            let mut bytes = index.encode();
            prop_assert_eq!(SavedVarIndex::decode(&bytes), Some(index.clone()));
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                prop_assert!(SavedVarIndex::decode(&bytes[..at]) != Some(index));
                bytes[at] = byte;
                if let Some(read) = SavedVarIndex::decode(&bytes) {
                    for segment in read.segments {
                        prop_assert!(segment.blocks.iter().all(|block| block.byte <= segment.bytes));
                    }
                }
            }
        }
    }
}
